"""The corpus from its packages: which files, how much of each, and their order."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from factordiff.arc.artefact import Artefact, make_artefact
from factordiff.errors import DataError
from factordiff.text.alphabet import values
from factordiff.text.ownership import Prose, cleaned, prose_of
from factordiff.text.packages import SPLITS, Package, Progress, fetch, pinned, split_of

# Which corpus the shipped experts learned from.
RECORDED = "556e0595b34c030ad24937518109baa49a50c2da427d2fcf0a88d5e7aa223ef3"
MOST = {"train": 300_000, "validation": 100_000, "test": 100_000}  # characters of one package
LONGEST_LINE = 400  # a file with a longer one holds data
LEAST_OF_A_KIND = 0.05  # of a file's characters, both of prose and of code
# Other people's code under another name, and tests, which are tables as often as code.
LEFT_OUT = frozenset(
    {
        "tests",
        "test",
        "testdata",
        "_vendor",
        "vendor",
        "vendored",
        "_vendored",
        "extern",
        "externals",
        "third_party",
    }
)


def build(folder: Path, packages: list[Package] | None = None, progress: Progress | None = None) -> Artefact:
    """The corpus of the pinned packages, whose wheels are kept in the folder.

    Of each package's files, in the order of the sha256 of their paths, those are taken that parse, hold prose and code,
    no overlong line and nothing that was taken before, until the package has its share of characters.
    """
    packages = pinned() if packages is None else packages
    fetch(packages, folder, progress)
    split = split_of(packages)
    seen: set[bytes] = set()
    arrays: dict[str, np.ndarray] = {}
    counts: dict[str, dict[str, int]] = {}
    read = 0
    for name in SPLITS:  # training first: what is held out must not repeat it
        texts, prose, places, owners = [], [], [0], []
        mine = [number for number, package in enumerate(packages) if split[package.name] == name]
        for number in mine:
            read += 1
            if progress is not None:
                progress("read", read)
            for text, marked in _files(folder / packages[number].file, MOST[name], seen):
                texts.append(values(text))
                prose.append(marked)
                places.append(places[-1] + len(text))
                owners.append(number)
        if not texts:
            raise DataError(f"{name}: none of its {len(mine)} packages has a usable file")
        marked_all = np.concatenate(prose)
        arrays |= {
            f"{name}_text": np.concatenate(texts),
            f"{name}_prose": np.packbits(marked_all),
            f"{name}_starts": np.array(places, np.int64),
            f"{name}_packages": np.array(owners, np.int16),
        }
        counts[name] = {
            "packages": len(set(owners)),
            "files": len(owners),
            "characters": len(marked_all),
            "prose": int(marked_all.sum()),
        }
    about = {"kind": "code-prose", "counts": counts, "packages": [vars(package) for package in packages]}
    return make_artefact(arrays, about)


def _files(wheel: Path, most: int, seen: set[bytes]) -> Iterator[tuple[str, Prose]]:
    """A package's usable files and their prose, until there are `most` characters of them."""
    taken = 0
    with zipfile.ZipFile(wheel) as archive:
        paths = [
            path
            for path in archive.namelist()
            if path.endswith(".py") and not LEFT_OUT.intersection(path.lower().split("/"))
        ]
        for path in sorted(paths, key=lambda path: hashlib.sha256(path.encode()).digest()):
            if taken >= most:
                return
            try:
                text = cleaned(archive.read(path).decode("utf-8"))
                marked = prose_of(text)
            except (UnicodeDecodeError, DataError):
                continue
            share = marked.mean()
            digest = hashlib.sha256(text.encode()).digest()
            longest = max(map(len, text.splitlines()), default=0)
            if (
                longest > LONGEST_LINE
                or digest in seen
                or not LEAST_OF_A_KIND <= share <= 1 - LEAST_OF_A_KIND
            ):
                continue
            seen.add(digest)
            taken += len(text)
            yield text, marked
