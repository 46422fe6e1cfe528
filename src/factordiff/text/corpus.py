"""The built corpus: the text of each split, who owns each character, and where files begin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Int

from factordiff.arc.artefact import load_artefact
from factordiff.errors import DataError
from factordiff.text.alphabet import Values
from factordiff.text.ownership import Prose, alone
from factordiff.text.packages import SPLITS

CORPUS = Path("data") / "code-prose.npz"  # where `factordiff data build code-prose` puts it
BUILD = "build it with `factordiff data build code-prose`"
KINDS = ("prose", "code", "all")


@dataclass(frozen=True, eq=False)
class Text:
    """The files of a split, one after another; file i is `starts[i]` up to `starts[i + 1]`."""

    cells: Values
    prose: Prose
    starts: Int[np.ndarray, " border"]
    packages: Int[np.ndarray, " file"]

    def of_kind(self, kind: str) -> Values:
        """Everything, or what is left of it when the other kind is taken out of every line (`ownership.alone`)."""
        if kind not in KINDS:
            raise DataError(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
        return self.cells if kind == "all" else alone(self.cells, self.prose, kind)


@dataclass(frozen=True, eq=False)
class Corpus:
    """All splits, and the hash that names them."""

    sha256: str
    splits: dict[str, Text]

    def __getitem__(self, split: str) -> Text:
        return self.splits[split]


@cache
def load_corpus(file: Path = CORPUS) -> Corpus:
    """Read a built corpus and check every part of it."""
    if not file.is_file():
        raise DataError(
            f"{file}: there is no corpus here; {BUILD}, or name the folder it is in by working beside it"
        )
    artefact = load_artefact(file)
    if artefact.manifest.get("kind") != "code-prose":
        raise DataError(f"{file}: it is not the code-prose corpus; {BUILD}")
    splits = {}
    for split in SPLITS:
        cells, bits, starts, packages = (
            artefact.arrays[f"{split}_{part}"] for part in ("text", "prose", "starts", "packages")
        )
        prose = np.unpackbits(bits, count=len(cells)).astype(bool)
        splits[split] = Text(cells, prose, starts, packages)
    return Corpus(artefact.sha256, splits)
