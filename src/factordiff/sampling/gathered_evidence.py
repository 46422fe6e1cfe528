"""Evidence that is there before the first step, gathered once per item: of given cells, of demonstrations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.composition.correctors import Corrected
from factordiff.composition.evidence import Evidence
from factordiff.experts.expert import Expert
from factordiff.sampling.demonstration_evidence import demonstration_evidence
from factordiff.sampling.given_evidence import chain_rule_evidence, fold_evidence


def gathered(
    composition: Composition,
    experts: Sequence[Expert],
    x_t: Int[Tensor, "item cell"],
    condition: Any = None,
    *,
    seed: int = 0,
    items: Int[Tensor, " item"] | None = None,
) -> tuple[Composition, Int[Tensor, " item"]]:
    """The composition with the evidence that it, or its particles' proposal, asks for, and the passes that took.

    Any other is left as it is.
    """
    if isinstance(composition, Corrected):
        proposal, spent = gathered(composition.proposal, experts, x_t, condition, seed=seed, items=items)
        asked = proposal is not composition.proposal
        return Corrected(proposal, composition.beta) if asked else composition, spent
    passes = torch.zeros(len(x_t), dtype=torch.int64, device=x_t.device)
    if (
        not isinstance(composition, Evidence)
        or (composition.given, composition.demonstrations) == ("none",) * 2
    ):
        return composition, passes
    of_cells, of_items = composition.evidence, composition.of_items
    if composition.given != "none":
        given: dict[str, Any] = {"seed": seed, "items": items}
        if composition.given == "folds":
            found, spent = fold_evidence(experts, x_t, condition, **given)
        else:
            found, spent = chain_rule_evidence(experts, x_t, condition, **given)
        of_cells, passes = found if of_cells is None else of_cells.to(found.device) + found, passes + spent
    if composition.demonstrations != "none":
        found, spent = demonstration_evidence(experts, condition, seed=seed, items=items)
        of_items, passes = found if of_items is None else of_items.to(found.device) + found, passes + spent
    return composition.with_evidence(of_cells, of_items), passes
