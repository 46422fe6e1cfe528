"""Records as files: JSON lines in gzip members, one member per batch, appended as the batches come.

The first member is the header: what determines the records (data, weights, method, settings). Every later member
begins with a line about the batch (device, commit, seconds), then holds one line per query. A member that a crash
cut short fails its checksum and is dropped, so a file continues after an interruption where it was whole.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from factordiff.errors import DataError, InvalidInput
from factordiff.files import MOST_UNPACKED, append_whole, gzip_members, read_regular, write_whole
from factordiff.report.record import Record
from factordiff.report.record_schema import BATCH, HEADER, RECORD
from factordiff.schema.json_file import parse_object
from factordiff.schema.values import Whole

SUFFIX = ".jsonl.gz"
FORMAT = 1
OF_A_RECORD = tuple(one.name for one in fields(Record))
LARGEST_MEMBER = 32_000_000  # bytes of a batch, unpacked; one of ten thousand records has two million


@dataclass(frozen=True)
class Batch:
    """Records that were computed together, and where, when and how fast."""

    records: tuple[Record, ...]
    seconds: float
    device: str
    commit: str


@dataclass(frozen=True)
class RecordFile:
    """A row's records on disk; `header` says what they are records of."""

    path: Path
    header: dict[str, Any]
    batches: tuple[Batch, ...] = field(repr=False)

    def about(self, *keys: str) -> Any:
        """What the header says of something, such as `about("settings", "steps")`."""
        found: Any = self.header
        for key in keys:
            if not isinstance(found, dict) or key not in found:
                raise DataError(f"{self.path}: its header does not say {', '.join(keys)}; run it again")
            found = found[key]
        return found

    @property
    def records(self) -> list[Record]:
        """All records in the order of the list of queries, each query once."""
        by_query = {record.query: record for batch in self.batches for record in batch.records}
        return [by_query[query] for query in sorted(by_query)]

    @property
    def done(self) -> set[int]:
        """The queries that have a record."""
        return {record.query for batch in self.batches for record in batch.records}

    @property
    def seconds(self) -> float:
        """The wall time of all batches."""
        return sum(batch.seconds for batch in self.batches)

    @property
    def devices(self) -> list[str]:
        """The devices that computed them."""
        return sorted({batch.device for batch in self.batches})

    @property
    def commits(self) -> list[str]:
        """The commits of the code that computed them."""
        return sorted({batch.commit for batch in self.batches})


def open_records(path: Path, header: dict[str, Any]) -> RecordFile:
    """Begin a file, or continue one of the same header; a file of anything else is refused and left alone.

    One that was begun and got no record before a kill or a full disk is nobody's yet.
    """
    file, whole = _read(path) if path.exists() else (None, 0)
    if file is None or not file.batches:
        write_whole(path, _member([{"format": FORMAT, **header}]))
        return RecordFile(path, header, ())
    for key in sorted(file.header.keys() | header.keys()):
        there, here = _said(file.header.get(key)), _said(header.get(key))
        if there != here:
            what, there, here = _first_difference(key, there, here)
            raise DataError(
                f"{path}: these records are of another run: {what} is {there!r} in the file and {here!r} now; "
                "nothing was overwritten. Use the same setting, or another folder with --out"
            )
    if whole < path.stat().st_size:
        os.truncate(path, whole)  # what a crash cut short
    return file


def read_records(path: Path) -> RecordFile:
    """A file of records, whole or interrupted."""
    return _read(path)[0]


def append(path: Path, batch: Batch) -> None:
    """Append a batch; it counts only once it is there completely."""
    about = {"seconds": round(batch.seconds, 3), "device": batch.device, "commit": batch.commit}
    data = _member([about, *(_line(record) for record in batch.records)])
    append_whole(path, data)


