"""Table "majority voting": routing against more samples of one expert.

Claim: with the earlier pair, three votes of one expert gain less than 0.5 points over it alone (89.2 to 89.5 and
85.8 to 86.0), while per-pixel routing gains 6.3 (95.5) at two thirds of the passes.
Cost: 1,200 queries; singles and routing 4 x 0.12-0.24 M, votes 3 and 6 passes per step: about 2 M row-passes a pair.
Expected: a vote of sampled runs stays near the expert's argmax answer.
"""

from __future__ import annotations

from factordiff.experiments.experiment import Experiment, paper, percent, running
from factordiff.experiments.pairs import EARLY, FULL_FULL, ExpertGroup, single
from factordiff.experiments.protocols import ALL_FITTED, AS_PRINTED
from factordiff.experiments.tuning import fitted_outcomes
from factordiff.report.document import Section, Table
from factordiff.report.outcomes import Outcomes, RecordFolder
from factordiff.report.run_spec import RunSpec
from factordiff.report.verdicts import BEATS, Above, Verdict, points, together

QUERIES = 1_200
PLATEAU = 0.005  # the paper: votes gain less than half a point
STAYS = Above(-PLATEAU, f"gains less than {points(PLATEAU).lstrip('+')}")
PAPER = (89.2, 85.8, 89.5, 86.0, None, 95.5)


def pair_rows(pair: ExpertGroup) -> dict[str, tuple[str, RunSpec]]:
    """Each line of the table: its passes per step and its row."""
    one, other = pair.experts
    return {
        "Trans-IR alone": ("1", single(one, QUERIES)),
        "Conv-IR alone": ("1", single(other, QUERIES)),
        "Trans-IR, majority vote (N=3)": ("3", RunSpec((one,), "vote", queries=QUERIES)),
        "Conv-IR, majority vote (N=3)": ("3", RunSpec((other,), "vote", queries=QUERIES)),
        "across experts, majority vote (N=3 each)": ("6", pair.row("vote", QUERIES)),
        "per-pixel max": ("2", pair.row("routing", QUERIES)),
    }


def rows() -> list[RunSpec]:
    """Both pairs."""
    return [row for pair in (EARLY, FULL_FULL) for _, row in pair_rows(pair).values()]


def report(archive: RecordFolder) -> Section:
    """The table for both pairs, and the verdict."""
    lines = []
    for (label, (passes, row)), (_, (_, headline)), figure in zip(
        pair_rows(EARLY).items(), pair_rows(FULL_FULL).items(), PAPER, strict=True
    ):
        ours = [percent(archive.outcomes(one), QUERIES) for one in (row, headline)]
        lines.append((label, passes, paper(figure), *ours))
    headings = (
        "method",
        "passes per step",
        "exact %, paper (its earlier pair)",
        "early pair here",
        "headline pair here",
    )
    return Section(
        "Majority voting (Table 8)",
        tables=(Table(headings, tuple(lines), f"The first {QUERIES:,} queries: 10 for each of 120 tasks."),),
        verdicts=tuple(verdicts(archive)),
    )


def verdicts(archive: RecordFolder) -> list[Verdict]:
    """What the paper says about voting, of both pairs and under both protocols; a vote has nothing to fit."""
    found = []
    for pair in (EARLY, FULL_FULL):
        each = {label: archive.outcomes(row) for label, (_, row) in pair_rows(pair).items()}
        printed = each.pop("per-pixel max")
        known = {label: one for label, one in each.items() if one is not None}
        if len(known) < len(each):
            continue
        fitted = fitted_outcomes(archive, pair, "routing", QUERIES)
        for routed, protocol in ((printed, AS_PRINTED.name), (fitted, ALL_FITTED.name)):
            if routed is not None:
                found.append(_more_than_votes(pair, routed, known, protocol))
        found.append(_plateau(pair, known))
    return found


def _more_than_votes(
    pair: ExpertGroup, routed: Outcomes, others: dict[str, Outcomes], protocol: str
) -> Verdict:
    contests = {label: routed.against(one) for label, one in others.items()}
    return Verdict(
        f"per-pixel max gains more than resampling ({pair.name})",
        "Table 8",
        together([BEATS.judge(contest.gain) for contest in contests.values()]),
        "; ".join(f"against {label}: {contest.points()}" for label, contest in contests.items()),
        BEATS.sentence(
            "every difference, to each expert alone (it gains) and to each vote (more),", several=True
        ),
        protocol,
    )


def _plateau(pair: ExpertGroup, found: dict[str, Outcomes]) -> Verdict:
    """An expert minus its vote above -0.5 points: the vote gains less than that."""
    contests = {
        name: found[f"{name} alone"].against(found[f"{name}, majority vote (N=3)"])
        for name in ("Trans-IR", "Conv-IR")
    }
    return Verdict(
        f"majority voting plateaus near each expert ({pair.name}; paper: below 0.5 points)",
        "Table 8",
        together([STAYS.judge(contest.gain) for contest in contests.values()]),
        "; ".join(f"{name} alone minus its vote: {contest.points()}" for name, contest in contests.items()),
        STAYS.sentence("both differences, an expert alone minus its vote,", several=True),
    )


EXPERIMENT = Experiment("voting", rows, running(rows), report)
