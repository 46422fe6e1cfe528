"""Train an expert of code-prose for as many steps as fit a time; the others then for as many as it took.

    python benchmarks/train_text.py prose --minutes 7 --out runs/text-prose       # prints how many steps fit
    python benchmarks/train_text.py code --steps 16000 --minutes 7 --out runs/text-code
    python benchmarks/train_text.py all --steps 16000 --minutes 7 --out runs/text-all

Specialists and generalist are of one size and one budget, or their figures could not be held against each other. A run
whose learning rate has not fallen to zero is worse than a shorter one whose has, so the steps must fit the time:
without `--steps`, a short run says how fast this machine is. Other options go to `factordiff train`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SOURCES = {"prose": "Prose", "code": "Code", "all": "All"}
PROBE = 400  # steps that tell the speed
SPARE = 0.08  # of the time: checks, checkpoints, and a machine that is slower later
ROUND = 100  # steps


def affordable_steps(events: Iterable[dict[str, Any]], minutes: float) -> int:
    """How many steps fit into the time, by the log of a short run: after the start-up, at its last speed."""
    start_up, speed = 0.0, 0.0
    for event in events:
        start_up = event.get("seconds_to_first_step", start_up)
        speed = event.get("steps_per_second", speed)
    return max(ROUND, int((60 * minutes * (1 - SPARE) - start_up) * speed) // ROUND * ROUND)


def train(kind: str, out: Path, more: list[str]) -> None:
    """`factordiff train sequence` on one kind of text."""
    words = [sys.executable, "-m", "factordiff", "train", "sequence", "--out", str(out)]
    words += ["--source", f"factordiff.text.sources:{SOURCES[kind]}", *more]
    if failed := subprocess.run(words, check=False).returncode:
        raise SystemExit(failed)  # it said why


def probed_steps(kind: str, minutes: float, probe: int, more: list[str]) -> int:
    """A short run without checks, and the steps that fit."""
    with tempfile.TemporaryDirectory() as folder:
        steps = [
            "--max-steps",
            str(probe),
            "--check-every",
            str(probe),
            "--log-every",
            str(max(1, probe // 4)),
        ]
        train(kind, Path(folder) / "probe", [*more, *steps])
        lines = (Path(folder) / "probe" / "log.jsonl").read_text().splitlines()
    return affordable_steps(map(json.loads, lines), minutes)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=list(SOURCES))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=7.0)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--probe", type=int, default=PROBE, metavar="STEPS")
    given, more = parser.parse_known_args()
    steps = given.steps or probed_steps(given.kind, given.minutes, given.probe, more)
    print(
        f"{given.kind}: {steps:,} steps in {given.minutes:g} minutes; the others: --steps {steps}", flush=True
    )
    train(given.kind, given.out, [*more, "--max-steps", str(steps), "--max-minutes", str(given.minutes)])


if __name__ == "__main__":
    main()