def write_cells(cells: Sequence[int]) -> str:
    """Cells as text: runs are written by their ends.

    >>> write_cells([3, 4, 5, 17])
    '3-5,17'
    """
    runs: list[list[int]] = []
    for cell in cells:
        if runs and cell == runs[-1][1] + 1:
            runs[-1][1] = cell
        else:
            runs.append([cell, cell])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _line(record: Record) -> dict[str, Any]:
    line: dict[str, Any] = {
        "query": record.query,
        "task": record.task,
        "number": record.number,
        "exact": int(record.exact),
        "wrong": write_cells(record.wrong),
        "nominal": record.nominal,
        "executed": record.executed,
        "seed": record.seed,
    }
    if record.answer:
        line["answer"] = record.answer
    if record.shape is not None:
        line["shape"] = record.shape
    if record.drawn is not None:
        line["drawn"] = write_cells(record.drawn)
    if record.grid is not None:
        line["grid"] = int(record.grid)
    if record.drawn_grid is not None:
        line["drawn_grid"] = int(record.drawn_grid)
    if record.measures is not None:
        line["measures"] = {name: list(pair) for name, pair in record.measures.items()}
    return line


def _record(line: dict[str, Any]) -> Record:
    said = RECORD.read(line, "")
    known = {name: said[name] for name in OF_A_RECORD if name in said}
    return Record(**known | {name: bool(said[name]) for name in ("grid", "drawn_grid") if name in said})


def _member(lines: Iterable[dict[str, Any]]) -> bytes:
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    return gzip.compress(text.encode(), 9, mtime=0)


def members(text: bytes) -> list[bytes]:
    """The members of a file from its lines: the header is one, and each line about a batch begins another."""
    pieces: list[list[bytes]] = []
    for line in text.splitlines(keepends=True):
        if len(pieces) < 2 or "seconds" in json.loads(line):
            pieces.append([])
        pieces[-1].append(line)
    return [gzip.compress(b"".join(piece), 9, mtime=0) for piece in pieces]


def _read(path: Path) -> tuple[RecordFile, int]:
    if not path.exists():
        raise DataError(f"{path}: is not there; run the experiment first")
    data = read_regular(path, MOST_UNPACKED)
    header: dict[str, Any] | None = None
    batches, whole = [], 0
    try:
        for text, end in gzip_members(data, path, most_each=LARGEST_MEMBER):
            whole = end
            lines = [parse_object(line) for line in text.splitlines()]
            if not lines:
                raise DataError("a batch without a line")
            if header is not None:
                batches.append(_batch(*lines))
            else:
                Whole(FORMAT, FORMAT).read(lines[0].pop("format", None), "format")
                header = HEADER.read(lines[0], "header")
    except (InvalidInput, DataError, zlib.error) as error:
        raise DataError(
            f"{path}: damaged, or not a file of records ({error}); remove it to begin anew"
        ) from None
    if header is None:
        raise DataError(f"{path}: not a file of records: it has no header; remove it or use another folder")
    return RecordFile(path, header, tuple(batches)), whole


def _batch(about: dict[str, Any], *lines: dict[str, Any]) -> Batch:
    said = BATCH.read(about, "batch")
    return Batch(tuple(_record(line) for line in lines), said["seconds"], said["device"], said["commit"])


HOW = ("batch_size", "compiled")  # how passes were put together, not what was asked


def _said(value: Any) -> Any:
    """A value without what it leaves open: a file from before there was a choice does not speak of it."""
    if not isinstance(value, dict):
        return value
    return {key: one for key, one in value.items() if one is not None and key not in HOW}


def _first_difference(key: str, there: Any, here: Any) -> tuple[str, Any, Any]:
    """Where two values differ, looking inside dictionaries."""
    if isinstance(there, dict) and isinstance(here, dict):
        inner = next(name for name in sorted(there.keys() | here.keys()) if there.get(name) != here.get(name))
        return _first_difference(f"{key}.{inner}", there.get(inner), here.get(inner))
    return key, there, here
