"""What is not one line per query: routing maps, confidence curves; one JSON object per file, with a header."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from factordiff.errors import DataError
from factordiff.files import read_regular, unpacked, write_whole

ENDING = ".json.gz"


def finding_path(folder: Path, name: str) -> Path:
    """Where the finding of that name lies."""
    return folder / f"{name}{ENDING}"


def has_any(folder: Path, name: str) -> bool:
    """Whether there is a finding of that name, whatever it looked at."""
    return finding_path(folder, name).exists()


def has_finding(folder: Path, name: str, header: dict[str, Any], about: Mapping[str, Any]) -> bool:
    """Whether it is there already, and about the same; one of another header is refused and left alone.

    `header` is what may not change in a folder (weights, data, settings), `about` what may: the queries it looks at.
    """
    path = finding_path(folder, name)
    if not path.exists():
        return False
    there = _read(path)["header"]
    for key in sorted((there.keys() - about.keys()) | header.keys()):
        if there.get(key) != header.get(key):
            raise DataError(
                f"{path}: found with another {key}: {there.get(key)!r} in the file and {header.get(key)!r} now; "
                "nothing was overwritten. Use another folder with --out"
            )
    return all(there.get(key) == value for key, value in about.items())


def write_finding(folder: Path, name: str, header: dict[str, Any], content: Any) -> None:
    """Write it, whole or not at all."""
    path = finding_path(folder, name)
    text = json.dumps({"header": header, "content": content}, separators=(",", ":"))
    write_whole(path, gzip.compress(text.encode(), 9, mtime=0))


def read_finding(folder: Path, name: str) -> Any | None:
    """The finding's content, or None if there is none."""
    path = finding_path(folder, name)
    return _read(path)["content"] if path.exists() else None


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(unpacked(read_regular(path), path))
        found["header"], found["content"]
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: damaged, or not a finding ({error!r}); remove it to find it anew") from None
    return dict(found)
