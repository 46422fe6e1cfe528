"""The claims of the paper's abstract and of RQ1 and RQ2, each judged from the records."""

from __future__ import annotations

from itertools import pairwise

from factordiff.experiments.composition import (
    FITTED,
    PARTICLES,
    PER_SAMPLE,
    fitted_rows,
    per_sample,
)
from factordiff.experiments.pairs import COL_OCC, FULL_FULL, OCC_FULL, PAIRS, ExpertPair, single
from factordiff.report.document import Section
from factordiff.report.outcomes import Outcomes, RecordFolder, aligned
from factordiff.report.paired import Contest
from factordiff.report.statistics import Estimate, gains, mean
from factordiff.report.verdicts import (
    BEATS,
    MARGIN,
    NOT_WORSE,
    Above,
    Judgement,
    Verdict,
    strongest,
    together,
)

USELESS = 0.05
STRONG = Above(0.905)  # the paper's share of the same 120 tasks
GAP = Above(0.12)
CLOSEST = "the difference to the closest rival, all being run,"
RIVALS = (*PER_SAMPLE.values(), *PARTICLES.values())  # the per-sample methods of the paper


def report(archive: RecordFolder) -> Section:
    """All verdicts in one table."""
    text = (
        "Every verdict has its rule beside it; what is neither confirmed nor not is undecided. An interval (95 %) is "
        "one over tasks: tasks are drawn again and keep their queries, the same for both sides of a difference; it "
        "speaks of tasks like these 120. The one `on these tasks` keeps the tasks and draws queries within each; it "
        "says nothing about other tasks, and neither does McNemar's exact test. Simulated, intervals over tasks hold "
        "the truth 94 to 95 times in 100, and 90 times where a few tasks carry a difference. Rows on fewer queries are "
        "compared on the queries that both have. FKC and RNE stand with their better reading and with the exponents "
        "and the resampling that validation chose.",
    )
    found = (*abstract(archive), *specialised(archive), *generalists(archive), *fitted(archive))
    return Section("Claims and verdicts", text, verdicts=found)


def rivals(archive: RecordFolder, pair: ExpertPair) -> list[tuple[str, Contest]]:
    """Routing against every per-sample method that has records."""
    routed = archive.outcomes(pair.row("routing"))
    if routed is None:
        return []
    return [(label, routed.against(one)) for label, one in per_sample(archive, pair).items()]


def best_single(archive: RecordFolder, pair: ExpertPair) -> tuple[str, Outcomes] | None:
    """The better expert of the pair."""
    found = [(name, one) for name in pair.experts if (one := archive.outcomes(single(name))) is not None]
    return max(found, key=lambda named: float(named[1].exact.mean())) if len(found) == 2 else None


def abstract(archive: RecordFolder) -> tuple[Verdict, ...]:
    """Routing consistently outperforms global scalar weights."""
    judged: list[Judgement] = []
    figures = []
    for pair in PAIRS:
        contests = rivals(archive, pair)
        judged += [BEATS.judge(contest.gain) for _, contest in contests] + _unheard(contests)
        if contests:
            figures.append(f"{pair.name}, {_closest(contests)[1]}")
    claim = (
        "factor-specific routing consistently outperforms global scalar weighting (every pair, every method)"
    )
    rule = BEATS.sentence("every difference, of every pair to every per-sample method,")
    return (Verdict(claim, "abstract", together(judged), "; ".join(figures) or "not run", rule),)


def specialised(archive: RecordFolder) -> tuple[Verdict, ...]:
    """RQ1: Occ+Full and Col+Occ."""
    occ, col = rivals(archive, OCC_FULL), rivals(archive, COL_OCC)
    verdicts = [
        _over_the_best("Occ+Full: routing beats the strongest per-sample method (paper: +0.8)", occ),
        _degrading(archive),
        _against_single(
            "Occ+Full: routing does not fall below the best single expert", archive, OCC_FULL, NOT_WORSE
        ),
        _useless(archive),
        _reaches(archive),
        _over_the_best("Col+Occ: every per-sample method stays below routing", col),
        _over_the_best("Col+Occ: the gap to the best per-sample method is 12 points or more", col, GAP),
        _grows(archive),
    ]
    return tuple(verdicts)


