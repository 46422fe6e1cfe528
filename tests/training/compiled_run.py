"""Loss and gradient of a compiled step against the plain one; `-m tests.training.compiled_run BACKBONE KIND`.

A process of its own, because the shape checks of the test run cannot be compiled.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import torch

from factordiff.networks.store import build
from factordiff.training.step import TrainingStep
from tests.networks.small_networks import stir
from tests.training.runs import NETWORK, SETTINGS
from tests.training.synthetic import SEQUENCES, Counting, Flips


def main() -> None:
    torch.set_num_threads(1)
    backbone, kind = sys.argv[1:]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    fields, source, agreement = {**NETWORK, "cycles": [2, 2]}, Flips(side=3), 0.1
    if kind == "literal":
        fields |= {"conditioning": "paper", "literal": True}
    if backbone == "transformer":
        fields, source, agreement = SEQUENCES, Counting(), 0.0
    errors: dict[str, list[float]] = {"float32": [], "bfloat16": [], "no average": []}
    for dtype in (torch.float32, torch.bfloat16):
        network = build(backbone, fields)
        stir(network)
        network = network.to(device)
        settings = replace(SETTINGS, batch=16, agreement=agreement, ema=0.0)
        plain = TrainingStep(network, source, settings, torch.float32, torch.float32)
        quick = TrainingStep(network, source, replace(settings, compile="blocks"), dtype, torch.float32)
        for number in (3, 4):  # the second batch is new to the compiled function
            step = torch.tensor(number, device=device)
            network.parts, compiled = plain_parts(network), network.parts
            expected_loss = plain.loss(*plain.draw(step))
            (expected,) = torch.autograd.grad(expected_loss, [network.vector])
            network.parts = compiled
            loss = quick.loss(*quick.draw(step))
            (gradient,) = torch.autograd.grad(loss, [network.vector])
            errors[str(dtype).removeprefix("torch.")] += [
                float(((loss - expected_loss).abs() / expected_loss).detach()),
                float((gradient - expected).norm() / expected.norm()),
            ]
        quick()
        errors["no average"].append(float((quick.ema - network.vector.detach()).abs().max()))
    print(json.dumps(errors))


def plain_parts(network):  # type: ignore[no-untyped-def]
    """The network's parts as they were before they were compiled."""
    return type(network.parts)(*(getattr(network, name) for name in network.parts._fields))


if __name__ == "__main__":
    main()
