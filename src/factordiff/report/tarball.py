"""All records of a report in one file, small enough to be kept beside it.

The rows of a table ask about the same queries, so their lines are mostly alike: compressed together they take a
small part of what they take one by one.
"""

from __future__ import annotations

import io
import lzma
import shutil
import tarfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from factordiff.errors import DataError, FileError
from factordiff.files import MOST_UNPACKED, gzip_members, read_regular, write_whole
from factordiff.locks import Lock
from factordiff.report.records import SUFFIX, members
from factordiff.report.xz_stream import MOST_AT_ONCE, XzStream
from factordiff.schema.bound import shown

TARBALL = "records.tar.xz"
PLAIN = ".jsonl"
MOST_FILES = 10_000  # in one; a full report has 400


def packable(folder: Path) -> list[Path]:
    """The files of a folder of records, in the order in which they are packed."""
    # What begins with a dot is a lock, or what a kill left half written.
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    if not files:
        raise DataError(f"{folder}: holds no records; run an experiment first")
    return files


def pack(folder: Path, tarball: Path, files: Sequence[Path] = (), smallest: bool = False) -> None:
    """Write every file of a folder of records into one, or some of them; the folder stays as it is.

    `smallest` takes a tenth off, in several times as long: for what is packed once and kept.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in files or packable(folder):
            name, data = path.relative_to(folder).as_posix(), read_regular(path, MOST_UNPACKED)
            if name.endswith(SUFFIX):
                name = name.removesuffix(SUFFIX) + PLAIN
                data = b"".join(text for text, _ in gzip_members(data, path))
            entry = tarfile.TarInfo(name)  # no owner and no time: the same records, the same bytes
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    write_whole(tarball, lzma.compress(packed.getvalue(), preset=9 | lzma.PRESET_EXTREME * smallest))


def unpack(tarball: Path, folder: Path) -> None:
    """Put the files back as they were, by one process at a time; nothing that is there is overwritten."""
    with Lock.of_file(tarball):
        _unpack(tarball, folder)


def _unpack(tarball: Path, folder: Path) -> None:
    if folder.exists():
        raise DataError(f"{folder}: is there already; nothing was unpacked")
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    stream: Any = XzStream(read_regular(tarball), tarball)
    try:
        with tarfile.open(fileobj=stream, mode="r:") as tar:
            for number, entry in enumerate(tar):
                if number == MOST_FILES:
                    raise DataError(f"{tarball}: holds more than {MOST_FILES:,} files; nothing was unpacked")
                if not _plain(entry) or tar.pax_headers:
                    raise DataError(f"{tarball}: {shown(entry.name)} is not a file of records")
                stream.check_room(entry.size)
                name, data = entry.name, _content(tar, entry)
                if name.endswith(PLAIN):
                    name = name.removesuffix(PLAIN) + SUFFIX
                    data = b"".join(members(data))
                write_whole(part / name, data)
        stream.finish()
        _put(part, folder)
    except DataError:
        raise
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError, ValueError, RecursionError) as error:
        raise DataError(f"{tarball}: damaged, or not a file of packed records ({error})") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _put(part: Path, folder: Path) -> None:
    try:
        part.replace(folder)
    except OSError as error:
        raise FileError(
            f"{folder}: cannot be written ({error.strerror or error}); nothing was unpacked. Free some space or choose "
            "another place"
        ) from error


def _plain(entry: tarfile.TarInfo) -> bool:
    """Whether it is a file inside the folder: a link could name a large one many times, a sparse file have any size."""
    place = Path(entry.name)
    inside = place.parts and not place.is_absolute() and ".." not in place.parts
    return bool(inside) and entry.isfile() and not entry.issparse() and entry.size >= 0


def _content(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    inside = tar.extractfile(entry)
    assert inside is not None  # it is a file
    return b"".join(iter(partial(inside.read, MOST_AT_ONCE), b""))
