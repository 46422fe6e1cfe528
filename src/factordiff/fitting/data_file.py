"""Data to fit on, from a file: safetensors with `answers`, and whatever else of `FittingData` is a tensor."""

from __future__ import annotations

from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError

from factordiff.errors import DataError
from factordiff.files import MOST_UNPACKED, read_regular
from factordiff.fitting.data import FittingData

OPTIONAL = ("condition", "asked", "held", "owner")


def read_data(file: Path, layout: tuple[int, int] | None = None) -> FittingData:
    """The data of a file: `answers` (item, cell), and if they are there `condition`, `asked`, `held` and `owner`."""
    try:
        found = safetensors.torch.load(read_regular(file, MOST_UNPACKED))
    except SafetensorError as error:
        raise DataError(f"{file}: damaged or not a safetensors file ({error})") from error
    unknown = sorted(found.keys() - {"answers", *OPTIONAL})
    if "answers" not in found or unknown:
        what = f"an unknown {unknown[0]}" if unknown else "no answers"
        raise DataError(f"{file}: expected answers and some of {', '.join(OPTIONAL)}, got {what}")
    if found["answers"].is_floating_point():
        raise DataError(f"{file}: expected whole-number answers, got {found['answers'].dtype}")
    others = {name: found.get(name) for name in OPTIONAL}
    for name in ("asked", "held"):
        if others[name] is not None:
            others[name] = others[name].bool()  # type: ignore[union-attr]
    return FittingData(found["answers"].to(torch.int64), layout=layout, **others)
