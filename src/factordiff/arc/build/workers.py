"""Several processes collect the candidates of many tasks; how many they are changes nothing."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing.connection import wait as wait_for_exit
from multiprocessing.queues import SimpleQueue
from pathlib import Path

from factordiff.arc.build.candidates import Candidates, collect
from factordiff.arc.build.difficulty import AS_SHIPPED, Difficulty
from factordiff.errors import InvalidInput

Choice = Callable[[Candidates], Candidates]

_reports: SimpleQueue[tuple[str, int]] | None = None  # in a worker: where it says how far it is


def all_of_them(candidates: Candidates) -> Candidates:
    """The choice that leaves nothing out."""
    return candidates


def collect_all(
    tasks: Sequence[str],
    seed: int,
    wanted: int | None,
    budget: int,
    folder: Path,
    workers: int = 1,
    progress: Callable[[str, int], None] = lambda task, found: None,
    difficulty: Difficulty = AS_SHIPPED,
    choice: Choice = all_of_them,
) -> dict[str, Candidates]:
    """The candidates of every task, collected by `workers` processes; `folder` keeps what is found.

    `progress` hears (task, what `collect` reports) now and then. What comes back is what `choice`, a function that
    can be pickled, leaves of a task's candidates: the worker applies it, since all of them may be too many to
    send. A worker whose parent is gone ends itself.
    """
    if workers < 1:
        raise InvalidInput(f"workers: expected at least 1, got {workers}")
    spawn = multiprocessing.get_context("spawn")
    reports: SimpleQueue[tuple[str, int]] = spawn.SimpleQueue()
    with ProcessPoolExecutor(max(1, min(workers, len(tasks))), spawn, _start_worker, (reports,)) as pool:
        jobs: dict[Future[Candidates], str] = {
            pool.submit(_work, task, seed, wanted, budget, folder, difficulty, choice): task for task in tasks
        }
        try:
            collected = _gather(jobs, reports, progress)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return {task: collected[task] for task in tasks}


def _gather(
    jobs: dict[Future[Candidates], str],
    reports: SimpleQueue[tuple[str, int]],
    progress: Callable[[str, int], None],
) -> dict[str, Candidates]:
    collected, pending = {}, set(jobs)
    while pending:
        done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
        while not reports.empty():
            progress(*reports.get())
        collected.update({jobs[job]: job.result() for job in done})
    return collected


def _start_worker(reports: SimpleQueue[tuple[str, int]]) -> None:
    global _reports
    _reports = reports
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent cannot tell its workers, and they would wait for it for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_exit([parent.sentinel])
        os._exit(1)


def _work(
    task: str,
    seed: int,
    wanted: int | None,
    budget: int,
    folder: Path,
    difficulty: Difficulty,
    choice: Choice,
) -> Candidates:
    def report(found: int) -> None:
        if _reports is not None:
            _reports.put((task, found))

    return choice(collect(task, seed, wanted, budget, folder / f"{task}.json", report, difficulty))
