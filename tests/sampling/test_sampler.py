"""The one loop against its slow twin, number for number, and what it promises about given cells and passes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.composition.correctors import feynman_kac, rne
from factordiff.composition.factors import rows, whole
from factordiff.composition.mixture import Mixture
from factordiff.composition.product import GeometricMean, Product
from factordiff.composition.routing import FactorWeights, Routing, SoftRouting
from factordiff.composition.single import Single
from factordiff.composition.superdiff import SuperDiff, SuperDiffAnd
from factordiff.composition.views import HardViews, Views
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.reveal import Ancestral, ByConfidence, RevealRule
from factordiff.sampling.sampler import sample
from factordiff.sampling.samples import Samples
from factordiff.vocabulary import Vocabulary
from tests import enumeration, oracle
from tests.slow_sampler import slow_sample
from tests.toy import CELLS, EXPERTS, MASK, P_1, P_2, P_3, WORLD, close, empty, states

THREE = [*EXPERTS, TabularExpert(torch.from_numpy(P_3))]
EVEN = [0.5, 0.5]


def even_kappa(ell: list[float]) -> list[float]:
    return oracle.superdiff_kappa(ell, 1.0, [0.0, 0.0], EVEN)


# what the library is given, and the same for the slow twin
METHODS: dict[str, tuple[Composition, enumeration.Compose, dict[str, Any]]] = {
    "single": (Single(1), enumeration.single(1), {}),
    "mixture": (Mixture([0.3, 0.7]), enumeration.mixed([0.3, 0.7]), {}),
    "product": (Product([2.0, 1.0]), enumeration.multiplied([2.0, 1.0]), {}),
    "superdiff": (SuperDiff(), enumeration.superdiff(EVEN), {"kappa": even_kappa}),
    "routing": (Routing(temperatures=[1.0, 0.5]), enumeration.routed([1.0, 0.5]), {}),
    "whole": (Routing(whole(CELLS)), enumeration.routed([1.0, 1.0], [0] * CELLS), {}),
    "fkc": (feynman_kac([1.0, 1.0]), enumeration.multiplied([1.0, 1.0]), {"beta": [1.0, 1.0]}),
    "rne": (rne([1.5, 0.5]), enumeration.mixed(EVEN), {"beta": [1.5, 0.5]}),
}


@pytest.mark.parametrize("tau", [0.0, 1.0, 0.6])
@pytest.mark.parametrize("rule", ["confidence", "ancestral"])
@pytest.mark.parametrize("method", METHODS)
def test_the_loop_is_its_slow_twin(method: str, rule: str, tau: float) -> None:
    composition, compose, options = METHODS[method]
    corrected = "beta" in options
    if corrected and tau == 0:
        return  # refused: see test_request
    count = 6 if corrected else 2
    resampled = dict.fromkeys((0.0, 0.5, 1.0) if corrected else (0.5,), 0)
    for steps, share in itertools.product((2, 3, 9), resampled):
        x_t = states(steps, 5, CELLS, MASK, hidden=0.8)
        items = torch.arange(5) * 7 + 3
        reveal: RevealRule = Ancestral(steps) if rule == "ancestral" else ByConfidence(steps)
        fast = sample(
            EXPERTS,
            composition,
            x_t,
            reveal=reveal,
            temperature=tau,
            particles=count,
            resampling=share,
            seed=steps,
            items=items,
        )
        for row, item in enumerate(items.tolist()):
            slow = slow_sample(
                WORLD, compose, tuple(x_t[row].tolist()), item=item, seed=steps, rule=rule, steps=steps, tau=tau,
                count=count, resampling=share, **options,
            )  # fmt: skip
            assert fast.particles[row].tolist() == [list(particle.x) for particle in slow.particles]
            assert tuple(fast.x_0[row].tolist()) == slow.x_0
            assert close(fast.log_w[row], [particle.log_w for particle in slow.particles], atol=1e-9)
            assert close(fast.log_density[:, row].T, [particle.ell for particle in slow.particles], atol=1e-9)
            assert int(fast.nominal_passes[row]) == slow.nominal
            assert int(fast.executed_passes[row]) == slow.executed
            resampled[share] += slow.resampled
    if corrected:
        assert 0 == resampled[0.0] < resampled[0.5] < resampled[1.0]  # the cases that matter were reached


@pytest.mark.parametrize("reveal", [ByConfidence(3), ByConfidence(11), Ancestral(5)], ids=repr)
@pytest.mark.parametrize("method", METHODS)
def test_an_item_draws_the_same_numbers_alone_in_a_batch_and_in_any_order(
    method: str, reveal: RevealRule
) -> None:
    composition = METHODS[method][0]
    x_t = states(0, 64, CELLS, MASK, hidden=0.8)
    ids = torch.arange(64)

    def run(some: Tensor) -> Samples:
        return sample(
            EXPERTS,
            composition,
            x_t[some],
            reveal=reveal,
            temperature=1.0,
            particles=4,
            seed=5,
            items=ids[some],
        )

    together = run(ids)
    shuffled = torch.from_numpy(np.random.default_rng(0).permutation(64))
    for some in (torch.tensor([17]), torch.tensor([40, 17, 3]), shuffled):
        part = run(some)
        for name in ("x_0", "particles", "log_w", "nominal_passes", "executed_passes"):
            assert torch.equal(getattr(part, name), getattr(together, name)[some]), name
        assert torch.equal(part.log_density, together.log_density[:, some])
    assert torch.equal(run(ids).particles, together.particles)  # and again


def test_seed_item_and_particle_change_the_numbers() -> None:
    def run(seed: int, first: int) -> Samples:
        items = torch.arange(first, first + 200)
        return sample(EXPERTS, Mixture(), empty(200), temperature=1.0, particles=2, seed=seed, items=items)

    base = run(0, 0)
    assert not torch.equal(base.x_0, run(1, 0).x_0)
    assert not torch.equal(base.x_0, run(0, 1000).x_0)
    assert torch.equal(base.particles[100:], run(0, 100).particles[:100])
    assert not torch.equal(base.particles[:, 0], base.particles[:, 1])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("reveal", [ByConfidence(3), Ancestral(3)], ids=repr)
def test_given_cells_stay_and_the_rest_is_filled(method: str, reveal: RevealRule) -> None:
    x_t = states(2, 40, CELLS, MASK, hidden=0.5)
    drawn = sample(EXPERTS, METHODS[method][0], x_t, reveal=reveal, temperature=1.0, particles=3)
    given = x_t != MASK
    assert given.any()
    assert torch.equal(drawn.x_0[given], x_t[given])
    everywhere = given[:, None].expand(-1, 3, -1)
    assert torch.equal(drawn.particles[everywhere], x_t[:, None].expand(-1, 3, -1)[everywhere])
    assert int(drawn.x_0.max()) < MASK


class Counting:
    """An expert that counts the rows it is asked about, and how often it encodes."""

    def __init__(self, expert: TabularExpert) -> None:
        self.expert, self.rows, self.encodings = expert, 0, 0

    @property
    def vocabulary(self) -> Vocabulary:
        return self.expert.vocabulary

    def encode(self, condition: Any) -> Any:
        self.encodings += 1
        return condition

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        assert (x_t == MASK).any(-1).all(), "asked about a row with nothing to reveal"
        self.rows += len(x_t)
        return self.expert.log_probs(x_t)


@pytest.mark.parametrize("particles", [1, 3])
@pytest.mark.parametrize(
    "reveal",
    [ByConfidence(1), ByConfidence(3), ByConfidence(4), ByConfidence(50), Ancestral(1), Ancestral(50)],
    ids=repr,
)
def test_executed_passes_are_the_rows_that_were_asked(reveal: RevealRule, particles: int) -> None:
    counting = [Counting(expert) for expert in EXPERTS]
    x_t = states(3, 30, CELLS, MASK, hidden=0.6)  # from no masked cell to four
    drawn = sample(counting, Mixture(), x_t, reveal=reveal, temperature=1.0, particles=particles)
    assert all(expert.encodings == 1 for expert in counting)
    assert sum(expert.rows for expert in counting) == int(drawn.executed_passes.sum())
    hidden = (x_t == MASK).sum(-1)
    if isinstance(reveal, ByConfidence):
        useful = [sum(oracle.quota(int(n), reveal.steps, j) > 0 for j in range(reveal.steps)) for n in hidden]
        assert drawn.nominal_passes.tolist() == [2 * particles * steps for steps in useful]
        assert useful == [min(int(n), reveal.steps) for n in hidden]
        assert torch.equal(drawn.nominal_passes, drawn.executed_passes)
    assert (drawn.nominal_passes[hidden == 0] == 0).all()
    assert (drawn.executed_passes <= drawn.nominal_passes).all()
    assert (drawn.nominal_passes <= 2 * particles * hidden * particles).all()


def test_any_number_of_experts() -> None:
    one, three = (enumeration.World(P_1), enumeration.World(P_1, P_2, P_3))
    for world, experts in ((one, EXPERTS[:1]), (three, THREE)):
        even = [1 / len(experts)] * len(experts)
        for composition, compose in (
            (Mixture(), enumeration.mixed(even)),
            (Product(), enumeration.multiplied([1.0] * len(experts))),
            (Routing(), enumeration.routed([1.0] * len(experts))),
        ):
            fast = sample(experts, composition, empty(10), reveal=ByConfidence(2), temperature=1.0, seed=1)
            for item in range(10):
                slow = slow_sample(
                    world, compose, world.empty, item=item, seed=1, rule="confidence", steps=2, tau=1.0
                )
                assert tuple(fast.x_0[item].tolist()) == slow.x_0


def test_small_worlds() -> None:
    coin = TabularExpert(torch.tensor([0.2, 0.8]))  # one cell
    assert sample([coin], Single(), empty(3, 1, 2)).x_0.tolist() == [[1]] * 3
    sure = TabularExpert(torch.ones(1, 1, 1))  # one value
    for method in (Mixture(), Product(), Routing(), SuperDiff()):
        assert sample([sure, sure], method, empty(2, 3, 1), temperature=1.0).x_0.tolist() == [[0] * 3] * 2
    done = states(0, 5, CELLS, MASK, hidden=0.0)  # nothing masked
    drawn = sample(EXPERTS, Mixture(), done)
    assert torch.equal(drawn.x_0, done)
    assert int(drawn.executed_passes.sum()) == 0
    nothing = sample(EXPERTS, Mixture(), empty(0))  # no item
    assert nothing.x_0.shape == (0, CELLS)


def test_progress_is_told_and_ends_complete() -> None:
    told: list[tuple[int, int]] = []
    x_t = states(4, 5, CELLS, MASK, hidden=0.7)
    sample(
        EXPERTS,
        Mixture(),
        x_t,
        reveal=ByConfidence(3),
        on_step=lambda done, total: told.append((done, total)),
    )
    total = int((x_t == MASK).sum())
    assert told[-1] == (total, total)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_what_the_product_forbids_kills_particles_and_not_the_run() -> None:
    left = torch.zeros(3, 3)
    left[0, 1] = left[1, 0] = 0.5
    right = torch.zeros(3, 3)
    right[0, 1] = right[2, 2] = 0.5  # they share (0, 1) alone
    experts = [TabularExpert(left), TabularExpert(right)]
    drawn = sample(
        experts, rne([1.0, 1.0]), empty(50, 2), reveal=ByConfidence(2), temperature=1.0, particles=16, seed=2
    )
    assert not drawn.log_w.isnan().any()
    assert (drawn.x_0 == torch.tensor([0, 1])).all()
    apart = [
        TabularExpert(torch.tensor([1.0, 0.0])),
        TabularExpert(torch.tensor([0.0, 1.0])),
    ]  # nothing shared
    drawn = sample(apart, feynman_kac([1.0, 1.0]), empty(5, 1, 2), temperature=1.0, particles=4)
    assert (drawn.log_w == -torch.inf).all()
    assert int(drawn.x_0.max()) < 2


def test_votes_and_first_particles_are_selected() -> None:
    options: dict[str, Any] = {"temperature": 1.0, "particles": 5, "seed": 6}
    voted = sample(EXPERTS, Mixture(), empty(30), selection="vote", **options)
    first = sample(EXPERTS, Mixture(), empty(30), selection="first", **options)
    assert torch.equal(voted.particles, first.particles)
    assert torch.equal(first.x_0, first.particles[:, 0])
    assert voted.x_0.tolist() == [oracle.vote(runs) for runs in voted.particles.tolist()]


class Float32(Counting):
    """What a network says: the same in float32."""

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        return super().log_probs(x_t, encoded).float()


@pytest.mark.parametrize(
    "composition",
    [
        *[method for method, _, _ in METHODS.values()],
        GeometricMean(), SuperDiffAnd("linear"), SuperDiffAnd("geometric"), Views(), HardViews(), SoftRouting(),
        SoftRouting(0.5, rows(2, 2), [0.5, 2.0], "geometric"), Routing(rows(2, 2), [0.5, 1.0], "sum-log", "tempered"),
        FactorWeights(torch.tensor([[1.0, 0.2], [0.3, 0.0]]), rows(2, 2)), rne(proposal=SuperDiff()),
    ],
    ids=lambda composition: type(composition).__name__,
)  # fmt: skip
def test_networks_of_either_precision_run_through_every_composition(composition: Composition) -> None:
    x_t = states(7, 40, CELLS, MASK, hidden=0.8)
    options: dict[str, Any] = {"reveal": ByConfidence(3), "temperature": 1.0, "particles": 2, "seed": 7}
    exact = sample(EXPERTS, composition, x_t, **options)
    for experts in ([Float32(expert) for expert in EXPERTS], [Float32(EXPERTS[0]), EXPERTS[1]]):
        rounded = sample(experts, composition, x_t, **options)
        assert rounded.log_density.dtype == rounded.log_w.dtype == torch.float64
        same = (rounded.particles == exact.particles).all(-1)
        assert same.double().mean() > 0.9  # a rounded number may fall on the other side of a uniform
        assert torch.allclose(rounded.log_density[:, same], exact.log_density[:, same], atol=1e-4)
