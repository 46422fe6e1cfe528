"""Figures 1, "per-pixel", "per-pixel routing in action" and "masked diffusion": routing seen at work.

Claim: the occupancy expert is chosen for background and borders, the color (or full) expert for what is inside.
Cost: six queries of each pair, traced: 6 x 400 x 3 row-passes.
Expected: in Col+Occ the occupancy expert speaks for background, the color expert for foreground.
"""

from __future__ import annotations

from typing import Any

import torch

from factordiff.arc.grid import COLORS
from factordiff.evaluation.maps import routing_maps
from factordiff.experiments.experiment import Experiment
from factordiff.experiments.pairs import PAIRS, ExpertGroup
from factordiff.experiments.runner import Runner
from factordiff.report.charts import map_rows, state_row, way_rows
from factordiff.report.document import Picture, Section, Table
from factordiff.report.findings import read_finding
from factordiff.report.outcomes import RecordFolder
from factordiff.report.run_spec import RunSpec
from factordiff.streams import Purpose, uniform

SHOWN, FRAMES = 6, 7
TIMES = (0.0, 0.25, 0.5, 0.75, 1.0)


def finding(pair: ExpertGroup) -> str:
    """The name of a pair's maps."""
    return f"maps-{'+'.join(pair.experts)}"


def rows() -> list[RunSpec]:
    """No row of records: only maps."""
    return []


def run(runner: Runner) -> None:
    """Trace, with every pair, queries whose answer is about half background."""
    queries = runner.queries("test")
    candidates = min(len(queries), 120 if runner.limit is None else runner.limit)
    foreground = (queries.x_0[:candidates] > 0).double().mean(-1)
    index = (foreground - 0.5).abs().argsort(stable=True)[: runner.size(SHOWN)].tolist()
    for pair in PAIRS:

        def look(pair: ExpertGroup = pair) -> list[dict[str, Any]]:
            experts = [runner.experts(name).expert for name in pair.experts]
            return routing_maps(experts, queries, index, pair.printed, runner.settings.steps, FRAMES)

        runner.find(finding(pair), pair.experts, {"queries": index}, look)


def report(archive: RecordFolder) -> Section:
    """Forward masking, reverse unmasking with the routing map, and who spoke where."""
    pictures: list[Picture] = []
    lines: list[tuple[str, ...]] = []
    for pair in PAIRS:
        maps = read_finding(archive.folder, finding(pair))
        if not maps:
            continue
        label = pair.name.lower().replace("+", "-")
        if not pictures:
            pictures.append(
                Picture("forward", _forward(maps[0]["truth"]), "Forward process: cells are masked.")
            )
        pictures.append(
            Picture(
                f"{label}-steps",
                way_rows(maps[0], pair.experts),
                f"{pair.name}: reverse process above, routing map of the masked cells below.",
            )
        )
        pictures.append(
            Picture(
                f"{label}-maps", map_rows(maps, pair.experts), f"{pair.name}: which expert decided where."
            )
        )
        lines.append((pair.name, pair.experts[1], *_shares(maps)))
    headings = ("pair", "expert", "decided of background cells", "decided of foreground cells")
    tables = (Table(headings, tuple(lines), "Shares of the cells shown."),) if lines else ()
    text = () if lines else ("Not run yet: no routing maps.",)
    return Section("Routing at work (Figures 1, 3, 4, 5)", text, tables, tuple(pictures))


def _forward(truth: list[int]) -> bytes:
    x_0 = torch.tensor([truth])
    uniforms = uniform(0, Purpose.CORRUPT, 0, torch.arange(x_0.shape[1]))[None, :]
    states = [torch.where(uniforms < time, COLORS.mask, x_0)[0].tolist() for time in TIMES]
    return state_row(states, [f"t = {time:g}" for time in TIMES])


def _shares(maps: list[dict[str, Any]]) -> tuple[str, str]:
    """How many background and foreground cells the second expert decided."""
    spoken = [
        (truth > 0, who == 1)
        for map_ in maps
        for truth, who in zip(map_["truth"], map_["decided"], strict=True)
    ]
    shares = []
    for kind in (False, True):
        cells = [second for foreground, second in spoken if foreground == kind]
        shares.append(f"{100 * sum(cells) / max(len(cells), 1):.0f} % of {len(cells)}")
    return shares[0], shares[1]


EXPERIMENT = Experiment("routing-figures", rows, run, report, findings=lambda: list(map(finding, PAIRS)))
