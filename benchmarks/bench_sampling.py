"""What the sampling loop saves and what it costs: ratios, both sides measured in this run.

    python benchmarks/bench_sampling.py

(a) Passes of a naive loop of 128 steps, which asks every expert about every row at every step, over the passes
    of `factordiff.sample`, which skips idle steps row by row. The answers must be the same.
(b) Time of a step of the loop without the experts (composition, reveal, bookkeeping) over the time of one
    forward pass of a plain transformer of about a million parameters.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from factordiff import (
    Ancestral,
    ByConfidence,
    Composition,
    Expert,
    GeometricMean,
    Mixture,
    RevealRule,
    Routing,
    SamplerState,
    Samples,
    SoftRouting,
    SuperDiff,
    SuperDiffAnd,
    Vocabulary,
    blocks,
    log_doubt,
    sample,
)
from factordiff.streams import Purpose, categorical, uniform

BATCH, CELLS, VALUES, STEPS = 64, 100, 10, 128
TARGETS = {"confidence": 1.28, "ancestral": 1.8}


class Neighbours:
    """A cheap expert whose opinion of a cell depends on the two cells beside it: lookups and sums only."""

    def __init__(self, seed: int, cells: int = CELLS) -> None:
        cell, value = torch.arange(cells)[:, None], torch.arange(VALUES)
        self.habit = 3.0 * uniform(seed, Purpose.INIT, 0, cell, value)
        seen = torch.arange(VALUES + 1)[:, None]
        self.left, self.right = (4.0 * uniform(seed, Purpose.INIT, side, seen, value) for side in (1, 2))

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(VALUES)

    def encode(self, condition: Any) -> Any:
        return None

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        seen = self.left[x_t.roll(1, dims=-1)] + self.right[x_t.roll(-1, dims=-1)]
        return torch.log_softmax(self.habit + seen, dim=-1)


def naive(
    experts: Sequence[Expert],
    composition: Composition,
    x_t: Tensor,
    order: str,
    temperature: float,
    seed: int,
) -> tuple[Tensor, int]:
    """The loop as one would first write it: every expert, every row, every step. Also counts its passes."""
    batch, cells = x_t.shape
    item, cell = torch.arange(batch)[:, None], torch.arange(cells)[None, :]
    passes = 0
    for step in range(STEPS):
        masked = x_t == VALUES
        log_probs = torch.stack([expert.log_probs(x_t, None) for expert in experts])
        passes += len(experts) * batch
        composed = composition(log_probs, SamplerState.begin(x_t, VALUES, len(experts))).log_probs
        if order == "confidence":
            quota = cells * (step + 1) // STEPS - cells * step // STEPS
            doubt = torch.where(masked, log_doubt(composed), torch.inf)
            chosen = torch.zeros_like(masked)
            for row, surest in enumerate(doubt.argsort(dim=-1, stable=True)[:, :quota]):
                chosen[row, surest] = True
            chosen &= masked
        else:
            chosen = masked & (uniform(seed, Purpose.REVEAL, item, 0, step, cell) * (STEPS - step) < 1.0)
        if temperature == 0:
            tokens = composed.argmax(-1)
        else:
            tokens = categorical(composed, uniform(seed, Purpose.TOKEN, item, 0, step, cell))
        x_t = torch.where(chosen, tokens, x_t)
    return x_t, passes


def passes(order: str, temperature: float, seed: int = 0, batch: int = BATCH) -> dict[str, Any]:
    """Both loops on the same items: their passes, the ratio, and whether the answers are the same."""
    experts = [Neighbours(1), Neighbours(2)]
    blank = torch.full((batch, CELLS), VALUES)
    reveal: RevealRule = ByConfidence(STEPS) if order == "confidence" else Ancestral(STEPS)
    ours: Samples = sample(experts, Routing(), blank, reveal=reveal, temperature=temperature, seed=seed)
    answers, naive_passes = naive(experts, Routing(), blank, order, temperature, seed)
    executed = int(ours.executed_passes.sum())
    return {
        "order": order,
        "temperature": temperature,
        "naive_passes": naive_passes,
        "passes": executed,
        "ratio": naive_passes / executed,
        "target": TARGETS[order],
        "same_answers": bool((answers == ours.x_0).all()),
    }


class PlainTransformer(nn.Module):
    """Four pre-norm blocks of width 144 over the cells: 1.0 million parameters, the paper's size."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VALUES + 1, 144)
        self.place = nn.Parameter(torch.zeros(CELLS, 144))
        block = nn.TransformerEncoderLayer(144, 4, 4 * 144, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, 4, enable_nested_tensor=False)
        self.head = nn.Linear(144, VALUES)

    def forward(self, x_t: Tensor) -> Tensor:
        return torch.log_softmax(self.head(self.blocks(self.embed(x_t) + self.place)), dim=-1)


