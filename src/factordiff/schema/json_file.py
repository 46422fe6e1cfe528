"""Files of a stranger's folder, read with care: regular files of a bounded size, and JSON that is an object."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

from factordiff.errors import InvalidInput
from factordiff.schema.bound import shown

LARGEST_OBJECT = 4_000_000  # bytes of a configuration or a team; the largest shipped one has five thousand


def check_regular(path: Path, most: int | None = None) -> int:
    """The size of a file in bytes; a pipe, a device or more than `most` is an `OSError` before it is opened."""
    try:
        status = os.stat(path)
    except ValueError as error:  # a name with a zero byte
        raise OSError(errno.EINVAL, str(error), str(path)) from error
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if most is not None and status.st_size > most:
        raise OSError(errno.EFBIG, f"{status.st_size:,} bytes, expected at most {most:,}", str(path))
    return status.st_size


def read_object(path: Path, most: int = LARGEST_OBJECT) -> dict[str, Any]:
    """The JSON object of a file: an `OSError` if it cannot be read, an `InvalidInput` if it is anything else."""
    check_regular(path, most)
    return parse_object(path.read_bytes())


def parse_object(text: str | bytes) -> dict[str, Any]:
    """The object that a JSON text spells; whatever else it is, however encoded or nested, is an `InvalidInput`."""
    try:
        content = json.loads(text)
    except RecursionError:
        raise InvalidInput("JSON: nested far too deeply") from None
    except ValueError as error:  # a byte that is no text is one, too
        raise InvalidInput(f"JSON: {error}") from None
    if not isinstance(content, dict):
        raise InvalidInput(f"JSON: expected an object, got {shown(content)}")
    return content
