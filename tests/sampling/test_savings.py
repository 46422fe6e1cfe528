"""Nothing that is saved changes a number: with and without each saving, for every composition; and it saves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from factordiff.composition.composition import Composition, Single
from factordiff.composition.correctors import feynman_kac, rne
from factordiff.composition.factors import rows, whole
from factordiff.composition.mixture import Mixture
from factordiff.composition.product import GeometricMean, Product
from factordiff.composition.routing import FactorWeights, Routing, SoftRouting
from factordiff.composition.superdiff import SuperDiff, SuperDiffAnd
from factordiff.composition.views import HardViews, Views
from factordiff.errors import InvalidInput
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.adaptive import ByEntropy, ByMargin, ByProduct, Repaired
from factordiff.sampling.first_pass import FirstPass
from factordiff.sampling.reveal import Ancestral, ByConfidence, RevealRule
from factordiff.sampling.sampler import Samples, sample
from factordiff.sampling.savings import Bucket, Savings
from factordiff.vocabulary import Vocabulary
from tests.toy import CELLS, EXPERTS, MASK, empty, states

# two joints that the condition chooses from, so that an item told about another would show
TABLES = [np.random.default_rng(seed).dirichlet(np.full(81, 0.3), size=2) for seed in (4, 5, 6)]
TOLD = [TabularExpert(torch.from_numpy(table.reshape(2, 3, 3, 3, 3)), conditions=True) for table in TABLES]
OWN_LABELS = torch.arange(64)[:, None] % torch.tensor([[1, 2, 3, 4]])  # every item its own partition

ANY_NUMBER: dict[str, Composition] = {
    "single": Single(),
    "mixture": Mixture(),
    "product": Product(),
    "geometric-mean": GeometricMean(),
    "superdiff": SuperDiff(),
    "superdiff-and": SuperDiffAnd(),
    "routing": Routing(),
    "whole": Routing(whole(CELLS)),
    "own factors": Routing(OWN_LABELS, aggregate="min"),
    "soft-routing": SoftRouting(0.3, rows(2, 2)),
    "fkc": feynman_kac(),
    "rne": rne(),
}
FOR_TWO: dict[str, Composition] = {
    "linear and": SuperDiffAnd("linear"),
    "views": Views(),
    "hard views": HardViews(),
    "weights": FactorWeights(torch.tensor([[1.0, 0.2], [0.3, 0.0]]), rows(2, 2)),
}
CASES = [
    (name, count) for name in ANY_NUMBER for count in (1, 2, 3) if (name, count) != ("superdiff-and", 3)
] + [(name, 2) for name in FOR_TWO]

PLAIN = Savings.none()
VARIANTS: dict[str, dict[str, Any]] = {
    "all": {},
    "idle": {"savings": Savings(True, False, False)},
    "first pass": {"savings": Savings(False, True, False)},
    "duplicates": {"savings": Savings(False, False, True)},
    "bucket": {"savings": PLAIN, "bucket": 12},
    "large bucket": {"bucket": 50},
    "narrow bucket": {"bucket": 8},
    "unfilled bucket": {"bucket": Bucket(20)},
}

MANY_STEPS = ("bucket", "narrow bucket", "unfilled bucket")  # few in flight: slow where many wait


def differences(one: Samples, other: Samples) -> list[str]:
    """The fields that differ in any bit, apart from what was spent."""
    names = ("x_0", "particles", "log_w", "log_density", "nominal_passes")
    return [name for name in names if not torch.equal(getattr(one, name), getattr(other, name))]


def request(name: str, experts: int, batch: int, seed: int = 0) -> dict[str, Any]:
    """Mixed starts (no, some, all cells given), conditions and ids."""
    x_t = states(seed + batch, batch, CELLS, MASK, hidden=0.7)
    x_t[::5] = MASK
    return {
        "experts": TOLD[:experts],
        "composition": ANY_NUMBER[name] if name in ANY_NUMBER else FOR_TWO[name],
        "x_t": x_t,
        "condition": torch.arange(batch) % 2,
        "items": 1000 - 7 * torch.arange(batch),
        "seed": seed,
    }


def assert_exact(asked: dict[str, Any], variants: Sequence[str]) -> None:
    plain = sample(**asked, savings=PLAIN)
    for variant in variants:
        assert not differences(sample(**asked, **VARIANTS[variant]), plain), variant


@pytest.mark.parametrize(("name", "experts"), CASES)
def test_every_saving_is_exact(name: str, experts: int) -> None:
    drawn = {"temperature": 1.0, "particles": 3, "reveal": ByConfidence(6)}
    for batch in (1, 7):
        assert_exact(request(name, experts, batch) | drawn, list(VARIANTS))
    if name != "superdiff-and":  # solves for its exponents: slow
        assert_exact(
            request(name, experts, 64) | drawn, [name for name in VARIANTS if name not in MANY_STEPS]
        )


@pytest.mark.slow
@pytest.mark.parametrize(("experts", "batch"), [(1, 64), (2, 64), (3, 1), (3, 7), (3, 64)])
def test_every_saving_is_exact_where_exponents_are_solved_for(experts: int, batch: int) -> None:
    drawn = {"temperature": 1.0, "particles": 3, "reveal": ByConfidence(6)}
    assert_exact(request("superdiff-and", experts, batch) | drawn, list(VARIANTS))


@pytest.mark.parametrize(
    "reveal",
    [
        Ancestral(3), Ancestral(9), ByConfidence(2), ByConfidence(11), ByMargin(0.6), ByEntropy(0.4), ByProduct(0.5),
        Repaired(ByMargin(0.2), 0.7, 2),
    ],
    ids=repr,
)  # fmt: skip
def test_every_saving_is_exact_under_every_rule(reveal: RevealRule) -> None:
    for name, temperature in (("routing", 0.0), ("superdiff", 1.0), ("fkc", 1.0)):
        if not (reveal.repairs and name == "fkc"):
            drawn = {"temperature": temperature, "particles": 4, "reveal": reveal}
            assert_exact(request(name, 2, 6) | drawn, list(VARIANTS))


@pytest.mark.parametrize("name", ["routing", "fkc"])
def test_resampling_happens_and_is_exact(name: str) -> None:
    """Many particles and sharp weights: duplicates are the rule after a resampling."""
    composition = feynman_kac([3.0, 3.0]) if name == "fkc" else Routing()
    asked = request(name, 2, 20) | {"composition": composition, "temperature": 1.0, "particles": 12}
    plain = sample(**asked, savings=PLAIN)
    ours = sample(**asked, bucket=36)
    assert not differences(ours, plain)
    assert int(ours.executed_passes.sum()) < 0.5 * int(plain.executed_passes.sum())


class Counting:
    """An expert that counts the rows it is told and asked about."""

    def __init__(self, expert: TabularExpert) -> None:
        self.expert, self.shapes, self.told = expert, [], []  # type: ignore[var-annotated]

    @property
    def vocabulary(self) -> Vocabulary:
        return self.expert.vocabulary

    def encode(self, condition: Any) -> Any:
        self.told += condition.tolist()
        return condition

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        self.shapes.append(len(x_t))
        return self.expert.log_probs(x_t, encoded % 2)


def counted(particles: int = 4, items: int = 20, **options: Any) -> tuple[Samples, Counting]:
    expert = Counting(TOLD[0])
    given = {"reveal": ByConfidence(6), "temperature": 1.0, "condition": torch.arange(items)} | options
    drawn = sample([expert], given.pop("composition", Mixture()), empty(items), particles=particles, **given)
    return drawn, expert


def test_executed_passes_are_what_is_run_and_each_saving_saves() -> None:
    spent = {}
    for name, savings in {
        "none": PLAIN,
        "idle": Savings(True, False, False),
        "first pass": Savings(True, True, False),
        "all": Savings(),
    }.items():
        drawn, expert = counted(savings=savings)
        assert sum(expert.shapes) == int(drawn.executed_passes.sum())
        assert drawn.padded_passes == 0
        assert drawn.executed_over_needed == 1.0
        spent[name] = sum(expert.shapes)
    assert spent["none"] == 20 * 4 * 6  # six steps
    assert spent["idle"] == 20 * 4 * 4  # four of them with a cell to reveal
    assert spent["first pass"] == 20 * (1 + 4 * 3)
    assert spent["all"] < spent["first pass"]


def test_particles_that_leave_their_start_at_different_steps_share_its_pass() -> None:
    drawn, _ = counted(reveal=Ancestral(60), savings=Savings(True, True, False))
    alone, _ = counted(reveal=Ancestral(60), savings=Savings(True, False, False))
    assert torch.equal(alone.executed_passes - drawn.executed_passes, torch.full((20,), 3))


def test_a_first_pass_is_shared_between_methods() -> None:
    memory = FirstPass()
    first, _ = counted(1)
    expert = Counting(TOLD[0])
    for composition in (Mixture(), Single(), Routing()):
        options: dict[str, Any] = {
            "reveal": ByConfidence(6),
            "temperature": 1.0,
            "condition": torch.arange(20),
        }
        alone = sample([expert], composition, empty(20), **options)
        shared = sample([expert], composition, empty(20), first_pass=memory, bucket=7, **options)
        assert not differences(alone, shared)
        saved = 0 if isinstance(composition, Mixture) else 1
        assert torch.equal(alone.executed_passes - shared.executed_passes, torch.full((20,), saved))
    assert len(memory) == 20
    assert int(first.executed_passes.sum()) == 80


def test_a_first_pass_knows_its_items_by_their_start_and_expert() -> None:
    memory = FirstPass()
    x_t = states(3, 10, CELLS, MASK, hidden=0.7)
    x_t[0] = MASK
    sample(EXPERTS[:1], Mixture(), x_t, first_pass=memory)
    other = sample(EXPERTS, Routing(), x_t, first_pass=memory)  # the second expert was never asked
    assert not differences(other, sample(EXPERTS, Routing(), x_t))
    x_t[0, 0] = 1
    with pytest.raises(InvalidInput, match="first_pass: it remembers another start"):
        sample(EXPERTS, Mixture(), x_t, first_pass=memory)


def test_a_bucket_bounds_the_rows_in_flight_and_tells_each_item_once() -> None:
    drawn, expert = counted(particles=3, items=50, bucket=Bucket(10))
    assert max(expert.shapes) <= 9  # three items of three particles
    assert sorted(expert.told) == list(range(50))
    whole_batch, at_once = counted(particles=3, items=50)
    assert max(at_once.shapes) > 9
    assert not differences(drawn, whole_batch)
    assert torch.equal(drawn.executed_passes, whole_batch.executed_passes)


def test_batches_are_filled_up_to_few_sizes_and_the_waste_is_told() -> None:
    drawn, expert = counted(particles=1, items=50, bucket=16, reveal=ByMargin(0.5))
    sizes = Bucket.of_fixed_sizes(16).sizes
    assert set(expert.shapes) <= set(sizes)
    assert sum(expert.shapes) == int(drawn.executed_passes.sum()) + drawn.padded_passes
    assert drawn.padded_passes > 0
    assert drawn.executed_over_needed == sum(expert.shapes) / int(drawn.executed_passes.sum())


def test_little_is_wasted_when_many_wait() -> None:
    drawn, _ = counted(particles=1, items=1_000, bucket=64, reveal=ByMargin(0.5))
    assert 1.0 < drawn.executed_over_needed <= 1.15


def test_finished_items_make_room() -> None:
    """Some items have one hidden cell, some four: in a bucket nobody waits for the slowest of a batch."""
    x_t = empty(40)
    x_t[::2, 1:] = 0
    expert = Counting(TOLD[0])
    options: dict[str, Any] = {"condition": torch.arange(40), "reveal": ByConfidence(4)}
    drawn = sample([expert], Mixture(), x_t, bucket=Bucket(8), **options)
    needed = 20 * 1 + 20 * 4
    assert int(drawn.executed_passes.sum()) == needed
    assert len(expert.shapes) <= needed / 8 + 4  # a batch by batch loop needs 5 x 4 passes
    assert np.mean(expert.shapes) > 6


def test_sizes() -> None:
    for rows_in_flight in (1, 5, 8, 100, 1100):
        bucket = Bucket.of_fixed_sizes(rows_in_flight)
        assert max(bucket.sizes) == rows_in_flight
        for count in range(1, rows_in_flight + 1):
            filled = bucket.filled(count)
            assert count <= filled <= max(min(bucket.sizes), 1.5 * count + 2)


BAD_BUCKETS: dict[str, tuple[str, dict[str, Any]]] = {
    "none": ("bucket: expected a whole number of at least 1, got 0", {"bucket": 0}),
    "negative": ("bucket: expected a whole number of at least 1, got -4", {"bucket": -4}),
    "too small": (
        "bucket: expected room for the 8 particles of an item, got 4 rows",
        {"bucket": 4, "particles": 8},
    ),
    "trace": ("trace: expected all items in flight together, got 6 .* 4", {"bucket": 4, "trace": True}),
    "memory": ("particles: .*this machine has .*GiB; use fewer particles", {"particles": 10**9}),
    "repaired particles": (
        "reveal: a rule that repairs cannot be used",
        {"reveal": Repaired(ByMargin()), "composition": feynman_kac(), "temperature": 1.0},
    ),
    "condition": (
        "condition: expected one for each of 6 items, got 5",
        {"bucket": 4, "condition": torch.arange(5) % 2},
    ),
    "unknown condition": ("condition: with a bucket, expected None", {"bucket": 4, "condition": object()}),
}


@pytest.mark.parametrize("case", BAD_BUCKETS)
def test_what_cannot_be_is_refused(case: str) -> None:
    sentence, options = BAD_BUCKETS[case]
    given = {"composition": Mixture(), "condition": torch.arange(6) % 2} | options
    with pytest.raises(InvalidInput, match=f"^{sentence}"):
        sample(TOLD, x_t=empty(6), **given)


def test_sizes_that_do_not_reach_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"bucket: expected sizes .* up to 10 rows"):
        Bucket(10, (4, 8))


def test_a_trace_in_a_bucket_that_holds_everybody() -> None:
    x_t = states(1, 6, CELLS, MASK, hidden=0.8)
    options: dict[str, Any] = {"reveal": ByMargin(0.6), "trace": True, "temperature": 1.0}
    one, other = (
        sample(EXPERTS, Routing(), x_t, **options),
        sample(EXPERTS, Routing(), x_t, bucket=8, **options),
    )
    assert one.trace == other.trace
    assert one.trace is not None


def test_nested_conditions_are_cut_with_their_items() -> None:
    class Nested(Counting):
        def encode(self, condition: Any) -> Any:
            assert condition["deep"][1] is None
            return {"which": super().encode(condition["deep"][0])}

        def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
            return super().log_probs(x_t, encoded["which"])

    plain, _ = counted(1, 12)
    expert = Nested(TOLD[0])
    nested = {"deep": (torch.arange(12), None)}
    drawn = sample([expert], Mixture(), empty(12), nested, reveal=ByConfidence(6), temperature=1.0, bucket=5)
    assert not differences(drawn, plain)
    assert expert.told[:5] == [0, 1, 2, 3, 4]
