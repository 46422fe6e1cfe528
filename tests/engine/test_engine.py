"""Nothing that is saved changes a number: with and without each saving, for every composition; and it saves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.composition.correctors import feynman_kac, rne
from factordiff.composition.drawn_expert import DrawnExpert
from factordiff.composition.factors import rows, whole
from factordiff.composition.mixture import Mixture
from factordiff.composition.product import GeometricMean, Product
from factordiff.composition.routing import FactorWeights, Routing, SoftRouting
from factordiff.composition.single import Single
from factordiff.composition.superdiff import SuperDiff, SuperDiffAnd
from factordiff.composition.views import HardViews, Views
from factordiff.engine.batch_sizes import BatchSizes
from factordiff.engine.engine import Engine
from factordiff.errors import InvalidInput
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.adaptive import ByEntropy, ByMargin, ByProduct, Repaired
from factordiff.sampling.reveal import Ancestral, ByConfidence, RevealRule
from factordiff.sampling.sampler import sample
from factordiff.sampling.samples import Samples
from factordiff.vocabulary import Vocabulary
from tests.toy import CELLS, EXPERTS, MASK, empty, states

# two joints that the condition chooses from, so that an item told about another would show
TABLES = [np.random.default_rng(seed).dirichlet(np.full(81, 0.3), size=2) for seed in (4, 5, 6)]


class Shared(TabularExpert):
    """Looks up and remembers nothing, so several threads may ask at once."""

    thread_safe = True


TOLD = [Shared(torch.from_numpy(table.reshape(2, 3, 3, 3, 3)), conditions=True) for table in TABLES]
OWN_LABELS = torch.arange(128)[:, None] % torch.tensor([[1, 2, 3, 4]])  # every item its own partition

ANY_NUMBER: dict[str, Composition] = {
    "single": Single(),
    "mixture": Mixture(),
    "product": Product(),
    "geometric-mean": GeometricMean(),
    "superdiff": SuperDiff(),
    "superdiff-and": SuperDiffAnd(),
    "drawn-expert": DrawnExpert(),
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

VARIANTS: dict[str, Engine] = {
    "all": Engine(),
    "unshared": Engine(share=False),
    "batch": Engine(12, share=False),
    "large batch": Engine(50),
    "narrow batch": Engine(8),
    "unfilled batch": Engine(BatchSizes(20)),
    "threads": Engine(12, threads=3),
    "threads at once": Engine(threads=2),
}

MANY_STEPS = ("batch", "narrow batch", "unfilled batch")  # few in flight: slow where many wait


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
    plain = sample(**asked)
    for variant in variants:
        assert not differences(VARIANTS[variant].sample(**asked), plain), variant


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
    plain = sample(**asked)
    ours = Engine(36).sample(**asked)
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


def counted(
    particles: int = 4, items: int = 20, engine: Engine | None = None, **options: Any
) -> tuple[Samples, Counting]:
    expert = Counting(TOLD[0])
    given = {"reveal": ByConfidence(6), "temperature": 1.0, "condition": torch.arange(items)} | options
    run = sample if engine is None else engine.sample
    drawn = run([expert], given.pop("composition", Mixture()), empty(items), particles=particles, **given)
    return drawn, expert


def test_executed_passes_are_what_is_run_and_sharing_saves() -> None:
    spent = {}
    for name, engine in {"loop": None, "unshared": Engine(share=False), "all": Engine()}.items():
        drawn, expert = counted(engine=engine)
        assert sum(expert.shapes) == int(drawn.executed_passes.sum())
        assert drawn.padded_passes == 0
        assert drawn.executed_over_needed == 1.0
        spent[name] = sum(expert.shapes)
    assert spent["loop"] == spent["unshared"] == 20 * 4 * 4  # six steps, four of them with a cell to reveal
    assert spent["all"] < 20 * (
        1 + 4 * 3
    )  # the first pass is shared, and what particles have in common after it


def test_particles_that_leave_their_start_at_different_steps_share_its_pass() -> None:
    """One cell, so that nothing else can be shared: each particle needs the start's pass, and the item has it once."""
    coin = TabularExpert(torch.tensor([0.2, 0.8]))
    options: dict[str, Any] = {"reveal": Ancestral(60), "temperature": 1.0, "particles": 4}
    shared = Engine().sample([coin], Mixture(), empty(20, 1, 2), **options)
    alone = sample([coin], Mixture(), empty(20, 1, 2), **options)
    assert not differences(shared, alone)
    assert torch.equal(alone.executed_passes, torch.full((20,), 4))
    assert torch.equal(shared.executed_passes, torch.ones(20, dtype=torch.int64))


def test_what_was_said_at_the_start_is_forgotten_with_the_item() -> None:
    """Two items in flight, of which one may leave before the other's last particle leaves its start."""
    coins = TabularExpert(torch.tensor([[0.2, 0.8], [0.9, 0.1]]), conditions=True)
    options: dict[str, Any] = {"reveal": Ancestral(30), "temperature": 1.0, "particles": 4}
    given = ([coins], Mixture(), empty(60, 1, 2), torch.arange(60) % 2)
    assert not differences(Engine(8).sample(*given, **options), sample(*given, **options))


