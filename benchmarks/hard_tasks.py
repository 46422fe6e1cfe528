"""Why the generalists stay below 90 % on a few tasks: what their wrong answers have in common.

python benchmarks/hard_tasks.py

Outcomes are those of the cards (figures.json beside the weights), 40 validation queries of each task. A query is
*ambiguous* where two rules fit its three demonstrations and say different things of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import combinations

import numpy as np
from rich.console import Console
from rich.table import Table

from factordiff.arc.dataset import Dataset
from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.arc.grid import Grid
from factordiff.arc.splits import TRAIN
from factordiff.experts.registry import SHIPPED
from factordiff.report.card import read_figures

EXPERTS = ("trans-full", "conv-full")
POOR = 0.9
MIRRORS: dict[str, Callable[[Grid], bool]] = {
    "left and right": lambda grid: np.array_equal(grid, grid[:, ::-1]),
    "up and down": lambda grid: np.array_equal(grid, grid[::-1]),
}


def mirror_rules(queries: EvaluationSet, index: int) -> str:
    """44f52bb0 says 1 if a grid is its own mirror image, else 7: which mirrors count, the demonstrations must show."""
    answers = set()
    for mirrors in (one for size in (1, 2) for one in combinations(MIRRORS.values(), size)):

        def rule(grid: Grid, mirrors: Iterable[Callable[[Grid], bool]] = mirrors) -> int:
            return 1 if any(mirror(grid) for mirror in mirrors) else 7

        if all(rule(shown) == answer[0, 0] for shown, answer in queries.demonstrations(index)):
            answers.add(rule(queries.query(index)[0]))
    return "ambiguous" if len(answers) > 1 else "clear"


def period(queries: EvaluationSet, index: int) -> str:
    """05269061 continues stripes: how many there are before they repeat, and whether a demonstration has as many."""
    own = stripes(queries.query(index)[1])
    shown = own in [stripes(answer) for _, answer in queries.demonstrations(index)]
    return f"{'up to 4' if own < 5 else '5 or more'} stripes, {'as shown' if shown else 'not shown'}"


def stripes(grid: Grid) -> int:
    """The least period of rows, columns or diagonals that makes the grid."""
    row, column = np.indices(grid.shape)
    for length in range(1, 2 * max(grid.shape)):
        for place in (row, column, row + column, row - column):
            if all(len(np.unique(grid[place % length == part])) < 2 for part in range(length)):
                return length
    return 0


def units(queries: EvaluationSet, index: int) -> str:
    """b0c4d837 counts: how many units the answer has."""
    count = filled(queries.query(index)[1])
    return "1 unit" if count == 1 else "2 or more units"


def filled(answer: Grid) -> int:
    return int((answer != answer[-1, -1]).sum())


REASONS = {"44f52bb0": mirror_rules, "05269061": period, "b0c4d837": units}


def main() -> None:
    """The tasks below 90 %, and of those that are understood what goes wrong."""
    console = Console()
    dataset = Dataset.load()
    queries = dataset.evaluation("validation")
    right = {name: outcomes(name) for name in EXPERTS}
    tasks = np.array(queries.task_ids)
    poor = sorted(
        {task for task in set(tasks) for name in EXPERTS if right[name][tasks == task].mean() < POOR}
    )
    table = Table("task", "of its queries", "queries", *EXPERTS, title="right answers")
    for task in poor:
        kinds = {"all": np.flatnonzero(tasks == task)}
        if task in REASONS:
            found = {int(index): REASONS[task](queries, int(index)) for index in kinds["all"]}
            for kind in sorted(set(found.values())):
                kinds[kind] = np.array([index for index, one in found.items() if one == kind])
        for place, (kind, rows) in enumerate(kinds.items()):
            counts = [f"{int(right[name][rows].sum())}" for name in EXPERTS]
            table.add_row("" if place else task, kind, str(len(rows)), *counts)
    console.print(table)
    number = list(dataset.artefact.tasks).index("b0c4d837")
    arrays = dataset.artefact.arrays
    seen = Counter()
    for instance in TRAIN:
        height, width = arrays["output_shapes"][number, instance]
        seen[filled(arrays["outputs"][number, instance].reshape(10, 10)[:height, :width])] += 1
    console.print(f"units in the {len(TRAIN)} training instances of b0c4d837: {dict(sorted(seen.items()))}")


def outcomes(name: str) -> np.ndarray:
    """Whether each validation query was answered exactly, as the card's figures have it."""
    figures = read_figures(SHIPPED / name)
    found = None if figures is None else figures.find("validation")
    if found is None:
        raise SystemExit(f"{name}: its card has no figures on validation")
    return found.right()


if __name__ == "__main__":
    main()
