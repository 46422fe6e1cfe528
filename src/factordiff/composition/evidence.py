"""Evidence routing: SuperDiff per factor. Who has predicted a factor well so far speaks for the rest of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.composition import Composed, Composition, per_expert
from factordiff.composition.factors import Labels, Partition, alone, as_partition, factor_sums, labels_for
from factordiff.composition.method import declare
from factordiff.composition.mixture import checked_weights, mixture
from factordiff.composition.options import BIAS, FACTORS, WEIGHTS, Option, check_sizes
from factordiff.composition.superdiff import checked_bias, responsibilities
from factordiff.errors import InvalidInput
from factordiff.state import SamplerState
from factordiff.tensors import Floats, Numbers, as_tensor
from factordiff.types import ExpertCells, ExpertLogProbs

Kernel = Float[Tensor, "cell cell"]
GivenEvidence = Float[Tensor, "expert item cell"]
ItemEvidence = Float[Tensor, "expert item"]
Given = Literal["none", "folds", "chain"]  # how given cells are scored before the first step, if they are
Demonstrations = Literal["none", "all"]  # whether demonstrations are
DEFAULT_FACTORS = "near:2"


class Evidence(Composition):
    r"""Weights earned inside each factor f: $r(x_v) = \sum_m \kappa_{m,f(v)}\, p_m(x_v \mid x_t)$.

    $\kappa_{m,f} \propto w_m \exp(\ell_{m,f} / T + b_m)$, $\quad \ell_{m,f} = \sum_{u \in f} e_{m,u}$,

    where $e_{m,u}$ is $\log p_m(x_u \mid x_t)$ when cell u was revealed, 0 while it is masked, and plus `evidence`
    where some is given: of cells that were not drawn (`sampling.given_evidence`), or of anything else; `of_items`
    is evidence about a whole item, and counts in each of its factors. `given` and `demonstrations` ask a decoder
    (`engine.decode`) to gather such evidence from given cells and from demonstrations before it begins.
    At T = 1, b = 0, with at most one reveal per factor and step and experts that are products over the factors,
    samples are exactly from $\prod_f \sum_m w_m p_m(x_f)$: each factor belongs to some expert, independently.
    When a step reveals several cells of a factor, one expert is drawn for all of them.

    Without a partition the whole row is one factor, and this is SuperDiff OR. With every cell its own factor, or
    before anything is known, it is the mixture. A `kernel` K(u, v) in place of the partition lets factors overlap:
    $\ell_{m,v} = \sum_u K(u, v)\, e_{m,u}$; then no two cells share their speaker, and each cell of a step is drawn
    from its own mixture.

    Paper: Eq. (8); the weights are ours.
    """

    remembers = True  # weights are earned on the way

    def __init__(
        self,
        partition: Partition | Numbers | None = None,
        *,
        kernel: Kernel | Numbers | None = None,
        temperature: float = 1.0,
        weights: Floats | None = None,
        bias: Floats | None = None,
        evidence: GivenEvidence | Numbers | None = None,
        of_items: ItemEvidence | Numbers | None = None,
        given: Given = "none",
        demonstrations: Demonstrations = "none",
    ) -> None:
        if partition is not None and kernel is not None:
            raise InvalidInput(
                "partition, kernel: expected one of them, got both; the kernel says which cells belong together "
                "in place of the partition"
            )
        if not 0 < temperature < float("inf"):
            raise InvalidInput(f"temperature: expected a finite positive number, got {temperature}")
        check_sizes("temperature", [float(temperature)])
        self.partition = None if partition is None else as_partition(partition)
        self.kernel = None if kernel is None else _checked_kernel(kernel)
        self.temperature = float(temperature)
        self.weights = checked_weights(weights)
        self.bias = checked_bias(bias)
        self.evidence = None if evidence is None else _checked_evidence(evidence)
        self.of_items = None if of_items is None else _checked_of_items(of_items)
        self.given = _one_of("given", given, get_args(Given))
        self.demonstrations = _one_of("demonstrations", demonstrations, get_args(Demonstrations))
        self._moved: dict[tuple[str, torch.device], Tensor] = {}

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> Composed:
        """The mixture of each cell by the weights of its factor; the routing map names the heaviest expert."""
        of_cells = self.evidence_of_cells(state)
        labels: Labels | None = None
        if self.kernel is None:
            labels = (
                torch.zeros_like(state.x_t)
                if self.partition is None
                else labels_for(self._labels(state), state)
            )
            log_density = factor_sums(of_cells, labels)
        else:
            log_density = smoothed(of_cells, self.kernel_for(state))
        if self.of_items is not None:
            log_density = log_density + self._about_items(state).unsqueeze(-1)
        weights = per_expert("weights", self.weights, len(log_probs), 1.0, log_density)[:, None, None]
        bias = per_expert("bias", self.bias, len(log_probs), 0.0, log_density)[:, None, None]
        log_omega = (weights / weights.sum()).log()
        log_kappa = responsibilities(log_density / self.temperature, 1.0, bias, log_omega)
        return Composed(
            mixture(log_probs, log_kappa),
            routing=log_kappa.max(0).indices,
            log_kappa=None if labels is None else log_kappa,
            owners=labels,
            weights=log_kappa.exp(),
        )

    def with_evidence(self, evidence: GivenEvidence | None, of_items: ItemEvidence | None) -> Evidence:
        """The same with this evidence in place of its own, which need not be gathered again."""
        return Evidence(
            self.partition,
            kernel=self.kernel,
            temperature=self.temperature,
            weights=self.weights,
            bias=self.bias,
            evidence=evidence,
            of_items=of_items,
        )

    def evidence_of_cells(self, state: SamplerState) -> ExpertCells:
        r"""$e_{m,u}$: what each expert thought of each cell's value, by the row's path and by what is given."""
        if self.evidence is None:
            return state.log_density
        experts, items, cells = self.evidence.shape
        expected = (len(state.log_density), state.x_t.shape[1])
        if (experts, cells) != expected:
            raise InvalidInput(
                f"evidence: expected (expert, item, cell) with {expected[0]} experts and {expected[1]} cells, "
                f"got shape {tuple(self.evidence.shape)}"
            )
        if len(state) and int(state.item.max()) >= items:
            raise InvalidInput(
                f"evidence: expected some for every item, got {items} items and an item of number "
                f"{int(state.item.max())}"
            )
        return state.log_density + self._moved_to("evidence", self.evidence, state)[:, state.item]

    def _about_items(self, state: SamplerState) -> Float[Tensor, "expert batch"]:
        assert self.of_items is not None
        experts, items = self.of_items.shape
        if experts != len(state.log_density) or (len(state) and int(state.item.max()) >= items):
            raise InvalidInput(
                f"of_items: expected (expert, item) for {len(state.log_density)} experts and every item, "
                f"got shape {tuple(self.of_items.shape)}"
            )
        return self._moved_to("of_items", self.of_items, state)[:, state.item]

    def _labels(self, state: SamplerState) -> Partition:
        """The partition where the state is."""
        assert self.partition is not None
        if callable(self.partition):
            return self.partition
        return self._moved_to("partition", self.partition, state)

    def _moved_to(self, name: str, tensor: Tensor, state: SamplerState) -> Tensor:
        """A tensor of ours where the state is: it travels once, not at each step."""
        device = state.x_t.device
        if (name, device) not in self._moved:
            self._moved[name, device] = tensor.to(device)
        return self._moved[name, device]

    def kernel_for(self, state: SamplerState) -> Kernel:
        """The kernel, where the cells are as many as it is for."""
        assert self.kernel is not None
        cells = state.x_t.shape[1]
        if len(self.kernel) != cells:
            raise InvalidInput(
                f"kernel: expected shape ({cells}, {cells}), as there are {cells} cells, "
                f"got shape {tuple(self.kernel.shape)}"
            )
        return self._moved_to("kernel", self.kernel, state)

    def __repr__(self) -> str:
        shape = "whole" if self.partition is None else "partition"
        shape = shape if self.kernel is None else "kernel"
        given = "" if self.evidence is None and self.of_items is None else ", with evidence"
        return f"Evidence({shape}, temperature={self.temperature}, weights={self.weights}, bias={self.bias}{given})"


@declare(
    "evidence",
    WEIGHTS,
    Option(
        "evidence_temperature",
        "How slowly evidence decides: a large one is the plain mixture.",
        default=1.0,
        above=True,
        argument="temperature",
    ),
    BIAS,
    replace(FACTORS, default=DEFAULT_FACTORS),
    Option(
        "given_evidence",
        "Whether given cells are scored before the first step, in 4 folds or by the chain rule.",
        kind="choice",
        default="none",
        choices=get_args(Given),
        argument="given",
    ),
    Option(
        "demonstration_evidence",
        "Whether experts are scored on the demonstrations before the first step, each hidden in turn.",
        kind="choice",
        default="none",
        choices=get_args(Demonstrations),
        argument="demonstrations",
    ),
    reveal="exact",
    overlapping=True,
)
def evidence_of_factors(
    partition: Partition | Kernel | None = None,
    temperature: float = 1.0,
    weights: Floats | None = None,
    bias: Floats | None = None,
    given: Given = "none",
    demonstrations: Demonstrations = "none",
) -> Evidence:
    """Who has predicted what lies around a cell speaks for it: SuperDiff per factor, weights earned on the way.

    The factors are a partition, a kernel where they overlap, or every cell alone (None), which is the mixture.
    """
    overlap = isinstance(partition, Tensor) and partition.is_floating_point()
    return Evidence(
        alone if partition is None else None if overlap else partition,
        kernel=partition if overlap else None,  # type: ignore[arg-type]
        temperature=temperature,
        weights=weights,
        bias=bias,
        given=given,
        demonstrations=demonstrations,
    )


def smoothed(of_cells: ExpertCells, kernel: Kernel) -> ExpertCells:
    r"""$\sum_u K(u, v)\, e_{m,u}$ at every cell v, where $0 \cdot \log 0 = 0$."""
    impossible = of_cells == -torch.inf
    # Row by row: in one large product the last bit of a row depends on how many others there are.
    rows = torch.where(impossible, 0.0, of_cells).transpose(0, 1)
    sums = torch.bmm(rows, kernel.expand(len(rows), -1, -1)).transpose(0, 1)
    touched = impossible.float() @ (kernel > 0).float() > 0  # counts of cells: exact in any order
    return torch.where(touched, -torch.inf, sums)


def _checked_kernel(given: Kernel | Numbers) -> Kernel:
    kernel = as_tensor("kernel", given)
    if kernel.dim() != 2 or kernel.shape[0] != kernel.shape[1]:
        raise InvalidInput(f"kernel: expected shape (cell, cell), got shape {tuple(kernel.shape)}")
    if not torch.isfinite(kernel).all() or (kernel < 0).any():
        raise InvalidInput("kernel: expected finite non-negative numbers, got a negative or non-finite one")
    return kernel.double()


def _one_of(name: str, given: Any, choices: tuple[str, ...]) -> Any:
    if given not in choices:
        raise InvalidInput(f"{name}: expected one of {', '.join(choices)}, got {given!r}")
    return given


def _checked_of_items(given: ItemEvidence | Numbers) -> ItemEvidence:
    of_items = as_tensor("of_items", given)
    if of_items.dim() != 2 or of_items.isnan().any() or (of_items == torch.inf).any():
        raise InvalidInput(
            f"of_items: expected log-probabilities (finite or -inf) of shape (expert, item), "
            f"got shape {tuple(of_items.shape)}"
        )
    return of_items.double()


def _checked_evidence(given: GivenEvidence | Numbers) -> GivenEvidence:
    evidence = as_tensor("evidence", given)
    if evidence.dim() != 3:
        raise InvalidInput(
            f"evidence: expected shape (expert, item, cell), got shape {tuple(evidence.shape)}"
        )
    if evidence.isnan().any() or (evidence == torch.inf).any():
        raise InvalidInput("evidence: expected log-probabilities (finite or -inf), got NaN or +inf")
    return evidence.double()
