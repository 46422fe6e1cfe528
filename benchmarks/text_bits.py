r"""How well compositions fill in hidden cells, in bits: each method's, and the best that fixed numbers can do.

Everything is teacher-forced: cells of the truth are hidden, the experts are asked once, and a hidden cell costs
$-\log_2 r(x_0)$. With the experts fixed, this cost of a product is convex in its exponents and that of a mixture in its
weights, so the best numbers are found exactly, for any number of experts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import minimize
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.composition.confidence import log_doubt, temper
from factordiff.composition.emission import log_prob_at
from factordiff.composition.routing import routed
from factordiff.experts.expert import Expert
from factordiff.state import SamplerState
from factordiff.types import Cells, ExpertLogProbs, Tokens

ROWS = 64  # of one pass
CELLS = 16_384  # that a fit works on at once
STEEPEST = 64.0  # the largest exponent that is looked for
TEMPERATURES = tuple(2.0 ** (step / 4) for step in range(-16, 17))  # 1/16 .. 16


@dataclass(frozen=True)
class HiddenLogProbs:
    """What the experts say at hidden cells, one after another, and what is there."""

    log_probs: Float[Tensor, "expert cell value"]
    truth: Int[Tensor, " cell"]
    row: Int[Tensor, " cell"]

    @property
    def at_truth(self) -> Float[Tensor, "expert cell"]:
        r"""$\log p_m(x_0)$."""
        return log_prob_at(self.log_probs.unsqueeze(1), self.truth[None]).squeeze(1)


@dataclass(frozen=True)
class InfillScore:
    """One method's outcome, window by window: bits in all, hidden cells, and how many likeliest values were right."""

    bits: Float[Tensor, " row"]
    cells: Int[Tensor, " row"]
    right: Int[Tensor, " row"]

    @property
    def bits_per_cell(self) -> float:
        """The mean over all hidden cells."""
        return float(self.bits.sum() / self.cells.sum())

    @property
    def share_right(self) -> float:
        """Of all hidden cells."""
        return float(self.right.sum() / self.cells.sum())

    def __repr__(self) -> str:
        return f"InfillScore({self.bits_per_cell:.3f} bits per cell, {100 * self.share_right:.1f} % right)"


@torch.no_grad()
def hidden_log_probs(experts: Sequence[Expert], x_0: Tokens, hidden: Cells) -> HiddenLogProbs:
    """Ask every expert once about every window, and keep what it says at the hidden cells."""
    each, truth, row = [], [], []
    for rows in _parts(len(x_0)):
        clean, cells = x_0[rows], hidden[rows]
        log_probs = _ask(experts, clean, cells)
        each.append(log_probs[:, cells])
        truth.append(clean[cells])
        row.append(cells.nonzero()[:, 0] + rows.start)
    return HiddenLogProbs(torch.cat(each, 1), torch.cat(truth), torch.cat(row))


@torch.no_grad()
def fill_in(
    experts: Sequence[Expert],
    methods: Mapping[str, Composition],
    x_0: Tokens,
    hidden: Cells,
    owner: Int[Tensor, "batch cell"] | None = None,
) -> dict[str, InfillScore]:
    """Every method on the same windows, whatever it needs to see of them; and the bounds.

    `told` (with an `owner` per cell) asks the expert whose kind the cell is; `oracle` the one that gives the truth
    most; `weights per window` are the mixture's, fitted on the window's own answer, which bounds every mixture with
    one number per expert and window.
    """
    mask, parts = experts[0].vocabulary.mask, dict[str, list[tuple[Tensor, Tensor]]]()

    def note(name: str, log_probs: Float[Tensor, "batch cell value"], clean: Tokens, cells: Cells) -> None:
        cost = -log_prob_at(log_probs, clean) / math.log(2)
        right = log_probs.argmax(-1) == clean
        parts.setdefault(name, []).append((torch.where(cells, cost, 0.0).sum(-1), (right & cells).sum(-1)))

    for rows in _parts(len(x_0)):
        clean, cells = x_0[rows], hidden[rows]
        said = _ask(experts, clean, cells)
        state = SamplerState.begin(torch.where(cells, mask, clean), mask, len(experts))
        for name, composition in methods.items():
            note(name, composition(said, state).log_probs, clean, cells)
        at_truth = log_prob_at(said, clean)
        if owner is not None:
            note("told", routed(said, owner[rows]), clean, cells)
        weights = _own_weights(at_truth, cells)
        note(
            "weights per window", (weights.log()[:, :, None, None] + said.double()).logsumexp(0), clean, cells
        )
        note("oracle", routed(said, at_truth.argmax(0)), clean, cells)
    count = hidden.sum(-1)
    return {
        name: InfillScore(
            torch.cat([bits for bits, _ in found]), count, torch.cat([right for _, right in found])
        )
        for name, found in parts.items()
    }


