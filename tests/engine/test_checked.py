"""A faster form is believed only where it agrees with the plain one."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff.engine.checked import CheckedFastPath, disagreement
from factordiff.errors import InvalidInput

GIVEN = torch.linspace(-1, 1, 12).view(4, 3)


class Counted:
    """A function that knows how often it was called."""

    def __init__(self, bend: Any = lambda x: x) -> None:
        self.calls, self.bend = 0, bend

    def __call__(self, weights: Tensor, x: Tensor) -> tuple[Tensor, None]:
        self.calls += 1
        return self.bend(weights * x), None


def test_both_forms_run_once_for_each_shape_and_then_only_the_faster() -> None:
    plain, fast = Counted(), Counted()
    part = CheckedFastPath("double", plain, {"fast": fast}, torch.float32)
    two = torch.tensor(2.0)
    for rows in (4, 4, 2, 4, 2):
        said, nothing = part(two, GIVEN[:rows])
        assert torch.equal(said, 2 * GIVEN[:rows])
        assert nothing is None
    assert (plain.calls, fast.calls) == (2, 5)
    assert part.failure is None
    assert repr(part) == "CheckedFastPath(double, fast, 2 shapes compared)"


@pytest.mark.parametrize(
    ("bend", "words"),
    [
        (lambda x: x * float("nan"), "is not finite"),
        (lambda x: x / 0.0, "is not finite"),
        (lambda x: x * 1e9, r"is 1e\+09 away"),
        (lambda x: x * 1.001, "is 0.001 away"),
        (lambda x: x.flip(0), "is 2 away from the plain one"),
        (lambda x: x.index_fill(0, torch.tensor(1), 9.0), "is 7.6 away"),
    ],
)
def test_garbage_is_never_passed_on(bend: Any, words: str) -> None:
    plain, fast = Counted(), Counted(bend)
    part = CheckedFastPath("double", plain, {"fast": fast}, torch.float32)
    for _ in range(3):
        assert torch.equal(part(torch.tensor(2.0), GIVEN)[0], 2 * GIVEN)
    assert (plain.calls, fast.calls) == (3, 1)
    assert part.failure is not None
    assert re.search(rf"double, fast: the faster result {words}", part.failure)


def test_garbage_at_one_shape_is_found_when_that_shape_comes() -> None:
    fast = Counted(lambda x: x if len(x) > 2 else x * float("nan"))
    part = CheckedFastPath("double", Counted(), {"fast": fast}, torch.float32)
    assert bool(part(torch.tensor(2.0), GIVEN)[0].isfinite().all())
    assert part.failure is None
    assert bool(part(torch.tensor(2.0), GIVEN[:2])[0].isfinite().all())
    assert part.failure is not None


def test_the_next_way_is_tried_before_the_plain_one() -> None:
    def refuse(x: Tensor) -> Tensor:
        raise RuntimeError("no compiler here")

    plain, spoiled, good = Counted(), Counted(refuse), Counted()
    ways = {"best": Counted(lambda x: x + 1), "better": spoiled, "good": good}
    part = CheckedFastPath("double", plain, ways, torch.float32)
    assert part.way == "best"
    for _ in range(3):
        assert torch.equal(part(torch.tensor(2.0), GIVEN)[0], 2 * GIVEN)
    assert part.way == "good"
    assert (plain.calls, spoiled.calls, good.calls) == (1, 1, 3)
    assert part.failure is not None
    assert part.failure.startswith("double, best: the faster result is ")
    assert part.failure.endswith("; double, better: RuntimeError: no compiler here")


def test_a_way_given_up_late_leaves_no_shape_unchecked() -> None:
    first = Counted(lambda x: x if len(x) > 2 else x * float("nan"))
    second = Counted(lambda x: x if len(x) < 4 else x * float("nan"))
    part = CheckedFastPath("double", Counted(), {"first": first, "second": second}, torch.float32)
    for rows in (4, 2, 4, 3):
        assert torch.equal(part(torch.tensor(2.0), GIVEN[:rows])[0], 2 * GIVEN[:rows])
    assert part.way == "plain"


def test_rounding_of_the_type_is_allowed() -> None:
    coarse = GIVEN.bfloat16()
    assert disagreement("x", coarse * 1.01, coarse, torch.bfloat16) is None
    assert disagreement("x", GIVEN * 1.01, GIVEN, torch.float32) is not None
    assert disagreement("x", coarse * 1.2, coarse, torch.bfloat16) is not None
    assert disagreement("x", torch.zeros(3), torch.zeros(3), torch.float32) is None
    assert disagreement("x", torch.ones(3), torch.zeros(3), torch.float32) is not None


def test_a_bad_row_among_many_is_found() -> None:
    """Few spoiled rows are little of the whole."""
    many = torch.linspace(1, 2, 3000).view(1000, 3).bfloat16()
    spoiled = many.index_fill(0, torch.tensor(500), 0.0)
    assert float((spoiled.float() - many.float()).norm() / many.float().norm()) < 0.04
    assert disagreement("x", many * 1.01, many, torch.bfloat16) is None
    assert disagreement("x", spoiled, many, torch.bfloat16) is not None
    quiet = many.index_fill(
        0, torch.tensor(500), 0.0
    )  # a row of nothing is no reason to look closer than usual
    assert disagreement("x", quiet + 0.001, quiet, torch.bfloat16) is None
    assert disagreement("x", many[:0], many[:0], torch.bfloat16) is None
    assert disagreement("x", torch.tensor(1.0), torch.tensor(2.0), torch.float32) is not None


def test_what_is_wrong_with_the_arguments_is_raised() -> None:
    def refuse(x: Tensor) -> Tensor:
        raise InvalidInput("x: expected something else")

    with pytest.raises(InvalidInput, match="x: expected something else"):
        CheckedFastPath("double", Counted(), {"fast": Counted(refuse)}, torch.float32)(
            torch.tensor(2.0), GIVEN
        )
