"""The tasks that a page can pick from: the published pairs of 120 tasks and their RE-ARC test queries."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from factordiff.arc.dataset import Dataset
from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.arc.grid import to_rows
from factordiff.arc.splits import TEST
from factordiff.arc.task import spell_task
from factordiff.errors import Unavailable


class Library:
    """The shipped data set, read when it is first asked for."""

    @cached_property
    def _queries(self) -> EvaluationSet:
        return Dataset.load().evaluation("test")

    @cached_property
    def _published(self) -> EvaluationSet:
        return Dataset.load().evaluation("official")

    @cached_property
    def listing(self) -> list[dict[str, Any]]:
        """Every task: its id, how many instances it has, and its first published demonstration as a preview."""
        listed = []
        for task in self._queries.tasks:
            rows = self._rows_of(task)
            given, result = self._published.demonstrations(rows[0])[0] if rows else self._queries.query(0)
            listed.append(
                {
                    "id": task,
                    "instances": len(TEST),
                    "published": len(rows),
                    "preview": {"input": to_rows(given), "output": to_rows(result)},
                }
            )
        return listed

    def task(self, task_id: str, source: str, number: int) -> dict[str, Any]:
        """One task as ARC's JSON spells it: a RE-ARC test query (`rearc`) or a published test (`published`)."""
        if task_id not in self._queries.tasks:
            raise Unavailable(f"task: {task_id[:20]!r} is not one of the {len(self._queries.tasks)} tasks")
        if source == "rearc":
            places, queries = self._places_of(task_id), self._queries
        elif source == "published":
            places, queries = self._rows_of(task_id), self._published
        else:
            raise Unavailable(f"source: expected rearc or published, got {source[:20]!r}")
        if not 0 <= number < len(places):
            raise Unavailable(
                f"number: task {task_id} has {len(places)} {source} tests, number {number} is not among them"
            )
        return spell_task(queries.task(places[number]))

    def _rows_of(self, task_id: str) -> list[int]:
        return [row for row, owner in enumerate(self._published.task_ids) if owner == task_id]

    def _places_of(self, task_id: str) -> list[int]:
        """The fixed list goes instance by instance, and within it task by task."""
        tasks = self._queries.tasks
        return list(range(tasks.index(task_id), len(TEST) * len(tasks), len(tasks)))
