"""How fast a team decodes, by name: `exact` is the paper's order, `fast` reveals what is certain together."""

from __future__ import annotations

from typing import Literal

from factordiff.errors import InvalidInput
from factordiff.sampling.adaptive import ByProduct
from factordiff.sampling.reveal import ByConfidence, RevealRule

Pace = Literal["fast", "exact"]
# Chosen on validation: the fewest passes with the quality of `exact`, half of the tolerance to spare (docs/log.md).
FAST = ByProduct(0.99)


def reveal_rule(pace: Pace | RevealRule) -> RevealRule:
    """The reveal rule of that name; a rule stands for itself.

    `exact` is one cell per pass in the surest order (128 steps on a canvas of 100 cells). `fast` reveals as many
    of the surest as are all right with probability 0.99, at least one: few passes where the experts are sure.
    """
    if isinstance(pace, RevealRule):
        return pace
    if pace == "exact":
        return ByConfidence(128)
    if pace == "fast":
        return FAST
    raise InvalidInput(f"reveal: expected 'fast', 'exact' or a reveal rule, got {pace!r}")
