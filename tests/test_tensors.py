"""Numpy arrays and lists where tensors are expected: the same results, and sentences for what is no number."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from factordiff import (
    Engine,
    Evidence,
    FactorWeights,
    FittingData,
    InvalidInput,
    Mixture,
    Product,
    Routing,
    SoftRouting,
    SuperDiff,
    TabularExpert,
    Vocabulary,
    compare,
    components,
    compose,
    exact_law,
    feynman_kac,
    fold_evidence,
    log_doubt,
    majority_vote,
    margin,
    sample,
    substitute,
    total_variation,
)
from factordiff.fitting.data import as_data
from factordiff.tensors import as_tensor
from factordiff.worlds.queries import as_queries

JOINT = [[0.5, 0.0], [0.0, 0.5]]
X_T = [[1, 2], [2, 0]]
KINDS = (
    torch.tensor(X_T),
    torch.tensor(X_T, dtype=torch.int32),
    torch.tensor(X_T, dtype=torch.int16),
    X_T,
    np.array(X_T),
    np.array(X_T, dtype=np.uint8),
    np.array(X_T, dtype=np.int32),
    tuple(map(tuple, X_T)),
)


@pytest.mark.parametrize("x_t", KINDS, ids=lambda one: f"{type(one).__name__} {getattr(one, 'dtype', '')}")
def test_every_kind_of_numbers_is_taken(x_t: Any) -> None:
    for joint in (JOINT, np.array(JOINT), torch.tensor(JOINT)):
        expert = TabularExpert(joint)
        assert sample([expert], Mixture(), x_t, items=[3, 4]).x_0.tolist() == [[1, 1], [0, 0]]
    team = compose([expert, expert], device=None)
    assert team.device == torch.device("cpu")
    assert team.sample(x_t, items=np.array([3, 4])).x_0.tolist() == [[1, 1], [0, 0]]
    scores, _ = fold_evidence([expert], x_t)
    assert scores.shape == (1, 2, 2)
    assert as_data((list(x_t) if isinstance(x_t, tuple) else x_t, None)).answers.tolist() == X_T
    assert "1.000" in compare([expert, expert], "mixture", (x_t, [[1, 1], [0, 0]])).markdown().replace(
        "100.0", "1.000"
    )


@pytest.mark.parametrize("method", ["mixture", "vote"])
def test_a_whole_number_is_a_seed_whoever_made_it(method: str, untyped: None) -> None:
    def drawn(seed: Any) -> list[list[int]]:
        return compose(two(), method).sample([[2, 2]] * 9, temperature=1.0, seed=seed).x_0.tolist()

    assert drawn(np.int64(3)) == drawn(torch.tensor(3)) == drawn(3) != drawn(4)


def test_an_array_is_copied_and_never_written_to() -> None:
    array = np.array(X_T)
    array.flags.writeable = False
    assert as_tensor("x_t", array).tolist() == X_T


@pytest.mark.parametrize(
    "x_t", [None, "[[1, 2]]", 7, [[1, 2], [3]], [["a"]], np.array(["a"]), {1: 2}, [[10**30]]]
)
def test_what_is_no_number_is_a_sentence(x_t: Any, untyped: None) -> None:
    with pytest.raises(
        InvalidInput, match="x_t: expected a tensor, a numpy array or nested lists of numbers, got a"
    ):
        compose([TabularExpert(JOINT)]).sample(x_t)


@pytest.mark.parametrize("x_t", [[], [1, 2], [[0.5, 1.0]], [[True, False]], np.zeros((1, 2, 3), dtype=int)])
def test_numbers_of_another_shape_or_kind_are_a_sentence(x_t: Any, untyped: None) -> None:
    with pytest.raises(InvalidInput, match="x_t: expected int64 tokens of shape"):
        compose([TabularExpert(JOINT)]).sample(x_t)


LABELS, ALPHA, START = [0, 1], [[1.0, 0.0], [0.0, 1.0]], [1, 2]
OTHER = [[0.4, 0.1], [0.2, 0.3]]
FLAGS, LOG_P = [[True, False], [True, True]], [[[-0.5, -1.5]], [[-2.0, -0.1]]]


def two() -> list[TabularExpert]:
    return [TabularExpert(JOINT), TabularExpert(OTHER)]


def composed(method: str, **options: Any) -> Any:
    return compose(two(), method, **options).sample([[2, 2]]).x_0


def by_condition(which: Any, engine: Engine | None = None) -> Any:
    expert = TabularExpert([JOINT, OTHER], conditions=True)
    return compose([expert], engine=engine).sample([[2, 2], [1, 2], [2, 0]], which).x_0


def data(of: Callable[[Any], Any]) -> list[Any]:
    made = FittingData(of(X_T), asked=of(FLAGS), held=of([True, False]), owner=of(X_T))
    return [made.answers, made.asked, made.held, made.owner]


# What takes numbers: each is called with the same numbers as a list, as an array and as a tensor.
TAKEN: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "factors, routing": lambda of: composed("routing", factors=of(LABELS)),
    "factors, soft-routing": lambda of: composed("soft-routing", factors=of([LABELS])),
    "factors, evidence": lambda of: composed("evidence", factors=of(LABELS)),
    "factors, a kernel": lambda of: composed("evidence", factors=of(ALPHA)),
    "Routing": lambda of: sample(two(), Routing(of(LABELS)), [[2, 2]]).x_0,
    "Routing, a function": lambda of: sample(two(), Routing(lambda state: of(LABELS)), [[2, 2]]).x_0,
    "SoftRouting": lambda of: sample(two(), SoftRouting(partition=of(LABELS)), [[2, 2]]).x_0,
    "FactorWeights": lambda of: sample(two(), FactorWeights(of(ALPHA), of(LABELS)), [[2, 2]]).x_0,
    "Evidence": lambda of: (
        sample(
            two(),
            Evidence(of(LABELS), evidence=of([[[0.0, -1.0]]] * 2), of_items=of([[0.0], [-1.0]])),
            [[2, 2]],
        ).x_0
    ),
    "FittingData": data,
    "exact_law": lambda of: exact_law(two(), Mixture(), 2, start=of(START)).distribution(),
    "total_variation": lambda of: total_variation(of(JOINT), of(OTHER)),
    "margin": lambda of: margin(of(LOG_P)),
    "log_doubt": lambda of: log_doubt(of(LOG_P)),
    "components": lambda of: components(of([[[5, 5, 0], [0, 5, 0]]])),
    "substitute": lambda of: substitute(of([[[0.5, 1.0], [2.0, 0.0]]]), of([[2, 1]]), Vocabulary(2)),
    "majority_vote": lambda of: majority_vote(of([[[0, 1]], [[1, 1]], [[1, 0]]]), 2),
    "condition": lambda of: by_condition(of([0, 1, 1])),
    "condition, in batches": lambda of: by_condition(of([0, 1, 1]), Engine(batch=1)),
    "condition, of queries": lambda of: as_queries((X_T, X_T, of([0, 1])))[torch.tensor([1])].condition,
    "condition, of data": lambda of: FittingData(X_T, of([0, 1])).part(torch.tensor([1])).condition,
    "beta": lambda of: compose(two(), "product", beta=of([0.5, 2.0])).options["beta"],
    "weights": lambda of: compose(two(), "mixture", weights=of([0.5, 2.0])).options["weights"],
    "temperatures": lambda of: compose(two(), temperatures=of([0.5, 2.0])).options["temperatures"],
    "bias": lambda of: compose(two(), "superdiff", bias=of([-0.5, 2.0])).options["bias"],
    "Product": lambda of: Product(of([0.5, 2.0])).beta,
    "Mixture": lambda of: Mixture(of([1, 2])).weights,
    "Routing, temperatures": lambda of: Routing(temperatures=of([0.5, 2.0])).temperatures,
    "SuperDiff": lambda of: SuperDiff(of([0.5, 2.0]), bias=of([-1.0, 2.0])).bias,
    "feynman_kac": lambda of: feynman_kac(of([0.5, 2.0])).beta,
}


@pytest.mark.parametrize("where", TAKEN)
def test_lists_arrays_and_tensors_are_taken_alike(where: str) -> None:
    as_list, as_array, tensor = (TAKEN[where](of) for of in (list, np.array, tensor_of))
    for found in (as_list, as_array):
        if isinstance(tensor, torch.Tensor):
            assert torch.equal(torch.as_tensor(found), tensor)
        elif isinstance(tensor, list):
            assert all(map(torch.equal, found, tensor))
        else:
            assert found == tensor
            assert type(found) is type(tensor)


def tensor_of(numbers: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(numbers))


def test_whole_numbers_do_where_real_ones_are_expected() -> None:
    weighted = FactorWeights([[1, 0], [1, 1]], LABELS, "linear")
    assert weighted.alpha.tolist() == [[0.5, 0.0], [0.5, 1.0]]
    assert exact_law(two(), weighted, 2).distribution().sum() == pytest.approx(1.0)
    assert torch.equal(Evidence(kernel=[[1, 0], [0, 1]]).kernel, torch.eye(2).double())
    assert total_variation([1, 0], np.array([False, True])) == 1.0
    assert margin([[[0, -1]]]).tolist() == margin([[[0.0, -1.0]]]).tolist()


@pytest.mark.parametrize(
    "given",
    [np.array([0.5, 2.0]), torch.tensor([0.5, 2.0]), [np.float32(0.5), np.int64(2)], [torch.tensor(0.5), 2]],
    ids=["array", "tensor", "numbers of numpy", "numbers of torch"],
)
def test_numbers_of_experts_stay_plain_floats(given: Any) -> None:
    for found in (compose(two(), "product", beta=given).options["beta"], Product(given).beta):
        assert hash(found) == hash((0.5, 2.0))
        assert json.dumps(found) == "[0.5, 2.0]"
    by_name = compose(dict(zip("ab", two(), strict=True)), "product", beta={"b": np.float32(0.25)})
    assert by_name.options["beta"] == (1.0, 0.25)


def test_single_numbers_of_numpy_are_taken() -> None:
    team = compose(two(), "fkc", particles=np.int64(4), resampling=np.float32(0.25))
    assert json.dumps(dict(team.options)) == '{"particles": 4, "resampling": 0.25}'
    assert compose(two(), "soft-routing", softness=torch.tensor(0.5)).options == {"softness": 0.5}