def generalists(archive: RecordFolder) -> tuple[Verdict, ...]:
    """RQ2: Full+Full."""
    contests = rivals(archive, FULL_FULL)
    best = best_single(archive, FULL_FULL)
    improve: list[Judgement] = []
    figures = []
    if best is not None:
        everybody = per_sample(archive, FULL_FULL)
        routed = archive.outcomes(FULL_FULL.row("routing"))
        if routed is not None:
            everybody["per pixel"] = routed
        for label, one in everybody.items():
            gain = one.against(best[1])
            improve.append(BEATS.judge(gain.gain))
            figures.append(f"{label}: {gain.points()}")
        improve += ["undecided here"] * (len(RIVALS) + 1 - len(everybody))
    safe, words = _closest(contests)
    return (
        Verdict(
            "Full+Full: all compositions improve over the best expert",
            "RQ2",
            together(improve),
            _or(figures),
            BEATS.sentence("every composition's difference to the best expert"),
        ),
        Verdict(
            f"Full+Full: routing is not worse than the best per-sample method (margin {100 * MARGIN:.1f} points)",
            "RQ2",
            "undecided here" if safe is None else together([NOT_WORSE.judge(safe.gain), *_unheard(contests)]),
            words,
            NOT_WORSE.sentence(CLOSEST),
        ),
        _against_single("Full+Full: routing beats the best expert (paper: +2.2)", archive, FULL_FULL, BEATS),
    )


def fitted(archive: RecordFolder) -> tuple[Verdict, ...]:
    """Beyond the paper: one number for each expert on either side, fitted on the same validation queries."""
    verdicts = []
    for pair in PAIRS:
        found = {label: archive.outcomes(row) for label, row in fitted_rows(archive, pair).items()}
        routed = found.pop(FITTED["routing"], None)
        known = {label: one for label, one in found.items() if one is not None}
        against = {} if routed is None else {label: routed.against(one) for label, one in known.items()}
        judged: list[Judgement] = [BEATS.judge(contest.gain) for contest in against.values()]
        judged += ["undecided here"] * (len(FITTED) - 1 - len(against))
        verdicts.append(
            Verdict(
                f"{pair.name}: routing beats one weight per expert even where that is fitted on validation",
                "beyond",
                together(judged),
                _or([f"over {label}: {contest.points()}" for label, contest in against.items()]),
                BEATS.sentence("both differences, every method's numbers fitted on the same queries,"),
            )
        )
    return tuple(verdicts)


def _closest(contests: list[tuple[str, Contest]]) -> tuple[Contest | None, str]:
    if not contests:
        return None, "not run"
    label, closest = strongest(contests)
    missing = [name for name in RIVALS if name not in dict(contests)]
    words = f"; not run: {', '.join(missing)}" if missing else ""
    return closest, f"closest rival {label}: {closest.points()}{words}"


def _unheard(contests: list[tuple[str, Contest]]) -> list[Judgement]:
    """What is said of all methods holds only when all were run; one that fails decides it even so."""
    return ["undecided here"] if len(contests) < len(RIVALS) else []


def _over_the_best(claim: str, contests: list[tuple[str, Contest]], rule: Above = BEATS) -> Verdict:
    closest, words = _closest(contests)
    judged: list[Judgement] = [] if closest is None else [rule.judge(closest.gain), *_unheard(contests)]
    return Verdict(claim, "RQ1", together(judged), words, rule.sentence(CLOSEST))


def _degrading(archive: RecordFolder) -> Verdict:
    claim = "Occ+Full: several per-sample methods fall below the best single expert"
    rule = (
        "Confirmed: two methods or more whose difference to the expert has its whole interval below 0. Not confirmed: "
        "two are no longer possible."
    )
    best = best_single(archive, OCC_FULL)
    if best is None:
        return Verdict(claim, "RQ1", "undecided here", "not run", rule)
    against = {label: best[1].against(one) for label, one in per_sample(archive, OCC_FULL).items()}
    judged = [BEATS.judge(contest.gain) for contest in against.values()]
    below = judged.count("confirmed")
    possible = below + judged.count("undecided here") + len(RIVALS) - len(judged)
    verdict: Judgement = "confirmed" if below >= 2 else "undecided here" if possible >= 2 else "not confirmed"
    figures = _or([f"best single over {label}: {contest.points()}" for label, contest in against.items()])
    return Verdict(claim, "RQ1", verdict, figures, rule)


