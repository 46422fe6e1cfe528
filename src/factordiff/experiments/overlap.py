"""Figure "expert overlap": two full experts that differ in architecture alone.

Claim: on 24,000 queries per-pixel routing answers 94.8 % exactly, its experts 89.5 and 85.6; 132 grids are right only
in composition; against the better expert of each task, known in hindsight, it wins 39, loses 23, ties 58 tasks, and is
never catastrophically worse; it matches or exceeds Trans-IR on 99 and Conv-IR on 118 of 120 tasks.
Cost: (1 + 1 + 2) x 24,000 x 100 = 9.6 M row-passes, and a few dozen traced queries.
Expected: more wins than losses, a worst loss of a few points.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from factordiff.evaluation.maps import routing_maps
from factordiff.experiments.experiment import Experiment, not_run, paper, percent
from factordiff.experiments.fitted import run_fitted
from factordiff.experiments.pairs import EARLY, EVERYTHING, ExpertGroup, single
from factordiff.experiments.protocols import ALL_FITTED, AS_PRINTED
from factordiff.experiments.runner import Runner
from factordiff.experiments.tuning import fitted_outcomes
from factordiff.report.charts import bars, map_rows, scatter
from factordiff.report.document import Picture, Section, Table
from factordiff.report.findings import read_finding
from factordiff.report.outcomes import Outcomes, RecordFolder, aligned
from factordiff.report.paired import TasksWon
from factordiff.report.run_spec import RunSpec
from factordiff.report.verdicts import WELL_ABOVE, WINS_MORE, Verdict, together, wins_more

MAPS = "overlap-maps"
SHOWN = 4  # routing maps of each kind
DISAGREE = 12
CATASTROPHE = 0.05  # a task where composition loses this much to the better expert


def rows() -> list[RunSpec]:
    """Both experts alone, and routed."""
    return [*(single(expert) for expert in EARLY.experts), EARLY.row("routing")]


def trials() -> list[tuple[ExpertGroup, str]]:
    """Routing's temperature: the appendix is judged under both protocols."""
    return [(EARLY, "routing")]


def run(runner: Runner) -> None:
    """Run them, then look at a few stitched successes and failures."""
    runner.run(rows())
    run_fitted(runner, EARLY, "routing", None)
    if not runner.findings:
        return
    found = [one for row in rows() if (one := runner.archive.outcomes(row)) is not None]
    if len(found) < 3:
        return
    stitched, failed = examples(*aligned(*found))
    experts = [runner.experts(name).expert for name in EARLY.experts]
    queries = runner.queries("test")

    def look() -> dict[str, Any]:
        maps = {"stitched": stitched, "failed": failed}
        return {
            kind: routing_maps(experts, queries, index, EARLY.printed, runner.settings.steps)
            for kind, index in maps.items()
        }

    runner.find(MAPS, EARLY.experts, {"stitched": stitched, "failed": failed}, look)


def examples(one: Outcomes, other: Outcomes, routed: Outcomes) -> tuple[list[int], list[int]]:
    """Queries right only in composition, and queries that it lost, each from another task."""
    right_alone = one.exact | other.exact

    def spread(chosen: np.ndarray) -> list[int]:
        places = np.flatnonzero(chosen)
        _, first = np.unique(routed.task[places], return_index=True)
        return [int(routed.query[places[place]]) for place in sorted(first)[:SHOWN]]

    return spread(routed.exact & ~right_alone), spread(right_alone & ~routed.exact)


