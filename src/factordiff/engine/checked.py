"""A part of a network and a faster form of it, which is believed only where both were seen to agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.experts.expert import tensors_of


class CheckedFastPath:
    """A function in its plain form and in faster ones, the fastest first; `ways` names each.

    At every new shape of its arguments the faster form is run beside the plain one and compared. Compilers have given
    us garbage in some processes and not in others, and a sampler that takes it for an opinion is worse than a slow
    one. A form that fails, or differs by more than rounding, is given up for the next one; `failure` says why.
    """

    def __init__(
        self, name: str, plain: Callable[..., Any], ways: Mapping[str, Callable[..., Any]], dtype: torch.dtype
    ) -> None:
        self.name, self.dtype = name, dtype
        self.failure: str | None = None
        self._plain, self._ways = plain, dict(ways)
        self._seen: set[tuple[torch.Size, ...]] = set()

    @property
    def way(self) -> str:
        """The form in use."""
        return next(iter(self._ways), "plain")

    def __repr__(self) -> str:
        return f"CheckedFastPath({self.name}, {self.way}, {len(self._seen)} shapes compared)"

    def __call__(self, weights: Any, *given: Any) -> Any:
        """What the part says, from its weights and arguments."""
        shapes = tuple(tensor.shape for tensor in tensors_of(given))
        if shapes in self._seen or not self._ways:
            return self._ways.get(self.way, self._plain)(weights, *given)
        expected = self._plain(weights, *given)
        for way, fast in list(self._ways.items()):
            try:
                found = fast(weights, *given)
                wrong = disagreement(f"{self.name}, {way}", found, expected, self.dtype)
            except Exception as error:
                if isinstance(error, InvalidInput | torch.OutOfMemoryError):
                    raise
                wrong = f"{self.name}, {way}: {type(error).__name__}: {error}"
            if wrong is None:
                self._seen.add(shapes)
                return found
            self.failure = wrong if self.failure is None else f"{self.failure}; {wrong}"
            del self._ways[way]
            self._seen.clear()
        return expected


def in_words(how: str, failure: str | None) -> str:
    """What is in use and, where something was given up, why."""
    return how if failure is None else f"{how} (fell back: {failure})"


def disagreement(name: str, found: Any, expected: Any, dtype: torch.dtype) -> str | None:
    """By how much two results computed in a type differ, in words, if it is more than rounding explains.

    Row by row: garbage in a few rows of many is little of the whole.
    """
    # Two ways of rounding part by the root of the type's precision at most: 0.09 in bfloat16, 0.0003 in float32.
    tolerance = torch.finfo(dtype).eps ** 0.5
    for one, other in zip(tensors_of(found), tensors_of(expected), strict=True):
        apart = _worst_row(one, other)
        if not apart <= tolerance:
            what = "is not finite" if not apart < float("inf") else f"is {apart:.2g} away from the plain one"
            return f"{name}: the faster result {what} (shape {list(one.shape)}; allowed: {tolerance:.2g}, relative)"
    return None


def _worst_row(found: Tensor, expected: Tensor) -> float:
    """The largest distance of two rows, relative to the row, or to a usual one where the row is smaller."""
    if expected.numel() == 0:
        return 0.0
    one, truth = (
        tensor.float().reshape(len(tensor) if tensor.ndim else 1, -1) for tensor in (found, expected)
    )
    size = truth.norm(dim=1)
    usual = size.square().mean().sqrt().clamp(min=1e-12)
    return float(((one - truth).norm(dim=1) / torch.maximum(size, usual)).max())
