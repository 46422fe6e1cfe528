from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from factordiff.arc.dataset import Dataset
from factordiff.arc.grid import Shape
from factordiff.arc.shapes import Demonstration, answer_grid, infer_shape
from factordiff.errors import InvalidInput

EMPTY = np.zeros(100, dtype=np.uint8)


@pytest.mark.parametrize(
    ("shown", "query", "shape", "rule"),
    [
        ([((3, 4), (3, 4)), ((5, 5), (5, 5))], (2, 7), (2, 7), "same"),
        ([((3, 3), (9, 9)), ((2, 2), (4, 4))], (3, 3), (9, 9), "square"),
        ([((2, 3), (4, 6)), ((3, 3), (6, 6))], (5, 2), (10, 4), "multiple"),
        ([((6, 9), (2, 3)), ((3, 6), (1, 2))], (9, 3), (3, 1), "fraction"),
        ([((3, 4), (4, 3)), ((5, 2), (2, 5))], (2, 7), (7, 2), "swapped"),
        ([((7, 7), (3, 3)), ((9, 9), (4, 4))], (5, 5), (2, 2), "panels"),
        ([((3, 4), (1, 1)), ((5, 5), (1, 1))], (2, 7), (1, 1), "constant"),
    ],
)
def test_each_rule(shown: list[Demonstration], query: Shape, shape: Shape, rule: str) -> None:
    inferred = infer_shape(shown, query, EMPTY)
    assert (inferred.shape, inferred.rules) == (shape, (rule, rule))


def test_what_was_predicted_decides_when_no_rule_holds() -> None:
    canvas = EMPTY.copy()
    canvas[[0, 23]] = 5
    inferred = infer_shape([((3, 3), (2, 5)), ((5, 5), (4, 2)), ((5, 5), (1, 3))], (4, 4), canvas)
    assert (inferred.shape, inferred.rules) == ((3, 4), ("box", "box"))
    nothing = infer_shape([((3, 3), (2, 5)), ((5, 5), (4, 2)), ((5, 5), (1, 3))], (4, 4), EMPTY)
    assert nothing.shape == (1, 1), "an answer has at least one cell"


def test_a_rule_never_cuts_off_what_was_predicted_nor_leaves_the_canvas() -> None:
    canvas = EMPTY.copy()
    canvas[44] = 5
    inferred = infer_shape([((3, 4), (3, 4)), ((5, 2), (5, 2))], (3, 7), canvas)
    assert (inferred.shape, inferred.rules) == ((5, 7), ("box", "same"))
    too_large = infer_shape([((3, 3), (6, 6)), ((2, 2), (4, 4))], (6, 6), canvas)
    assert (too_large.shape, too_large.rules) == ((5, 5), ("box", "box"))


def test_no_demonstration_is_refused() -> None:
    with pytest.raises(InvalidInput, match="demonstrations"):
        infer_shape([], (3, 3), EMPTY)


@pytest.mark.parametrize(
    ("split", "at_least"), [("validation", 0.97), ("test", 0.96), ("official", 1.0), ("unseen", 1.0)]
)
def test_right_canvases_get_their_right_shape(
    dataset: Dataset, split: str, at_least: float, record_property: pytest.RecordProperty
) -> None:
    """The documentation gives these figures; 90 % on the test split is what is asked for."""
    queries = dataset.evaluation(split)
    pool, shapes = queries.pool[:, 1].numpy(), queries.pool_shapes.tolist()
    used, right = Counter(), Counter()
    for query, frames, present in zip(
        queries.queries.tolist(), queries.frames.tolist(), queries.present.tolist(), strict=True
    ):
        shown = [
            (tuple(shapes[frame][0]), tuple(shapes[frame][1]))
            for frame, there in zip(frames, present, strict=True)
            if there
        ]
        inferred = infer_shape(shown, tuple(shapes[query][0]), pool[query])
        for axis, rule in enumerate(inferred.rules):
            used[rule] += 1
            right[rule] += inferred.shape[axis] == shapes[query][1][axis]
        used["all"] += 1
        right["all"] += list(inferred.shape) == shapes[query][1]
    record_property("shares", json.dumps({rule: (used[rule], right[rule] / used[rule]) for rule in used}))
    assert right["all"] / used["all"] >= at_least


def test_an_answer_is_cut_to_its_shape(dataset: Dataset) -> None:
    queries = dataset.evaluation("official", limit=20)
    for index in range(20):
        given, answer = queries.query(index)
        canvas = queries.x_0[index].byte().numpy()
        assert np.array_equal(answer_grid(canvas, queries.demonstrations(index), given), answer)
