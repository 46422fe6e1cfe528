"""What composing costs beside language models: a step over the experts' own passes, and memory beyond theirs.

    python benchmarks/bench_language.py                                        # vocabulary 30,000 on two cores
    python benchmarks/bench_language.py --methods routing mixture --rounds 5

Three experts, 256 positions, batch 8, an eighth of the positions masked and all of them. Each expert is a table of
embeddings, a mean over the positions and an output layer (`TinyLinear`), as wide as makes the three passes take about
1.5 s on two cores; weights are drawn, since time does not depend on them. Both sides are measured in turn in one run:
`passes` asks the three experts and nothing else, `step` is `sampling.step.step`. Memory is the process's peak, each
side in a process of its own; that of `passes` holds the log-probabilities of all experts, which are the experts' own.
Models of 8 billion parameters on a GPU: language_shapes.py.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from factordiff import ByConfidence, Composition, GeometricMean, Mixture, Routing, SuperDiff, Vocabulary
from factordiff.experts.forward import Forward
from factordiff.sampling.step import step
from factordiff.state import SamplerState

VALUES, POSITIONS, BATCH, EXPERTS, WIDTH = 30_000, 256, 8, 3, 384
STEPS = 32  # of the schedule: every step reveals a 32nd of what was masked
TARGETS = {"eighth": 1.25, "all": 1.5}
MOST_MEMORY = 1.5e9
METHODS: dict[str, Composition] = {
    "routing": Routing(),
    "mixture": Mixture(),
    "geometric-mean": GeometricMean(),
    "superdiff": SuperDiff(),
}


class TinyLinear:
    """An expert that is all output layer: embeddings, a mean over the positions, tanh, and one large product."""

    def __init__(
        self, seed: int, values: int = VALUES, width: int = WIDTH, positions: int = POSITIONS
    ) -> None:
        self.vocabulary = Vocabulary(values)

        generator = torch.Generator().manual_seed(seed)
        self.embed, self.place, head = (
            torch.rand(rows, width, generator=generator) * 2 - 1 for rows in (values + 1, positions, values)
        )
        self.head = head.T * (8 / width**0.5)

    def encode(self, condition: Any) -> None:
        return None

    def hidden(self, x_t: Tensor) -> Tensor:
        read = self.embed[x_t] + self.place
        return torch.tanh(read + read.mean(1, keepdim=True))

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        return torch.log_softmax(self.hidden(x_t) @ self.head, dim=-1)


class TinyLinearAt(TinyLinear):
    """The same, with its output layer where it is asked."""

    def log_probs_at(self, x_t: Tensor, encoded: Any, cells: Tensor) -> Tensor:
        return torch.log_softmax(self.hidden(x_t)[cells] @ self.head, dim=-1)


KINDS = {"log_probs": TinyLinear, "log_probs_at": TinyLinearAt}


def begun(share: str) -> SamplerState:
    """The start of a run: every eighth position masked, or all."""
    row, position = torch.arange(BATCH)[:, None], torch.arange(POSITIONS)
    given = (row * 7 + position * 31) % VALUES
    masked = (
        (position + row) % 8 == 0 if share == "eighth" else torch.ones(BATCH, POSITIONS, dtype=torch.bool)
    )
    return SamplerState.begin(torch.where(masked, VALUES, given), VALUES, EXPERTS)


def ask(experts: list[TinyLinear], state: SamplerState) -> list[Tensor]:
    """The experts' passes and nothing else."""
    return [
        expert.log_probs_at(state.x_t, None, state.masked)
        if isinstance(expert, TinyLinearAt)
        else expert.log_probs(state.x_t, None)
        for expert in experts
    ]


def timed(action: Any) -> tuple[float, float]:
    """Seconds on the clock and of the processor, all threads together: the second is steadier where others work too."""
    start, begun_at = time.process_time(), time.perf_counter()
    kept = action()
    spent = time.perf_counter() - begun_at, time.process_time() - start
    del kept
    return spent


def measured(kind: str, share: str, methods: list[str], rounds: int) -> list[dict[str, Any]]:
    """Times of both sides in turn, the least of each: on a busy machine the others are somebody else's."""
    experts = [KINDS[kind](seed) for seed in range(EXPERTS)]
    state, forward, rule = begun(share), Forward(experts, None, BATCH), ByConfidence(STEPS)
    passes: list[tuple[float, float]] = []
    steps: dict[str, list[tuple[float, float]]] = {name: [] for name in methods}
    for _ in range(rounds + 1):  # the first warms up
        passes.append(timed(lambda: ask(experts, state)))
        for name in methods:
            steps[name].append(timed(lambda name=name: step(state, forward, METHODS[name], rule)))
    found = []
    for name, spent in steps.items():
        (own, own_cpu), (ours, ours_cpu) = (map(min, zip(*side[1:], strict=True)) for side in (passes, spent))
        row = {"experts": kind, "masked": share, "method": name, "passes_s": own, "step_s": ours}
        found.append({**row, "ratio": ours / own, "processor_ratio": ours_cpu / own_cpu})
    return found


def peak(kind: str, share: str, what: str) -> int:
    """The peak memory, in bytes, of a process that does this once."""
    line = [sys.executable, __file__, "--peak-of", what, "--kind", kind, "--masked", share]
    return int(subprocess.run(line, check=True, capture_output=True, text=True).stdout.split()[-1])


def run_once(kind: str, share: str, what: str) -> None:
    """For `peak`: one side once, and the peak of this process."""
    experts, state = [KINDS[kind](seed) for seed in range(EXPERTS)], begun(share)
    if what == "passes":
        kept: Any = ask(experts, state)
    else:
        kept = step(state, Forward(experts, None, BATCH), METHODS[what], ByConfidence(STEPS))
    status = Path(
        "/proc/self/status"
    ).read_text()  # getrusage begins with the peak of whoever started the process
    print(1024 * int(status.split("VmHWM:")[1].split()[0]))
    del kept


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", default=["routing"], choices=list(METHODS))
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    parser.add_argument("--masked", help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    if given.peak_of:
        run_once(given.kind, given.masked, given.peak_of)
        return
    table = Table(title=f"vocabulary {VALUES:,}, {POSITIONS} positions, {EXPERTS} experts, batch {BATCH}")
    for column in (
        "experts",
        "masked",
        "method",
        "passes, s",
        "step, s",
        "step / passes",
        "of the processor",
        "wanted",
        "more memory",
    ):
        table.add_column(column, justify="right", no_wrap=True)
    found = []
    for kind in given.kinds:
        for share in TARGETS:
            own = peak(kind, share, "passes")
            for row in measured(kind, share, given.methods, given.rounds):
                row["extra_bytes"] = peak(kind, share, row["method"]) - own
                found.append(row)
                table.add_row(
                    kind, share, row["method"], f"{row['passes_s']:.2f}", f"{row['step_s']:.2f}",
                    f"{row['ratio']:.2f}", f"{row['processor_ratio']:.2f}", f"<= {TARGETS[share]}",
                    f"{row['extra_bytes'] / 1e9:+.2f} GB",
                )  # fmt: skip
    Console().print(table)
    print(json.dumps({"threads": given.threads, "most_memory": MOST_MEMORY, "rows": found}))


if __name__ == "__main__":
    with torch.no_grad():
        main()
