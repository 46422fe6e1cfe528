"""Rivals built wrongly: speakers that are not drawn as they should be."""

from __future__ import annotations

from dataclasses import replace

from factordiff.composition import drawn_expert
from factordiff.sampling.reveal import ByConfidence
from factordiff.streams import Draws, Purpose
from tests.mutants.registry import Patch, after, mutant


@mutant("composition.test_drawn_expert:test_its_law_is_the_mixtures", ByConfidence(2))
def one_expert_drawn_for_all_cells_of_a_step(patch: Patch) -> None:
    after(
        patch,
        drawn_expert.DrawnExpert,
        "__call__",
        lambda composed, *given: replace(composed, log_kappa=composed.log_kappa[..., 0]),
    )


@mutant("composition.test_drawn_expert:test_it_draws_what_the_mixture_draws", ByConfidence(4))
def who_speaks_and_what_is_said_share_their_number(patch: Patch) -> None:
    original = Draws.cells
    patch.setattr(Draws, "cells", lambda self, purpose, *rest: original(self, Purpose.TOKEN, *rest))
