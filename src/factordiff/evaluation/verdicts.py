"""From figures to a verdict on a claim: confirmed, not confirmed, or undecided here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from factordiff.evaluation.paired import Contest
from factordiff.evaluation.statistics import Estimate

Judgement = Literal["confirmed", "not confirmed", "undecided here"]
MARGIN = 0.003  # of non-inferiority: 0.3 points


@dataclass(frozen=True)
class Verdict:
    """A claim, where the paper makes it, what was found here, and the figures."""

    claim: str
    where: str
    judgement: Judgement
    figures: str


def above(gain: Estimate, by: float = 0.0) -> Judgement:
    """Whether the gain is larger than `by`: confirmed or not when the whole interval says so."""
    if gain.low > by:
        return "confirmed"
    return "not confirmed" if gain.high < by or gain.low == gain.high else "undecided here"


def not_worse(gain: Estimate, margin: float = MARGIN) -> Judgement:
    """Non-inferiority: whether the gain is larger than minus the margin."""
    return above(gain, -margin)


def together(judgements: Sequence[Judgement]) -> Judgement:
    """A claim made of several: it holds if all hold, and fails if one fails."""
    if not judgements:
        return "undecided here"
    if "not confirmed" in judgements:
        return "not confirmed"
    return "undecided here" if "undecided here" in judgements else "confirmed"


def strongest(contests: Sequence[tuple[str, Contest]]) -> tuple[str, Contest]:
    """The rival that comes closest: the one against whom the gain is smallest."""
    return min(contests, key=lambda pair: pair[1].gain.value)
