"""Evidence that a method asks for by name: gathered before the first step, once per item, and counted."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from factordiff import compose, rne
from factordiff.composition.composition import Composition
from factordiff.composition.correctors import Corrected
from factordiff.composition.evidence import Evidence
from factordiff.composition.factors import whole
from factordiff.sampling.given_evidence import chain_rule_evidence, fold_evidence
from tests.toy import CELLS, EXPERTS, MASK, states

X_T = states(2, 24, CELLS, MASK, hidden=0.6)
X_T[0], X_T[1] = MASK, 1  # nothing given; everything
SCORES = {"chain": chain_rule_evidence, "folds": fold_evidence}
DRAWN: dict[str, Any] = {"temperature": 1.0, "reveal": "exact", "seed": 3}


@pytest.mark.parametrize("given", SCORES)
def test_given_cells_are_scored_by_name_as_by_hand(given: str) -> None:
    scores, spent = SCORES[given](EXPERTS, X_T, seed=3)
    named = compose(EXPERTS, "evidence", factors="whole", given_evidence=given).sample(X_T, **DRAWN)
    by_hand = compose(EXPERTS, Evidence(whole(CELLS), evidence=scores)).sample(X_T, **DRAWN)
    deaf = compose(EXPERTS, Evidence(whole(CELLS))).sample(X_T, **DRAWN)
    assert torch.equal(named.x_0, by_hand.x_0)
    assert not torch.equal(named.x_0, deaf.x_0)
    assert torch.equal(named.executed_passes - by_hand.executed_passes, spent)
    assert torch.equal(named.nominal_passes - by_hand.nominal_passes, spent)
    assert int(spent.max()) == 2 * (X_T != MASK).sum(-1).max()  # two experts, a pass for each given cell


@pytest.mark.parametrize("given", SCORES)
@pytest.mark.parametrize("corrected", [lambda proposal: rne([1.0, 1.0], proposal), Corrected])
def test_a_proposal_of_particles_has_its_given_cells_scored_once_per_item(given: Any, corrected: Any) -> None:
    scores, spent = SCORES[given](EXPERTS, X_T, seed=3)

    def drawn(proposal: Composition, particles: int) -> Any:
        return compose(EXPERTS, corrected(proposal), particles=particles).sample(X_T, **DRAWN)

    for particles in (1, 6):
        asked = drawn(Evidence(whole(CELLS), given=given), particles)
        by_hand = drawn(Evidence(whole(CELLS), evidence=scores), particles)
        assert torch.equal(asked.particles, by_hand.particles)
        assert torch.equal(asked.executed_passes - by_hand.executed_passes, spent)
    assert not torch.equal(asked.particles, drawn(Evidence(whole(CELLS)), 6).particles)
