"""What people give as numbers: a tensor, a numpy array, or nested lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, SupportsFloat

import numpy as np
import torch
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.schema.bound import shown

Numbers = np.ndarray | Sequence[Any]
Floats = Sequence[SupportsFloat] | np.ndarray | Tensor  # one number per expert


def as_tensor(name: str, given: Any) -> Tensor:
    """The numbers as a tensor, whole ones as int64.

    >>> as_tensor("x_t", [[1, 2]])
    tensor([[1, 2]])
    """
    if isinstance(given, Tensor):
        return given.long() if is_whole(given) else given
    try:
        if isinstance(given, str | bytes) or not isinstance(given, np.ndarray | Sequence):
            raise TypeError
        array = np.array(given)
        if array.dtype.kind not in "biuf":
            raise TypeError
        if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
            raise OverflowError
        return torch.from_numpy(array.astype(np.int64) if array.dtype.kind in "iu" else array)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise InvalidInput(
            f"{name}: expected a tensor, a numpy array or nested lists of numbers, got {_described(given)}"
        ) from None


def is_whole(numbers: Tensor) -> bool:
    """Whether these are whole numbers by their type; true and false are none."""
    return not (numbers.is_floating_point() or numbers.is_complex() or numbers.dtype == torch.bool)


def as_number(given: Any) -> Any:
    """A number of numpy or a tensor without axes as the plain number; anything else as it came.

    >>> as_number(np.float32(0.5)), as_number(torch.tensor(3)), as_number("a")
    (0.5, 3, 'a')
    """
    if isinstance(given, np.generic) or (isinstance(given, Tensor | np.ndarray) and given.ndim == 0):
        return given.item()
    return given


def as_floats(name: str, given: Iterable[Any]) -> tuple[float, ...]:
    """Numbers in a row as plain floats, which have a hash and can stand in a JSON file.

    >>> as_floats("beta", np.array([0.5, 1.0]))
    (0.5, 1.0)
    """
    given = as_tensor(name, given).tolist() if isinstance(given, Tensor | np.ndarray) else given
    try:
        if isinstance(given, str | bytes | Mapping):
            raise TypeError
        numbers = [as_number(one) for one in given]
        if not all(isinstance(one, Real) for one in numbers):
            raise TypeError
        return tuple(float(one) for one in numbers)
    except (TypeError, OverflowError):
        raise InvalidInput(f"{name}: expected numbers in a row, one per expert, got {shown(given)}") from None


def _described(given: Any) -> str:
    kind = type(given).__name__
    if isinstance(given, np.ndarray):
        return f"a {kind} of {given.dtype}"
    listed = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    return f"a {kind} of other things, or of parts that differ in length" if listed else f"a {kind}"
