"""Experts of known cost and known answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from factordiff.arc.grid import CELLS, COLORS, SIDE, to_canvas
from factordiff.experts.condition import Condition
from factordiff.text.alphabet import BYTES, LETTERS
from factordiff.web.registry import ExpertRegistry, RegisteredExpert

CELL = torch.arange(CELLS)


class Copyist:
    """Believes that the answer is the query; surer in its own half of the cells. A pass takes `cost` seconds."""

    vocabulary = COLORS

    def __init__(self, own: Tensor, cost: float = 0.0) -> None:
        self.own, self.cost = own, cost
        self.passes = 0

    def encode(self, condition: Condition) -> Tensor:
        return condition.query

    def log_probs(self, x_t: Tensor, encoded: Tensor) -> Tensor:
        self.passes += 1
        time.sleep(self.cost)
        # Nearly the same everywhere would make ties; a little less sure to the right and to the bottom.
        sure = torch.where(self.own, 0.97, 0.6) - 0.0005 * CELL
        rest = ((1 - sure) / 9)[None, :, None].expand(*x_t.shape, COLORS.size)
        return rest.clone().scatter(-1, encoded.unsqueeze(-1), sure.expand_as(x_t).unsqueeze(-1)).log()


class Gate(Copyist):
    """Waits in every pass until it is let through, so that a test decides how far a run gets."""

    def __init__(self) -> None:
        super().__init__(CELL >= 0)
        self.arrived, self.open = threading.Semaphore(0), threading.Semaphore(0)

    def log_probs(self, x_t: Tensor, encoded: Tensor) -> Tensor:
        self.arrived.release()
        assert self.open.acquire(timeout=30)
        return super().log_probs(x_t, encoded)


class Faulty(Copyist):
    """Breaks in its second pass."""

    def __init__(self) -> None:
        super().__init__(CELL >= 0)

    def log_probs(self, x_t: Tensor, encoded: Tensor) -> Tensor:
        if self.passes:
            raise ZeroDivisionError("a secret of the server")
        return super().log_probs(x_t, encoded)


class Knower(Copyist):
    """Knows the right answers of some tasks, by their query; sure and right in its own cells, elsewhere neither."""

    def __init__(self, own: Tensor, answers: Mapping[bytes, Tensor], cost: float = 0.0) -> None:
        super().__init__(own, cost)
        self.answers = answers

    def encode(self, condition: Condition) -> Tensor:
        known = [self.answers.get(query.numpy().tobytes(), query) for query in condition.query]
        return torch.where(self.own, torch.stack(known), (torch.stack(known) + 1) % COLORS.size)


def answers_of(tasks: Sequence[dict]) -> dict[bytes, Tensor]:
    """From every test's query to its right answer, both as canvases."""

    def canvas(rows: list) -> Tensor:
        return torch.from_numpy(to_canvas(torch.tensor(rows, dtype=torch.uint8).numpy())).to(torch.int64)

    return {
        canvas(pair["input"]).numpy().tobytes(): canvas(pair["output"])
        for task in tasks
        for pair in task["test"]
    }


def checkered() -> Tensor:
    return (CELL // SIDE + CELL % SIDE) % 2 == 0


def copying(cost: float = 0.0) -> ExpertRegistry:
    return ExpertRegistry(
        [
            RegisteredExpert(
                "even", Copyist(checkered(), cost), about={"backbone": "stub", "parameters": 10}
            ),
            RegisteredExpert("odd", Copyist(~checkered(), cost)),
            RegisteredExpert("where", Copyist(checkered(), cost), "occupancy"),
        ]
    )


def task(side: int = 3, color: int = 4) -> dict:
    """A task whose rule is to copy."""
    grid = [[(row * side + column + color) % 10 for column in range(side)] for row in range(side)]
    return {
        "train": [{"input": [[1, 2], [3, 4]], "output": [[1, 2], [3, 4]]}],
        "test": [{"input": grid, "output": grid}],
    }


FIRST, SECOND = "abcdefghij", "klmnopqrst"


class Speller:
    """Expects the alphabet over and over, counted from the last given letter; surer of its own letters."""

    vocabulary = BYTES

    def __init__(self, own: str) -> None:
        self.own = torch.tensor([LETTERS.index(letter) for letter in own])

    def encode(self, condition: None) -> None:
        assert condition is None

    def log_probs(self, x_t: Tensor, encoded: None) -> Tensor:
        known = torch.where(x_t == BYTES.mask, -1, torch.arange(x_t.shape[1])).cummax(-1).values.clamp(min=0)
        letter = x_t.gather(1, known).clamp(max=BYTES.size - 1)
        expected = (letter - LETTERS.index("a") + torch.arange(x_t.shape[1]) - known) % 20 + LETTERS.index(
            "a"
        )
        # Further away from what is known it is less sure, so that a window takes several steps.
        sure = torch.where(torch.isin(expected, self.own), 0.995, 0.6) - 0.001 * (
            torch.arange(x_t.shape[1]) - known
        )
        rest = ((1 - sure) / (BYTES.size - 1)).unsqueeze(-1).expand(*x_t.shape, BYTES.size)
        return rest.clone().scatter(-1, expected.unsqueeze(-1), sure.unsqueeze(-1)).log()


SPELLERS = {"first": Speller(FIRST), "second": Speller(SECOND)}


def spellers() -> ExpertRegistry:
    about = {"backbone": "stub", "parameters": None}
    entries = [RegisteredExpert(name, one, about=about) for name, one in SPELLERS.items()]
    return ExpertRegistry(entries, vocabulary=BYTES)
