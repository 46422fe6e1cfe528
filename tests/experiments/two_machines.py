"""A row for torchrun: `-m tests.experiments.two_machines OUT`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import torch

from factordiff.arc.dataset import Dataset
from factordiff.training.machines import join, leave
from tests.experiments.lookup import lookup_bench, small_sets
from tests.experiments.test_rows import FKC, SMALL


def main() -> None:
    torch.set_num_threads(1)
    machines = join(torch.device("cpu"))
    runner = lookup_bench(small_sets(Dataset.load(), 12), Path(sys.argv[1]), settings=SMALL)
    runner.context = replace(runner.context, machines=machines)
    runner.run([FKC])
    assert len(runner.archive.outcomes(FKC)) == 12  # gathered before anybody goes on
    leave()


if __name__ == "__main__":
    main()
