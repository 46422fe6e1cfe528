"""What frozen experts say about half-hidden right answers: asked once, kept in memory, and in files if asked to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import safetensors.torch
import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from torch import Tensor

from factordiff.composition.emission import log_prob_at
from factordiff.devices import memory_of
from factordiff.engine.threads import side_by_side, threads_for
from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.experts.forward import Forward
from factordiff.files import write_whole
from factordiff.fitting.data import FittingData
from factordiff.sampling.request import check_tokens, common_vocabulary
from factordiff.state import SamplerState
from factordiff.streams import Purpose, uniform
from factordiff.types import Cells, ExpertLogProbs, Tokens

RATES = (1.0, 0.75, 0.5, 0.25)  # shares of hidden cells, most first
BATCH = 48  # items that are asked about together
LARGEST_SHARE = 0.5  # of this machine's memory


@dataclass(frozen=True, eq=False)
class Predictions:
    r"""A row for every item and mask rate. Hidden cells are nested: what is hidden at 25 % is hidden at 50 %.

    So the rates of an item are a path on which right values are revealed, and `log_density` is what each expert thought
    of them then, as on a sampler's path: $\log p_m(x_u \mid x_t)$ at the last rate at which u was hidden.
    """

    log_probs: ExpertLogProbs
    x_t: Tokens
    x_0: Tokens
    asked: Cells  # the hidden cells
    log_density: Float[Tensor, "expert batch cell"]
    item: Int[Tensor, " batch"]
    rate: Float[Tensor, " batch"]
    mask: int

    def __len__(self) -> int:
        return len(self.x_t)

    def __repr__(self) -> str:
        experts, rows, cells, values = self.log_probs.shape
        return f"Predictions({experts} experts on {rows} rows of {cells} cells with {values} values)"

    def state(self, rows: slice | Tensor = slice(None)) -> SamplerState:
        """Rows as a sampler would have them."""
        state = SamplerState.begin(self.x_t[rows], self.mask, len(self.log_probs))
        return replace(state, log_density=self.log_density[:, rows])

    def rows(self, rows: Tensor) -> Predictions:
        """Some of the rows."""
        return replace(
            self,
            log_probs=self.log_probs[:, rows],
            log_density=self.log_density[:, rows],
            **{name: getattr(self, name)[rows] for name in ("x_t", "x_0", "asked", "item", "rate")},
        )

    @property
    def of_truth(self) -> Float[Tensor, "expert batch cell"]:
        r"""$\log p_m(x_{0,v} \mid x_t)$ at every cell."""
        return log_prob_at(self.log_probs, self.x_0)


def check_answers(data: FittingData, experts: Sequence[Expert]) -> None:
    """Refuse what is no value that these experts know, at any cell."""
    check_tokens(data.answers, experts)
    if (data.answers == common_vocabulary(experts).mask).any():
        raise InvalidInput("data: expected whole answers, some cells are masked; leave them out by `asked`")


@torch.no_grad()
def predict(
    experts: Sequence[Expert],
    data: FittingData,
    *,
    rates: Sequence[float] = RATES,
    seed: int = 0,
    batch: int = BATCH,
    ids: Int[Tensor, " item"] | None = None,
    folder: Path | None = None,
    on_pass: Callable[[int, int], None] | None = None,
) -> Predictions:
    """Ask every expert about every item at every rate, once; `on_pass(done, total)` hears how far it is.

    `ids` are the numbers that the items go by, here and in what is hidden (None: they are counted). With a `folder`
    each batch is kept there as it comes, and found again after an interruption.
    """
    vocabulary = common_vocabulary(experts)
    check_answers(data, experts)
    if list(rates) != sorted(rates, reverse=True) or not all(0 < rate <= 1 for rate in rates):
        raise InvalidInput(f"rates: expected shares of hidden cells, from high to low, got {list(rates)}")
    _check_memory(len(experts) * len(rates) * data.answers.numel() * vocabulary.size * 4)
    batches = torch.arange(len(data), device=data.answers.device).split(batch)

    def predicted(number: int) -> Predictions:
        items = batches[number]
        file = None if folder is None else folder / f"passes-{number:05d}.safetensors"
        part = None if file is None else _found(file, vocabulary.mask, items.device)
        if part is None:
            known = items if ids is None else ids.to(items.device)[items]
            part = _heard(experts, data, items, rates, seed, vocabulary.mask, known)
            if file is not None:
                _keep(file, part)
        return part

    parts: list[Predictions] = []
    passes = len(rates) * len(experts)
    threads = threads_for(experts, data.answers.device, torch.get_num_threads())
    for some in torch.arange(len(batches)).split(threads):
        parts += side_by_side(lambda part, _, some=some: predicted(int(some[part])), len(some))  # type: ignore[misc]
        if on_pass is not None:
            on_pass(sum(len(items) for items in batches[: len(parts)]) * passes, len(data) * passes)
    return joined(parts)


def _heard(
    experts: Sequence[Expert],
    data: FittingData,
    items: Int[Tensor, " item"],
    rates: Sequence[float],
    seed: int,
    mask: int,
    ids: Int[Tensor, " item"],
) -> Predictions:
    part = data.part(items)
    x_0, cell = part.answers, torch.arange(part.answers.shape[1], device=items.device)
    numbers = uniform(seed, Purpose.CORRUPT, ids[:, None], cell)
    forward, state = Forward(experts, part.condition, len(items)), SamplerState.begin(x_0, mask, len(experts))
    said, rows, hidden = [], [], []
    densities, density = [], state.log_density
    for rate in rates:
        here = part.open_cells & (numbers < rate)
        density = torch.where(here, 0.0, density)  # what is hidden has not been revealed
        x_t = torch.where(here, mask, x_0)
        log_probs, _ = forward.whole(replace(state, x_t=x_t), here)
        said.append(log_probs.float())
        rows.append(x_t)
        hidden.append(here)
        densities.append(density)
        density = torch.where(here, log_prob_at(log_probs, x_0), density)
    forward.errors.check()
    return Predictions(
        torch.cat(said, 1),
        torch.cat(rows),
        x_0.repeat(len(rates), 1),
        torch.cat(hidden),
        torch.cat(densities, 1),
        ids.repeat(len(rates)),
        torch.tensor(rates, device=items.device).repeat_interleave(len(items)),
        mask,
    )


_TENSORS = ("log_probs", "x_t", "x_0", "asked", "log_density", "item", "rate")


def joined(parts: Sequence[Predictions]) -> Predictions:
    """The rows of several, which are of one length."""
    each = {name: [getattr(part, name) for part in parts] for name in _TENSORS}
    joined = {
        name: torch.cat(tensors, 1 if name in ("log_probs", "log_density") else 0)
        for name, tensors in each.items()
    }
    return Predictions(**joined, mask=parts[0].mask)


def _keep(file: Path, part: Predictions) -> None:
    tensors = {name: getattr(part, name).cpu().contiguous() for name in _TENSORS}
    write_whole(file, safetensors.torch.save(tensors))


def _found(file: Path, mask: int, device: torch.device) -> Predictions | None:
    try:
        tensors = safetensors.torch.load(file.read_bytes())
        return Predictions(**{name: tensors[name].to(device) for name in _TENSORS}, mask=mask)
    except (OSError, SafetensorError, KeyError):
        return None  # not there, or damaged: asked again


def _check_memory(needed: int) -> None:
    memory = memory_of(torch.device("cpu"))
    if memory is not None and needed > LARGEST_SHARE * memory:
        raise InvalidInput(
            f"data: what the experts say about them takes {needed / 2**30:.3g} GiB, this machine has "
            f"{memory / 2**30:.3g} GiB; give fewer items"
        )
