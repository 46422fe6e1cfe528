"""Paired differences as a table: over tasks, on these tasks, McNemar's test, and the tasks won with their sign test."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factordiff.experiments.pairs import PAIRS
from factordiff.experiments.protocols import Protocol
from factordiff.report.document import NOTHING, Table
from factordiff.report.outcomes import Outcomes, RecordFolder, aligned
from factordiff.report.paired import TasksWon, p_words

HEADINGS = (
    "experts",
    "one minus the other",
    "points, over tasks",
    "on these tasks",
    "McNemar",
    "tasks won / lost / tied",
    "sign test",
    "queries",
)


def difference_table(lines: list[tuple[str, ...]], caption: str) -> Table:
    """The lines as one table."""
    return Table(HEADINGS, tuple(lines), caption, sortable=True)


def difference_line(experts: str, words: str, one: Outcomes, other: Outcomes) -> tuple[str, ...]:
    """One method minus another on the queries that both have."""
    found = one.against(other)
    here = NOTHING
    if found.here is not None:
        here = f"[{100 * found.here.low:+.2f}, {100 * found.here.high:+.2f}]"
    tasks = tasks_won(one, other)
    won = f"{tasks.won} / {tasks.lost} / {tasks.tied}"
    return (
        experts,
        words,
        found.gain.points(),
        here,
        p_words(found.p_value),
        won,
        p_words(tasks.p_value),
        f"{found.queries:,}",
    )


def tasks_won(one: Outcomes, other: Outcomes) -> TasksWon:
    """In how many tasks one method has more right answers than the other, on the queries that both have."""
    mine, theirs = (found.per_task() for found in aligned(one, other))
    return TasksWon.of(np.array([mine[task] - theirs[task] for task in sorted(mine)]))


def routing_minus_rivals(
    archive: RecordFolder, protocol: Protocol, more: Mapping[str, Mapping[str, Outcomes]] | None = None
) -> Table:
    """Routing minus every other method of a protocol, in every pair; `more` names others by pair."""
    lines = []
    for pair in PAIRS:
        routed = protocol.routed(archive, pair)
        rivals = {**protocol.per_sample(archive, pair), **(more or {}).get(pair.name, {})}
        if routed is not None:
            lines += [
                difference_line(pair.name, f"per pixel minus {label}", routed, one)
                for label, one in rivals.items()
            ]
    return difference_table(lines, f"Every paired difference, {protocol.name}")
