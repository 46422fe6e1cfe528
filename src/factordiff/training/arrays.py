"""A file of integer arrays as a source of training items: one row, one item."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.errors import DataError
from factordiff.files import read_zip
from factordiff.streams import Purpose, integers
from factordiff.types import Tokens
from factordiff.vocabulary import Vocabulary

SPLITS = ("train", "validation")


class ArraySource:
    """The rows of an .npz file's arrays `train` and `validation`, both (item, cell) of whole numbers from 0 on.

    A third array, `values`, says how many values there are; without it the largest number that occurs is the last.
    """

    def __init__(self, path: Path, device: torch.device | str = "cpu") -> None:
        arrays = _read(path)
        for name in SPLITS:
            _check(path, name, arrays.get(name))
        train, validation = (arrays[name] for name in SPLITS)
        if train.shape[1] != validation.shape[1]:
            raise DataError(
                f"{path}: expected train and validation rows of the same length, "
                f"got {train.shape[1]} and {validation.shape[1]} cells"
            )
        largest = int(max(train.max(), validation.max()))
        values = int(arrays["values"]) if "values" in arrays else largest + 1
        if values <= largest:
            raise DataError(
                f"{path}: `values` says {values}, so that the largest is {values - 1}, got {largest}"
            )
        self.vocabulary, self.cells = Vocabulary(values), train.shape[1]
        self.digest = hashlib.sha256(
            b"".join(arrays[name].astype("<i8").tobytes() for name in SPLITS)
        ).hexdigest()
        self._train, self._validation = (
            torch.from_numpy(array.astype(np.int32)).to(device) for array in (train, validation)
        )

    def draw(self, seed: int, step: Int[Tensor, ""], items: Int[Tensor, " item"]) -> tuple[None, Tokens]:
        """Rows drawn with replacement, each by its item alone."""
        rows = integers(len(self._train), seed, Purpose.QUERY, step, items)
        return None, self._train[rows].long()

    def validation(self, items: int) -> tuple[None, Tokens]:
        """The first validation rows."""
        return None, self._validation[:items].long()


def _read(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(read_zip(path), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, MemoryError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"{path}: cannot be read as a file of arrays ({reason}); write it with numpy.savez_compressed"
        ) from error


def _check(path: Path, name: str, array: np.ndarray | None) -> None:
    if array is None:
        raise DataError(
            f"{path}: it has no array {name!r}; expected {' and '.join(SPLITS)}, both (item, cell)"
        )
    if array.ndim != 2 or 0 in array.shape or not np.issubdtype(array.dtype, np.integer):
        raise DataError(
            f"{path}: {name}: expected whole numbers of shape (item, cell), at least one of each, "
            f"got {array.dtype} of shape {array.shape}"
        )
    if int(array.min()) < 0:
        raise DataError(f"{path}: {name}: expected values from 0 on, got {int(array.min())}")
