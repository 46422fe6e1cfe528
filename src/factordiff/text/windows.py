"""Windows of a text: those that experts are trained on, and those that hold both kinds, to measure with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from factordiff.streams import Purpose, uniform
from factordiff.text.corpus import Text
from factordiff.types import Tokens

LENGTH = 256
MIXED = (0.2, 0.8)  # shares of prose in a window that holds both


@dataclass(frozen=True, eq=False)
class Windows:
    """Stretches of a text, who owns each character (0 prose, 1 code), and which file and package each is of."""

    x_0: Tokens
    owner: Int[Tensor, "batch cell"]
    file: Int[Tensor, " batch"]
    package: Int[Tensor, " batch"]

    def __len__(self) -> int:
        return len(self.x_0)

    def __getitem__(self, rows: slice | Tensor) -> Windows:
        return Windows(self.x_0[rows], self.owner[rows], self.file[rows], self.package[rows])

    def to(self, device: torch.device | str) -> Windows:
        """The same windows on another device."""
        return Windows(*(part.to(device) for part in (self.x_0, self.owner, self.file, self.package)))


def mixed_windows(text: Text, count: int, length: int = LENGTH) -> Windows:
    """Windows inside one file, side by side from its start, with 20 to 80 % prose.

    They are taken package by package in turn, in an order that a fixed stream draws, so that a large package has no
    more of them than others while those last: the first `count` are a fair part of any longer list.
    """
    starts = np.concatenate(
        [
            np.arange(begin, end - length + 1, length)
            for begin, end in zip(text.starts[:-1], text.starts[1:], strict=True)
        ]
    )
    share = np.add.reduceat(text.prose, np.stack([starts, starts + length], 1).ravel()[:-1])[::2] / length
    starts = starts[(share >= MIXED[0]) & (share <= MIXED[1])]
    file = np.searchsorted(text.starts, starts, side="right") - 1
    package = text.packages[file].astype(np.int64)
    order = uniform(0, Purpose.EVALUATION, torch.from_numpy(starts)).numpy()
    turn = np.empty(len(starts), dtype=np.int64)
    for one in np.unique(package):
        mine = np.flatnonzero(package == one)
        turn[mine[np.argsort(order[mine])]] = np.arange(len(mine))
    chosen = np.lexsort((order, turn))[:count]
    cells = starts[chosen, None] + np.arange(length)
    return Windows(
        torch.from_numpy(text.cells[cells].astype(np.int64)),
        torch.from_numpy((~text.prose[cells]).astype(np.int64)),
        torch.from_numpy(file[chosen]),
        torch.from_numpy(package[chosen]),
    )


def hidden_cells(windows: Windows, share: float, seed: int = 0) -> Bool[Tensor, "batch cell"]:
    """The cells that are hidden at that share: each by a number of its own, so that more hides all that less does."""
    rows, length = windows.x_0.shape
    keys = torch.arange(rows)[:, None], torch.arange(length)[None, :]
    return (uniform(seed, Purpose.CORRUPT, *keys) < share).to(windows.x_0.device)