class Remembered:
    """An expert that costs nothing: what is left of a step is the loop's own."""

    def __init__(self, log_probs: Tensor) -> None:
        self.remembered = log_probs

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(VALUES)

    def encode(self, condition: Any) -> Any:
        return None

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        return self.remembered[: len(x_t)]


METHODS: dict[str, Composition] = {
    "mixture": Mixture(),
    "geometric-mean": GeometricMean(),
    "superdiff": SuperDiff(),
    "superdiff-and": SuperDiffAnd(),
    "routing (pixel)": Routing(),
    "routing (2x2 blocks)": Routing(blocks(10, 10, 2, 2)),
    "soft-routing": SoftRouting(),
}


def seconds(action: Callable[[], Any], repeats: int) -> float:
    """The median time of the action, after one call to warm up."""
    action()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


@torch.no_grad()
def overheads(repeats: int = 5, steps: int = 25) -> list[dict[str, Any]]:
    """For every method: time of a step of the loop without experts, over one forward pass of one expert."""
    network = PlainTransformer().eval()
    parameters = sum(weights.numel() for weights in network.parameters())
    blank = torch.full((BATCH, CELLS), VALUES)
    cell, value, row = torch.arange(CELLS)[:, None], torch.arange(VALUES), torch.arange(BATCH)[:, None, None]
    experts = [
        Remembered(torch.log_softmax(5 * uniform(m, Purpose.INIT, row, cell, value).float(), dim=-1))
        for m in (1, 2)
    ]
    state = SamplerState.begin(blank, VALUES, len(experts))
    said = torch.stack([expert.remembered for expert in experts])
    found = []
    for name, composition in METHODS.items():
        # One after the other in the same minute: a busy machine slows both sides.
        forward = seconds(lambda: network(blank), repeats)
        compose = seconds(lambda composition=composition: composition(said, state), repeats)
        run = seconds(
            lambda composition=composition: sample(experts, composition, blank, reveal=ByConfidence(steps)),
            repeats,
        )
        found.append(
            {
                "method": name,
                "parameters": parameters,
                "forward_ms": 1e3 * forward,
                "composition_ms": 1e3 * compose,
                "step_ms": 1e3 * run / steps,
                "composition_over_forward": compose / forward,
                "step_over_forward": run / steps / forward,
            }
        )
    return found


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)  # both sides alike, and steady on a machine that does other things
    console = Console()
    counted = [passes(order, temperature) for order in TARGETS for temperature in (0.0, 1.0)]
    table = Table(title=f"passes, two experts, batch {BATCH}, {CELLS} cells, {STEPS} steps")
    for column in ("order", "temperature", "naive", "ours", "ratio", "wanted", "same answers"):
        table.add_column(column, justify="right")
    for row in counted:
        table.add_row(
            row["order"],
            str(row["temperature"]),
            str(row["naive_passes"]),
            str(row["passes"]),
            f"{row['ratio']:.3f}",
            f">= {row['target']}",
            "yes" if row["same_answers"] else "NO",
        )
    console.print(table)

    timed = overheads()
    table = Table(
        title=f"time of a step over one forward pass of {timed[0]['parameters']:,} parameters (medians)"
    )
    for column in (
        "method",
        "forward, ms",
        "composition, ms",
        "step without experts, ms",
        "composition",
        "step",
    ):
        table.add_column(column, justify="right")
    for row in timed:
        table.add_row(
            row["method"],
            f"{row['forward_ms']:.1f}",
            f"{row['composition_ms']:.2f}",
            f"{row['step_ms']:.2f}",
            f"{row['composition_over_forward']:.4f}",
            f"{row['step_over_forward']:.4f}",
        )
    console.print(table)
    print(json.dumps({"threads": torch.get_num_threads(), "passes": counted, "overheads": timed}))


if __name__ == "__main__":
    main()