def test_a_batch_bounds_the_rows_in_flight_and_tells_each_item_once() -> None:
    drawn, expert = counted(particles=3, items=50, engine=Engine(BatchSizes(10)))
    assert max(expert.shapes) <= 9  # three items of three particles
    assert sorted(expert.told) == list(range(50))
    whole_batch, at_once = counted(particles=3, items=50, engine=Engine())
    assert max(at_once.shapes) > 9
    assert not differences(drawn, whole_batch)
    assert torch.equal(drawn.executed_passes, whole_batch.executed_passes)


def test_batches_are_filled_up_to_few_sizes_and_the_waste_is_told() -> None:
    drawn, expert = counted(particles=1, items=50, engine=Engine(16), reveal=ByMargin(0.5))
    sizes = BatchSizes.fixed(16).sizes
    assert set(expert.shapes) <= set(sizes)
    assert sum(expert.shapes) == int(drawn.executed_passes.sum()) + drawn.padded_passes
    assert drawn.padded_passes > 0
    assert drawn.executed_over_needed == sum(expert.shapes) / int(drawn.executed_passes.sum())


def test_little_is_wasted_when_many_wait() -> None:
    drawn, _ = counted(particles=1, items=1_000, engine=Engine(64), reveal=ByMargin(0.5))
    assert 1.0 < drawn.executed_over_needed <= 1.15


def test_finished_items_make_room() -> None:
    """Some items have one hidden cell, some four: in flight nobody waits for the slowest of a batch."""
    x_t = empty(40)
    x_t[::2, 1:] = 0
    expert = Counting(TOLD[0])
    options: dict[str, Any] = {"condition": torch.arange(40), "reveal": ByConfidence(4)}
    drawn = Engine(BatchSizes(8)).sample([expert], Mixture(), x_t, **options)
    needed = 20 * 1 + 20 * 4
    assert int(drawn.executed_passes.sum()) == needed
    assert len(expert.shapes) <= needed / 8 + 4  # a batch by batch loop needs 5 x 4 passes
    assert np.mean(expert.shapes) > 6


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_items_are_no_passes(variant: str) -> None:
    nobody = request("routing", 2, 1) | {"x_t": empty(0), "condition": torch.arange(0), "items": None}
    drawn = VARIANTS[variant].sample(**nobody)
    assert drawn.x_0.shape == (0, CELLS)
    assert drawn.padded_passes == 0


def test_sizes() -> None:
    for rows_in_flight in (1, 5, 8, 100, 1100):
        batch = BatchSizes.fixed(rows_in_flight)
        assert max(batch.sizes) == rows_in_flight
        for count in range(1, rows_in_flight + 1):
            filled = batch.filled(count)
            assert count <= filled <= max(min(batch.sizes), 1.5 * count + 2)


BAD: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "none": ("batch: expected a whole number of at least 1, got 0", 0, {}),
    "negative": ("batch: expected a whole number of at least 1, got -4", -4, {}),
    "too small": ("batch: expected room for the 8 particles of an item, got 4 rows", 4, {"particles": 8}),
    "trace": ("trace: expected all items in flight together, got 6 .* 4", 4, {"trace": True}),
    "memory": ("particles: .*this machine has .*GiB; use fewer particles", None, {"particles": 10**9}),
    "repaired particles": (
        "reveal: a rule that repairs cannot be used",
        None,
        {"reveal": Repaired(ByMargin()), "composition": feynman_kac(), "temperature": 1.0},
    ),
    "condition": (
        "condition: expected one for each of 6 items, got 5",
        4,
        {"condition": torch.arange(5) % 2},
    ),
    "unknown condition": ("condition: in batches, expected None", 4, {"condition": object()}),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_is_refused(case: str) -> None:
    sentence, batch, options = BAD[case]
    given = {"composition": Mixture(), "condition": torch.arange(6) % 2} | options
    with pytest.raises(InvalidInput, match=f"^{sentence}"):
        Engine(batch).sample(TOLD, x_t=empty(6), **given)


def test_sizes_that_do_not_reach_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"batch: expected sizes .* up to 10 rows"):
        BatchSizes(10, (4, 8))


def test_a_trace_of_a_batch_that_holds_everybody() -> None:
    x_t = states(1, 6, CELLS, MASK, hidden=0.8)
    options: dict[str, Any] = {"reveal": ByMargin(0.6), "trace": True, "temperature": 1.0}
    one, other = (
        sample(EXPERTS, Routing(), x_t, **options),
        Engine(8).sample(EXPERTS, Routing(), x_t, **options),
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
    drawn = Engine(5).sample([expert], Mixture(), empty(12), nested, reveal=ByConfidence(6), temperature=1.0)
    assert not differences(drawn, plain)
    assert expert.told[:5] == [0, 1, 2, 3, 4]
