"""Property 15, infilling: with the evidence of given cells the conditional of the mixture is drawn."""

from __future__ import annotations

from itertools import product as tuples

import numpy as np
import pytest
import torch
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.composition.evidence import Evidence
from factordiff.composition.factors import rows
from factordiff.composition.mixture import Mixture
from factordiff.composition.routing import Routing
from factordiff.composition.single import Single
from factordiff.composition.superdiff import SuperDiff
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.given_evidence import chain_rule_evidence, fold_evidence
from factordiff.sampling.reveal import ByConfidence
from factordiff.sampling.sampler import sample
from factordiff.toy.law import exact_law
from factordiff.toy.world import two_halves
from tests.block_world import BlockWorld
from tests.enumeration import State, marginal, tv
from tests.toy import CELLS, EXPERTS, MASK, P_1, P_2, ROUNDING, STATES, assert_drawn_from

SUPERDIFF = {
    (3, 1, 1, 0): 0.131,
    (0, 1, 3, 3): 0.279,
    (2, 3, 3, 1): 0.105,
    (3, 3, 3, 3): 0.0,
}  # how far off it is


def conditional(table: np.ndarray, x: State) -> np.ndarray:
    """The joint given what is revealed."""
    agreeing = tuple(slice(None) if value == MASK else slice(value, value + 1) for value in x)
    out = np.zeros_like(table)
    out[agreeing] = table[agreeing]
    return out / out.sum()


@pytest.mark.parametrize("x", SUPERDIFF)
def test_15_scored_given_cells_give_the_conditional_of_the_mixture(x: State) -> None:
    omega = [0.5, 0.5]
    start = torch.tensor(x)
    truth = conditional(0.5 * P_1 + 0.5 * P_2, x)
    scores, _ = chain_rule_evidence(EXPERTS, start[None])

    def gap(composition: Evidence | SuperDiff) -> float:
        return tv(exact_law(EXPERTS, composition, CELLS, start=start).distribution().numpy(), truth)

    assert gap(Evidence(weights=omega, evidence=scores)) < ROUNDING
    # what the path alone knows is the mixture of the conditionals
    assert gap(Evidence(weights=omega)) == pytest.approx(SUPERDIFF[x], abs=5e-4)
    assert gap(SuperDiff(omega)) == pytest.approx(SUPERDIFF[x], abs=5e-4)


def test_15_each_factor_hears_the_evidence_of_its_own_given_cells() -> None:
    world = BlockWorld((0, 1, 1, 0), (0.2, 0.3, 0.5))
    experts = [TabularExpert(torch.from_numpy(table)) for table in world.tables]
    labels, start = torch.tensor(world.labels), torch.tensor([2, 1, 3, 3])
    truth = conditional(world.mixed(), (2, 1, 3, 3))
    scores, _ = chain_rule_evidence(experts, start[None])
    evidence = Evidence(labels, weights=world.omega, evidence=scores)
    law = exact_law(experts, evidence, CELLS, start=start).distribution().numpy()
    assert tv(law, truth) < ROUNDING
    deaf = (
        exact_law(experts, Evidence(labels, weights=world.omega), CELLS, start=start).distribution().numpy()
    )
    assert tv(deaf, truth) > 0.1
    # every item hears its own: half of them have other given cells
    x_t = start.repeat(20_000, 1)
    x_t[::2] = torch.tensor([3, 3, 3, 0])
    scores, _ = chain_rule_evidence(experts, x_t)
    evidence = Evidence(labels, weights=world.omega, evidence=scores)
    drawn = sample(experts, evidence, x_t, reveal=ByConfidence(CELLS), temperature=1.0, seed=4).x_0
    assert_drawn_from(drawn[1::2], truth)
    assert_drawn_from(drawn[::2], conditional(world.mixed(), (3, 3, 3, 0)))


