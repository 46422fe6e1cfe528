"""What people give as numbers: a tensor, a numpy array, or nested lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from factordiff.errors import InvalidInput

Numbers = np.ndarray | Sequence[Any]


def as_tensor(name: str, given: Any) -> Tensor:
    """The numbers as a tensor; of arrays and lists, whole ones become int64.

    >>> as_tensor("x_t", [[1, 2]])
    tensor([[1, 2]])
    """
    if isinstance(given, Tensor):
        return given
    try:
        if isinstance(given, str | bytes) or not isinstance(given, np.ndarray | Sequence):
            raise TypeError
        array = np.array(given)
        return torch.from_numpy(array.astype(np.int64) if array.dtype.kind in "iu" else array)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(
            f"{name}: expected a tensor, a numpy array or nested lists of numbers, got {_described(given)}"
        ) from None


def _described(given: Any) -> str:
    kind = type(given).__name__
    return f"a {kind} of {given.dtype}" if isinstance(given, np.ndarray) else f"a {kind}"
