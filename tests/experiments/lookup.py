"""Experts that look the answer up: a workbench on which every experiment runs in seconds.

Each knows the truth of every query, but for what it is blind to. What a table must then show can be said beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from factordiff.arc.dataset import Dataset
from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.evaluation.runs import RunContext, RunSettings
from factordiff.experiments.runner import Runner
from factordiff.experts.condition import Condition
from factordiff.networks.named import NamedExpert
from factordiff.vocabulary import Vocabulary

SPLITS = ("test", "validation", "official", "unseen")
# Which queries (place in the list, modulo ten) a full expert gets wrong, by one cell.
BLIND = {"trans-full": (1,), "conv-full": (2, 3), "trans-full-early": (1, 4), "conv-full-early": (2, 3, 5)}


class Lookup:
    """Log-probabilities from the truth of the query that the condition asks about."""

    def __init__(self, kind: str, blind: tuple[int, ...], truths: dict[bytes, tuple[int, Tensor]]) -> None:
        self.kind, self.blind, self.truths = kind, blind, truths
        self.vocabulary = Vocabulary(10)

    def encode(self, condition: Condition) -> tuple[Tensor, Tensor]:
        # A demonstration that is asked about, for evidence, is nobody's query: all experts say the same of it.
        unknown = (0, torch.zeros_like(condition.query[0]))
        found = [self.truths.get(_key(condition, item), unknown) for item in range(len(condition))]
        return torch.stack([x_0 for _, x_0 in found]), torch.tensor([place for place, _ in found])

    def log_probs(self, x_t: Tensor, encoded: tuple[Tensor, Tensor]) -> Tensor:
        x_0, place = encoded
        one_hot = torch.nn.functional.one_hot(x_0, 10).float()
        if self.kind == "full":
            # Sure, and right but for cell 0 of some queries, where it is wrong and less sure.
            probs = 0.9 * one_hot + 0.01
            astray = torch.isin(place % 10, torch.tensor(self.blind))
            wrong = 0.5 * torch.nn.functional.one_hot((x_0[:, 0] + 1) % 10, 10).float() + 0.05
            probs[astray, 0] = wrong[astray]
        elif self.kind == "occupancy":  # background or not; its foreground is split evenly
            background = torch.where(x_0 == 0, 0.98, 0.02)
            probs = torch.cat(
                [background[..., None], ((1 - background) / 9)[..., None].expand(-1, -1, 9)], -1
            )
        else:  # the right color where there is one, a guess at background, which it rules out
            guess = torch.nn.functional.one_hot(torch.full_like(x_0, 7), 10).float()
            probs = torch.where((x_0 > 0)[..., None], 0.9 * one_hot, 0.4 * guess + 0.05) + 0.01
            probs[..., 0] = 1e-6
            probs = probs / probs.sum(-1, keepdim=True)
        return probs.log()


def _key(condition: Condition, item: int) -> bytes:
    parts = (condition.query[item], condition.context_inputs[item, 0], condition.context_outputs[item, 0])
    return torch.cat(parts).to(torch.uint8).numpy().tobytes()


@dataclass(frozen=True, repr=False)
class Unfiled(NamedExpert):
    """An expert without a file to be hashed, which says itself what its hash would be."""

    sha256: str = ""  # type: ignore[assignment]


def small_sets(dataset: Dataset, count: int) -> dict[str, EvaluationSet]:
    return {split: dataset.evaluation(split, count) for split in SPLITS}


def lookup_bench(sets: dict[str, EvaluationSet], folder: Path, **changes: Any) -> Runner:
    truths = {}
    for queries in sets.values():
        condition, x_0 = queries.condition(), queries.x_0
        for item in range(len(queries)):
            truths[_key(condition, item)] = (item, x_0[item])

    def known(name: str) -> NamedExpert:
        kind = "occupancy" if "occ" in name else "color" if "color" in name else "full"
        expert = Lookup(kind, BLIND.get(name, ()), truths)
        config = {"parameters": 1_000_000, "about": {}}
        return Unfiled(name, expert, kind, config=config, sha256=f"weights of {name}")

    settings = RunSettings(steps=2, particles=2, batch_size=12)
    values: dict[str, Any] = {
        "experts": known,
        "queries": lambda split: sets[split],
        "data": "data",
        "context": RunContext(folder, "cpu", "abc"),
        "settings": settings,
    }
    return Runner(**{**values, **changes})
