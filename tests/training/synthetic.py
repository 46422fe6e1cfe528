"""A data source of two small rules on a small canvas, for tests of the trainer."""

from __future__ import annotations

import torch

from factordiff.experts.condition import Condition
from factordiff.streams import Purpose, integers
from factordiff.vocabulary import Vocabulary

FRAMES = 3


class Flips:
    """Mirror the grid, left-right or up-down: the demonstrations tell which."""

    def __init__(
        self, side: int = 4, device: str = "cpu", values: int = 10, kinds: int = 2, min_frames: int = FRAMES
    ) -> None:
        self.side, self.device, self.values, self.kinds = side, device, values, kinds
        self.min_frames = min_frames
        self.vocabulary, self.cells = Vocabulary(10), side**2
        self.digest = f"flips-{side}-{values}-{kinds}"

    def draw(self, seed, step, items, purpose=Purpose.QUERY):
        cells = self.side**2
        count = len(items)
        kind = integers(self.kinds, seed, purpose, step, items, 0)
        frame = torch.arange(1, FRAMES + 2, device=items.device)
        cell = torch.arange(cells, device=items.device)
        grids = integers(
            self.values, seed, purpose, step, items[:, None, None], frame[None, :, None], cell[None, None, :]
        )
        # Half the cells are background, as in a real grid.
        hide = integers(
            2, seed, purpose, step, items[:, None, None], -frame[None, :, None], cell[None, None, :]
        )
        grids = grids * hide
        planes = grids.view(count, FRAMES + 1, self.side, self.side)
        flipped = torch.where(kind.view(-1, 1, 1, 1) == 0, planes.flip(-1), planes.flip(-2))
        outputs = flipped.reshape(count, FRAMES + 1, cells)
        missing = integers(FRAMES - self.min_frames + 1, seed, purpose, step, items, FRAMES + 2)
        present = frame[None, :FRAMES] <= FRAMES - missing[:, None]
        return Condition(grids[:, 0], grids[:, 1:], outputs[:, 1:], present), outputs[:, 0]

    def validation(self, items):
        index = torch.arange(items, device=self.device)
        return self.draw(0, torch.zeros((), dtype=torch.int64, device=self.device), index, Purpose.EVALUATION)


SEQUENCES = {"width": 16, "blocks": 2, "heads": 2}


class Counting:
    """Sequences that count up from anywhere, modulo seven: nothing is told, all follows from the neighbours."""

    vocabulary, cells, digest = Vocabulary(7), 12, "counting"

    def __init__(self, device: str = "cpu") -> None:
        self.device = device

    def draw(self, seed, step, items, purpose=Purpose.QUERY):
        first = integers(7, seed, purpose, step, items)
        return None, (first[:, None] + torch.arange(12, device=items.device)) % 7

    def validation(self, items):
        index = torch.arange(items, device=self.device)
        return self.draw(0, torch.zeros((), dtype=torch.int64, device=self.device), index, Purpose.EVALUATION)
