"""Mosaics as a pure function of a seed: which query of the ARC lists stands in which quarter."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.arc.conditions import inside
from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.streams import Purpose, integers, uniform
from factordiff.worlds.arc_pairs import GRID
from factordiff.worlds.mosaic.canvas import QUARTERS, condition_together, together
from factordiff.worlds.mosaic.tasks import EXPERTS, owner_of
from factordiff.worlds.queries import Queries

SIZES = {"validation": 1_200, "test": 6_000, "fit": 1_200, "held": 1_200}
SPLITS = {"validation": 1, "test": 2, "fit": 3, "held": 4}


def owners(split: str, count: int, seed: int = 0) -> Int[Tensor, "mosaic quarter"]:
    """Whose task stands in each quarter: of even mosaics each expert's once, of odd ones drawn independently."""
    mosaic, quarter = torch.arange(count)[:, None], torch.arange(QUARTERS)
    key = (seed, Purpose.EVALUATION, SPLITS[split], mosaic)
    each_once = uniform(*key, quarter, 0).argsort(dim=1, stable=True)
    drawn = integers(len(EXPERTS), *key, quarter, 1)
    return torch.where(mosaic % 2 == 0, each_once, drawn)


def drawn_queries(
    split: str, owner: Int[Tensor, "mosaic quarter"], listed: EvaluationSet, seed: int = 0
) -> Int[Tensor, "mosaic quarter"]:
    """A query of the ARC list for every quarter: a task of its owner, four different tasks, any of its instances."""
    tasks, instances = len(listed.tasks), len(listed) // len(listed.tasks)
    owned = [[task for task in range(tasks) if owner_of(task) == expert] for expert in range(len(EXPERTS))]
    mosaic, quarter = torch.arange(len(owner))[:, None], torch.arange(QUARTERS)
    key = (seed, Purpose.EVALUATION, SPLITS[split], mosaic, quarter)
    order, instance = uniform(*key, 2).tolist(), integers(instances, *key, 3)
    chosen = []
    for row, of_quarters in enumerate(owner.tolist()):
        taken: list[int] = []
        for place, expert in enumerate(of_quarters):
            left = [task for task in owned[expert] if task not in taken]
            taken.append(left[int(order[row][place] * len(left))])
        chosen.append(taken)
    return instance * tasks + torch.tensor(chosen)  # the list goes through the tasks, instance by instance


def mosaics(split: str, count: int, listed: EvaluationSet, seed: int = 0) -> Queries:
    """The first mosaics of a split, made of the queries of an ARC list; each is its own cluster."""
    owner = owners(split, count, seed)
    index = drawn_queries(split, owner, listed, seed).flatten()
    x_0 = together(listed.x_0[index].view(count, QUARTERS, -1))
    cells = listed.x_0.shape[1]
    return Queries(
        torch.full_like(x_0, 10),
        x_0,
        tuple(f"{split} {number}" for number in range(count)),
        condition_together(listed.condition(index)),
        together(owner[:, :, None].expand(-1, -1, cells)),
        {GRID: together(inside(listed.output_shapes[index]).view(count, QUARTERS, -1))},
        made_of=index.view(count, QUARTERS),
    )
