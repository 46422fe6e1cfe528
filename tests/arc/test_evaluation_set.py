from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch

from factordiff.arc.artefact import Artefact
from factordiff.arc.build.official import fitting_tasks
from factordiff.arc.dataset import Dataset
from factordiff.arc.grid import to_canvas
from factordiff.arc.instances import instance_grids
from factordiff.errors import InvalidInput


@pytest.mark.parametrize(("split", "first", "count"), [("test", 800, 200), ("validation", 760, 40)])
def test_the_order_interleaves_the_tasks(dataset: Dataset, split: str, first: int, count: int) -> None:
    queries = dataset.evaluation(split)
    assert len(queries) == 120 * count
    assert queries.task_indices.tolist() == [*range(120)] * count
    assert queries.numbers.tolist() == [first + number for number in range(count) for _ in range(120)]


@pytest.mark.parametrize("split", ["test", "validation", "official", "unseen"])
def test_a_limit_is_the_first_of_the_same_order(dataset: Dataset, split: str) -> None:
    whole, part = dataset.evaluation(split), dataset.evaluation(split, limit=45)
    assert len(part) == 45
    assert part.task_ids == whole.task_ids[:45]
    assert torch.equal(part.x_0, whole.x_0[:45])
    assert torch.equal(part.condition().context_inputs, whole.condition(slice(0, 45)).context_inputs)


def test_queries_and_demonstrations_are_the_stored_ones(dataset: Dataset, shipped: Artefact) -> None:
    queries = dataset.evaluation("test")
    condition = queries.condition(torch.tensor([0, 121, 23_999]))
    for row, (index, task, number) in enumerate([(0, 0, 800), (121, 1, 801), (23_999, 119, 999)]):
        given, answer = instance_grids(shipped, task, number)
        assert np.array_equal(condition.query[row], to_canvas(given))
        assert np.array_equal(queries.x_0[index], to_canvas(answer))
        assert tuple(queries.output_shapes[index].tolist()) == answer.shape
        assert tuple(queries.input_shapes[index].tolist()) == given.shape
        assert all(map(np.array_equal, queries.query(index), (given, answer)))
        for slot, frame in enumerate(shipped.arrays["evaluation_frames"][task, number - 760].tolist()):
            shown_input, shown_output = instance_grids(shipped, task, frame)
            assert np.array_equal(condition.context_inputs[row, slot], to_canvas(shown_input))
            assert np.array_equal(condition.context_outputs[row, slot], to_canvas(shown_output))
            assert np.array_equal(queries.demonstrations(index)[slot][1], shown_output)


def test_demonstrations_are_distinct_training_instances(shipped: Artefact) -> None:
    frames = np.sort(shipped.arrays["evaluation_frames"].astype(int), axis=-1)
    assert frames.shape == (120, 240, 3)
    assert frames.min() >= 0
    assert frames.max() < 760
    assert (np.diff(frames, axis=-1) > 0).all()


def test_the_published_pairs_are_all_there(dataset: Dataset) -> None:
    """Official and unseen together are the 178 fitting tasks, every test and every demonstration."""
    fitting = fitting_tasks()
    seen = {}
    for split in ("official", "unseen"):
        queries = dataset.evaluation(split)
        condition = queries.condition()
        assert queries.numbers.tolist() == sorted(queries.numbers.tolist()), "first tests first"
        for index, (task_id, number) in enumerate(
            zip(queries.task_ids, queries.numbers.tolist(), strict=True)
        ):
            task = fitting[task_id]
            seen[task_id, number] = split
            assert np.array_equal(condition.query[index], to_canvas(task.tests[number].input))
            assert np.array_equal(queries.x_0[index], to_canvas(task.tests[number].output))
            assert int(condition.present[index].sum()) == len(task.demonstrations)
            for slot, pair in enumerate(task.demonstrations):
                assert np.array_equal(condition.context_inputs[index, slot], to_canvas(pair.input))
                assert np.array_equal(condition.context_outputs[index, slot], to_canvas(pair.output))
            assert not condition.context_inputs[index, len(task.demonstrations) :].any()
    assert set(seen) == {(task.id, number) for task in fitting.values() for number in range(len(task.tests))}
    assert {task for (task, _), split in seen.items() if split == "official"} == set(dataset.tasks)


def test_a_task_may_have_ten_demonstrations(dataset: Dataset) -> None:
    widest = [int(dataset.evaluation(split).present.sum(1).max()) for split in ("official", "unseen")]
    assert max(widest) == 10


@pytest.mark.parametrize(("split", "limit"), [("train", None), ("test", 0)])
def test_what_does_not_exist_is_refused(dataset: Dataset, split: str, limit: int | None) -> None:
    with pytest.raises(InvalidInput):
        inspect.unwrap(Dataset.evaluation)(
            dataset, split, limit
        )  # whatever checks annotations would refuse it too
