"""Answers with composition and reveal compiled, against the plain ones; `-m tests.sampling.fused_run`.

A process of its own, because the shape checks of the test run cannot be compiled.
"""

from __future__ import annotations

import json

import torch

from factordiff.composition.product import GeometricMean
from factordiff.composition.routing import Routing
from factordiff.sampling.adaptive import ByMargin
from factordiff.sampling.reveal import ByConfidence, RevealRule
from factordiff.sampling.sampler import sample
from factordiff.streams import Purpose, uniform
from factordiff.vocabulary import Vocabulary

ROWS, CELLS, VALUES = 12, 20, 10


class Fixed:
    """An expert that says the same whatever it sees."""

    vocabulary = Vocabulary(VALUES)

    def __init__(self, seed: int, device: str) -> None:
        cell = torch.arange(ROWS * CELLS * VALUES, device=device).view(ROWS, CELLS, VALUES)
        self.said = torch.log_softmax(8 * uniform(seed, Purpose.INIT, cell, dtype=torch.float32), -1)

    def encode(self, condition: torch.Tensor) -> torch.Tensor:
        return condition

    def log_probs(self, x_t: torch.Tensor, encoded: torch.Tensor) -> torch.Tensor:
        return self.said[encoded]


def main() -> None:
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    experts = [Fixed(1, device), Fixed(2, device)]
    x_t = torch.full((ROWS, CELLS), VALUES, device=device)
    x_t[3, 4:] = 2  # rows end at different times
    which = torch.arange(ROWS, device=device)
    found = {}
    rules: list[RevealRule] = [ByConfidence(7), ByMargin(0.3)]
    for name, composition in {
        "routing": Routing(),
        "tempered": Routing(temperatures=(1.0, 0.25)),
        "mean": GeometricMean(),
    }.items():
        for rule in rules:
            for bucket in (None, 4):  # a full bucket steps in one piece, which a GPU records
                plain, fused = (
                    sample(experts, composition, x_t, which, reveal=rule, bucket=bucket, fuse=fuse)
                    for fuse in (False, True)
                )
                found[f"{name}, {type(rule).__name__}, {bucket}"] = {
                    "same": torch.equal(plain.x_0, fused.x_0),
                    "passes": torch.equal(plain.executed_passes, fused.executed_passes),
                    "density": float((plain.log_density - fused.log_density).abs().max()),
                }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
