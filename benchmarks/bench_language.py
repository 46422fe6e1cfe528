"""What composing costs beside language models: a step over the experts' own passes, and memory beyond theirs.

    python benchmarks/bench_language.py                                   # vocabulary 30,000 on two cores
    python benchmarks/bench_language.py --methods routing mixture --rounds 5
    python benchmarks/bench_language.py --device cuda --shape llada-8b    # two 8B-shaped models, from the source tree
    python benchmarks/bench_language.py --shape tiny                      # the same on a CPU, to see that it runs

Three experts, 256 positions, batch 8, an eighth of the positions masked and all of them. Each expert is a table of
embeddings, a mean over the positions and an output layer (`TinyLinear`), as wide as makes the three passes take about
1.5 s on two cores; weights are drawn, since time does not depend on them. Both sides are measured in turn in one run:
`passes` asks the three experts and nothing else, `step` is `sampling.step.step`. Memory is the process's peak, each
side in a process of its own; that of `passes` holds the log-probabilities of all experts, which are the experts' own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, it finds its neighbour

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.llada_shape import SHAPES, LladaShaped
from factordiff import (
    ByBlock,
    ByConfidence,
    Composition,
    Engine,
    GeometricMean,
    Mixture,
    Routing,
    SuperDiff,
    Vocabulary,
)
from factordiff.engine.auto import AutoEngine
from factordiff.engine.cuda_graph_step import recorded_window
from factordiff.experts.asked_cells import AskedCells
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


@dataclass(frozen=True)
class Blocks:
    """How a text is written: so many positions, blocks of so many, so many steps a block."""

    positions: int = POSITIONS
    length: int = 32
    steps: int = 32


def beside_models(
    models: list[LladaShaped], device: torch.device, batch: int, method: str, rounds: int, how: Blocks
) -> dict[str, Any]:
    """Steps of block decoding with two models of a shape, over the same passes alone; and memory beyond theirs."""
    mask = models[0].vocabulary.mask
    blank = torch.full((batch, how.positions), mask, device=device)
    forward, rule = Forward(models, None, batch), ByBlock(how.length, how.steps)

    def side(ours: bool) -> tuple[float, int]:
        """Seconds of one block, and the peak of memory."""
        state = SamplerState.begin(blank, mask, len(models))
        _finish(device, reset=True)
        start = time.perf_counter()
        for _ in range(how.steps):
            if ours:
                state, _ = step(state, forward, METHODS[method], rule)
                continue
            asked = rule.candidates(state)
            places = asked.flatten().nonzero().squeeze(-1)
            kept = [model.log_probs_at_places(state.x_t, None, places) for model in models]
            done = torch.zeros_like(asked).scatter(1, asked.to(torch.uint8).argmax(1, keepdim=True), True)
            state = replace(
                state, x_t=torch.where(done, 0, state.x_t)
            )  # as many cells left as in a step of ours
            del kept
        return time.perf_counter() - start + _finish(device), _peak(device)

    side(True), side(False)  # they warm up
    ours, own = zip(*((side(True), side(False)) for _ in range(rounds)), strict=True)
    spent, alone = (min(seconds for seconds, _ in each) / how.steps for each in (ours, own))
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "parameters": models[0].parameters,
        "batch": batch,
        "method": method,
        "passes_s": alone,
        "step_s": spent,
        "composition_over_passes": spent / alone - 1,
        "extra_bytes": max(peak for _, peak in ours) - max(peak for _, peak in own),
    }


def whole_runs(
    engine: Engine | AutoEngine,
    models: list[LladaShaped],
    device: torch.device,
    batch: int,
    method: str,
    rounds: int,
    how: Blocks,
) -> dict[str, Any]:
    """The same by an engine: what a longer run takes beyond a shorter one is the time of its further steps.

    So start and recording are left out. A recorded step asks experts about its window, the whole block, and
    `passes_of_windows_s` are such passes alone, one behind the other without a wait. `how` is empty for a step that is
    not recorded.
    """
    mask, kept, rule = models[0].vocabulary.mask, "", ByBlock(how.length, how.steps)
    # Drawn tokens on both sides: rows of one value alone are multiplied faster than text is.
    drawn = torch.Generator().manual_seed(0)
    given = torch.randint(mask, (batch, how.positions), generator=drawn).to(device)

    def run(blocks: int) -> float:
        nonlocal kept
        x_t = given.clone()
        x_t[:, : blocks * how.length] = mask
        _finish(device)
        start = time.perf_counter()
        kept = engine.sample(models, METHODS[method], x_t, reveal=rule).how
        return time.perf_counter() - start + _finish(device)

    def passes() -> float:
        x_t = given.clone()
        x_t[:, : how.length] = mask
        window = recorded_window(rule, METHODS[method], mask, how.positions)
        assert window is not None
        cells = window.cells(SamplerState.begin(x_t, mask, len(models)))
        places = AskedCells.of_window(cells, how.positions).places
        _finish(device)
        start = time.perf_counter()
        for _ in range(how.steps):
            said = [model.log_probs_at_places(x_t, None, places) for model in models]
            del said
        return time.perf_counter() - start + _finish(device)

    run(1), passes()  # they warm up
    # The least of each length, then their difference: the least difference would be that of a slow short run.
    longer, shorter = (min(spent) for spent in zip(*((run(3), run(1)) for _ in range(rounds)), strict=True))
    ours = (longer - shorter) / (2 * how.steps)
    alone = min(passes() for _ in range(rounds)) / how.steps
    return {"batch": batch, "method": method, "passes_of_windows_s": alone, "step_s": ours, "how": kept}


def over(row: dict[str, Any], passes_s: float) -> dict[str, Any]:
    """A row of `whole_runs` beside the passes that its steps make."""
    return {**row, "passes_s": passes_s, "composition_over_passes": row["step_s"] / passes_s - 1}


def beside_a_shape(
    shape: str, device: torch.device, batches: list[int], methods: list[str], rounds: int, how: Blocks
) -> None:
    """Steps as they come, by an engine as they come, recorded, and as a team chooses; a line and its figures each.

    The second and the third are measured in one way: whichever is shorter is what `auto.RECORDED_BYTES` should choose.
    """
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    models = [LladaShaped(SHAPES[shape], seed, device, dtype) for seed in (1, 2)]
    print(f"two models of {models[0].parameters:,} parameters each, {shape}", flush=True)
    for batch, method in product(batches, methods):
        given = (models, device, batch, method, rounds, how)
        plain = beside_models(*given)
        show(shape, "plain", plain)
        recording = Engine(batch, cuda_graph=device.type == "cuda")
        engines = {"unrecorded": Engine(batch), "recorded": recording, "chosen": AutoEngine()}
        for form, engine in engines.items():
            row = whole_runs(engine, *given)
            # Beside its own passes: those of its windows if it was recorded, else of the candidates.
            show(shape, form, over(row, row["passes_of_windows_s"] if row["how"] else plain["passes_s"]))


def show(shape: str, form: str, row: dict[str, Any]) -> None:
    """A line to read, and the figures behind it."""
    how = f" ({row['how'] or 'plain'})" if "how" in row else ""
    memory = f", {row['extra_bytes'] / 1e9:.2f} GB more" if "extra_bytes" in row else ""
    print(
        f"batch {row['batch']}, {row['method']}, {form}{how}: passes {1e3 * row['passes_s']:.1f} ms, "
        f"step {1e3 * row['step_s']:.1f} ms, composition and reveal "
        f"{100 * row['composition_over_passes']:.1f} % of the passes{memory}\n"
        f"{json.dumps({'shape': shape, 'form': form, **row})}",
        flush=True,
    )


def _finish(device: torch.device, reset: bool = False) -> float:
    """Wait for the device; how long that took."""
    start = time.perf_counter()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        if reset:
            torch.cuda.reset_peak_memory_stats(device)
    return time.perf_counter() - start


def _peak(device: torch.device) -> int:
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", default=["routing"], choices=list(METHODS))
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--shape", choices=list(SHAPES), help="two models of this shape, block decoding")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8], help="with --shape")
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    parser.add_argument("--kind", help=argparse.SUPPRESS)
    parser.add_argument("--masked", help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    if given.peak_of:
        run_once(given.kind, given.masked, given.peak_of)
        return
    if given.shape:
        beside_a_shape(
            given.shape, torch.device(given.device), given.batches, given.methods, given.rounds, Blocks()
        )
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
