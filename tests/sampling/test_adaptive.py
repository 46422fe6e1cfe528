"""The laws of the adaptive rules: progress, order, monotony, their two ends; and that repairs end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from factordiff.composition.composition import Composed
from factordiff.composition.confidence import log_doubt
from factordiff.composition.mixture import Mixture
from factordiff.composition.routing import Routing
from factordiff.composition.single import Single
from factordiff.errors import InvalidInput
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.adaptive import ByEntropy, ByMargin, ByProduct, Repaired, entropy, error_probability
from factordiff.sampling.reveal import ByConfidence, Posterior, RevealRule
from factordiff.sampling.rules import RULES, reveal_rule
from factordiff.sampling.sampler import sample
from factordiff.state import SamplerState
from factordiff.toy.law import exact_law
from tests.sampling.test_reveal import moment
from tests.toy import CELLS, EXPERTS, MASK, empty, log_probs, seeds, states

shares = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
nats = st.one_of(st.just(0.0), st.floats(0, 3))
rules = st.one_of(
    shares.map(ByMargin),
    nats.map(ByEntropy),
    st.builds(ByProduct, shares, st.sampled_from(["product", "frechet"])),
)


def seen(seed: int, rows: int = 3, cells: int = 7, certain: float = 0.3) -> tuple[Posterior, Tensor]:
    """Distributions from flat to certain, with ties, and the cells that are masked."""
    random = np.random.default_rng(seed)
    log_p = log_probs(seed, rows, cells, 4, sharp=1.0)
    log_p = torch.log_softmax(log_p * torch.from_numpy(10.0 ** random.integers(-1, 3, (rows, cells, 1))), -1)
    point = torch.full((4,), -torch.inf, dtype=torch.float64)
    point[1] = 0.0
    log_p[torch.from_numpy(random.random((rows, cells)) < certain)] = point
    log_p[:, -1] = log_p[:, 0]
    masked = torch.from_numpy(random.random((rows, cells)) < 0.7)
    return Posterior(log_p, log_doubt(log_p)), masked


def chosen(rule: RevealRule, posterior: Posterior, masked: Tensor) -> Tensor:
    now = moment(masked, 0)
    return rule.choose(posterior, rule.candidates(now), now)


@given(seeds, rules)
def test_at_least_the_surest_and_only_masked_cells_and_no_doubtful_before_a_surer(
    seed: int, rule: RevealRule
) -> None:
    posterior, masked = seen(seed)
    opened = chosen(rule, posterior, masked)
    assert not (opened & ~masked).any()
    for row in range(len(masked)):
        hidden = masked[row].nonzero().flatten().tolist()
        order = sorted(hidden, key=lambda cell: (float(posterior.log_doubt[row, cell]), cell))
        count = int(opened[row].sum())
        assert count >= min(1, len(hidden))
        if not isinstance(rule, ByMargin):  # a prefix of the order
            assert opened[row].nonzero().flatten().tolist() == sorted(order[:count])
        else:  # as a set of doubts: cells that tie at the threshold come together
            assert not hidden or order[0] in opened[row].nonzero().flatten().tolist()


@given(seeds, shares)
def test_a_margin_is_compared_through_its_doubt(seed: int, threshold: float) -> None:
    posterior, masked = seen(seed)
    opened = chosen(ByMargin(threshold), posterior, masked)
    doubt = posterior.log_doubt.exp()  # 1 - C
    clearly = (doubt - (1 - threshold)).abs() > 1e-9
    for row in range(len(masked)):
        alone = int(opened[row].sum()) == 1
        for cell in masked[row].nonzero().flatten().tolist():
            if clearly[row, cell] and not alone:
                assert bool(opened[row, cell]) == (float(doubt[row, cell]) < 1 - threshold)


def test_margins_that_round_to_one_are_kept_apart() -> None:
    gaps = torch.tensor([[20.0, 24.0, 60.0]], dtype=torch.float64)
    log_p = torch.log_softmax(torch.stack([gaps, torch.zeros_like(gaps)], -1), -1)
    posterior = Posterior(log_p, log_doubt(log_p))
    everything = torch.ones(1, 3, dtype=torch.bool)
    assert chosen(ByMargin(1 - 1e-9), posterior, everything).tolist() == [[False, True, True]]
    assert chosen(ByMargin(1.0), posterior, everything).tolist() == [[False, False, True]]


@given(seeds, shares, shares)
def test_a_higher_threshold_never_reveals_more(seed: int, one: float, other: float) -> None:
    posterior, masked = seen(seed)
    low, high = sorted((one, other))
    families = [ByMargin, lambda share: ByProduct(share), lambda share: ByProduct(share, "frechet")]
    for family in families:
        assert not (chosen(family(high), posterior, masked) & ~chosen(family(low), posterior, masked)).any()


@given(seeds, nats, nats)
def test_a_smaller_gamma_never_reveals_more(seed: int, one: float, other: float) -> None:
    posterior, masked = seen(seed)
    low, high = sorted((one, other))
    assert not (chosen(ByEntropy(low), posterior, masked) & ~chosen(ByEntropy(high), posterior, masked)).any()


@given(seeds)
def test_gamma_zero_reveals_what_has_no_entropy_and_the_surest_of_the_others(seed: int) -> None:
    posterior, masked = seen(seed)
    opened = chosen(ByEntropy(0.0), posterior, masked)
    nothing_open = entropy(posterior.log_probs) == 0
    assert (opened | ~(masked & nothing_open)).all()
    others = masked & ~nothing_open
    assert (opened & others).sum(-1).tolist() == others.any(-1).to(torch.int64).tolist()
    for row in others.any(-1).nonzero().flatten().tolist():
        doubts = torch.where(others[row], posterior.log_doubt[row], 1.0)
        assert bool(opened[row, int(doubts.argmin())])


@given(seeds, nats)
def test_the_entropy_bound_holds_and_could_not_take_one_more(seed: int, gamma: float) -> None:
    posterior, masked = seen(seed)
    opened = chosen(ByEntropy(gamma), posterior, masked)
    for row in masked.any(-1).nonzero().flatten().tolist():
        inside = entropy(posterior.log_probs)[row, opened[row]].tolist()
        assert sum(inside) - max(inside) <= gamma + 1e-12
        left = (masked[row] & ~opened[row]).nonzero().flatten().tolist()
        if left:
            following = min(left, key=lambda cell: (float(posterior.log_doubt[row, cell]), cell))
            more = [*inside, float(entropy(posterior.log_probs)[row, following])]
            assert sum(more) - max(more) > gamma - 1e-12


@given(seeds, st.floats(0.01, 0.99))
def test_the_product_bounds_hold_and_frechet_is_the_stricter(seed: int, threshold: float) -> None:
    posterior, masked = seen(seed)
    wrong = error_probability(posterior.log_probs)
    product = chosen(ByProduct(threshold), posterior, masked)
    frechet = chosen(ByProduct(threshold, "frechet"), posterior, masked)
    assert not (frechet & ~product).any()
    for row in range(len(masked)):
        for opened, all_right in ((product, lambda e: np.prod(1 - e)), (frechet, lambda e: 1 - np.sum(e))):
            errors = wrong[row, opened[row]].numpy()
            if len(errors) > 1:
                assert all_right(errors) >= threshold - 1e-12


def test_errors_do_not_round_to_zero() -> None:
    log_p = torch.log_softmax(torch.tensor([[[50.0, 0.0, 0.0]]], dtype=torch.float64), -1)
    assert float(error_probability(log_p)) == pytest.approx(2 * math.exp(-50), rel=1e-12)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_threshold_of_one_is_one_cell_per_pass(temperature: float) -> None:
    x_t = states(5, 40, CELLS, MASK, hidden=0.8)
    options: dict[str, Any] = {"temperature": temperature, "seed": 2}
    adaptive = sample(EXPERTS, Routing(), x_t, reveal=ByMargin(1.0), **options)
    # one step for each cell: the clocks agree, so the random numbers do
    for count in range(CELLS + 1):
        rows = ((x_t == MASK).sum(-1) == count).nonzero().flatten()
        one_by_one = sample(
            EXPERTS, Routing(), x_t[rows], reveal=ByConfidence(max(count, 1)), items=rows, **options
        )
        assert torch.equal(adaptive.x_0[rows], one_by_one.x_0)
        assert torch.equal(adaptive.executed_passes[rows], one_by_one.executed_passes)
        assert (adaptive.executed_passes[rows] == 2 * count).all()


@given(seeds, rules)
def test_every_pass_makes_progress_and_nothing_revealed_changes(seed: int, rule: RevealRule) -> None:
    x_t = states(seed, 4, CELLS, MASK, hidden=0.8)
    drawn = sample(EXPERTS, Routing(), x_t, reveal=rule, temperature=1.0, seed=seed, trace=True)
    assert drawn.trace is not None
    before = x_t[:, None]
    for step in drawn.trace.steps:
        after = torch.tensor(step.x)
        open_ = before != MASK
        assert torch.equal(after[open_], before[open_])
        hidden = (before == MASK).any(-1)
        assert ((after != before).any(-1) == hidden).all()
        before = after
    assert torch.equal(before[:, 0], drawn.x_0)
    assert (drawn.executed_passes <= 2 * (x_t == MASK).sum(-1)).all()


def test_certain_rows_take_one_pass() -> None:
    joint = torch.zeros(2, 2, 2)
    joint[1, 0, 1] = 1.0
    for rule in (ByMargin(0.999), ByEntropy(0.0), ByProduct(1.0), ByProduct(1.0, "frechet")):
        drawn = sample([TabularExpert(joint)], Single(), empty(3, 3, 2), reveal=rule)
        assert drawn.x_0.tolist() == [[1, 0, 1]] * 3
        assert drawn.executed_passes.tolist() == [1, 1, 1]


def test_the_law_of_an_adaptive_rule_can_be_enumerated() -> None:
    law = exact_law(EXPERTS, Mixture(), CELLS, reveal=ByMargin(1.0))
    one_by_one = exact_law(EXPERTS, Mixture(), CELLS, reveal=ByConfidence(CELLS))
    assert torch.allclose(law.distribution(), one_by_one.distribution(), atol=1e-15)


# ---- repair ----------------------------------------------------------------------------------------------------


def two_equal_cells() -> TabularExpert:
    """Two cells that are always equal, a little likelier 1 than 0; a third that decides nothing."""
    joint = torch.zeros(2, 2, 2)
    joint[0, 0], joint[1, 1] = 0.24, 0.26
    return TabularExpert(joint)


def test_a_repair_takes_back_what_was_committed_in_doubt() -> None:
    """Drawn together the two cells may differ; revealed again one after the other they cannot."""
    expert, rule = two_equal_cells(), ByMargin(0.0)
    options: dict[str, Any] = {"temperature": 1.0, "seed": 3}
    hasty = sample([expert], Single(), empty(200, 3, 2), reveal=rule, **options).x_0
    assert (hasty[:, 0] != hasty[:, 1]).any()
    patient = sample([expert], Single(), empty(200, 3, 2), reveal=Repaired(ByMargin(1.0), 0.5), **options)
    assert (patient.x_0[:, 0] == patient.x_0[:, 1]).all()
    assert int(patient.x_0.max()) < 2


@given(seeds, shares, st.integers(1, 3), st.sampled_from([ByMargin(0.3), ByConfidence(2), ByConfidence(9)]))
def test_repairs_end_and_leave_given_cells(
    seed: int, threshold: float, rounds: int, rule: RevealRule
) -> None:
    x_t = states(seed, 6, CELLS, MASK, hidden=0.7)
    drawn = sample(
        EXPERTS,
        Routing(),
        x_t,
        reveal=Repaired(rule, threshold, rounds),
        temperature=1.0,
        particles=2,
        seed=seed,
    )
    given_cells = x_t != MASK
    assert torch.equal(drawn.x_0[given_cells], x_t[given_cells])
    assert int(drawn.particles.max()) < MASK
    hidden = (x_t == MASK).sum(-1)
    assert (drawn.executed_passes <= 2 * 2 * hidden * (1 + rounds)).all()


def test_what_was_taken_back_is_not_counted_twice() -> None:
    """One cell at a time with an exact expert, the log-density of the path is that of the answer, repaired or not."""

    class Watching(Single):
        def __call__(self, log_probs: Tensor, state: SamplerState) -> Composed:
            assert (
                state.log_density[:, state.masked] == 0
            ).all()  # nobody said anything about what is hidden
            return super().__call__(log_probs, state)

    drawn = sample(
        EXPERTS[:1], Watching(), empty(50), reveal=Repaired(ByMargin(1.0), 1.0), temperature=1.0, particles=2
    )
    assert (
        drawn.executed_passes == drawn.executed_passes.clamp(min=CELLS + 1)
    ).all()  # something was repaired
    single_pass = sample(EXPERTS[:1], Single(), empty(50), reveal=ByMargin(1.0), temperature=1.0, particles=2)
    exact = EXPERTS[0].log_density(drawn.particles.flatten(0, 1)).view(50, 2)
    assert torch.allclose(drawn.log_density[0], exact, atol=1e-9)
    assert torch.allclose(
        single_pass.log_density[0],
        EXPERTS[0].log_density(single_pass.particles.flatten(0, 1)).view(50, 2),
        atol=1e-9,
    )


def test_a_repair_with_nothing_in_doubt_costs_nothing() -> None:
    plain = sample(EXPERTS, Routing(), empty(20), reveal=ByMargin(0.7))
    repaired = sample(EXPERTS, Routing(), empty(20), reveal=Repaired(ByMargin(0.7), 0.0))
    assert torch.equal(plain.x_0, repaired.x_0)
    assert torch.equal(plain.executed_passes, repaired.executed_passes)


# ---- names and refusals ----------------------------------------------------------------------------------------


def test_rules_by_name() -> None:
    assert reveal_rule("margin:0.9") == ByMargin(0.9)
    assert reveal_rule("entropy:0") == ByEntropy(0.0)
    assert reveal_rule("product:0.5") == ByProduct(0.5)
    assert reveal_rule("frechet:0.5") == ByProduct(0.5, "frechet")
    assert reveal_rule("confidence:7") == ByConfidence(7)
    assert reveal_rule("entropy:0.1+repair:0.5") == Repaired(ByEntropy(0.1), 0.5)
    assert set(RULES) == {"confidence", "ancestral", "margin", "entropy", "product", "frechet", "block"}


BAD: dict[str, tuple[str, Any]] = {
    "threshold above one": ("threshold: expected a number from 0 to 1, got 1.5", lambda: ByMargin(1.5)),
    "negative threshold": ("threshold: expected a number from 0 to 1, got -0.1", lambda: ByProduct(-0.1)),
    "NaN threshold": ("threshold: expected a number from 0 to 1, got nan", lambda: ByMargin(math.nan)),
    "true threshold": ("threshold: expected a number from 0 to 1, got True", lambda: ByMargin(True)),
    "negative gamma": ("gamma: expected a finite number of nats, 0 or more, got -1", lambda: ByEntropy(-1.0)),
    "infinite gamma": ("gamma: expected a finite number of nats", lambda: ByEntropy(math.inf)),
    "bound": ("bound: expected one of product, frechet, got 'sum'", lambda: ByProduct(0.5, "sum")),  # type: ignore[arg-type]
    "no rounds": (
        "rounds: expected a whole number of at least 1, got 0",
        lambda: Repaired(ByMargin(), 0.5, 0),
    ),
    "repairs of repairs": (
        "reveal: Repaired.* takes cells back itself; use a rule without repairs",
        lambda: Repaired(Repaired(ByMargin())),
    ),
    "no such rule": (
        "reveal: expected fast, exact, or one of .*, got 'fast:1'",
        lambda: reveal_rule("fast:1"),
    ),
    "no number": ("reveal: expected a number after 'margin', .* got 'margin'", lambda: reveal_rule("margin")),
    "no whole number": ("reveal: expected a number after 'confidence'", lambda: reveal_rule("confidence:x")),
    "no margin of repair": (
        "reveal: expected a margin after 'repair'",
        lambda: reveal_rule("margin:1+repair:x"),
    ),
    "nothing to repair": (
        "reveal: expected fast, exact, or one of .*, got ''",
        lambda: reveal_rule("+repair:0.5"),
    ),
    "number out of range": (
        "threshold: expected a number from 0 to 1, got 7",
        lambda: reveal_rule("margin:7"),
    ),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.usefixtures("untyped")
def test_bad_values_are_named(case: str) -> None:
    sentence, call = BAD[case]
    with pytest.raises(InvalidInput, match=f"^{sentence}"):
        call()
