"""What a step over a large vocabulary holds beyond the experts' own log-probabilities: as much as a setting says."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from factordiff import (
    ByBlock,
    ByConfidence,
    ByMargin,
    Composition,
    Engine,
    GeometricMean,
    Mixture,
    Product,
    RevealRule,
    Routing,
    SoftRouting,
    SuperDiff,
)
from tests.sampling.test_large import CELLS, Words

VALUES, ROWS = 1500, 2
CELL = 2 * VALUES * 8  # bytes of what two experts say about a cell


class Largest(TorchDispatchMode):
    """The largest memory that an operation asked for; what experts return is theirs, and so are views of it."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes, self.theirs, self.places = 0, list[Tensor](), set[int]()

    def leave_out(self, said: Tensor) -> None:
        """It is kept, so that its place in memory stays its own."""
        self.theirs.append(said)
        self.places.add(said.untyped_storage().data_ptr())

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = operation(*args, **(kwargs or {}))
        for one in found if isinstance(found, tuple | list) else [found]:
            if isinstance(one, Tensor) and one.untyped_storage().data_ptr() not in self.places:
                self.bytes = max(self.bytes, one.untyped_storage().nbytes())
        return found


class Noted(Words):
    """What it computes is its own."""

    watch: Largest

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        with _disable_current_modes():
            said = super().log_probs(x_t, encoded)
        self.watch.leave_out(said)
        return said


def held(composition: Composition, rule: RevealRule, cells: int) -> int:
    """The largest piece of memory of a run whose chunks are of so many cells."""
    watch, experts = Largest(), [Noted(seed, VALUES) for seed in (1, 2)]
    for expert in experts:
        expert.watch = watch
    with watch:
        Engine(chunk=cells * CELL).sample(
            experts, composition, torch.full((ROWS, CELLS), VALUES), reveal=rule
        )
    assert watch.theirs
    return watch.bytes


RULES = (ByConfidence(3), ByMargin(0.5), ByBlock(6, 2, "entropy"))
COMPOSITIONS = (Routing(), SoftRouting(), Mixture(), Product(), GeometricMean(), SuperDiff())


@pytest.mark.parametrize(
    ("composition", "rule"),
    list(zip(COMPOSITIONS, RULES * 2, strict=True)),
    ids=lambda one: type(one).__name__,
)
def test_no_piece_of_memory_is_larger_than_a_chunk(composition: Composition, rule: RevealRule) -> None:
    for cells in (1, 4):
        assert cells * CELL / 2 <= held(composition, rule, cells) <= 1.01 * cells * CELL
