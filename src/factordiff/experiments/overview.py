"""One picture of a protocol: every pair's methods with their intervals, the paper's figures beside ours."""

from __future__ import annotations

from factordiff.experiments.claims import best_single
from factordiff.experiments.pairs import PAIRS, ExpertGroup
from factordiff.experiments.protocols import Protocol
from factordiff.report.charts import Dot, dots
from factordiff.report.document import Picture
from factordiff.report.outcomes import RecordFolder

ALONE, ROUTED, RIVAL = "best expert alone", "routing per pixel", "one number per expert"


def protocol_dots(archive: RecordFolder, pair: ExpertGroup, protocol: Protocol) -> list[Dot]:
    """The best expert alone, the per-sample methods, and routing, as far as they are run."""
    best, routed = best_single(archive, pair), protocol.routed(archive, pair)
    rivals = protocol.per_sample(archive, pair)
    found = [] if best is None else [Dot(ALONE, best[1].accuracy, ALONE)]
    found += [Dot(label, one.accuracy, RIVAL) for label, one in rivals.items()]
    return found + ([] if routed is None else [Dot(ROUTED, routed.accuracy, ROUTED)])


def protocol_picture(archive: RecordFolder, protocol: Protocol) -> tuple[Picture, ...]:
    """A panel for each pair; nothing where nothing is run."""
    panels = {pair.name: protocol_dots(archive, pair, protocol) for pair in PAIRS}
    panels = {name: some for name, some in panels.items() if any(dot.kind != ALONE for dot in some)}
    if not panels:
        return ()
    name = f"protocol-{protocol.name.replace(' ', '-')}"
    caption = f"Exact %, {protocol.name}: every method with its 95 % interval over tasks."
    return (Picture(name, dots(panels, "exact %"), caption),)