def _against_single(claim: str, archive: RecordFolder, pair: ExpertPair, rule: Above) -> Verdict:
    best, routed = best_single(archive, pair), archive.outcomes(pair.row("routing"))
    where = "RQ2" if pair is FULL_FULL else "RQ1"
    if best is None or routed is None:
        return Verdict(claim, where, "undecided here", "not run", rule.sentence())
    gain = routed.against(best[1])
    return Verdict(
        claim, where, rule.judge(gain.gain), f"against {best[0]}: {gain.points()}", rule.sentence()
    )


def _useless(archive: RecordFolder) -> Verdict:
    claim = f"Col+Occ: each specialist alone is nearly useless (read as: below {100 * USELESS:.0f} % exact)"
    rule = (
        f"Confirmed: the whole interval of both shares below {100 * USELESS:.0f} %. Not confirmed: one above."
    )
    found = {name: archive.outcomes(single(name)) for name in COL_OCC.experts}
    known = {name: one.accuracy for name, one in found.items() if one is not None}
    judged = [Above(-USELESS).judge(_negative(estimate)) for estimate in known.values()]
    figures = [f"{name}: {estimate.percent()}" for name, estimate in known.items()]
    judgement = together(judged) if len(known) == 2 else "undecided here"
    return Verdict(claim, "RQ1", judgement, _or(figures), rule)


def _reaches(archive: RecordFolder) -> Verdict:
    """The paper's figure is of these tasks, so what is held against it is the interval on these tasks."""
    routed = archive.outcomes(COL_OCC.row("routing"))
    claim = "Col+Occ: routing composes them into a strong solver (paper: 90.5 %)"
    rule = (
        f"Confirmed: the share's whole interval on these tasks above the paper's {100 * STRONG.by:.1f} %. Not "
        "confirmed: wholly below."
    )
    if routed is None:
        return Verdict(claim, "RQ1", "undecided here", "not run", rule)
    here, over = routed.accuracy_here, routed.accuracy.percent()
    if here is None:
        return Verdict(claim, "RQ1", "undecided here", f"{over}; one query of a task is too few", rule)
    kept = f"on these tasks [{100 * here.low:.1f}, {100 * here.high:.1f}]"
    return Verdict(claim, "RQ1", STRONG.judge(here), f"{over}, {kept}", rule)


def _grows(archive: RecordFolder) -> Verdict:
    claim = "the advantage of routing grows with specialisation: Full+Full < Occ+Full < Col+Occ"
    rule = BEATS.sentence("each pair's gap to its closest rival minus the gap of the pair before,")
    figures, duels = [], []
    for pair in PAIRS:
        contests, routed = rivals(archive, pair), archive.outcomes(pair.row("routing"))
        if len(contests) < len(RIVALS) or routed is None:
            unheard = f"{pair.name}: not every method is run"
            return Verdict(claim, "RQ1, RQ2", "undecided here", unheard, rule)
        label, closest = strongest(contests)
        figures.append(f"{pair.name}: {100 * closest.gain.value:+.2f}")
        duels.append((pair.name, routed, per_sample(archive, pair)[label]))
    judged: list[Judgement] = []
    steps = []
    for (before, *small), (after, *large) in pairwise(duels):
        grown, queries = growth(*small, *large)
        judged.append(BEATS.judge(grown))
        steps.append(f"{after} over {before}: {grown.points()}, {queries:,} queries")
    words = f"gap to the closest rival, points: {', '.join(figures)}; {'; '.join(steps)}"
    return Verdict(claim, "RQ1, RQ2", together(judged), words, rule)


def growth(
    routed: Outcomes, rival: Outcomes, routed_after: Outcomes, rival_after: Outcomes
) -> tuple[Estimate, int]:
    """How much larger the second gap is, on the queries that all four have: the same drawn tasks for both."""
    one, two, three, four = aligned(routed, rival, routed_after, rival_after)
    grown = gains(three.exact, four.exact, three.task) - gains(one.exact, two.exact, one.task)
    return mean(grown, one.task, (-2.0, 2.0)), len(one)


def _negative(estimate: Estimate) -> Estimate:
    return Estimate(-estimate.value, -estimate.high, -estimate.low)


def _or(figures: list[str]) -> str:
    return "; ".join(figures) or "not run"