def report(archive: RecordFolder) -> Section:
    """The figures in the paper's order: accuracies, tasks, bars, maps, scatter."""
    title = "Expert overlap (Figure 6)"
    found = [one for row in rows() if (one := archive.outcomes(row)) is not None]
    if len(found) < 3:
        return Section(title, (not_run(*rows()),))
    one, other, routed = aligned(*found)
    together_only = int((routed.exact & ~one.exact & ~other.exact).sum())
    alone = [one.per_task(), other.per_task()]
    composed = routed.per_task()
    tasks = sorted(composed)
    gain = hindsight(one, other, routed)
    count = TasksWon.of(gain)
    matched = [sum(composed[task] >= side[task] for task in tasks) for side in alone]
    worst = int(gain.argmin())
    lines = [
        ("per-pixel max, exact %", paper(94.8), percent(routed, EVERYTHING)),
        ("Trans-IR, exact %", paper(89.5), percent(one, EVERYTHING)),
        ("Conv-IR, exact %", paper(85.6), percent(other, EVERYTHING)),
        ("grids right only in composition", "132 of 24,000", f"{together_only} of {len(routed):,}"),
        (
            "tasks won / lost / tied against the better expert in hindsight",
            "39 / 23 / 58",
            f"{count.won} / {count.lost} / {count.tied}",
        ),
        ("tasks where it matches or exceeds Trans-IR", "99 of 120", f"{matched[0]} of {len(tasks)}"),
        ("tasks where it matches or exceeds Conv-IR", "118 of 120", f"{matched[1]} of {len(tasks)}"),
        ("worst loss of a task, points", "not given", f"{100 * gain[worst]:.1f} ({tasks[worst]})"),
    ]
    differ = sorted(tasks, key=lambda task: -abs(alone[0][task] - alone[1][task]))[:DISAGREE]
    series = {
        "Trans-IR": [alone[0][task] for task in differ],
        "Conv-IR": [alone[1][task] for task in differ],
        "composed": [composed[task] for task in differ],
    }
    points = {
        name: ([side[task] for task in tasks], [composed[task] for task in tasks])
        for name, side in zip(("Trans-IR", "Conv-IR"), alone, strict=True)
    }
    pictures = [
        Picture(
            "overlap-bars", bars(differ, series, "exact %"), f"The {len(differ)} tasks that disagree most."
        ),
        Picture(
            "overlap-scatter",
            scatter(points, "composed, exact %"),
            "A point per task: composed against alone.",
        ),
        *_maps(archive),
    ]
    per_task = Table(
        ("task", "Trans-IR", "Conv-IR", "composed", "gain over the better"),
        tuple(
            (task, *(f"{100 * side[task]:.1f}" for side in (*alone, composed)), f"{100 * gain[place]:+.1f}")
            for place, task in enumerate(tasks)
        ),
        "Exact % of each task, early pair",
        sortable=True,
    )
    verdicts = _verdicts(one, other, routed, AS_PRINTED.name)
    fitted = fitted_outcomes(archive, EARLY, "routing", None)
    if fitted is not None:
        first, second, again = aligned(one, other, fitted)
        verdicts += _verdicts(first, second, again, ALL_FITTED.name)
    table = Table(("", "paper", "here"), tuple(lines))
    return Section(title, (), (table,), tuple(pictures), verdicts, (per_task,))


def _maps(archive: RecordFolder) -> list[Picture]:
    maps = read_finding(archive.folder, MAPS) or {}
    words = {
        "stitched": "Right only in composition: each expert's right region is kept. Crosses are wrong cells.",
        "failed": "Lost in composition: an expert alone was right.",
    }
    return [
        Picture(f"overlap-{kind}", map_rows(maps[kind], ("Trans-IR", "Conv-IR")), caption)
        for kind, caption in words.items()
        if maps.get(kind)
    ]


def hindsight(one: Outcomes, other: Outcomes, routed: Outcomes) -> np.ndarray:
    """Each task's gain over the better of the two experts, known in hindsight, in the order of the tasks' names."""
    alone, composed = [one.per_task(), other.per_task()], routed.per_task()
    return np.array([composed[task] - max(side[task] for side in alone) for task in sorted(composed)])


def _of_worst_task(one: Outcomes, other: Outcomes, routed: Outcomes) -> tuple[float, str]:
    """Routing minus the better expert where it loses most, and the figure as text with its interval on that task."""
    task = sorted(routed.per_task())[int(hindsight(one, other, routed).argmin())]
    better = one if one.per_task()[task] >= other.per_task()[task] else other
    here = routed.task == task
    won = routed.where(here).against(better.where(here))
    interval = "" if won.here is None else f" [{100 * won.here.low:+.1f}, {100 * won.here.high:+.1f}] on it"
    return won.gain.value, f"worst task {task}: {100 * won.gain.value:+.1f} points{interval}"


def _verdicts(one: Outcomes, other: Outcomes, routed: Outcomes, protocol: str) -> tuple[Verdict, ...]:
    contests = [routed.against(one), routed.against(other)]
    only = int((routed.exact & ~one.exact & ~other.exact).sum())
    count, worst = TasksWon.of(hindsight(one, other, routed)), _of_worst_task(one, other, routed)
    verdict = partial(Verdict, where="Figure 6", protocol=protocol)
    return (
        verdict(
            "routing is well above both experts",
            judgement=together([WELL_ABOVE.judge(contest.gain) for contest in contests]),
            figures="; ".join(contest.points() for contest in contests),
            rule=WELL_ABOVE.sentence("both differences", several=True),
        ),
        verdict(
            "some grids are right only in composition",
            judgement="confirmed" if only else "not confirmed",
            figures=f"{only} of {len(routed):,}",
            rule="Confirmed: at least one such grid, counted on these queries.",
        ),
        verdict(
            "it wins more tasks than it loses against the better expert in hindsight",
            judgement=wins_more(count),
            figures=count.words(),
            rule=WINS_MORE,
        ),
        verdict(
            f"it is never catastrophically worse (read as: loses less than {100 * CATASTROPHE:.0f} points on any task)",
            judgement="confirmed" if worst[0] > -CATASTROPHE else "not confirmed",
            figures=worst[1],
            rule=f"Confirmed: no task loses {100 * CATASTROPHE:.0f} points, counted on these queries of these tasks. "
            "The worst of many tasks looks worse than it is.",
        ),
    )


EXPERIMENT = Experiment("overlap", rows, run, report, trials, lambda: [MAPS])
