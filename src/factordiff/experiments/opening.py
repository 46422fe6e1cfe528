"""The report's first screen, from the records: what was asked, what was found, and one picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from factordiff.experiments.claims import best_single
from factordiff.experiments.composition import PAPER
from factordiff.experiments.learned import learned_row
from factordiff.experiments.official import accuracies
from factordiff.experiments.overview import dot
from factordiff.experiments.pairs import BEYOND, CAPTION, DEFAULT_HEAD, EVERYTHING, PAIRS, ExpertGroup, single
from factordiff.experiments.protocols import ALL_FITTED, AS_PRINTED, PRINTED, PROTOCOLS, Protocol
from factordiff.report.charts import Dot, dots
from factordiff.report.document import Opening, Picture
from factordiff.report.outcomes import RecordFolder
from factordiff.report.verdicts import Verdict, strongest

QUESTION = (
    "Two frozen discrete-diffusion experts fill a grid together. Is it better to choose an expert for every cell, by "
    "which of them is surer there (routing), or to give each expert one number for the whole sample, as products, "
    "mixtures, SuperDiff, FKC and RNE do? The paper says: routing, consistently, and by 12 points where both experts "
    f"are specialists. Asked on {EVERYTHING:,} held-out queries of its 120 ARC tasks, with experts of our own."
)
WINS_WHERE = (
    "When does factor-wise composition win? Where experts are wrongly sure in different places, so that no number for "
    "a whole sample is right at every cell; where one such number exists, it is enough."
)
WORLDS = "[Worlds](../worlds.md) compares every method and bound on experts made for that question."
NOT_RUN = "not run yet"


def opening(archive: RecordFolder, verdicts: Iterable[Verdict]) -> Opening:
    """The first screen."""
    findings = (
        _protocol(archive, AS_PRINTED),
        _protocol(archive, ALL_FITTED),
        _elsewhere(archive),
        _counted(list(verdicts)),
        f"{WINS_WHERE}{_earned(archive)} {WORLDS}",
    )
    return Opening(QUESTION, findings, _picture(archive))


def _protocol(archive: RecordFolder, protocol: Protocol) -> str:
    """Routing in every pair, and how far it is from its closest rival."""
    parts = [_pair(archive, pair, protocol) for pair in PAIRS]
    return f"**{protocol.name.capitalize()}**, routing and its distance to the closest rival: {'; '.join(parts)}."


def _pair(archive: RecordFolder, pair: ExpertGroup, protocol: Protocol) -> str:
    routed, rivals = protocol.routed(archive, pair), protocol.per_sample(archive, pair)
    if routed is None or not rivals:
        return f"{pair.name} {NOT_RUN}"
    label, closest = strongest([(label, routed.against(one)) for label, one in rivals.items()])
    missing = "" if len(rivals) == len(protocol.rivals) else ", others not run yet"
    place = PAIRS.index(pair)
    gap = (PAPER["routing"][place] or 0.0) - max(PAPER[method][place] or 0.0 for method in PRINTED)
    paper = f"; paper {gap:+.1f}" if protocol is AS_PRINTED else ""
    return (
        f"{pair.name} {100 * routed.accuracy.value:.1f} %, {closest.gain.points()} "
        f"({label.partition(',')[0]}{missing}{paper})"
    )


def _elsewhere(archive: RecordFolder) -> str:
    """The published pairs of the same tasks, and tasks that no expert has seen."""
    said = []
    for split, words in (
        ("official", "the published pairs of the same 120 tasks"),
        ("unseen", "tasks never trained on"),
    ):
        alone = best_of(archive, split)
        routed = archive.outcomes(PAIRS[0].row("routing", split=split))
        if alone is None or routed is None:
            said.append(f"on {words}: {NOT_RUN}")
        else:
            said.append(
                f"on {words} Full+Full routing solves {accuracies(routed)[0]} of test grids, "
                f"its better expert alone {alone}"
            )
    return f"**Beyond generated instances:** {'; '.join(said)}. These experts know 120 tasks; they do not solve ARC."


def best_of(archive: RecordFolder, split: str) -> str | None:
    """The better full expert's share of grids on a set of published tasks."""
    rows = [archive.outcomes(single(name, split=split)) for name in PAIRS[0].experts]
    found = [one for one in rows if one is not None and one.grid is not None]
    best = max(found, key=lambda one: float(one.grid.mean()) if one.grid is not None else 0.0, default=None)
    return None if best is None else accuracies(best)[0]


def _counted(verdicts: list[Verdict]) -> str:
    said, names = [], [protocol.name for protocol in PROTOCOLS]
    for group, words in (
        (names[:1], names[0]),
        (names[1:], names[1]),
        ((), "where both meet or nothing is fitted"),
    ):
        count = Counter(
            one.judgement
            for one in verdicts
            if (one.protocol in group if group else one.protocol not in names)
        )
        said.append(
            f"{words} {count['confirmed']} confirmed, {count['not confirmed']} not, "
            f"{count['undecided here']} undecided"
        )
    return f"**The paper's claims**, each judged by a printed rule: {'; '.join(said)}."


def _earned(archive: RecordFolder) -> str:
    """What a learned router and the best fitted number have where both specialists are wrongly sure."""
    learned = archive.outcomes(learned_row(DEFAULT_HEAD, BEYOND))
    rivals, routed = ALL_FITTED.per_sample(archive, DEFAULT_HEAD), ALL_FITTED.routed(archive, DEFAULT_HEAD)
    if learned is None or routed is None or not rivals:
        return ""
    label, closest = strongest([(label, learned.against(one)) for label, one in rivals.items()])
    return (
        f" On {DEFAULT_HEAD.name}, two such experts, a learned router has {100 * learned.accuracy.value:.1f} %, "
        f"{closest.gain.points()} from the best fitted number per expert ({label.partition(',')[0]}) and "
        f"{learned.against(routed).gain.points()} from fitted routing."
    )


def _picture(archive: RecordFolder) -> Picture | None:
    panels = {pair.name: _dots(archive, pair) for pair in PAIRS}
    panels = {name: some for name, some in panels.items() if some}
    if not panels:
        return None
    caption = (
        f"{CAPTION} Of the methods with one number per expert the best one is shown, chosen in hindsight."
    )
    return Picture("first-screen", dots(panels, "exact %"), caption)


def _dots(archive: RecordFolder, pair: ExpertGroup) -> list[Dot]:
    best = best_single(archive, pair)
    found = [] if best is None else [dot("best expert alone", best[1], "alone")]
    for protocol in PROTOCOLS:
        rivals, routed = protocol.per_sample(archive, pair), protocol.routed(archive, pair)
        if rivals:
            label, one = max(rivals.items(), key=lambda item: float(item[1].first(BEYOND).exact.mean()))
            found.append(dot(f"{label.partition(',')[0]}, {protocol.name}", one, "one number per expert"))
        if routed is not None:
            found.append(dot(f"routing, {protocol.name}", routed, "routing"))
    learned = archive.outcomes(learned_row(pair, BEYOND))
    return found + ([] if learned is None else [dot("learned router", learned, "learned")])
