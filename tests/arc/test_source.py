"""The data set as the trainer's source: only the tasks that were asked for, and the same batch however it is cut."""

from __future__ import annotations

import pytest
import torch

from factordiff.arc.dataset import Dataset
from factordiff.arc.source import ArcSource
from factordiff.errors import InvalidInput
from factordiff.training.settings import TrainingSettings
from factordiff.training.source import Source

TASKS = ("c8f0f002", "0d3d703e", "67a3c6ac")


def test_a_batch_does_not_depend_on_how_it_is_cut() -> None:
    source = ArcSource(Dataset.load(), TrainingSettings(tasks=TASKS, identity_share=1.0))
    assert isinstance(source, Source)
    step, items = torch.tensor(3), torch.arange(16)
    condition, x_0 = source.draw(5, step, items)
    again, same = source.draw(5, step, items[4:7])
    assert torch.equal(again.query, condition.query[4:7])
    assert torch.equal(same, x_0[4:7])
    assert condition.present.all()


def test_only_the_named_tasks() -> None:
    dataset = Dataset.load()
    source = ArcSource(dataset, TrainingSettings(tasks=TASKS, identity_share=1.0))
    _, x_0 = source.draw(5, torch.tensor(3), torch.arange(64))
    indices = [dataset.tasks.index(task) for task in TASKS]
    outputs = {
        row.numpy().tobytes()
        for index in indices
        for row in dataset.canvases.view(-1, 1000, 2, 100)[index, :, 1]
    }
    assert all(row.to(torch.uint8).numpy().tobytes() in outputs for row in x_0)
    condition, x_0 = source.validation(20)
    queries = dataset.evaluation("validation")
    wanted = torch.tensor([task in TASKS for task in queries.task_ids])
    assert torch.equal(x_0, queries.x_0[wanted][:20])
    assert torch.equal(condition.query, queries.condition().query[wanted][:20])


def test_all_tasks() -> None:
    dataset = Dataset.load()
    queries = dataset.evaluation("validation")
    condition, x_0 = ArcSource(dataset, TrainingSettings()).validation(130)
    assert torch.equal(x_0, queries.x_0[:130])
    assert torch.equal(condition.context_inputs, queries.condition(slice(130)).context_inputs)


def test_an_unknown_task_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match="tasks: the data set has no ffffffff; expected ids such as 0520fde7"
    ):
        ArcSource(Dataset.load(), TrainingSettings(tasks=("c8f0f002", "ffffffff")))


def test_emphasis_draws_a_task_more_often_and_leaves_validation_alone() -> None:
    dataset = Dataset.load()
    plain = TrainingSettings(tasks=TASKS, identity_share=1.0)
    stressed = TrainingSettings(tasks=TASKS, emphasis={TASKS[1]: 4}, identity_share=1.0)
    of = {
        row.numpy().tobytes(): task
        for task in TASKS
        for row in dataset.canvases.view(-1, 1000, 2, 100)[dataset.tasks.index(task), :, 0]
    }
    shares = []
    for settings in (plain, stressed):
        source = ArcSource(dataset, settings)
        condition, _ = source.draw(5, torch.tensor(3), torch.arange(1200))
        tasks = [of[row.to(torch.uint8).numpy().tobytes()] for row in condition.query]
        shares.append([tasks.count(task) / len(tasks) for task in TASKS])
    # Three standard deviations of 1,200 draws are 0.041 at most.
    assert shares[0] == pytest.approx([1 / 3, 1 / 3, 1 / 3], abs=0.042)
    assert shares[1] == pytest.approx([1 / 6, 4 / 6, 1 / 6], abs=0.042)
    expected, found = (ArcSource(dataset, settings).validation(20)[1] for settings in (plain, stressed))
    assert torch.equal(found, expected)


def test_emphasis_on_all_tasks() -> None:
    dataset = Dataset.load()
    source = ArcSource(dataset, TrainingSettings(emphasis={"67a3c6ac": 10_000}, identity_share=1.0))
    condition, _ = source.draw(5, torch.tensor(3), torch.arange(100))
    inputs = {
        row.numpy().tobytes()
        for row in dataset.canvases.view(-1, 1000, 2, 100)[dataset.tasks.index("67a3c6ac"), :760, 0]
    }
    assert sum(row.to(torch.uint8).numpy().tobytes() in inputs for row in condition.query) >= 90


def test_emphasis_on_a_task_that_is_not_drawn_is_refused() -> None:
    with pytest.raises(InvalidInput, match="emphasis: ffffffff is not among the 3 tasks of this run"):
        ArcSource(Dataset.load(), TrainingSettings(tasks=TASKS, emphasis={"ffffffff": 2}))
