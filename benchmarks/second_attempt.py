"""How often a second attempt holds the truth where attempt 1 does not: every way of making one, on the same queries.

python benchmarks/second_attempt.py --limit 600                     validation, by which the way is chosen
python benchmarks/second_attempt.py --split official --limit 200    the published tests: a figure, never a choice

Attempt 1 answers the first queries of the list; where it is wrong, every way answers again. `shipped` is what
`factordiff solve` does.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest

from factordiff import compose
from factordiff.arc.dataset import Dataset
from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.arc.grid import COLORS, SIDE, Grid
from factordiff.arc.task import Task
from factordiff.solving.answer import Answer
from factordiff.solving.question import Question, canvas_of
from factordiff.solving.second_attempt import from_second_choice, most_frequent_other, reflected_answers
from factordiff.solving.solver import answer
from factordiff.team.team import Team

DRAWS = 6
AT_ONCE = 60  # queries between two lines of progress

Way = Callable[[Answer], Grid | None]  # the other answer, or None where there is none


@dataclass(frozen=True)
class Measured:
    """Of so many queries attempt 1 missed some, and each way got back so many of those."""

    queries: int
    missed: int
    rescued: dict[str, int]
    seconds: dict[str, float]


def shipped(first: Answer) -> Grid | None:
    return None if first.second is None else first.second.grid


def reflections(first: Answer, symmetries: Sequence[int] = (4, 5, 6, 7)) -> Grid | None:
    return most_frequent_other(reflected_answers(first.team, first.question, symmetries)[0], first.grid)


def turns(first: Answer) -> Grid | None:
    return reflections(first, (1, 2, 3))


def all_symmetries(first: Answer) -> Grid | None:
    return reflections(first, range(1, 8))


def second_choice(first: Answer) -> Grid | None:
    other = from_second_choice(first.team, first.question, first.samples, first.grid)
    return None if other is None else other.grid


def experts_alone(first: Answer) -> Grid | None:
    return most_frequent_other([one.grid for one in first.alone], first.grid)


def compositions(first: Answer) -> Grid | None:
    """Another method of the same experts."""
    teams = [replace(first.team, method=name, options={}) for name in ("mixture", "product", "soft-routing")]
    return most_frequent_other([_asked(team, first.question) for team in teams], first.grid)


def fewer_demonstrations(first: Answer) -> Grid | None:
    """Each demonstration left out in turn."""
    task = first.question.task
    shown = task.demonstrations
    if len(shown) < 2:
        return None
    left = [Task(task.id, shown[:out] + shown[out + 1 :], task.tests) for out in range(len(shown))]
    return most_frequent_other(
        [_asked(first.team, replace(first.question, task=one)) for one in left], first.grid
    )


def draws(first: Answer) -> Grid | None:
    """The team's own draws at temperature 1, ranked by how often they come: its likelihood, estimated."""
    question = first.question
    samples = replace(first.team, layout=(SIDE, SIDE)).sample(
        torch.full((DRAWS, SIDE * SIDE), COLORS.mask),
        question.condition[torch.zeros(DRAWS, dtype=torch.int64)],
        temperature=1.0,
        seed=question.seed + 1,
    )
    canvases = samples.x_0.cpu().numpy().astype(np.uint8)
    return most_frequent_other([question.cut(canvas) for canvas in canvases], first.grid)


WAYS: dict[str, Way] = {
    "shipped": shipped,
    "reflections": reflections,
    "turns": turns,
    "all symmetries": all_symmetries,
    "second choice at the least sure cell": second_choice,
    "experts alone": experts_alone,
    "other compositions": compositions,
    "fewer demonstrations": fewer_demonstrations,
    "draws": draws,
}


def _asked(team: Team, question: Question) -> Grid:
    return question.cut(canvas_of(question.ask(team)))


def missed(
    team: Team, queries: EvaluationSet, report: Callable[[int], None] = lambda done: None
) -> list[int]:
    """The queries whose first attempt is not the right grid."""
    wrong: list[int] = []
    for start in range(0, len(queries), AT_ONCE):
        index = torch.arange(start, min(start + AT_ONCE, len(queries)))
        x_t = torch.full((len(index), SIDE * SIDE), COLORS.mask)
        samples = replace(team, layout=(SIDE, SIDE)).sample(x_t, queries.condition(index))
        canvases = samples.x_0.cpu().numpy().astype(np.uint8)
        for query, canvas in zip(index.tolist(), canvases, strict=True):
            question = Question(queries.task(query), 0)
            if not np.array_equal(question.cut(canvas), question.test.output):
                wrong.append(query)
        report(int(index[-1]) + 1)
    return wrong


def measure(
    team: Team,
    queries: EvaluationSet,
    ways: dict[str, Way],
    report: Callable[[str], None] = lambda line: None,
) -> Measured:
    """Attempt 1 on every query, every way on those it misses."""
    begun = time.perf_counter()

    def far(done: int) -> None:
        left = (time.perf_counter() - begun) / done * (len(queries) - done)
        report(f"attempt 1: {done} of {len(queries)} queries, about {left:.0f} s left")

    wrong = missed(team, queries, far)
    rescued, seconds = dict.fromkeys(ways, 0), dict.fromkeys(ways, 0.0)
    for number, query in enumerate(wrong):
        report(f"missed query {number + 1} of {len(wrong)}")
        question = Question(queries.task(query), 0)
        for name, way in ways.items():
            begun_way = time.perf_counter()
            first = answer(question, team, attempts=2 if name == "shipped" else 1)
            other = way(first)
            seconds[name] += time.perf_counter() - begun_way
            rescued[name] += other is not None and np.array_equal(other, question.test.output)
    return Measured(len(queries), len(wrong), rescued, seconds)


def table(found: Measured) -> Table:
    """Every way with what it rescues, a 95 % interval, and accuracy in one and in two attempts."""
    drawn = Table(
        "attempt 2", "rescues", "95 %", "two attempts", "s a query", show_edge=False, pad_edge=False
    )
    for name, count in sorted(found.rescued.items(), key=lambda item: -item[1]):
        share = f"{count} of {found.missed}"
        between = ""
        if found.missed:
            interval = binomtest(count, found.missed).proportion_ci(method="wilson")
            share += f" ({count / found.missed:.0%})"
            between = f"{interval.low:.0%} to {interval.high:.0%}"
        both = (found.queries - found.missed + count) / found.queries
        drawn.add_row(
            name, share, between, f"{both:.1%}", f"{found.seconds[name] / max(found.missed, 1):.2f}"
        )
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--team", default="full+full", help="full+full, occ+full, col+occ, or a team's file")
    parser.add_argument("--split", default="validation", choices=("validation", "official", "unseen"))
    parser.add_argument("--limit", type=int, default=600, help="the first N queries of the fixed list")
    parser.add_argument("--ways", default=",".join(WAYS), help="names joined by commas: " + ", ".join(WAYS))
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    unknown = [name for name in given.ways.split(",") if name not in WAYS]
    if unknown:
        parser.error(f"--ways: expected some of {', '.join(WAYS)}, got {unknown[0]!r}")
    team = compose(given.team, device=given.device)
    queries = Dataset.load().evaluation(given.split, given.limit)
    console, progress = Console(highlight=False), Console(stderr=True, highlight=False)
    found = measure(team, queries, {name: WAYS[name] for name in given.ways.split(",")}, progress.print)
    right = (found.queries - found.missed) / found.queries
    console.print(f"{team}\n{given.split}, the first {found.queries} queries; attempt 1 alone: {right:.1%}")
    console.print(table(found))


if __name__ == "__main__":
    main()