def best_mixture(said: HiddenLogProbs, rounds: int = 5_000) -> tuple[float, ...]:
    r"""The weights of the mixture that costs least: $\max_w \sum_i \log\sum_m w_m p_m(x_i)$, by EM from equal ones."""
    at_truth = said.at_truth
    weights = torch.full((len(at_truth),), 1.0 / len(at_truth), dtype=torch.float64, device=at_truth.device)
    for _ in range(rounds):
        share = torch.softmax(at_truth + weights.log()[:, None], 0).mean(1)
        done = bool((share - weights).abs().max() < 1e-7)
        weights = share
        if done:
            break
    return tuple(weights.tolist())


def best_product(said: HiddenLogProbs) -> tuple[float, ...]:
    r"""The exponents of the product that costs least, by the gradient of a convex function.

    $\min_\beta \sum_i \log\sum_v \prod_m p_m(v)^{\beta_m} - \sum_m \beta_m \log p_m(x_i)$, whose slope in
    $\beta_m$ is what the product expects of $\log p_m$ less what it finds.
    """
    at_truth, experts = said.at_truth, len(said.log_probs)

    def cost(beta: np.ndarray) -> tuple[float, np.ndarray]:
        exponents = torch.tensor(beta, dtype=torch.float64, device=at_truth.device)
        total, slope = 0.0, torch.zeros_like(exponents)
        for start in range(0, at_truth.shape[1], CELLS):
            cells = slice(start, start + CELLS)
            # Not below e^-700, where 0 times minus infinity would be nobody's number.
            log_p = said.log_probs[:, cells].double().clamp(min=-700.0)
            found = at_truth[:, cells].clamp(min=-700.0)
            log_r = torch.einsum("m,mcv->cv", exponents, log_p)
            log_z = log_r.logsumexp(-1)
            expected = torch.einsum("cv,mcv->mc", (log_r - log_z[:, None]).exp(), log_p)
            total += float(log_z.sum() - (exponents @ found).sum())
            slope += (expected - found).sum(1)
        return total / at_truth.shape[1], (slope / at_truth.shape[1]).cpu().numpy()

    start = np.full(experts, 1.0 / experts)
    found = minimize(cost, start, jac=True, method="L-BFGS-B", bounds=[(0.0, STEEPEST)] * experts)
    return tuple(float(number) for number in found.x)


def best_temperatures(said: HiddenLogProbs, grid: Sequence[float] = TEMPERATURES) -> tuple[float, ...]:
    """The routing temperatures that cost least: each in turn from the grid while that helps, the first's at 1."""
    at_truth, experts = said.at_truth, len(said.log_probs)
    doubts = {
        (expert, temperature): _doubts(said.log_probs[expert], temperature)
        for expert in range(experts)
        for temperature in (grid if expert else (1.0,))
    }

    def cost(temperatures: Sequence[float]) -> float:
        z = torch.stack([doubts[one] for one in enumerate(temperatures)]).argmin(0)
        return -float(at_truth.gather(0, z[None]).mean())

    return _one_by_one(cost, [1.0] * experts, grid)


def _one_by_one(
    cost: Callable[[Sequence[float]], float], start: list[float], grid: Sequence[float]
) -> tuple[float, ...]:
    best, least = list(start), cost(start)
    while True:
        before = least
        for place in range(1, len(best)):
            for number in grid:
                tried = [*best[:place], number, *best[place + 1 :]]
                found = cost(tried)
                if found < least:
                    best, least = tried, found
        if least == before:
            return tuple(best)


def _doubts(log_probs: Float[Tensor, "cell value"], temperature: float) -> Float[Tensor, " cell"]:
    numbers = torch.tensor([temperature], dtype=torch.float64, device=log_probs.device)
    return torch.cat([log_doubt(temper(part[None, None], numbers))[0, 0] for part in log_probs.split(CELLS)])


def _own_weights(
    at_truth: Float[Tensor, "expert batch cell"], cells: Cells, rounds: int = 200
) -> Float[Tensor, "expert batch"]:
    """Each window's best weights, fitted on its own answer."""
    count = cells.sum(-1).clamp(min=1)
    weights = torch.full(at_truth.shape[:2], 1.0 / len(at_truth), dtype=torch.float64, device=at_truth.device)
    for _ in range(rounds):
        share = torch.softmax(at_truth + weights.log()[:, :, None], 0)
        weights = torch.where(cells, share, 0.0).sum(-1) / count
        weights = (weights + 1e-12) / (weights + 1e-12).sum(0)
    return weights


def _ask(experts: Sequence[Expert], clean: Tokens, cells: Bool[Tensor, "batch cell"]) -> ExpertLogProbs:
    x_t = torch.where(cells, experts[0].vocabulary.mask, clean)
    return torch.stack([expert.log_probs(x_t, expert.encode(None)) for expert in experts])


def _parts(rows: int) -> list[slice]:
    return [slice(start, min(start + ROWS, rows)) for start in range(0, rows, ROWS)]
