"""What a fit learns from: right answers, what the experts are told about each, and which are kept for choosing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from jaxtyping import Bool, Int
from safetensors import SafetensorError
from torch import Tensor

from factordiff.engine.expert_batch import part_of
from factordiff.errors import DataError, InvalidInput
from factordiff.experts.condition import on_device
from factordiff.files import MOST_UNPACKED, read_regular
from factordiff.sampling.request import check_condition
from factordiff.schema.objects import Two
from factordiff.schema.values import Whole
from factordiff.tensors import Numbers, as_tensor, is_whole

LAYOUT = Two(Whole(1))
OPTIONAL = ("condition", "asked", "held", "owner")  # tensors that a file of data may hold beside its answers


@dataclass(frozen=True, eq=False, init=False)
class FittingData:
    """Items with their right answers. Nothing an expert was trained on: there it is surer than elsewhere.

    `asked` are the cells that are to be filled (None: all; the others are given). `layout` is the height and width in
    which cells have neighbours. `held` items choose between what was fitted on the others (None: the last quarter);
    keep what belongs together on one side. `owner` is the expert that knows each cell, where that is known.
    """

    answers: Int[Tensor, "item cell"]
    condition: Any = None
    asked: Bool[Tensor, "item cell"] | None = None
    layout: tuple[int, int] | None = None
    held: Bool[Tensor, " item"] | None = None
    owner: Int[Tensor, "item cell"] | None = None

    def __init__(
        self,
        answers: Int[Tensor, "item cell"] | Numbers,
        condition: Any = None,
        asked: Bool[Tensor, "item cell"] | Numbers | None = None,
        layout: tuple[int, int] | None = None,
        held: Bool[Tensor, " item"] | Numbers | None = None,
        owner: Int[Tensor, "item cell"] | Numbers | None = None,
    ) -> None:
        given = {"asked": asked, "held": held, "owner": owner}
        kept = {
            "answers": as_tensor("answers", answers),
            **{name: None if one is None else as_tensor(name, one) for name, one in given.items()},
            "condition": condition,
            "layout": layout,
        }
        for name, one in kept.items():
            object.__setattr__(self, name, one)  # as dataclasses themselves do where nothing may be set
        self._check()

    def _check(self) -> None:
        if self.answers.dim() != 2 or self.answers.dtype != torch.int64:
            raise InvalidInput(
                f"data: expected int64 answers of shape (item, cell), got {self.answers.dtype} of shape "
                f"{tuple(self.answers.shape)}"
            )
        if len(self.answers) == 0:
            raise InvalidInput("data: expected some items to fit on, got none")
        items, cells = self.answers.shape
        for name, shape in (("asked", (items, cells)), ("owner", (items, cells)), ("held", (items,))):
            given = getattr(self, name)
            if given is not None and tuple(given.shape) != shape:
                raise InvalidInput(f"data: expected {name} of shape {shape}, got {tuple(given.shape)}")
            if given is not None and not (is_whole(given) if name == "owner" else given.dtype == torch.bool):
                wanted = "whole numbers" if name == "owner" else "true and false"
                raise InvalidInput(f"data: expected {name} of {wanted}, got {given.dtype}")
        if self.layout is not None:
            LAYOUT.read(self.layout, "layout")
        if self.layout is not None and self.layout[0] * self.layout[1] != cells:
            raise InvalidInput(f"data: expected a layout of {cells} cells, got {self.layout}")
        check_condition(self.condition, items)

    def __len__(self) -> int:
        return len(self.answers)

    def __repr__(self) -> str:
        items, cells = self.answers.shape
        return (
            f"FittingData({items} items of {cells} cells, {int(self.kept.sum())} of them kept for choosing)"
        )

    @property
    def kept(self) -> Bool[Tensor, " item"]:
        """The items that choose."""
        if self.held is not None:
            return self.held
        return torch.arange(len(self), device=self.answers.device) >= len(self) - max(1, len(self) // 4)

    @property
    def open_cells(self) -> Bool[Tensor, "item cell"]:
        """The cells that are to be filled."""
        return torch.ones_like(self.answers, dtype=torch.bool) if self.asked is None else self.asked

    def part(self, items: Int[Tensor, " some"]) -> FittingData:
        """Some of the items."""
        return replace(
            self,
            answers=self.answers[items],
            condition=part_of(self.condition, items),
            asked=None if self.asked is None else self.asked[items],
            held=self.kept[items],
            owner=None if self.owner is None else self.owner[items],
        )

    def to(self, device: torch.device) -> FittingData:
        """The same on another device."""
        moved = {name: getattr(self, name) for name in ("answers", "asked", "held", "owner")}
        there: dict[str, Any] = {k: None if one is None else one.to(device) for k, one in moved.items()}
        return replace(self, condition=on_device(self.condition, device), **there)

    def sides(self) -> tuple[FittingData, FittingData]:
        """The items that are fitted on, and those that choose."""
        fitted, kept = ((~self.kept).nonzero().squeeze(-1), self.kept.nonzero().squeeze(-1))
        if not len(fitted) or not len(kept):
            raise InvalidInput(
                f"data: expected items to fit on and others to choose by, got {len(fitted)} and {len(kept)}"
            )
        sides = self.part(fitted), self.part(kept)
        for side in sides:
            side.check_asked()
        return sides

    def check_asked(self) -> None:
        """Refuse data in which nothing is to be filled: every figure would be that of no cell."""
        if not self.open_cells.any():
            raise InvalidInput(
                f"data: expected some asked cells, got none in {len(self)} items; `asked` is true where a cell is to "
                "be filled"
            )

    def sha256(self) -> str:
        """Which answers these are, and which of them choose."""
        parts = (self.answers, self.open_cells, self.kept)
        return hashlib.sha256(b"".join(part.cpu().numpy().tobytes() for part in parts)).hexdigest()


def digest(given: Any) -> str:
    """A name for what is made of tensors, numbers and words in tuples, mappings and dataclasses; the same everywhere.

    Of any other object its type counts alone: what else is known of it may be another in every process.
    """
    found = hashlib.sha256()
    _add(given, found)
    return found.hexdigest()


def _add(part: Any, found: hashlib._Hash) -> None:
    found.update(f"{type(part).__name__}:".encode())
    if isinstance(part, Tensor):
        found.update(f"{part.dtype}{tuple(part.shape)}".encode())
        found.update(part.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    elif isinstance(part, str | int | float | None):
        found.update(repr(part).encode())
    elif isinstance(part, Mapping):
        _add(list(part.items()), found)
    elif is_dataclass(part):
        _add([getattr(part, one.name) for one in fields(part)], found)
    elif isinstance(part, tuple | list):
        for inner in part:
            _add(inner, found)


def as_data(given: Any) -> FittingData:
    """The data as people give them: `FittingData`, or a tuple of its first fields, such as (answers, condition)."""
    if isinstance(given, Tensor | np.ndarray | list):
        data = FittingData(as_tensor("data", given))
    elif isinstance(given, tuple) and 0 < len(given) <= len(fields(FittingData)):
        data = FittingData(*given)
    elif isinstance(given, FittingData):
        data = given
    else:
        kind = f"{len(given)} things" if isinstance(given, tuple) else type(given).__name__
        raise InvalidInput(f"data: expected FittingData or (answers, condition, asked, layout), got {kind}")
    data.check_asked()
    return data


def read_data(file: Path, layout: tuple[int, int] | None = None) -> FittingData:
    """The data of a file: `answers` (item, cell), and if they are there `condition`, `asked`, `held` and `owner`."""
    try:
        found = safetensors.torch.load(read_regular(file, MOST_UNPACKED))
    except SafetensorError as error:
        raise DataError(
            f"{file}: damaged or not a safetensors file ({error}); safetensors.torch.save_file({{'answers': cells}}, "
            "FILE) writes one"
        ) from error
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
