"""Why experts stay below 90 % on a few tasks: what their wrong answers have in common, and whether training helped.

python benchmarks/hard_tasks.py
python benchmarks/hard_tasks.py --stages   # in a clone with its history: the same tasks after every stage of training

Outcomes are those of the cards (figures.json beside the weights), each expert on its own question, 40 validation
queries of each task. A query is *ambiguous* where two rules fit all that is shown and say different things of it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from factordiff.arc.dataset import Dataset
from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.arc.grid import Grid
from factordiff.arc.splits import TRAIN
from factordiff.experts.registry import SHIPPED
from factordiff.report.card import FIGURES, read_figures

EXPERTS = ("trans-full", "conv-full")
SPECIALISTS = {
    "trans-color": "color",
    "trans-occ": "occupancy",
    "trans-occ-default-head": "occupancy",
    "trans-occ-relative": "occupancy",
}
OWN_QUESTIONS = {**dict.fromkeys(EXPERTS, "full"), **SPECIALISTS}
LISTED = 4_800  # validation queries
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
    """05269061 continues stripes: of how many periods and directions, with different answers, it may be."""
    query, answer = queries.query(index)
    found = continued(query)
    assert answer.tobytes() in found
    if len(found) > 1:
        return "ambiguous"
    return f"clear, {'half or more' if (query != 0).mean() >= 0.5 else 'less than half'} shown"


def continued(grid: Grid) -> set[bytes]:
    """All grids of repeated rows, columns or diagonals that agree with what is shown, every stripe shown somewhere."""
    row, column = np.indices(grid.shape)
    found = set()
    for length in range(1, 2 * max(grid.shape)):
        for place in (row, column, row + column, row - column):
            parts = [place % length == part for part in range(length)]
            colors = [set(grid[part].tolist()) - {0} for part in parts if part.any()]
            if all(len(some) == 1 for some in colors):
                whole = np.zeros_like(grid)
                for part, (color,) in zip((part for part in parts if part.any()), colors, strict=True):
                    whole[part] = color
                found.add(whole.tobytes())
    return found


def units(queries: EvaluationSet, index: int) -> str:
    """b0c4d837 counts: how many units the answer has."""
    count = filled(queries.query(index)[1])
    return "1 unit" if count == 1 else "2 or more units"


def filled(answer: Grid) -> int:
    return int((answer != answer[-1, -1]).sum())


REASONS = {"44f52bb0": mirror_rules, "05269061": period, "b0c4d837": units}


def main() -> None:
    """The tasks below 90 %, and of those that are understood what goes wrong; or every stage's share of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stages", action="store_true", help="the same tasks after every stage of training")
    console = Console(highlight=False)
    if parser.parse_args().stages:
        for name, question in OWN_QUESTIONS.items():
            console.print(stages_table(name, question))
        return
    dataset = Dataset.load()
    queries = dataset.evaluation("validation")
    console.print(reasons_table(queries))
    console.print(specialists_table(queries))
    number = list(dataset.artefact.tasks).index("b0c4d837")
    arrays = dataset.artefact.arrays
    seen = Counter()
    for instance in TRAIN:
        height, width = arrays["output_shapes"][number, instance]
        seen[filled(arrays["outputs"][number, instance].reshape(10, 10)[:height, :width])] += 1
    console.print(f"units in the {len(TRAIN)} training instances of b0c4d837: {dict(sorted(seen.items()))}")


def reasons_table(queries: EvaluationSet) -> Table:
    """The generalists' right answers in the tasks below 90 % of either, by kind of query where kinds are known."""
    right = {name: outcomes(name) for name in EXPERTS}
    tasks = np.array(queries.task_ids)
    table = Table("task", "of its queries", "queries", *EXPERTS, title="right answers")
    for task in poor_tasks(tasks, right):
        kinds = {"all": np.flatnonzero(tasks == task)}
        if task in REASONS:
            found = {int(index): REASONS[task](queries, int(index)) for index in kinds["all"]}
            for kind in sorted(set(found.values())):
                kinds[kind] = np.array([index for index, one in found.items() if one == kind])
        for place, (kind, rows) in enumerate(kinds.items()):
            counts = [f"{int(right[name][rows].sum())}" for name in EXPERTS]
            table.add_row("" if place else task, kind, str(len(rows)), *counts)
    return table


def specialists_table(queries: EvaluationSet) -> Table:
    """The specialists' share, each of its own question, in the tasks below 90 % of any; beside it a generalist's."""
    right = {name: outcomes(name) for name in SPECIALISTS}
    tasks = np.array(queries.task_ids)
    beside = {**right, EXPERTS[0]: outcomes(EXPERTS[0])}
    table = Table("task", *beside, title="right, %, own question")
    for task in poor_tasks(tasks, right):
        table.add_row(task, *(f"{100 * one[tasks == task].mean():.1f}" for one in beside.values()))
    return table


def poor_tasks(tasks: np.ndarray, right: dict[str, np.ndarray]) -> list[str]:
    """The tasks in which any of these experts is below 90 %."""
    return sorted(
        {str(task) for task in set(tasks) for one in right.values() if one[tasks == task].mean() < POOR}
    )


def stages_table(name: str, question: str) -> Table:
    """An expert's share of the tasks where it is below 90 % now, after each stage that had all validation queries."""
    table = Table("steps", title=f"{name}, right, %, {question} question")
    found = stages(name, question)
    worst = sorted(task for task, share in found[-1][1].items() if share < POOR)
    for task in worst:
        table.add_column(task)
    for steps, shares in found:
        table.add_row(steps, *(f"{100 * shares[task]:.1f}" for task in worst))
    return table


def stages(name: str, question: str) -> list[tuple[str, dict[str, float]]]:
    """The steps of all stages so far, and every task's share, of all weights that were ever shipped under the name."""
    files = [f"src/factordiff/weights/{one}" for one in (f"{name}-early", name)]
    found: dict[str, dict[str, float]] = {}
    for folder in files:
        for commit in _git("log", "--reverse", "--format=%h", "--", f"{folder}/{FIGURES}").split():
            figures = json.loads(_git("show", f"{commit}:{folder}/{FIGURES}"))
            about = json.loads(_git("show", f"{commit}:{folder}/config.json"))["about"]
            for one in figures["measured"]:
                if (one["split"], one["question"], one["queries"]) == ("validation", question, LISTED):
                    found[steps_of(about)] = one["tasks"]
    return list(found.items())


def steps_of(about: dict[str, Any]) -> str:
    """The steps of a training, stage by stage."""
    before = f"{steps_of(about['started_from']['about'])} + " if "started_from" in about else ""
    return f"{before}{about['step']:,}"


def _git(*words: str) -> str:
    root = Path(__file__).parents[1]
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout


def outcomes(name: str) -> np.ndarray:
    """Whether each validation query was answered exactly, as the card's figures have it."""
    figures = read_figures(SHIPPED / name)
    found = None if figures is None else figures.find("validation", OWN_QUESTIONS[name])
    if found is None:
        raise SystemExit(f"{name}: its card has no figures on validation")
    return found.right()


if __name__ == "__main__":
    main()
