"""The claims of the paper's abstract and of RQ1 and RQ2, each judged from the records under each protocol."""

from __future__ import annotations

from itertools import pairwise

from factordiff.experiments.pairs import COL_OCC, FULL_FULL, OCC_FULL, PAIRS, ExpertGroup, single
from factordiff.experiments.protocols import AS_PRINTED, Protocol
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

READING = (
    "Every verdict names its protocol and has its rule beside it; what is neither confirmed nor not is undecided. An "
    "interval (95 %) is one over tasks: tasks are drawn again and keep their queries, the same for both sides of a "
    "difference; it speaks of tasks like these 120. The one `on these tasks` keeps the tasks and draws queries within "
    "each; it says nothing about other tasks, and neither does McNemar's exact test. Simulated, intervals over tasks "
    "hold the truth 94 to 95 times in 100; where a few hard tasks decide, as in shares near 100 %, 85 to 94 times. "
    "Rows on fewer queries are compared on the queries that both have. No correction is made for the number of claims."
)


def verdicts(archive: RecordFolder, protocol: Protocol) -> tuple[Verdict, ...]:
    """All claims about compositions, in the paper's order."""
    judged = Claims(archive, protocol)
    return (*judged.abstract(), *judged.specialised(), *judged.generalists())


def best_single(archive: RecordFolder, pair: ExpertGroup) -> tuple[str, Outcomes] | None:
    """The best expert of the group."""
    found = [(name, one) for name in pair.experts if (one := archive.outcomes(single(name))) is not None]
    whole = len(found) == len(pair.experts)
    return max(found, key=lambda named: float(named[1].exact.mean())) if whole else None


