"""Properties 3 and 4: what one exact expert draws, one cell at a time and several."""

from __future__ import annotations

import numpy as np
import pytest

from factordiff.composition.single import Single
from factordiff.sampling.reveal import Ancestral, ByConfidence
from factordiff.sampling.sampler import sample
from tests import enumeration
from tests.enumeration import tv
from tests.toy import (
    CELLS,
    EXPERTS,
    P_1,
    ROUNDING,
    STATES,
    assert_drawn_from,
    empty,
    law_of,
    reverse_chain,
)


def test_03_a_single_exact_expert_in_margin_order_gives_its_joint() -> None:
    assert tv(law_of(Single()), P_1) < ROUNDING
    assert tv(enumeration.candidate_order_law(enumeration.World(P_1)), P_1) == pytest.approx(0.413, abs=5e-4)
    drawn = sample(EXPERTS, Single(), empty(20_000), reveal=ByConfidence(CELLS), temperature=1.0, seed=3).x_0
    assert_drawn_from(drawn, P_1)


def test_04_ancestral_sampling_is_off_by_one_over_T() -> None:
    log_p = EXPERTS[0].log_probs(STATES)
    laws = {T: reverse_chain(log_p, T) for T in (4, 16, 64, 128)}
    gaps = [tv(law, P_1) for law in laws.values()]
    assert gaps == pytest.approx([0.154, 0.040, 0.0100, 0.0050], rel=0.02)
    slope = np.polyfit(np.log(list(laws)), np.log(gaps), 1)[0]
    assert slope == pytest.approx(-1, abs=0.02)
    assert (
        tv(laws[16], enumeration.ancestral_law(enumeration.World(P_1), enumeration.single(), 16)) < ROUNDING
    )
    drawn = sample(EXPERTS, Single(), empty(20_000), reveal=Ancestral(4), temperature=1.0, seed=4).x_0
    assert_drawn_from(drawn, laws[4])
