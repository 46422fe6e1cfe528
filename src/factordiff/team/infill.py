"""Fill in what is hidden in a sequence of any length, window by window, and say who decided each cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.sampling.path import NOBODY, decided_by
from factordiff.sampling.reveal import RevealRule
from factordiff.sampling.samples import Samples
from factordiff.team.members import ExpertLike
from factordiff.team.team import Team
from factordiff.vocabulary import Vocabulary

Progress = Callable[[int, int], None]


@runtime_checkable
class Document(Protocol):
    """Something of a file that can be hidden in part and filled in: a text, or one sequence among several."""

    unit: str  # what a cell is called, in the plural
    default_experts: str  # who fills it in when nobody is named
    window: int  # the most cells that these experts see at once
    vocabulary: Vocabulary

    @property
    def title(self) -> str:
        """What it is called where a file holds several; else nothing."""
        ...

    @property
    def cells(self) -> Int[Tensor, " cell"]:
        """The values that experts see."""

    def hidden(self, spec: str, seed: int = 0) -> Bool[Tensor, " cell"]:
        """The cells that `--mask` hides; what it does not understand is refused."""

    def shown(self, x_0: Int[Tensor, " cell"], hidden: Bool[Tensor, " cell"]) -> str:
        """One character per cell: hidden ones as they were filled in, the others as they were."""

    def written(self, text: str) -> str:
        """What goes into the file of answers for a text that was shown."""
        ...

    def remarks(self, text: str) -> list[str]:
        """Lines about the filled text, beside who decided what."""
        ...

    def folder(self, name: str) -> Path:
        """Where the expert of that name is."""
        ...

    def experts(
        self, names: Sequence[str], device: torch.device | str
    ) -> Sequence[ExpertLike] | Mapping[str, ExpertLike]:
        """Those of these names, as `compose` takes them."""
        ...


@dataclass(frozen=True, eq=False)
class Infilled:
    """A filled sequence: its values, who decided each cell (-1: it was given, or nobody alone), and the passes."""

    x_0: Int[Tensor, " cell"]
    hidden: Tensor
    decided_by: Int[Tensor, " cell"]
    passes: int

    def __repr__(self) -> str:
        return f"Infilled({len(self.x_0)} cells, {int(self.hidden.sum())} of them filled in, {self.passes} passes)"


def infill(
    team: Team,
    x_t: Int[Tensor, " cell"],
    window: int,
    *,
    reveal: str | RevealRule | None = None,
    temperature: float | None = None,
    seed: int = 0,
    on_cell: Progress | None = None,
) -> Infilled:
    """Fill the masked cells of one sequence, from its start to its end (`by_windows`)."""

    def fill(part: Int[Tensor, " cell"], start: int) -> Samples:
        return team.sample(
            part[None],
            reveal=reveal,
            temperature=temperature,
            seed=seed,
            items=torch.tensor([start]),
            trace=True,
        )

    return by_windows(fill, x_t, team.experts[0].vocabulary.mask, window, on_cell)


def by_windows(
    fill: Callable[[Int[Tensor, " cell"], int], Samples],
    x_t: Int[Tensor, " cell"],
    mask: int,
    window: int,
    on_cell: Progress | None = None,
) -> Infilled:
    """Fill the masked cells by `fill`, which is given a window's cells and where it starts.

    A window begins a quarter of its length before the first masked cell. It is filled as a whole, but what falls into
    its last quarter is hidden again unless the sequence ends there, so that every cell is decided with cells on both
    sides in view, given or not.
    """
    if window < 4:
        raise InvalidInput(f"window: expected at least 4 cells, got {window}")
    x_0 = x_t.clone()
    hidden, speakers = x_t == mask, torch.full_like(x_t, NOBODY)
    total, passes, quarter = int(hidden.sum()), 0, window // 4
    while bool((x_0 == mask).any()):
        first = int((x_0 == mask).nonzero()[0])
        start = max(0, min(first - quarter, len(x_0) - window))
        end = min(start + window, len(x_0))
        samples = fill(x_0[start:end], start)
        kept = end if end == len(x_0) else end - quarter
        here = slice(start, kept)
        who = decided_by(samples)
        if who is not None:
            found = torch.tensor(who[: kept - start])
            speakers[here] = torch.where(x_0[here] == mask, found, speakers[here])
        x_0[here] = samples.x_0[0, : kept - start].cpu()
        passes += int(samples.executed_passes.sum())
        if on_cell is not None:
            on_cell(total - int((x_0 == mask).sum()), total)
    return Infilled(x_0, hidden, speakers, passes)
