"""What the queue, the savings and the adaptive rules save, and what a step costs beside real networks: ratios.

    python benchmarks/bench_engine.py

(a) Passes of Feynman-Kac particles as the method defines them over those that are run; the particles must be the same.
(b) Rows run in batches over rows needed, with an adaptive rule and many items that wait.
(c) Processor time of a step without the experts (composition, reveal, queue) over the forward passes of two networks
    of the shipped sizes (untrained: time does not depend on weights).

`factordiff bench` measures the same and more with trained experts.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from factordiff import ByConfidence, Condition, Engine, RevealRule, Routing, Vocabulary, feynman_kac, sample
from factordiff.experts.expert import Expert
from factordiff.networks.store import build
from factordiff.sampling.adaptive import ByEntropy, ByMargin, ByProduct
from factordiff.streams import Purpose, uniform

CELLS, VALUES = 100, 10


class Sharp:
    """A cheap expert, as sure of most cells as a trained network is: a cell's two neighbours decide."""

    vocabulary = Vocabulary(VALUES)

    def __init__(self, seed: int) -> None:
        cell, value, seen = (
            torch.arange(CELLS)[:, None],
            torch.arange(VALUES),
            torch.arange(VALUES + 1)[:, None],
        )
        self.habit = 18.0 * uniform(seed, Purpose.INIT, 0, cell, value)
        self.left, self.right = (24.0 * uniform(seed, Purpose.INIT, side, seen, value) for side in (1, 2))

    def encode(self, condition: Any) -> Any:
        return None

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        seen = self.left[x_t.roll(1, dims=-1)] + self.right[x_t.roll(-1, dims=-1)]
        return torch.log_softmax(self.habit + seen, dim=-1)


class Remembered:
    """An expert that costs nothing: what is left of a step is the loop's own."""

    vocabulary = Vocabulary(VALUES)

    def __init__(self, log_probs: Tensor) -> None:
        self.remembered = log_probs.float()

    def encode(self, condition: Any) -> Any:
        return None

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        return self.remembered[: len(x_t)]


def experts() -> list[Expert]:
    return [Sharp(1), Sharp(2)]


def blank(items: int) -> Tensor:
    return torch.full((items, CELLS), VALUES)


def mixed(items: int) -> Tensor:
    """Items that begin with none to all of their cells given, so that they end at different times."""
    item, cell = torch.arange(items)[:, None], torch.arange(CELLS)
    given = uniform(1, Purpose.CORRUPT, item, cell) < uniform(2, Purpose.CORRUPT, item)
    return torch.where(given, (item + cell) % VALUES, VALUES)


def particles(items: int = 8, count: int = 8) -> dict[str, Any]:
    """Feynman-Kac correctors with and without the savings."""
    options: dict[str, Any] = {"temperature": 1.0, "particles": count, "seed": 1}
    ours = Engine().sample(experts(), feynman_kac(), blank(items), **options)
    naive = sample(experts(), feynman_kac(), blank(items), **options)
    nominal, executed = int(ours.nominal_passes.sum()), int(ours.executed_passes.sum())
    same = torch.equal(ours.particles, naive.particles) and torch.equal(ours.log_w, naive.log_w)
    return {"nominal": nominal, "executed": executed, "ratio": nominal / executed, "same_particles": same}


def queue(items: int = 1_000, rows: int = 128, rule: RevealRule | None = None) -> dict[str, Any]:
    """An adaptive rule in batches of fixed sizes."""
    drawn = Engine(rows).sample(experts(), Routing(), mixed(items), reveal=rule or ByMargin(0.999))
    return {
        "items": items,
        "batch": rows,
        "passes_per_item": float(drawn.executed_passes.double().mean()),
        "executed_over_needed": drawn.executed_over_needed,
    }


def seconds(action: Callable[[], Any], repeats: int = 5) -> float:
    """The median processor time of the action, after one call to warm up: other programs do not count."""
    action()
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        action()
        times.append(time.process_time() - begun)
    return statistics.median(times)


@torch.no_grad()
def overheads(rows: int = 24, steps: int = 20) -> list[dict[str, Any]]:
    """For every rule: a step of the loop without experts over one pass of two networks."""
    networks = [build("trans-ir").freeze(), build("conv-ir").freeze()]
    zeros = torch.zeros(rows, 3, CELLS, dtype=torch.int64)
    told = Condition(zeros[:, 0], zeros, zeros, torch.ones(rows, 3, dtype=torch.bool))
    encoded = [network.encode(told) for network in networks]
    x_t = blank(rows)

    def forward() -> list[Tensor]:
        return [network.log_probs(x_t, one) for network, one in zip(networks, encoded, strict=True)]

    alone = seconds(forward, repeats=3)
    said: list[Expert] = [Remembered(expert.log_probs(x_t, None)) for expert in experts()]
    found = []
    for rule in (ByConfidence(steps), ByMargin(1.0), ByEntropy(0.0), ByProduct(1.0)):
        drawn = sample(said, Routing(), x_t, reveal=rule)
        taken = int(drawn.executed_passes.max()) // 2
        step = seconds(lambda rule=rule: sample(said, Routing(), x_t, reveal=rule)) / taken
        found.append(
            {"rule": repr(rule), "forward_ms": 1e3 * alone, "step_ms": 1e3 * step, "ratio": step / alone}
        )
    return found


def main() -> None:
    torch.set_num_threads(1)
    console = Console()
    counted, queued, timed = particles(), queue(), overheads()
    table = Table("what", "measured", "wanted")
    table.add_row("FKC, 8 particles: nominal / executed passes", f"{counted['ratio']:.2f}", ">= 1.6")
    table.add_row("the same particles", "yes" if counted["same_particles"] else "NO", "yes")
    table.add_row("rows executed / needed in batches", f"{queued['executed_over_needed']:.3f}", "<= 1.15")
    for row in timed:
        table.add_row(f"step / two forward passes, {row['rule']}", f"{100 * row['ratio']:.2f} %", "< 5 %")
    console.print(table)
    print(json.dumps({"particles": counted, "queue": queued, "overheads": timed}))


if __name__ == "__main__":
    main()
