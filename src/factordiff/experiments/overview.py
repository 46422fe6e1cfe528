"""One picture of a protocol: every pair's methods with their intervals, the paper's figures beside ours."""

from __future__ import annotations

from factordiff.experiments.claims import best_single
from factordiff.experiments.pairs import BEYOND, CAPTION, PAIRS, ExpertGroup
from factordiff.experiments.protocols import Protocol
from factordiff.report.charts import Dot, dots
from factordiff.report.document import Picture
from factordiff.report.outcomes import Outcomes, RecordFolder

ALONE, ROUTED, RIVAL = "best expert alone", "routing per pixel", "one number per expert"


def protocol_dots(archive: RecordFolder, pair: ExpertGroup, protocol: Protocol) -> list[Dot]:
    """The best expert alone, the per-sample methods, and routing, as far as they are run."""
    best, routed = best_single(archive, pair), protocol.routed(archive, pair)
    rivals = protocol.per_sample(archive, pair)
    found = [] if best is None else [dot(ALONE, best[1], ALONE)]
    found += [dot(label, one, RIVAL) for label, one in rivals.items()]
    return found + ([] if routed is None else [dot(ROUTED, routed, ROUTED)])


def dot(label: str, found: Outcomes, kind: str) -> Dot:
    """A method's share on the queries that every method of a picture has: on others, two dots would not compare."""
    return Dot(label, found.first(BEYOND).accuracy, kind)


def protocol_picture(archive: RecordFolder, protocol: Protocol) -> tuple[Picture, ...]:
    """A panel for each pair; nothing where nothing is run."""
    panels = {pair.name: protocol_dots(archive, pair, protocol) for pair in PAIRS}
    panels = {name: some for name, some in panels.items() if any(dot.kind != ALONE for dot in some)}
    if not panels:
        return ()
    name = f"protocol-{protocol.name.replace(' ', '-')}"
    caption = f"{protocol.name.capitalize()}, every method: {CAPTION[0].lower()}{CAPTION[1:]}"
    return (Picture(name, dots(panels, "exact %"), caption),)
