"""Experts that write into what they are given, or answer about more than they were asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from factordiff import Vocabulary, compose
from factordiff.engine.engine import Engine
from factordiff.errors import InvalidInput
from factordiff.types import LARGE

X_T = torch.tensor([[2, 3, 3, 1], [3, 1, 2, 3]])
METHODS = ("routing", "product", "mixture", "fkc", "rne", "superdiff", "vote", "evidence", "learned")


class Uniform:
    """Knows nothing."""

    def __init__(self, values: int = 3) -> None:
        self.vocabulary = Vocabulary(values)

    def encode(self, condition: Any) -> None:
        return None

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        values = self.vocabulary.size
        return torch.full((*x_t.shape, values), 1.0 / values).log()


class Writing(Uniform):
    """Overwrites every cell that it sees."""

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        x_t.zero_()
        return super().log_probs(x_t, encoded)


class Surplus(Uniform):
    """Answers about rows that nobody asked about."""

    def __init__(self, more: int) -> None:
        super().__init__()
        self.more = more

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        return super().log_probs(x_t.new_zeros(len(x_t) + self.more, x_t.shape[1]), encoded)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("batch", [None, 16])
def test_writing_into_x_t_changes_nothing(method: str, batch: int | None, untyped: None) -> None:
    engine = Engine(batch=batch)
    kept = X_T.clone()
    found = compose([Writing(), Writing()], method, engine=engine).sample(X_T)
    honest = compose([Uniform(), Uniform()], method, engine=engine).sample(X_T)
    assert torch.equal(X_T, kept)
    assert torch.equal(found.x_0, honest.x_0)
    given = X_T < 3
    assert torch.equal(found.x_0[given], X_T[given])


def test_writing_into_x_t_of_a_large_vocabulary_changes_nothing(untyped: None) -> None:
    values = LARGE + 1
    x_t = torch.tensor([[7, values, values, 9]])
    samples = compose([Writing(values), Writing(values)], "product").sample(x_t)
    assert samples.x_0[0, [0, 3]].tolist() == [7, 9]


@pytest.mark.parametrize("more", [-1, 1, 2, 5])
@pytest.mark.parametrize("batch", [None, 1, 2, 4, 8])
def test_rows_that_nobody_asked_about_are_refused(more: int, batch: int | None, untyped: None) -> None:
    team = compose([Surplus(more), Surplus(more)], "product", engine=Engine(batch=batch))
    with pytest.raises(InvalidInput, match=r"expert 1 returned log-probabilities of shape"):
        team.sample(X_T)


class Returning(Uniform):
    """Answers with what is no tensor."""

    def __init__(self, other: Any, values: int = 3) -> None:
        super().__init__(values)
        self.other = other

    def log_probs(self, x_t: Tensor, encoded: Any) -> Any:
        return self.other


@pytest.mark.parametrize("batch", [None, 4])
@pytest.mark.parametrize("other", [None, np.zeros((3, 4, 3))])
def test_what_is_no_tensor_is_refused_and_named(other: Any, batch: int | None, untyped: None) -> None:
    team = compose({"mine": Uniform(), "yours": Returning(other)}, "product", engine=Engine(batch=batch))
    with pytest.raises(InvalidInput, match=rf"expert 2 returned a {type(other).__name__}, no tensor"):
        team.sample(X_T)


def test_a_large_vocabulary_refuses_what_is_no_tensor_too(untyped: None) -> None:
    values = LARGE + 1
    team = compose([Uniform(values), Returning(None, values)], "product")
    with pytest.raises(InvalidInput, match="expert 2 returned a NoneType, no tensor"):
        team.sample(torch.tensor([[7, values]]))


def test_the_expert_that_is_wrong_is_called_as_the_team_calls_it(untyped: None) -> None:
    team = compose([Uniform(), Surplus(1)], "product")
    with pytest.raises(InvalidInput) as refused:
        team.sample(X_T)
    assert team.names[1] in str(refused.value)
    assert team.names[0] not in str(refused.value)


def test_a_vocabulary_that_is_a_number_is_refused() -> None:
    expert = Uniform()
    expert.vocabulary = 3  # type: ignore[assignment]
    with pytest.raises(
        InvalidInput, match=r"number 2, a Uniform, has 3 as its vocabulary, expected Vocabulary\("
    ):
        compose([Uniform(), expert])
