"""A run of 100 steps for torchrun: `-m tests.training.distributed_run OUT STOP`.

The first process is asked to end at step STOP (0: never), and the others must agree; the weights go into a file.
Demonstrations are asked to agree, and some items have only one: the loss then joins the rows of all machines.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from factordiff.networks.store import save_expert
from factordiff.training.machines import join, leave
from tests.training.runs import StopAt, trainer
from tests.training.synthetic import Flips


def main() -> None:
    torch.set_num_threads(1)
    out, stop = Path(sys.argv[1]), int(sys.argv[2])
    machines = join(torch.device("cpu"))
    run = trainer(
        out / "run",
        resume=True,
        machines=machines,
        source=Flips(side=3, min_frames=1),
        agreement=0.5,
        batch=10,
        max_steps=100,
        log_every=20,
        check_every=50,
        ema=0.0,
        observers=(StopAt(stop),),
    )
    run.run()
    if machines.writes:
        save_expert(run.step.network, out / f"weights-{machines.world}")
    leave()


if __name__ == "__main__":
    main()
