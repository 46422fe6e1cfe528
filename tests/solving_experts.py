"""Experts on the ARC canvas that are as good as we make them, and tasks for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from factordiff.arc.grid import COLORS, Grid
from factordiff.arc.task import Pair, Task
from factordiff.experts.condition import Condition
from factordiff.networks.store import build, save_expert
from factordiff.vocabulary import Vocabulary

TINY = {"width": 16, "context": 8, "encoder": 4, "latents": 2, "cycles": [1, 1]}


class Rule:
    """Answers by a rule on the query's canvas, sure of the cells where `sure` holds, doubtful elsewhere."""

    def __init__(self, rule: Callable[[Tensor], Tensor], sure: Callable[[Tensor], Tensor]) -> None:
        self.rule, self.sure = rule, sure
        self.passes = 0

    @property
    def vocabulary(self) -> Vocabulary:
        return COLORS

    def encode(self, condition: Any) -> Tensor:
        assert isinstance(condition, Condition)
        return condition.query

    def log_probs(self, x_t: Tensor, encoded: Tensor) -> Tensor:
        self.passes += len(x_t)
        row, column = torch.arange(100) // 10, torch.arange(100) % 10
        chance = torch.where(self.sure(torch.stack([row, column])), 0.98, 0.4)
        said = self.rule(encoded)
        others = ((1 - chance) / 9)[None, :, None].expand(*said.shape, 10)
        return others.scatter(-1, said[..., None], chance[None, :, None].expand(*said.shape, 1)).log()


def plus_one(query: Tensor) -> Tensor:
    """Every color but background, one further."""
    return torch.where(query > 0, query % 9 + 1, 0)


def halves() -> dict[str, Rule]:
    """Two who know the rule "one further", each in its half; in the other they claim color 5, less sure."""
    column = torch.arange(100) % 10

    def left(query: Tensor) -> Tensor:
        return torch.where(column < 2, plus_one(query), 5)

    def right(query: Tensor) -> Tensor:
        return torch.where(column >= 2, plus_one(query), 5)

    return {"left": Rule(left, lambda place: place[1] < 2), "right": Rule(right, lambda place: place[1] >= 2)}


def grid(rows: list[list[int]]) -> Grid:
    return np.array(rows, dtype=np.uint8)


def task(name: str = "plus") -> Task:
    """Every color one further; two tests, the first with its answer."""
    pairs = [grid([[1, 2, 0], [0, 3, 1]]), grid([[4, 0, 5, 6]])]
    asked = grid([[1, 2, 3, 0], [4, 0, 5, 6]])
    shown = tuple(Pair(one, further(one)) for one in pairs)
    return Task(name, shown, (Pair(asked, further(asked)), Pair(grid([[7, 8]]), None)))


def further(one: Grid) -> Grid:
    return np.where(one > 0, one % 9 + 1, 0).astype(np.uint8)


def tiny_experts(
    folder: Path, names: tuple[str, ...] = ("trans-full", "conv-full"), sure: bool = True
) -> list[str]:
    """Tiny untrained networks, saved as experts are: the first is sure of background, the next a little less of 4.

    If they are not `sure`, every color is as likely to them.
    """
    for seed, name in enumerate(names):
        backbone = "conv-ir" if name.startswith("conv") else "trans-ir"
        objective = {"occ": "occupancy", "color": "color"}.get(name.split("-")[-1], "full")
        network = build(backbone, TINY, seed)
        if sure:
            weights = {key: weight.clone() for key, weight in network.named_weights().items()}
            weights["head.bias"][4 * seed] = 14.0 - seed
            with torch.no_grad():
                network.vector.copy_(network.layout.pack(weights))
        save_expert(network, folder / name, {"objective": objective})
    return [str(folder / name) for name in names]
