"""The claims of the paper's abstract and of RQ1 and RQ2, each judged from the records."""

from __future__ import annotations

from itertools import pairwise

from factordiff.evaluation.document import Section
from factordiff.evaluation.outcomes import Archive, Outcomes
from factordiff.evaluation.paired import Contest
from factordiff.evaluation.statistics import Estimate
from factordiff.evaluation.verdicts import MARGIN, Judgement, Verdict, above, not_worse, strongest, together
from factordiff.experiments.composition import (
    FITTED,
    PARTICLES,
    PER_SAMPLE,
    fitted_rows,
    per_sample,
)
from factordiff.experiments.pairs import COL_OCC, FULL_FULL, OCC_FULL, PAIRS, Pair, single

USELESS = 0.05
RIVALS = (*PER_SAMPLE.values(), *PARTICLES.values())  # the per-sample methods of the paper


def report(archive: Archive) -> Section:
    """All verdicts in one table."""
    text = (
        "Confirmed or not confirmed: the whole 95 % interval of the paired difference says so (over tasks, which "
        f"keep their queries; McNemar's exact test beside it). Non-inferiority with a margin of {100 * MARGIN:.1f} "
        "points. Rows on fewer queries are compared on the queries that both have. FKC and RNE stand with their better "
        "reading and with the exponents and the resampling that validation chose.",
    )
    found = (*abstract(archive), *specialised(archive), *generalists(archive), *fitted(archive))
    return Section("Claims and verdicts", text, verdicts=found)


def rivals(archive: Archive, pair: Pair) -> list[tuple[str, Contest]]:
    """Routing against every per-sample method that has records."""
    routed = archive.outcomes(pair.row("routing"))
    if routed is None:
        return []
    return [(label, routed.against(one)) for label, one in per_sample(archive, pair).items()]


def best_single(archive: Archive, pair: Pair) -> tuple[str, Outcomes] | None:
    """The better expert of the pair."""
    found = [(name, one) for name in pair.experts if (one := archive.outcomes(single(name))) is not None]
    return max(found, key=lambda named: float(named[1].exact.mean())) if len(found) == 2 else None


def abstract(archive: Archive) -> tuple[Verdict, ...]:
    """Routing consistently outperforms global scalar weights."""
    judged: list[Judgement] = []
    figures = []
    for pair in PAIRS:
        contests = rivals(archive, pair)
        judged += [above(contest.gain) for _, contest in contests] + _unheard(contests)
        if contests:
            figures.append(f"{pair.name}, {_closest(contests)[1]}")
    claim = (
        "factor-specific routing consistently outperforms global scalar weighting (every pair, every method)"
    )
    return (Verdict(claim, "abstract", together(judged), "; ".join(figures) or "not run"),)


def specialised(archive: Archive) -> tuple[Verdict, ...]:
    """RQ1: Occ+Full and Col+Occ."""
    occ, col = rivals(archive, OCC_FULL), rivals(archive, COL_OCC)
    verdicts = [
        _over_the_best("Occ+Full: routing beats the strongest per-sample method (paper: +0.8)", occ),
        _degrading(archive),
        _against_single("Occ+Full: routing does not fall below the best single expert", archive, OCC_FULL),
        _useless(archive),
        _reaches(archive),
        _over_the_best("Col+Occ: every per-sample method stays below routing", col),
        _over_the_best("Col+Occ: the gap to the best per-sample method is 12 points or more", col, 0.12),
        _grows(archive),
    ]
    return tuple(verdicts)


def generalists(archive: Archive) -> tuple[Verdict, ...]:
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
            improve.append(above(gain.gain))
            figures.append(f"{label}: {gain.points()}")
        improve += ["undecided here"] * (len(RIVALS) + 1 - len(everybody))
    safe, words = _closest(contests)
    return (
        Verdict(
            "Full+Full: all compositions improve over the best expert", "RQ2", together(improve), _or(figures)
        ),
        Verdict(
            f"Full+Full: routing is not worse than the best per-sample method (margin {100 * MARGIN:.1f} points)",
            "RQ2",
            "undecided here" if safe is None else together([not_worse(safe.gain), *_unheard(contests)]),
            words,
        ),
        _against_single(
            "Full+Full: routing beats the best expert (paper: +2.2)", archive, FULL_FULL, above_it=True
        ),
    )


