"""Rows of one world compared in several processes at once, and put into one table.

python benchmarks/compare_apart.py arc-mosaic "alone,told" "fitted:mixture" "fitted:product" --out runs/apart -- \
    --split held --validation 480 --budget 16 --batch 1200 --device cuda

A pass of a few hundred rows keeps a GPU busy for a quarter of the time that launching it takes, so rows that do not
need each other run side by side: one `factordiff compare` for each group, in a folder of its own. What they wrote is
then copied into one folder, where a last `compare` of all rows finds everything done. Interrupted, the same command
goes on. What follows `--` goes to every `compare`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

COMPARE = (sys.executable, "-m", "factordiff", "compare")
TABLES = "table.*"  # of a group alone: the last call writes those of all
WAIT = 0.5  # seconds between two looks


def command(world: str, rows: str, out: Path, more: Sequence[str]) -> list[str]:
    """The call of `compare` for some rows."""
    return [*COMPARE, world, "--methods", rows, "--out", str(out), *more]


def together(parts: Sequence[Path], out: Path) -> None:
    """What every part wrote, in one folder; a row's records are of one part alone."""
    for part in parts:
        shutil.copytree(
            part, out, dirs_exist_ok=True, ignore=shutil.ignore_patterns(TABLES, ".lock", "*.fitting")
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the groups, then all rows."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    cut = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("world")
    parser.add_argument(
        "rows", nargs="+", help="rows of a process, joined by commas; `union` goes with `alone`"
    )
    parser.add_argument("--out", type=Path, required=True)
    asked, more = parser.parse_args(given[:cut]), given[cut + 1 :]
    parts = [asked.out / "apart" / str(number) for number in range(len(asked.rows))]
    threads = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // len(parts)))}
    begun, running = time.monotonic(), {}
    for rows, part in zip(asked.rows, parts, strict=True):
        part.mkdir(parents=True, exist_ok=True)
        with (part / "log.txt").open("w") as log:
            running[rows] = subprocess.Popen(
                command(asked.world, rows, part, more), stdout=log, stderr=log, env={**os.environ, **threads}
            )
    left, failed = dict(running), []
    try:
        while left:
            time.sleep(WAIT)
            for rows, process in list(left.items()):
                if process.poll() is not None:
                    del left[rows]
                    failed += [rows] if process.returncode else []
                    print(f"{time.monotonic() - begun:6.1f} s  {process.returncode}  {rows}", flush=True)
    finally:
        for process in left.values():
            process.terminate()
    for rows, part in zip(asked.rows, parts, strict=True):
        if rows in failed:
            print(f"{rows}:\n{(part / 'log.txt').read_text()[-2_000:]}")
    if failed:
        return 1
    together([part / asked.world for part in parts], asked.out / asked.world)
    return subprocess.call(command(asked.world, ",".join(asked.rows), asked.out, more))


if __name__ == "__main__":
    raise SystemExit(main())
