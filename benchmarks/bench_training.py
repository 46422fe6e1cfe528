"""The speed of a training step, as ratios against the same model in eager autocast, all measured in one run.

Without a GPU it runs a small batch without compiling, to show that the script works.

    python benchmarks/bench_training.py --backbone trans-ir --conditioning latents paper --variants blocks+kernels+graph
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from factordiff.diffusion.objectives import diffusion_loss, full
from factordiff.experts.condition import Condition
from factordiff.networks import attention
from factordiff.networks.network import Network
from factordiff.networks.store import build
from factordiff.streams import Purpose, integers
from factordiff.training.settings import TrainingSettings
from factordiff.training.step import Loss, RecordedStep, TrainingStep
from factordiff.vocabulary import Vocabulary

PEAK = 790e12  # bf16 matrix products per second, measured on an H200


class RandomGrids:
    """Batches of random grids, drawn on the device like real ones."""

    digest = "random"
    vocabulary, cells = Vocabulary(10), 100

    def draw(self, seed: int, step: Tensor, items: Tensor) -> tuple[Condition, Tensor]:
        pair = torch.arange(8, device=items.device)[None, :, None]
        cell = torch.arange(100, device=items.device)[None, None, :]
        grids = integers(10, seed, Purpose.QUERY, step, items[:, None, None], pair, cell)
        present = torch.ones(len(items), 3, dtype=torch.bool, device=items.device)
        return Condition(grids[:, 0], grids[:, 2:5], grids[:, 5:8], present), grids[:, 1]

    def validation(self, items: int) -> tuple[Condition, Tensor]:
        """Nothing here is checked on it, but a source has one: the same grids each time, of a seed of their own."""
        return self.draw(999, torch.zeros((), dtype=torch.int64), torch.arange(items))


def source(device: torch.device) -> Any:
    """The real data where it is built, random grids otherwise."""
    try:
        from factordiff.arc.dataset import Dataset

        dataset = Dataset.load(device)
    except Exception as error:
        print(f"random grids instead of the data set ({error})")
        return RandomGrids()
    return dataset


def median_ms(step: Callable[[], None], device: torch.device, steps: int, warm_up: int = 1) -> float:
    """Median milliseconds of a step, five groups of steps between two device events each."""
    for _ in range(warm_up):
        step()
    groups = []
    for _ in range(5):
        if device.type == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(steps):
                step()
            end.record()
            torch.cuda.synchronize()
            groups.append(start.elapsed_time(end) / steps)
        else:
            began = time.perf_counter()
            for _ in range(steps):
                step()
            groups.append(1000 * (time.perf_counter() - began) / steps)
    return sorted(groups)[2]


def eager_autocast(network: Network, batch: tuple[Tensor, ...], device: torch.device) -> Callable[[], None]:
    """The ordinary way: float32 parameters, autocast, heads of 36, torch.optim.Muon and AdamW, EMA in a loop."""
    leaves = {name: part.clone().requires_grad_() for name, part in network.named_weights().items()}
    hidden = {n: p for n, p in leaves.items() if network.layout.slots[n].matrices is not None}
    # torch.optim.Muon takes matrices only: the same weights as one matrix each.
    matrices = {n: torch.nn.Parameter(p.detach().reshape(p.shape[0], -1).clone()) for n, p in hidden.items()}
    muon = torch.optim.Muon(matrices.values(), lr=2e-3, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")
    rest = [p for n, p in leaves.items() if n not in hidden]
    adamw = torch.optim.AdamW(rest, lr=1e-3)
    everything = [*matrices.values(), *rest]
    averages = [p.detach().clone() for p in everything]
    query, inputs, outputs, present, x_0, x_t, t = batch

    def step() -> None:
        weights = {n: matrices[n].view(p.shape) if n in matrices else p for n, p in leaves.items()}
        with torch.autocast(device.type, torch.bfloat16):
            ready = network.prepare(weights)
            read = network.read(ready, inputs, outputs)
            encoded = network.encode_with(ready, query, inputs, outputs, present, read)
            logits = network.logits(ready, x_t, encoded)
        loss = diffusion_loss(full, torch.log_softmax(logits.float(), -1), x_0, x_t, t)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(everything, 1.0)
        muon.step()
        adamw.step()
        muon.zero_grad()
        adamw.zero_grad()
        with torch.no_grad():
            for average, parameter in zip(averages, everything, strict=True):
                average.lerp_(parameter, 0.001)

    return step


def flops_per_item(backbone: str, settings: dict[str, Any]) -> float:
    """Floating-point operations of the forward and backward pass, counted on two items on the CPU."""
    network = build(backbone, settings)
    step = TrainingStep(network, RandomGrids(), TrainingSettings(batch=2), torch.float32, torch.float32)
    batch = step._draw(torch.zeros((), dtype=torch.int64))
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        Loss(network, TrainingSettings(batch=2), torch.float32, 2, 1)(*batch).backward()
    return counter.get_total_flops() / 2


def parity(
    backbone: str, settings: dict[str, Any], variant: str, data: Any, device: torch.device, batch: int
) -> dict[str, float]:
    """Relative error of loss and gradient against eager float32 at weights that are not the initial ones."""
    errors = {}
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        torch.set_float32_matmul_precision("highest")
        network = build(backbone, settings).to(device)
        with torch.no_grad():
            noise = integers(2**20, 7, Purpose.INIT, torch.arange(network.layout.size)) / 2**20 - 0.5
            network.vector += 0.1 * noise.float().to(device)
        plain = TrainingStep(
            network, data, TrainingSettings(batch=batch, seed=5), torch.float32, torch.float32
        )
        drawn = plain._draw(torch.full((), 12345, device=device))
        expected_loss = plain.loss(*drawn)
        (expected,) = torch.autograd.grad(expected_loss, [network.vector])
        compile_, *parts = variant.split("+")
        kernels = "on" if "kernels" in parts else "off"
        chosen = TrainingSettings(batch=batch, seed=5, compile=compile_, kernels=kernels)
        fast = TrainingStep(network, data, chosen, dtype, torch.float32)
        loss = fast.loss(*drawn)
        (gradient,) = torch.autograd.grad(loss, [network.vector])
        errors[f"loss {name}"] = float(((loss - expected_loss).abs() / expected_loss).detach())
        errors[f"gradient {name}"] = float((gradient - expected).norm() / expected.norm())
    return errors


def measure(
    backbone: str, kind: str, arguments: argparse.Namespace, device: torch.device, data: Any
) -> dict[str, Any]:
    """All variants of one model."""
    network_settings: dict[str, Any] = {"conditioning": kind, **json.loads(arguments.network)}
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    flops = flops_per_item(backbone, network_settings) * arguments.batch
    result: dict[str, Any] = {"backbone": backbone, "conditioning": kind, "tflop_per_step": flops / 1e12}
    padded, attention.padded_head = attention.padded_head, lambda size: size
    network = build(backbone, network_settings).to(device)
    batch = TrainingStep(network, data, TrainingSettings(batch=arguments.batch), dtype, dtype)._draw(
        torch.zeros((), dtype=torch.int64, device=device)
    )
    result["eager autocast ms"] = median_ms(eager_autocast(network, batch, device), device, arguments.steps)
    attention.padded_head = padded
    for variant in arguments.variants:
        compile_, *parts = variant.split("+")
        graph = "graph" in parts
        settings = TrainingSettings(
            batch=arguments.batch,
            compile=compile_,
            kernels="on" if "kernels" in parts else "off",
            compile_mode=arguments.compile_mode,
            network=network_settings,
        )
        torch.compiler.reset()
        began = time.monotonic()
        step = TrainingStep(build(backbone, network_settings).to(device), data, settings, dtype, dtype)
        advance: Callable[[], None] = RecordedStep(step) if graph and device.type == "cuda" else step
        advance()
        if device.type == "cuda":
            torch.cuda.synchronize()
        first = time.monotonic() - began
        for _ in range(RecordedStep.WARM_UP if graph else 0):
            advance()
        ms = median_ms(advance, device, arguments.steps)
        result[variant] = {
            "ms": ms,
            "ratio": result["eager autocast ms"] / ms,
            "seconds to the first steps": first,
            "model flop utilisation": flops / (ms / 1000) / PEAK,
            "loss": step.take_measurements()[0],
        }
        print(f"{backbone} {kind} {variant}: {json.dumps(result[variant])}", flush=True)
    if arguments.parity:
        result["parity"] = parity(
            backbone, network_settings, arguments.parity, data, device, 64 if device.type == "cuda" else 2
        )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    gpu = torch.cuda.is_available()
    parser.add_argument("--backbone", nargs="+", default=["trans-ir", "conv-ir"])
    parser.add_argument("--conditioning", nargs="+", default=["latents", "paper"])
    parser.add_argument("--variants", nargs="+", default=["blocks+kernels+graph"] if gpu else ["none"])
    parser.add_argument("--batch", type=int, default=1100 if gpu else 2)
    parser.add_argument("--steps", type=int, default=20 if gpu else 1)
    parser.add_argument("--network", default="{}", help='more of its configuration, such as {"rotary": true}')
    parser.add_argument("--compile-mode", default="default")
    parser.add_argument(
        "--parity", default="blocks+kernels" if gpu else "none", help="which compilation to check, or ''"
    )
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    arguments = parser.parse_args()
    device = torch.device("cuda" if gpu else "cpu")
    data = source(device)
    results = []
    for backbone in arguments.backbone:
        for kind in arguments.conditioning:
            results.append(measure(backbone, kind, arguments, device, data))
            print(json.dumps(results[-1], indent=2), flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
