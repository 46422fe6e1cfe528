"""Queries at once on a CPU: a loop of single ones, one part whose threads share every operation, threads of their own.

python benchmarks/bench_threads.py
python benchmarks/bench_threads.py --busy 1        # beside so many processes that only keep a core busy
OMP_WAIT_POLICY=passive python benchmarks/bench_threads.py    # as the command line has it
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import torch

from factordiff import Engine, compose
from factordiff.arc.dataset import Dataset
from factordiff.engine.auto import CPU_ROWS, AutoEngine
from factordiff.engine.batch_sizes import BatchSizes
from factordiff.engine.expert_batch import part_of

EXPERTS = ["trans-full", "conv-full"]


def main() -> None:
    """Print one line of JSON: the median of several rounds, in turn."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, default=0, help="processes that keep a core busy meanwhile")
    asked = parser.parse_args()
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(asked.busy)]
    try:
        print(json.dumps(measured(asked.queries, asked.rounds, asked.busy)))
    finally:
        for process in spinning:
            process.kill()


def measured(queries: int, rounds: int, busy: int) -> dict[str, object]:
    """Seconds of the three, and whether their answers agree."""
    condition = Dataset.load().evaluation("validation").condition(torch.arange(queries))
    blank, items = torch.full((queries, 100), 10), torch.arange(queries)
    in_one = compose(EXPERTS, engine=Engine(BatchSizes(CPU_ROWS)))
    chosen = compose(EXPERTS)
    threads = AutoEngine().chosen(chosen.experts, blank.device, queries).threads

    def alone() -> torch.Tensor:
        each = ((items[at : at + 1], blank[at : at + 1]) for at in range(queries))
        return torch.cat([chosen.sample(x_t, part_of(condition, item), items=item).x_0 for item, x_t in each])

    ways: dict[str, Callable[[], torch.Tensor]] = {
        "single queries": alone,
        "one part": lambda: in_one.sample(blank, condition).x_0,
        "threads of their own": lambda: chosen.sample(blank, condition).x_0,
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    answers = {name: run() for name, run in ways.items()}  # they warm up
    for _ in range(rounds):
        for name, run in ways.items():
            begun = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begun)
    taken = {name: median(each) for name, each in seconds.items()}
    return {
        "seconds": {name: round(each, 2) for name, each in taken.items()},
        "times the loop": {name: round(taken["single queries"] / each, 2) for name, each in taken.items()},
        "same answers": all(torch.equal(one, answers["one part"]) for one in answers.values()),
        "threads": threads,
        "busy": busy,
        "wait policy": os.environ.get("OMP_WAIT_POLICY", ""),
    }


if __name__ == "__main__":
    main()