class Claims:
    """The claims under one protocol."""

    def __init__(self, archive: RecordFolder, protocol: Protocol) -> None:
        self.archive, self.protocol = archive, protocol

    def rivals(self, pair: ExpertGroup) -> list[tuple[str, Contest]]:
        """Routing against every per-sample method that has records."""
        routed = self.protocol.routed(self.archive, pair)
        if routed is None:
            return []
        found = self.protocol.per_sample(self.archive, pair)
        return [(label, routed.against(one)) for label, one in found.items()]

    def abstract(self) -> tuple[Verdict, ...]:
        """Routing consistently outperforms global scalar weights; in the words of Table 2, or matches them."""
        contests = {pair.name: self.rivals(pair) for pair in PAIRS}
        figures = _or([f"{name}, {self._closest(some)[1]}" for name, some in contests.items() if some])
        claims = (
            ("factor-specific routing consistently outperforms global scalar weighting", "abstract", BEATS),
            ("routing outperforms or matches (is not worse than) all baselines", "Table 2", NOT_WORSE),
        )
        found = []
        for claim, where, rule in claims:
            judged = [rule.judge(contest.gain) for some in contests.values() for _, contest in some]
            for some in contests.values():
                judged += self._unheard(some)
            words = rule.sentence("every difference, of every pair to every per-sample method,", several=True)
            claim = f"{claim} (every pair, every method)"
            found.append(self._verdict(claim, where, together(judged), figures, words))
        return tuple(found)

    def specialised(self) -> tuple[Verdict, ...]:
        """RQ1: Occ+Full and Col+Occ."""
        occ, col = self.rivals(OCC_FULL), self.rivals(COL_OCC)
        found = [
            self._over_the_best("Occ+Full: routing beats the strongest per-sample method (paper: +0.8)", occ),
            self._degrading(),
            self._against_single(
                "Occ+Full: routing does not fall below the best single expert", OCC_FULL, NOT_WORSE
            ),
            *self._useless(),
            self._reaches(),
            self._over_the_best("Col+Occ: every per-sample method stays below routing", col),
            self._over_the_best(
                "Col+Occ: the gap to the best per-sample method is 12 points or more", col, GAP
            ),
            self._grows(),
        ]
        return tuple(found)

    def generalists(self) -> tuple[Verdict, ...]:
        """RQ2: Full+Full."""
        contests = self.rivals(FULL_FULL)
        best = best_single(self.archive, FULL_FULL)
        improve: list[Judgement] = []
        figures = []
        if best is not None:
            everybody = self.protocol.per_sample(self.archive, FULL_FULL)
            routed = self.protocol.routed(self.archive, FULL_FULL)
            if routed is not None:
                everybody["per pixel"] = routed
            for label, one in everybody.items():
                gain = one.against(best[1])
                improve.append(BEATS.judge(gain.gain))
                figures.append(f"{label}: {gain.points()}")
            improve += ["undecided here"] * (len(self.protocol.rivals) + 1 - len(everybody))
        safe, words = self._closest(contests)
        return (
            self._verdict(
                "Full+Full: all compositions improve over the best expert",
                "RQ2",
                together(improve),
                _or(figures),
                BEATS.sentence("every composition's difference to the best expert", several=True),
            ),
            self._verdict(
                "Full+Full: routing is not worse than the best per-sample method "
                f"(margin {100 * MARGIN:.1f} points)",
                "RQ2",
                "undecided here"
                if safe is None
                else together([NOT_WORSE.judge(safe.gain), *self._unheard(contests)]),
                words,
                NOT_WORSE.sentence(CLOSEST),
            ),
            self._against_single("Full+Full: routing beats the best expert (paper: +2.2)", FULL_FULL, BEATS),
        )

    def _verdict(self, claim: str, where: str, judgement: Judgement, figures: str, rule: str) -> Verdict:
        return Verdict(claim, where, judgement, figures, rule, self.protocol.name)

    def _closest(self, contests: list[tuple[str, Contest]]) -> tuple[Contest | None, str]:
        if not contests:
            return None, "not run"
        label, closest = strongest(contests)
        missing = [name for name in self.protocol.rivals.values() if name not in dict(contests)]
        words = f"; not run: {', '.join(missing)}" if missing else ""
        return closest, f"closest rival {label}: {closest.points()}{words}"

    def _unheard(self, contests: list[tuple[str, Contest]]) -> list[Judgement]:
        """What is said of all methods holds only when all were run; one that fails decides it even so."""
        return ["undecided here"] if len(contests) < len(self.protocol.rivals) else []

    def _over_the_best(self, claim: str, contests: list[tuple[str, Contest]], rule: Above = BEATS) -> Verdict:
        closest, words = self._closest(contests)
        judged: list[Judgement] = (
            [] if closest is None else [rule.judge(closest.gain), *self._unheard(contests)]
        )
        return self._verdict(claim, "RQ1", together(judged), words, rule.sentence(CLOSEST))

    def _degrading(self) -> Verdict:
        claim = "Occ+Full: several per-sample methods fall below the best single expert"
        rule = (
            "Confirmed: two methods or more whose difference to the expert has its whole interval below 0. Not "
            "confirmed: two are no longer possible."
        )
        best = best_single(self.archive, OCC_FULL)
        if best is None:
            return self._verdict(claim, "RQ1", "undecided here", "not run", rule)
        found = self.protocol.per_sample(self.archive, OCC_FULL)
        against = {label: best[1].against(one) for label, one in found.items()}
        judged = [BEATS.judge(contest.gain) for contest in against.values()]
        below = judged.count("confirmed")
        possible = below + judged.count("undecided here") + len(self.protocol.rivals) - len(judged)
        verdict: Judgement = (
            "confirmed" if below >= 2 else "undecided here" if possible >= 2 else "not confirmed"
        )
        figures = _or([f"best single over {label}: {contest.points()}" for label, contest in against.items()])
        return self._verdict(claim, "RQ1", verdict, figures, rule)

    def _against_single(self, claim: str, pair: ExpertGroup, rule: Above) -> Verdict:
        best, routed = best_single(self.archive, pair), self.protocol.routed(self.archive, pair)
        where = "RQ2" if pair is FULL_FULL else "RQ1"
        if best is None or routed is None:
            return self._verdict(claim, where, "undecided here", "not run", rule.sentence())
        gain = routed.against(best[1])
        figures = f"against {best[0]}: {gain.points()}"
        return self._verdict(claim, where, rule.judge(gain.gain), figures, rule.sentence())

    def _useless(self) -> tuple[Verdict, ...]:
        """The experts alone: nothing of it is fitted, so it is said once."""
        if self.protocol is not AS_PRINTED:
            return ()
        claim = (
            f"Col+Occ: each specialist alone is nearly useless (read as: below {100 * USELESS:.0f} % exact)"
        )
        rule = f"Confirmed: the whole interval of both shares below {100 * USELESS:.0f} %. Not confirmed: one above."
        found = {name: self.archive.outcomes(single(name)) for name in COL_OCC.experts}
        known = {name: one.accuracy for name, one in found.items() if one is not None}
        judged = [Above(-USELESS).judge(_negative(estimate)) for estimate in known.values()]
        figures = [f"{name}: {estimate.percent()}" for name, estimate in known.items()]
        judgement = together(judged) if len(known) == 2 else "undecided here"
        return (self._verdict(claim, "RQ1", judgement, _or(figures), rule),)

    def _reaches(self) -> Verdict:
        """The paper's figure is of these tasks, so what is held against it is the interval on these tasks."""
        routed = self.protocol.routed(self.archive, COL_OCC)
        claim = "Col+Occ: routing composes them into a strong solver (paper: 90.5 %)"
        rule = (
            f"Confirmed: the share's whole interval on these tasks above the paper's {100 * STRONG.by:.1f} %. Not "
            "confirmed: wholly below."
        )
        if routed is None:
            return self._verdict(claim, "RQ1", "undecided here", "not run", rule)
        here, over = routed.accuracy_here, routed.accuracy.percent()
        if here is None:
            few = f"{over}; one query of a task is too few"
            return self._verdict(claim, "RQ1", "undecided here", few, rule)
        kept = f"on these tasks [{100 * here.low:.1f}, {100 * here.high:.1f}]"
        return self._verdict(claim, "RQ1", STRONG.judge(here), f"{over}, {kept}", rule)

    def _grows(self) -> Verdict:
        claim = "the advantage of routing grows with specialisation: Full+Full < Occ+Full < Col+Occ"
        rule = BEATS.sentence(
            "each pair's gap to its closest rival minus the gap of the pair before,", several=True
        )
        figures, duels = [], []
        for pair in PAIRS:
            contests, routed = self.rivals(pair), self.protocol.routed(self.archive, pair)
            if len(contests) < len(self.protocol.rivals) or routed is None:
                unheard = f"{pair.name}: not every method is run"
                return self._verdict(claim, "RQ1, RQ2", "undecided here", unheard, rule)
            label, closest = strongest(contests)
            figures.append(f"{pair.name}: {100 * closest.gain.value:+.2f}")
            duels.append((pair.name, routed, self.protocol.per_sample(self.archive, pair)[label]))
        judged: list[Judgement] = []
        steps = []
        for (before, *small), (after, *large) in pairwise(duels):
            grown, queries = growth(*small, *large)
            judged.append(BEATS.judge(grown))
            steps.append(f"{after} over {before}: {grown.points()}, {queries:,} queries")
        words = f"gap to the closest rival, points: {', '.join(figures)}; {'; '.join(steps)}"
        return self._verdict(claim, "RQ1, RQ2", together(judged), words, rule)


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
