"""A text file as cells to be hidden and filled in."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from factordiff.errors import DataError, InvalidInput
from factordiff.experts.registry import find_expert
from factordiff.files import read_regular
from factordiff.streams import Purpose, uniform
from factordiff.text.alphabet import BYTES, letters, one_for_one, values
from factordiff.text.windows import LENGTH

SPELLED = "lines such as 10-14 or 3,7-9, or a share of the characters such as 0.3"


@dataclass(frozen=True, eq=False)
class TextDocument:
    """A file's text, character by character.

    Experts read tabs as spaces and whatever is not ASCII as question marks; where such a character is given, it is
    shown as it was.
    """

    text: str
    title = ""
    unit = "characters"
    default_experts = "text-prose,text-code"
    vocabulary = BYTES
    window = LENGTH

    @property
    def cells(self) -> Int[Tensor, " cell"]:
        """The values that experts see."""
        return torch.from_numpy(values(one_for_one(self.text)).astype(np.int64))

    def hidden(self, spec: str, seed: int = 0) -> Bool[Tensor, " cell"]:
        """The cells that a specification hides: whole lines but for their ends, or a share of all characters."""
        if re.fullmatch(r"0?\.\d+|1\.0*", spec):
            return uniform(seed, Purpose.CORRUPT, torch.arange(len(self.text))) < float(spec)
        lines = lines_of(self.text)
        wanted: set[int] = set()
        for part in spec.split(","):
            found = re.fullmatch(r"\s*([0-9]{1,9})(?:-([0-9]{1,9}))?\s*", part)
            if not found:
                raise InvalidInput(f"--mask: expected {SPELLED}, got {spec!r}")
            first, last = int(found[1]), int(found[2] or found[1])
            if not 1 <= first <= last <= len(lines):
                raise InvalidInput(f"--mask: expected lines from 1 to {len(lines)}, got {part.strip()}")
            wanted |= set(range(first, last + 1))
        marks = [
            number in wanted and letter not in "\r\n"
            for number, line in enumerate(lines, 1)
            for letter in line
        ]
        return torch.tensor(marks, dtype=torch.bool)

    def shown(self, x_0: Int[Tensor, " cell"], hidden: Bool[Tensor, " cell"]) -> str:
        """The text with the hidden characters as they were filled in and the others as they were."""
        filled = letters(x_0.tolist())
        return "".join(
            new if was_hidden else old
            for new, old, was_hidden in zip(filled, self.text, hidden.tolist(), strict=True)
        )

    def written(self, text: str) -> str:
        """The text itself."""
        return text

    def remarks(self, text: str) -> list[str]:
        """Nothing more is said of a text."""
        return []

    def folder(self, name: str) -> Path:
        """Where the expert of that name is."""
        return find_expert(name).folder

    def experts(self, names: Sequence[str], device: torch.device | str) -> Sequence[str]:
        """Shipped ones or folders, by their names."""
        return names


def lines_of(text: str) -> list[str]:
    """The lines with their ends, as editors count them: at newlines only."""
    return list(io.StringIO(text, newline="\n"))


def read_document(file: Path) -> TextDocument:
    """A text file, which must be UTF-8 and not empty."""
    try:
        text = read_regular(file).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: byte {error.start} is not UTF-8; expected a text file") from error
    if not text:
        raise DataError(f"{file}: it is empty; there is nothing to hide")
    return TextDocument(text)