def distances(scores: Tensor, x_t: Tensor) -> float:
    """How far off the drawn law is, on average over the starts by how likely each is.

    With one factor and given cells the law is the experts' conditionals, mixed by the weights at the start.
    """
    kappa = torch.softmax(scores.sum(-1), dim=0)[0].tolist()
    off, mass = 0.0, 0.0
    for first, x in zip(kappa, map(tuple, x_t.tolist()), strict=True):
        p, q = marginal(P_1, x), marginal(P_2, x)
        apart = tv(conditional(P_1, x), conditional(P_2, x))
        off += (p + q) * abs(first - p / (p + q)) * apart
        mass += p + q
    return off / mass


def test_15_folds_are_an_approximation_and_parts_of_the_chain_rule_become_exact() -> None:
    given = (STATES != MASK).sum(-1)
    x_t = STATES[(given > 0) & (given < CELLS)]
    nothing = torch.zeros(2, len(x_t), CELLS, dtype=torch.float64)
    assert distances(nothing, x_t) == pytest.approx(0.133, abs=5e-4)
    folds = [distances(fold_evidence(EXPERTS, x_t, folds=k)[0], x_t) for k in (1, 2, 4)]
    assert folds == pytest.approx([0.0736, 0.0477, 0.0432], abs=5e-4)
    parts = [distances(chain_rule_evidence(EXPERTS, x_t, parts=k)[0], x_t) for k in (1, 2, 3, 4)]
    assert parts[:2] == pytest.approx([0.0736, 0.0150], abs=5e-4)
    assert max(parts[2:]) < ROUNDING
    # the number stands for laws: one of them enumerated, where a pseudo-likelihood is worse than no evidence
    start = torch.tensor([3, 2, 1, 3])
    truth = conditional(0.5 * P_1 + 0.5 * P_2, (3, 2, 1, 3))
    scores, _ = fold_evidence(EXPERTS, start[None])
    law = exact_law(EXPERTS, Evidence(evidence=scores), CELLS, start=start).distribution().numpy()
    assert tv(law, truth) == pytest.approx(distances(scores, start[None]), abs=ROUNDING)
    assert tv(law, truth) == pytest.approx(0.181, abs=5e-4)
    assert distances(nothing[:, :1], start[None]) == pytest.approx(0.073, abs=5e-4)


def test_15_the_path_says_who_spoke_and_only_given_cells_say_who_is_right() -> None:
    """Each expert knows one half and is wrongly sure of the other; nobody is told which half is whose."""
    world, halves = two_halves(wrongly_sure=True), rows(2, 2)
    truth = world.truth.numpy()

    def law(composition: Composition, start: Tensor | None = None) -> np.ndarray:
        return exact_law(world.experts, composition, CELLS, start=start).distribution().numpy()

    # from nothing: each half is drawn from the even mixture, however much of it has been revealed
    alone = [law(Single(0)), law(Single(1))]
    first, second = (sum(table.sum(half) for table in alone) / 2 for half in ((2, 3), (0, 1)))
    assert tv(law(Evidence(halves)), np.multiply.outer(first, second)) < ROUNDING
    assert tv(law(Evidence(halves)), truth) == pytest.approx(0.463, abs=5e-4)
    # with one cell of each half given, on average over what the truth gives
    off = dict.fromkeys(("mixture", "routing", "path", "scored"), 0.0)
    for cells, values in tuples([(0, 2), (0, 3), (1, 2), (1, 3)], tuples(range(MASK), repeat=2)):
        x_t = torch.full((1, CELLS), MASK)
        x_t[0, list(cells)] = torch.tensor(values)
        x = tuple(x_t[0].tolist())
        scored = Evidence(halves, evidence=chain_rule_evidence(world.experts, x_t)[0])
        each = (Mixture(), Routing(), Evidence(halves), scored)
        for name, composition in zip(off, each, strict=True):
            off[name] += marginal(truth, x) / 4 * tv(law(composition, x_t[0]), conditional(truth, x))
    assert list(off.values()) == pytest.approx([0.480, 0.540, 0.480, 0.354], abs=5e-4)
