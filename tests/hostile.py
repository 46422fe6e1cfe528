"""What a stranger may put into a folder: damage to JSON and to weight files, and what must come of it."""

from __future__ import annotations

import json
import math
import os
import re
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from factordiff.errors import FactorDiffError

SECONDS = 2.0
MEGABYTES = 64  # beside a few times the file's own size
DEEP = "[" * 100_000 + "]" * 100_000
MISSING = object()
JUNK: dict[str, Any] = {  # for any field
    "missing": MISSING,
    "null": None,
    "text": "many",
    "nan": math.nan,
    "infinity": math.inf,
    "negative": -1,
    "zero": 0,
    "half": 2.5,
    "huge": 10**15,
    "beyond 64 bits": 2**70,
    "4,000 digits": 10**4_000,
    "flag": True,
    "list": [],
    "object": {"a": 1},
    "nested": [[[[[1]]]]],
    "a million": [1_000_000, 1_000_000],
}


def put(content: Any, path: str, value: Any) -> Any:
    """A copy of a JSON object with the value at a path such as `network.width`, or without it."""
    changed = json.loads(json.dumps(content))
    *way, last = path.split(".")
    place = changed
    for name in way:
        place = place[int(name) if isinstance(place, list) else name]
    if value is MISSING:
        del place[last]
    else:
        place[int(last) if isinstance(place, list) else last] = value
    return changed


Change = Callable[[Path], object]


def in_json(file: str, path: str, value: Any) -> Change:
    """Change one value of a JSON file of the folder."""

    def change(folder: Path) -> None:
        content = put(json.loads((folder / file).read_text()), path, value)
        (folder / file).write_text(json.dumps(content))

    return change


def instead(file: str, content: bytes) -> Change:
    """Another content for a file."""
    return lambda folder: (folder / file).write_bytes(content)


def texts() -> dict[str, bytes]:
    """Files that are no JSON object."""
    return {
        "empty": b"",
        "no json": b"weights",
        "a list": b"[1, 2]",
        "a number": b"1",
        "a string": b'"network"',
        "null": b"null",
        "an empty object": b"{}",
        "cut short": b'{"model_type": "factordiff", "netw',
        "no text": b"\xff\xfe\x00\x80",
        "deep": DEEP.encode(),
        "deep inside": b'{"network": ' + DEEP.encode() + b"}",
        "a number of 100,000 digits": b'{"network": ' + b"1" * 100_000 + b"}",
        "too large": b'{"about": "' + b"x" * 5_000_000 + b'"}',
    }


def header_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    """A safetensors file's header and the numbers behind it."""
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def with_header(header: Any, numbers: bytes) -> bytes:
    """A safetensors file of a header, whether or not it tells the truth."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + numbers


def in_header(file: str, edit: Callable[[dict[str, Any], bytes], tuple[Any, bytes]]) -> Change:
    """Change a weight file's header."""
    return lambda folder: (folder / file).write_bytes(
        with_header(*edit(*header_of((folder / file).read_bytes())))
    )


def weight_files(file: str, name: str) -> dict[str, Change]:
    """Weight files that are not what their configuration says; `name` is one of the weights."""

    def renamed(header: dict[str, Any], numbers: bytes) -> tuple[Any, bytes]:
        return {("other" if key == name else key): value for key, value in header.items()}, numbers

    def less(header: dict[str, Any], numbers: bytes) -> tuple[Any, bytes]:
        return {key: value for key, value in header.items() if key != name}, numbers

    def field(**values: Any) -> Callable[[dict[str, Any], bytes], tuple[Any, bytes]]:
        return lambda header, numbers: ({**header, name: {**header[name], **values}}, numbers)

    def flattened(header: dict[str, Any], numbers: bytes) -> tuple[Any, bytes]:
        return {**header, name: {**header[name], "shape": [math.prod(header[name]["shape"])]}}, numbers

    def integers(header: dict[str, Any], numbers: bytes) -> tuple[Any, bytes]:
        return {**header, name: {**header[name], "dtype": "I32"}}, numbers

    def not_finite(value: float) -> Callable[[dict[str, Any], bytes], tuple[Any, bytes]]:
        def edit(header: dict[str, Any], numbers: bytes) -> tuple[Any, bytes]:
            start = header[name]["data_offsets"][0]
            return header, numbers[:start] + struct.pack("<f", value) + numbers[start + 4 :]

        return edit

    def cut(share: float) -> Change:
        def change(folder: Path) -> None:
            whole = (folder / file).read_bytes()
            (folder / file).write_bytes(whole[: int(share * len(whole))])

        return change

    def instead_of_it(make: Callable[[Path], object]) -> Change:
        def change(folder: Path) -> None:
            (folder / file).unlink()
            make(folder / file)

        return change

    claims = struct.pack("<Q", 2**62) + b"{}"
    return {
        "gone": lambda folder: (folder / file).unlink(),
        "a folder": instead_of_it(Path.mkdir),
        "a pipe": instead_of_it(os.mkfifo),
        "empty": instead(file, b""),
        "a pickle": instead(file, b"\x80\x04\x95cos\nsystem\n(S'true'\ntR."),
        "half": cut(0.5),
        "without its last byte": cut(0.99999),
        "a header of 2**62 bytes": instead(file, claims),
        "no names": in_header(file, lambda header, numbers: ({}, b"")),
        "a list as header": in_header(file, lambda header, numbers: ([1, 2], numbers)),
        "another name": in_header(file, renamed),
        "one less": in_header(file, less),
        "another shape": in_header(file, flattened),
        "a shape of 2**60": in_header(file, field(shape=[2**60])),
        "a negative shape": in_header(file, field(shape=[-1, 2])),
        "a shape of text": in_header(file, field(shape="10")),
        "offsets outside": in_header(file, field(data_offsets=[0, 2**50])),
        "offsets backwards": in_header(file, field(data_offsets=[8, 0])),
        "an unknown dtype": in_header(file, field(dtype="F1")),
        "whole numbers": in_header(file, integers),
        "not a number": in_header(file, not_finite(math.nan)),
        "infinite": in_header(file, not_finite(math.inf)),
    }


def check_refused(use: Callable[[], Any], file_size: int) -> str:
    """One of the library's own errors, one sentence, soon, and without more memory than the file suggests."""
    begun = time.process_time()  # of this process: others may be busy
    with memory_within(MEGABYTES * 2**20 + 8 * file_size), pytest.raises(FactorDiffError) as refused:
        use()
    assert time.process_time() - begun < SECONDS
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert len(sentence) < 1_000, sentence
    assert sentence.isprintable()
    assert not re.search(r"(Error|Exception)\(", sentence), sentence  # no other exception's own words
    return sentence


@contextmanager
def memory_within(most: int) -> Iterator[None]:
    """Fail if the process's memory ever rose by more than so many bytes; where the system tells."""
    refs = Path("/proc/self/clear_refs")
    if not refs.exists():
        yield
        return
    refs.write_text("5")  # forget the highest
    before = _status("VmRSS")
    yield
    assert _status("VmHWM") - before < most


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
