"""From figures to a verdict on a claim: confirmed, not confirmed, or undecided here, with the rule that decided.

A rule's sentence is made from the numbers that it judges by, so that what is printed and what is done are one thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from factordiff.report.paired import Contest, TasksWon
from factordiff.report.statistics import Estimate

Judgement = Literal["confirmed", "not confirmed", "undecided here"]
MARGIN = 0.003  # of non-inferiority: 0.3 points
WELL = 0.01  # what "well above" means: by 1 point
SIGNIFICANT = 0.05  # of the sign test


@dataclass(frozen=True)
class Verdict:
    """A claim, where the paper makes it, what was found here, the figures, and the rule in a sentence.

    `protocol` names how methods were set; empty where nothing could be set.
    """

    claim: str
    where: str
    judgement: Judgement
    figures: str
    rule: str
    protocol: str = ""


@dataclass(frozen=True)
class Above:
    """A gain is larger than `by`: confirmed or not when its whole interval says so."""

    by: float = 0.0
    meaning: str = ""  # of the claim's words, where they need one

    def judge(self, gain: Estimate) -> Judgement:
        """Exactly `by`, without any doubt, is not above it."""
        if gain.low > self.by:
            return "confirmed"
        return "not confirmed" if gain.high < self.by or gain.low == gain.high else "undecided here"

    def sentence(self, whose: str = "the difference", several: bool = False) -> str:
        """The rule as it is printed; `whose` names the differences that are judged, of `several` each for itself."""
        means = f" ({self.meaning})" if self.meaning else ""
        return (
            f"Confirmed: the whole interval of {whose} above {points(self.by)}{means}. "
            f"Not confirmed: {'one of them ' * several}wholly below, or exactly level."
        )


def points(number: float) -> str:
    """For people: `0`, `+1 point`, `-0.3 points`."""
    text = f"{100 * number:+g}"
    return "0" if number == 0 else f"{text} point" if text in ("+1", "-1") else f"{text} points"


BEATS = Above()
NOT_WORSE = Above(-MARGIN, f"not worse: by less than {points(MARGIN).lstrip('+')}")
WELL_ABOVE = Above(WELL, f"well above: by more than {points(WELL).lstrip('+')}")

WINS_MORE = (
    f"Confirmed: more tasks won than lost, exact sign test (ties left out) p < {SIGNIFICANT:g}. "
    "Not confirmed: more lost than won by the same test, or no task differs."
)


def wins_more(tasks: TasksWon) -> Judgement:
    """Whether more tasks are won than lost, by the sign test; where no task differs, none is won."""
    if tasks.won + tasks.lost == 0:
        return "not confirmed"
    if tasks.p_value >= SIGNIFICANT:
        return "undecided here"
    return "confirmed" if tasks.won > tasks.lost else "not confirmed"


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
