"""Of each task's 40 validation instances 30 fit and 10 choose; other demonstrations change no query's side."""

from __future__ import annotations

import pytest
import torch

from factordiff.arc.dataset import Dataset
from factordiff.arc.fitting_data import CHOOSE, validation_data
from factordiff.arc.fitting_data import FIT as USUAL
from factordiff.arc.splits import FIT, HELD
from factordiff.errors import InvalidInput


def test_thirty_instances_of_each_task_fit_and_ten_others_choose(dataset: Dataset) -> None:
    queries = dataset.evaluation("validation")
    data = validation_data(dataset, 120 * len(FIT), 120 * len(HELD))
    for side, numbers in ((~data.kept, FIT), (data.kept, HELD)):
        here = torch.isin(queries.numbers, torch.tensor(list(numbers)))
        assert int(side.sum()) == int(here.sum()) == 120 * len(numbers)
        assert torch.equal(data.answers[side], queries.x_0[here])
        assert torch.equal(data.condition.query[side], queries.condition(here).query)
    usual = validation_data(dataset)
    assert (int((~usual.kept).sum()), int(usual.kept.sum())) == (USUAL, CHOOSE)
    assert torch.equal(usual.answers[~usual.kept], data.answers[~data.kept][:USUAL])


def test_rounds_repeat_every_query_on_its_own_side(dataset: Dataset) -> None:
    once, thrice = (validation_data(dataset, 240, 120, rounds) for rounds in (1, 3))
    assert len(thrice) == 3 * len(once)
    for part in torch.arange(len(thrice)).view(3, -1):
        assert torch.equal(thrice.answers[part], once.answers)
        assert torch.equal(thrice.condition.query[part], once.condition.query)
        assert torch.equal(thrice.kept[part], once.kept)
    shown = thrice.condition.context_inputs.reshape(3, len(once), -1)
    assert torch.equal(shown[0], once.condition.context_inputs.flatten(1))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert (shown[one] != shown[other]).any(-1).double().mean() > 0.9


@pytest.mark.parametrize(
    ("fit", "choose", "sentence"),
    [
        (3601, 0, "fit: expected 0 to 3600 validation queries, got 3601"),
        (0, -1, "choose: expected 0 to 1200 validation queries, got -1"),
        (0, 0, "data: expected some items to fit on, got none"),
    ],
)
def test_more_than_there_is_and_nothing_at_all_are_refused(
    dataset: Dataset, fit: int, choose: int, sentence: str
) -> None:
    for rounds in (1, 2):
        with pytest.raises(InvalidInput, match=sentence):
            validation_data(dataset, fit, choose, rounds)
