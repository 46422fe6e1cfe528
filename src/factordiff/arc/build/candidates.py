"""A task's candidates: its accepted attempts in attempt order, each orbit at its first appearance.

Collecting can stop at any attempt and go on later, in another process: what was found so far lies in one file
per task, replaced as a whole, which says which attempt comes next. Where it stops changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from factordiff.arc.build.difficulty import AS_SHIPPED, Difficulty
from factordiff.arc.build.rearc import DRAW_LIMIT, GENERATORS, attempt_by_the_clock, start_clock
from factordiff.arc.grid import Grid, parse_grid, to_rows
from factordiff.arc.symmetry import orbit_key
from factordiff.errors import DataError
from factordiff.files import write_whole

SAVE_EVERY_S = 2.0
SAVING_SHARE = 0.05  # of the time, at most: what is found grows, and so does its file


@dataclass(frozen=True)
class Candidate:
    """An accepted attempt: its number, its pair of grids and the name of its orbit."""

    number: int
    pair: tuple[Grid, Grid]
    orbit: bytes


@dataclass
class Candidates:
    """What the first `attempts` attempts of a task gave, and what they cost."""

    task: str
    seed: int
    attempts: int = 0
    draws: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    found: list[Candidate] = field(default_factory=list)

    def measurement(self) -> dict[str, Any]:
        """The figures by which the task rule judges."""
        refused = {reason: self.refusals[reason] for reason in sorted(self.refusals)}
        return {
            "attempts": self.attempts,
            "draws": self.draws,
            "candidates": len(self.found),
            "refused": refused,
        }


def rule(difficulty: Difficulty = AS_SHIPPED) -> dict[str, Any]:
    """Everything besides (task, seed, attempt) on which an attempt depends."""
    return {"generators": "==".join(GENERATORS), "difficulty": difficulty.stated, "draw_limit": DRAW_LIMIT}


def collect(
    task: str,
    seed: int,
    wanted: int | None,
    budget: int,
    file: Path,
    progress: Callable[[int], None] = lambda found: None,
    difficulty: Difficulty = AS_SHIPPED,
) -> Candidates:
    """The task's first `wanted` candidates, or those of its first `budget` attempts if they are fewer.

    Starts from what `file` already holds and leaves everything found there. `progress` hears how many candidates
    were found; if none are `wanted`, the budget decides alone and it hears how many attempts were made.
    """
    start_clock()
    candidates = _read(file, task, seed, difficulty)
    seen = {candidate.orbit for candidate in candidates.found}
    save_at = time.monotonic() + SAVE_EVERY_S
    while (wanted is None or len(candidates.found) < wanted) and candidates.attempts < budget:
        made = attempt_by_the_clock(task, seed, candidates.attempts, difficulty)
        candidates.attempts += 1
        candidates.draws += made.draws
        if made.pair is None:
            candidates.refusals[made.refusal] += 1
        elif (orbit := orbit_name(made.pair)) in seen:
            candidates.refusals["orbit"] += 1
        else:
            seen.add(orbit)
            candidates.found.append(Candidate(candidates.attempts - 1, made.pair, orbit))
        if (now := time.monotonic()) > save_at:
            _write(file, candidates, difficulty)
            progress(candidates.attempts if wanted is None else len(candidates.found))
            took = time.monotonic() - now
            save_at = time.monotonic() + max(SAVE_EVERY_S, took / SAVING_SHARE)
    _write(file, candidates, difficulty)
    progress(candidates.attempts if wanted is None else len(candidates.found))
    return candidates


def orbit_name(pair: tuple[Grid, Grid]) -> bytes:
    """A short name of the pair's orbit, the same for its eight images."""
    return hashlib.blake2b(orbit_key(*pair), digest_size=16).digest()


def _write(file: Path, candidates: Candidates, difficulty: Difficulty) -> None:
    content = {
        "rule": rule(difficulty),
        "task": candidates.task,
        "seed": candidates.seed,
        "attempts": candidates.attempts,
        "draws": candidates.draws,
        "refusals": candidates.refusals,
        "found": [[one.number, *map(to_rows, one.pair)] for one in candidates.found],
    }
    write_whole(file, json.dumps(content, separators=(",", ":")).encode())


def _read(file: Path, task: str, seed: int, difficulty: Difficulty) -> Candidates:
    """What the file holds of exactly this task, seed and rule; anything else counts as nothing."""
    try:
        content = json.loads(file.read_text())
        if (content["rule"], content["task"], content["seed"]) != (rule(difficulty), task, seed):
            return Candidates(task, seed)
        found = []
        for number, *grids in content["found"]:
            pair = (parse_grid(grids[0], str(file)), parse_grid(grids[1], str(file)))
            found.append(Candidate(number, pair, orbit_name(pair)))
        return Candidates(
            task, seed, content["attempts"], content["draws"], Counter(content["refusals"]), found
        )
    except (OSError, ValueError, KeyError, IndexError, TypeError, DataError):
        return Candidates(task, seed)