def fitted(archive: Archive) -> tuple[Verdict, ...]:
    """Beyond the paper: one number for each expert on either side, fitted on the same validation queries."""
    verdicts = []
    for pair in PAIRS:
        found = {label: archive.outcomes(row) for label, row in fitted_rows(archive, pair).items()}
        routed = found.pop(FITTED["routing"], None)
        known = {label: one for label, one in found.items() if one is not None}
        against = {} if routed is None else {label: routed.against(one) for label, one in known.items()}
        judged: list[Judgement] = [above(contest.gain) for contest in against.values()]
        judged += ["undecided here"] * (len(FITTED) - 1 - len(against))
        verdicts.append(
            Verdict(
                f"{pair.name}: routing beats one weight per expert even where that is fitted on validation",
                "beyond",
                together(judged),
                _or([f"over {label}: {contest.points()}" for label, contest in against.items()]),
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


def _over_the_best(claim: str, contests: list[tuple[str, Contest]], by: float = 0.0) -> Verdict:
    closest, words = _closest(contests)
    judged: list[Judgement] = [] if closest is None else [above(closest.gain, by), *_unheard(contests)]
    return Verdict(claim, "RQ1", together(judged), words)


def _degrading(archive: Archive) -> Verdict:
    claim = "Occ+Full: several per-sample methods fall below the best single expert"
    best = best_single(archive, OCC_FULL)
    if best is None:
        return Verdict(claim, "RQ1", "undecided here", "not run")
    against = {label: best[1].against(one) for label, one in per_sample(archive, OCC_FULL).items()}
    judged = [above(contest.gain) for contest in against.values()]
    below = judged.count("confirmed")
    possible = below + judged.count("undecided here") + len(RIVALS) - len(judged)
    verdict: Judgement = "confirmed" if below >= 2 else "undecided here" if possible >= 2 else "not confirmed"
    return Verdict(
        claim, "RQ1", verdict, _or([f"best single over {k}: {c.points()}" for k, c in against.items()])
    )


def _against_single(claim: str, archive: Archive, pair: Pair, above_it: bool = False) -> Verdict:
    best, routed = best_single(archive, pair), archive.outcomes(pair.row("routing"))
    where = "RQ2" if pair is FULL_FULL else "RQ1"
    if best is None or routed is None:
        return Verdict(claim, where, "undecided here", "not run")
    gain = routed.against(best[1])
    judged = above(gain.gain) if above_it else not_worse(gain.gain)
    return Verdict(claim, where, judged, f"against {best[0]}: {gain.points()}")


def _useless(archive: Archive) -> Verdict:
    claim = f"Col+Occ: each specialist alone is nearly useless (read as: below {100 * USELESS:.0f} % exact)"
    found = {name: archive.outcomes(single(name)) for name in COL_OCC.experts}
    known = {name: one.accuracy for name, one in found.items() if one is not None}
    judged = [above(_negative(estimate), -USELESS) for estimate in known.values()]
    figures = [f"{name}: {estimate.percent()}" for name, estimate in known.items()]
    return Verdict(claim, "RQ1", together(judged) if len(known) == 2 else "undecided here", _or(figures))


def _reaches(archive: Archive) -> Verdict:
    routed = archive.outcomes(COL_OCC.row("routing"))
    claim = "Col+Occ: routing composes them into a strong solver (paper: 90.5 %)"
    if routed is None:
        return Verdict(claim, "RQ1", "undecided here", "not run")
    return Verdict(claim, "RQ1", above(routed.accuracy, 0.905), routed.accuracy.percent())


def _grows(archive: Archive) -> Verdict:
    claim = "the advantage of routing grows with specialisation: Full+Full < Occ+Full < Col+Occ"
    gaps = []
    for pair in PAIRS:
        contests = rivals(archive, pair)
        if len(contests) < len(RIVALS):
            return Verdict(claim, "RQ1, RQ2", "undecided here", f"{pair.name}: not every method is run")
        gaps.append(strongest(contests)[1].gain)
    steps = [_apart(one, other) for one, other in pairwise(gaps)]
    figures = [f"{pair.name}: {100 * gap.value:+.2f}" for pair, gap in zip(PAIRS, gaps, strict=True)]
    return Verdict(
        claim, "RQ1, RQ2", together(steps), "gap to the closest rival, points: " + ", ".join(figures)
    )


def _apart(small: Estimate, large: Estimate) -> Judgement:
    """Is the second larger? Decided when the intervals do not overlap."""
    if large.low > small.high:
        return "confirmed"
    return "not confirmed" if large.high < small.low else "undecided here"


def _negative(estimate: Estimate) -> Estimate:
    return Estimate(-estimate.value, -estimate.high, -estimate.low)


def _or(figures: list[str]) -> str:
    return "; ".join(figures) or "not run"
