"""Training batches of 1,100 items with three context frames and symmetries: all at once against item by item.

Both sides run in this process; the other side is the loop one would write first: numpy grids, rotated, padded and
stacked one item after the other. The tensor side runs on one thread and on two, and the better counts: where other
work holds a core, the second thread only waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from factordiff.arc.dataset import Dataset
from factordiff.arc.grid import to_canvas
from factordiff.arc.instances import instance_grids
from factordiff.arc.symmetry import transform

BATCH = 1_100
FRAMES = 3
EXPECTED_RATIO = 20


def item_by_item(dataset: Dataset, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The same kind of batch from a loop over items; its random numbers come from numpy, which is quicker here."""
    rng, tasks = np.random.default_rng(step), len(dataset.canvases) // 1_000
    grids, answers = [], []
    for _ in range(BATCH):
        task, symmetry = rng.integers(tasks), int(rng.integers(8))
        chosen = rng.choice(760, FRAMES + 1, replace=False)
        pairs = [instance_grids(dataset.artefact, task, instance) for instance in chosen]
        moved = [[to_canvas(transform(grid, symmetry)) for grid in pair] for pair in pairs]
        grids.append(np.stack([moved[0][0], *(grid for pair in moved[1:] for grid in pair)]))
        answers.append(moved[0][1])
    return torch.from_numpy(np.stack(grids)).long(), torch.from_numpy(np.stack(answers)).long()


def rate(draw: Callable[[int], object], at_least_s: float = 2.0) -> float:
    """Batches per second: the best of three rounds, since other work on the machine only ever slows one down."""
    draw(0)
    best, step = 0.0, 1
    for _ in range(3):
        started, drawn = time.perf_counter(), 0
        while time.perf_counter() - started < at_least_s / 3 or not drawn:
            draw(step)
            step, drawn = step + 1, drawn + 1
        best = max(best, drawn / (time.perf_counter() - started))
    return best


def main() -> None:
    dataset, items = Dataset.load(), torch.arange(BATCH)
    rates = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        rates[threads] = rate(lambda step: dataset.draw(0, step, items, frames=FRAMES))
    fast = max(rates.values())
    slow = rate(lambda step: item_by_item(dataset, step))
    ratio = fast / slow
    print(f"batches of {BATCH}: {fast:.1f}/s at once ({rates[1]:.1f} and {rates[2]:.1f} on 1 and 2 threads)")
    print(f"{slow:.2f}/s item by item, ratio {ratio:.0f}")
    if ratio < EXPECTED_RATIO:
        raise SystemExit(f"expected a ratio of at least {EXPECTED_RATIO}, got {ratio:.1f}")


if __name__ == "__main__":
    main()
