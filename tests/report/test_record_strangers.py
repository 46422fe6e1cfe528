"""Files of records with right checksums and wrong content: a sentence, soon, and nothing is unpacked without bound."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import jaxtyping
import pytest

from factordiff.errors import DataError
from factordiff.networks.store import MODEL, save_expert, weight_hash
from factordiff.report.card import measure_figures
from factordiff.report.outcomes import read_outcomes
from factordiff.report.record import Record
from factordiff.report.records import Batch, append, open_records, read_records
from tests.hostile import DEEP, JUNK, check_refused, put
from tests.networks.small_networks import small

HEADER = {
    "row": "x", "data": "d", "weights": {"a": "1"}, "listed": 3, "method": {"split": "test", "question": "full"},
    "settings": {"steps": 4, "dtype": "float32"},
}  # fmt: skip
RECORDS = (
    Record(0, "aaaaaaaa", 800, (3, 4), 100, 90, 3, (5,), True, False, "ff", (3, 3), {"nats": (1.25, 4.0)}),
    Record(1, "aaaaaaaa", 801, (), 100, 90, 3, (), True, False, "fe", (3, 3), {"nats": (1.5, 4.0)}),
)
Lines = list[list[Any]]  # of each member: the header's, then each batch's
NUMBER = ("zero", "huge")
MAY_BE: dict[tuple[int, int], dict[str, tuple[str, ...]]] = {
    (0, 0): {
        "format": (), "row": ("text",), "data": ("missing", "text"), "weights": ("missing",),
        "listed": ("missing", *NUMBER), "settings": ("missing", "object"),
        "settings.steps": ("missing", *NUMBER), "method": ("missing", "object"),
    },
    (1, 0): {"seconds": ("zero", "half", "huge", "beyond 64 bits"), "device": ("text",), "commit": ("text",)},
    (1, 1): {
        "query": NUMBER, "task": ("text",), "number": NUMBER, "exact": ("missing", "zero"), "wrong": (),
        "nominal": NUMBER, "executed": NUMBER, "seed": ("negative", *NUMBER), "drawn": ("missing",),
        "grid": ("missing", "zero"), "answer": ("missing", "text"), "shape": ("missing",),
        "measures": ("missing",),
    },
}  # fmt: skip
CELLS = ("0-99999999999", "5-3", "3,3", "-1", "a", "1-2-3", "3,", "9" * 5_000, "0-65536", "٣", "1_0", " 1")


def hostile() -> dict[str, tuple[int, int, str, Any]]:
    """Every hostile value: the member, the line, the path and what stands there."""
    found = {
        f"member {member}, line {line}, {path} is {name}": (member, line, path, value)
        for (member, line), paths in MAY_BE.items()
        for path, allowed in paths.items()
        for name, value in JUNK.items()
        if name not in allowed
    }
    return found | {f"wrong is {cells[:20]}": (1, 1, "wrong", cells) for cells in CELLS}


HOSTILE = hostile()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.jsonl.gz"
    open_records(path, HEADER)
    append(path, Batch(RECORDS, 1.25, "a device", "abc"))
    return path


def lines_of(path: Path) -> Lines:
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return [lines[:1], lines[1:]]


def write(path: Path, members: Lines) -> None:
    texts = ["".join(json.dumps(line) + "\n" for line in lines) for lines in members]
    path.write_bytes(b"".join(gzip.compress(text.encode()) for text in texts))


def test_there_are_enough() -> None:
    assert len(HOSTILE) >= 30


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_line_is_a_sentence(what: str, path: Path) -> None:
    member, line, where, value = HOSTILE[what]
    members = lines_of(path)
    members[member][line] = put(members[member][line], where, value)
    write(path, members)
    before = path.read_bytes()
    assert str(path) in check_refused(lambda: read_records(path), len(before))
    check_refused(lambda: open_records(path, HEADER), len(before))
    assert path.read_bytes() == before


TEXTS = {
    "nothing": b"",
    "an empty line": b"\n",
    "no json": b"records\n",
    "a list": b"[]\n",
    "deep": DEEP.encode() + b"\n",
    "no text": b"\xff\xfe\n",
    "40 MB of zeros": bytes(40_000_000),
    "40 MB of lines": b"\n" * 40_000_000,
}


@pytest.mark.parametrize("member", [0, 1])
@pytest.mark.parametrize("what", TEXTS)
def test_a_hostile_member_is_a_sentence(what: str, member: int, path: Path) -> None:
    whole = gzip.compress(json.dumps(lines_of(path)[0][0]).encode() + b"\n")
    path.write_bytes((whole if member else b"") + gzip.compress(TEXTS[what], 1))
    check_refused(lambda: read_records(path), path.stat().st_size)


def test_many_small_members_take_no_longer_than_their_number(path: Path) -> None:
    header = gzip.compress(json.dumps(lines_of(path)[0][0]).encode() + b"\n")
    about = gzip.compress(b'{"seconds": 1, "device": "d", "commit": "c"}\n')
    path.write_bytes(header + 20_000 * about + gzip.compress(b"[]"))  # 1.3 MB
    jaxtyping.config.update("jaxtyping_disable", True)  # as users run it; the checks take most of the time
    try:
        check_refused(lambda: read_records(path), path.stat().st_size)
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.parametrize(
    "missing", ["weights", "data", "method", "settings", "method.split", "settings.dtype"]
)
def test_a_card_needs_what_the_header_may_lack(missing: str, path: Path, tmp_path: Path) -> None:
    folder = save_expert(small("trans-ir"), tmp_path / "expert")
    members = lines_of(path)
    members[0][0]["weights"] = {"a": weight_hash(folder)}
    write(path, members)
    assert measure_figures(folder, [path]).find("test") is not None
    way = missing.split(".")
    inner = members[0][0] if len(way) == 1 else members[0][0][way[0]]
    del inner[way[-1]]
    write(path, members)
    with pytest.raises(DataError, match=f"its header does not say {', '.join(way)}"):
        measure_figures(folder, [path])
    assert (folder / MODEL).exists()


def test_answers_are_compared_only_where_they_are_told_apart(path: Path, tmp_path: Path) -> None:
    folder = save_expert(small("trans-ir"), tmp_path / "expert")
    members = lines_of(path)
    members[0][0]["weights"] = {"a": weight_hash(folder)}
    write(path, members)
    other = path.with_name(f"other-{path.name}")
    write(other, members)
    assert [one.equal for one in measure_figures(folder, [path, other]).agreements] == [1.0]
    for line in members[1][1:]:
        line.pop("answer", None)  # as in the records of a report
    write(other, members)
    with pytest.raises(DataError, match=r"other-.*: a report.s records, which do not tell answers apart"):
        measure_figures(folder, [path, other])


def test_the_file_itself_is_well(path: Path) -> None:
    write(path, lines_of(path))
    file = read_records(path)
    assert tuple(file.records) == RECORDS
    assert file.header == HEADER
    found = read_outcomes(file)
    assert found is not None
    assert found.exact.tolist() == [False, True]
