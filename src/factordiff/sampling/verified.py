"""A part of a network and a faster form of it, which is believed only where both were seen to agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from factordiff.errors import InvalidInput
from factordiff.experts.expert import tensors_of


class Verified:
    """A function in its plain and its faster form; at every new shape of its arguments both are run and compared.

    Compilers have given us garbage in some processes and not in others, and a sampler that takes it for an opinion is
    worse than a slow one. Where the two differ by more than rounding, or the faster one fails, the plain one is
    used from then on, and `failure` says why.
    """

    def __init__(
        self, name: str, plain: Callable[..., Any], fast: Callable[..., Any], dtype: torch.dtype
    ) -> None:
        self.name, self.dtype = name, dtype
        self.failure: str | None = None
        self._plain, self._fast = plain, fast
        self._seen: set[tuple[torch.Size, ...]] = set()

    def __repr__(self) -> str:
        return f"Verified({self.name}, {self.failure or f'{len(self._seen)} shapes agree'})"

    def __call__(self, weights: Any, *given: Any) -> Any:
        """What the part says, from its weights and arguments."""
        if self.failure is not None:
            return self._plain(weights, *given)
        shapes = tuple(tensor.shape for tensor in tensors_of(given))
        if shapes in self._seen:
            return self._fast(weights, *given)
        expected = self._plain(weights, *given)
        try:
            found = self._fast(weights, *given)
        except Exception as error:
            if isinstance(error, InvalidInput | torch.OutOfMemoryError):
                raise
            self.failure = f"{self.name}: {type(error).__name__}: {error}"
            return expected
        self.failure = disagreement(self.name, found, expected, self.dtype)
        if self.failure is not None:
            return expected
        self._seen.add(shapes)
        return found


def disagreement(name: str, found: Any, expected: Any, dtype: torch.dtype) -> str | None:
    """By how much two results computed in a type differ, in words, if it is more than rounding explains."""
    # Two ways of rounding part by the root of the type's precision at most: 0.09 in bfloat16, 0.0003 in float32.
    tolerance = torch.finfo(dtype).eps ** 0.5
    for one, other in zip(tensors_of(found), tensors_of(expected), strict=True):
        truth = other.float()
        apart = float((one.float() - truth).norm() / truth.norm().clamp(min=1e-12))
        if not apart <= tolerance:
            what = "is not finite" if not apart < float("inf") else f"is {apart:.2g} away from the plain one"
            return f"{name}: the faster result {what} (shape {list(one.shape)}; allowed: {tolerance:.2g}, relative)"
    return None
