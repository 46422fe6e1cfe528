"""ARC's validation queries as data to fit on: of each task's 40 instances 30 fit and 10 choose."""

from __future__ import annotations

from dataclasses import replace

import torch

from factordiff.arc.dataset import Dataset
from factordiff.arc.grid import SIDE
from factordiff.arc.splits import HELD
from factordiff.errors import InvalidInput
from factordiff.fitting.data import FittingData

FIT, CHOOSE = 720, 240  # queries of each kind unless told: six and two instances of each task


def validation_data(dataset: Dataset, fit: int = FIT, choose: int = CHOOSE, rounds: int = 1) -> FittingData:
    """The first queries of each side, spread evenly over the tasks; `rounds` repeats them with other demonstrations.

    Sides are told apart by instance: a round of other demonstrations repeats a query, and never on the other side.
    """
    queries = dataset.evaluation("validation", rounds=rounds)
    chooses = queries.numbers.view(rounds, -1)[0] >= HELD.start  # every round has the same queries
    for name, wanted, there in (("fit", fit, int((~chooses).sum())), ("choose", choose, int(chooses.sum()))):
        if not 0 <= wanted <= there:
            raise InvalidInput(f"{name}: expected 0 to {there} validation queries, got {wanted}")
    once = torch.cat([(~chooses).nonzero().squeeze(-1)[:fit], chooses.nonzero().squeeze(-1)[:choose]])
    index = (once + len(chooses) * torch.arange(rounds, device=once.device)[:, None]).flatten()
    data = FittingData(queries.x_0[index], queries.condition(index), layout=(SIDE, SIDE))
    return replace(data, held=chooses[once].repeat(rounds))
