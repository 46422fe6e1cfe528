"""What composing costs beside models of a language model's shape: steps of block decoding over the same passes alone.

    python benchmarks/language_shapes.py --device cuda --shape llada-8b    # two 8B-shaped models, from the source tree
    python benchmarks/language_shapes.py --shape tiny                      # the same on a CPU, to see that it runs

Two models of one shape (`llada_shape.py`), 256 positions in blocks of 32. Steps as they come, and by the engine that a
team chooses; `--forms` also has each engine by itself. Both sides in turn in one run, the median of each; memory is
what a step takes beyond the passes. A GPU's work, so `make bench` does not run it; a vocabulary of 30,000 on two cores
is bench_language.py.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, it finds its neighbours

import torch

from benchmarks.bench_language import METHODS
from benchmarks.llada_shape import SHAPES, LladaShaped
from factordiff import ByBlock, Engine
from factordiff.engine.auto import AutoEngine
from factordiff.engine.cuda_graph_step import recorded_window
from factordiff.experts.asked_cells import AskedCells
from factordiff.experts.forward import Forward
from factordiff.sampling.step import step
from factordiff.state import SamplerState

FORMS = ("unrecorded", "recorded", "chosen")


@dataclass(frozen=True)
class Blocks:
    """How a text is written: so many positions, blocks of so many, so many steps a block."""

    positions: int = 256
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
            else:
                state = passes_about_candidates(models, state, rule)
        return time.perf_counter() - start + _finish(device), _peak(device)

    side(True), side(False)  # they warm up
    ours, own = zip(*((side(True), side(False)) for _ in range(rounds)), strict=True)
    spent, alone = (median(seconds for seconds, _ in each) / how.steps for each in (ours, own))
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


def passes_about_candidates(models: list[LladaShaped], state: SamplerState, rule: ByBlock) -> SamplerState:
    """Every model about the cells of which a step asks, and nothing else; the state then has as many cells left."""
    asked = rule.candidates(state)
    places = asked.flatten().nonzero().squeeze(-1)
    said = [model.log_probs_at_places(state.x_t, None, places) for model in models]
    del said
    done = torch.zeros_like(asked).scatter(1, asked.to(torch.uint8).argmax(1, keepdim=True), True)
    return replace(state, x_t=torch.where(done, 0, state.x_t))


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

    So start and recording are left out. The passes alone are those that its steps make, one behind the other without a
    wait: a recorded step asks about its window, the whole block. `how` is empty for a step that is not recorded.
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
        state = SamplerState.begin(x_t, mask, len(models))
        places = None
        if kept and (window := recorded_window(rule, METHODS[method], mask, how.positions)) is not None:
            places = AskedCells.of_window(window.cells(state), how.positions).places
        _finish(device)
        start = time.perf_counter()
        for _ in range(how.steps):
            if places is None:
                state = passes_about_candidates(models, state, rule)
                continue
            said = [model.log_probs_at_places(x_t, None, places) for model in models]
            del said
        return time.perf_counter() - start + _finish(device)

    run(1), passes()  # they warm up
    # In turn, so that all three meet the same machine: passes of one row wait for launches, which come as they may.
    spent = [(run(3), run(1), passes()) for _ in range(rounds)]
    longer, shorter, alone = (median(each) / how.steps for each in zip(*spent, strict=True))
    ours = (longer - shorter) / 2
    return {
        "batch": batch,
        "method": method,
        "passes_s": alone,
        "step_s": ours,
        "composition_over_passes": ours / alone - 1,
        "how": kept,
    }


def beside_a_shape(
    shape: str,
    device: torch.device,
    batches: list[int],
    methods: list[str],
    rounds: int,
    how: Blocks,
    forms: Sequence[str] = FORMS,
) -> None:
    """Steps as they come, and by these engines; a line and its figures each.

    An engine as it comes and a recording one are measured in one way: whichever is shorter is what
    `auto.RECORDED_BYTES` should choose.
    """
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    models = [LladaShaped(SHAPES[shape], seed, device, dtype) for seed in (1, 2)]
    print(f"two models of {models[0].parameters:,} parameters each, {shape}", flush=True)
    for batch, method in product(batches, methods):
        given = (models, device, batch, method, rounds, how)
        show(shape, "plain", beside_models(*given))
        recording = Engine(batch, cuda_graph=device.type == "cuda")
        engines = {"unrecorded": Engine(batch), "recorded": recording, "chosen": AutoEngine()}
        for form in forms:
            show(shape, form, whole_runs(engines[form], *given))


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
    parser.add_argument("--shape", required=True, choices=list(SHAPES))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--methods", nargs="+", default=["routing"], choices=list(METHODS))
    parser.add_argument("--forms", nargs="+", default=["chosen"], choices=FORMS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    device = torch.device(given.device)
    asked = (given.batches, given.methods, given.rounds, Blocks(), given.forms)
    beside_a_shape(given.shape, device, *asked)


if __name__ == "__main__":
    with torch.no_grad():
        main()
