"""Which 120 tasks: a rule without a clock, and the measurements it was applied to.

1. Start from the 178 training tasks of ARC-AGI-1 all of whose grids fit 10x10 (each has a RE-ARC generator).
2. Make up to 20,000 attempts at each, with seed 0, until 1,500 candidates are found: 1,000 instances and a reserve
   for those that an earlier task already has (for one task every fifth: small grids, mirrored and turned). A task
   that does not get there falls out.
3. Of the others take the 120 that needed the fewest attempts; ties go by id.

Attempts are pure functions of their key, so the measurements are the same on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from factordiff.arc.build.candidates import rule
from factordiff.arc.build.official import fitting_tasks
from factordiff.arc.build.workers import collect_all

TASKS = 120
INSTANCES = 1_000
CANDIDATES = 1_500
ATTEMPT_BUDGET = 20_000
SEED = 0
MEASUREMENTS = Path(__file__).parent.parent / "data" / "tasks.json"


def select(measured: Mapping[str, Mapping[str, Any]], count: int = TASKS) -> list[str]:
    """The tasks the rule takes, sorted by id."""
    enough = [task for task, figures in measured.items() if figures["candidates"] >= CANDIDATES]
    return sorted(sorted(enough, key=lambda task: (measured[task]["attempts"], task))[:count])


def measure(
    folder: Path, workers: int = 1, progress: Callable[[str, int], None] = lambda task, found: None
) -> dict[str, Any]:
    """The content of the measurements' file, measured anew: every fitting task's figures and the selection."""
    tasks = list(fitting_tasks())
    collected = collect_all(tasks, SEED, CANDIDATES, ATTEMPT_BUDGET, folder, workers, progress)
    measured = {task: collected[task].measurement() for task in tasks}
    stated = {
        **rule(),
        "seed": SEED,
        "candidates": CANDIDATES,
        "attempt_budget": ATTEMPT_BUDGET,
        "tasks": TASKS,
    }
    return {"rule": stated, "selected": select(measured), "measured": measured}


def measurements() -> dict[str, Any]:
    """The committed measurements and the selection made from them."""
    content: dict[str, Any] = json.loads(MEASUREMENTS.read_text())
    return content


def selected_tasks() -> list[str]:
    """The 120 tasks, sorted by id."""
    selected: list[str] = measurements()["selected"]
    return selected
