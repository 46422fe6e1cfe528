"""Records in one small file: packed, unpacked, and the same; nothing damaged or foreign is let in."""

from __future__ import annotations

import io
import lzma
import tarfile
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from factordiff.errors import DataError
from factordiff.files import MOST_BYTES
from factordiff.report.record import Record
from factordiff.report.records import Batch, append, open_records, read_records
from factordiff.report.tarball import TARBALL, pack, unpack
from factordiff.report.xz_stream import XzStream

HEADER = {"row": "x", "data": "d", "weights": {"a": "1"}, "settings": {"steps": 4, "seed": 0}}


def records(count: int, wrong_every: int) -> list[Record]:
    return [
        Record(
            query,
            f"{query % 7:08x}",
            800 + query // 7,
            () if query % wrong_every else (query % 100,),
            100,
            90,
            answer=f"{hash((query, query % wrong_every == 0)) & (2**32 - 1):08x}",
        )
        for query in range(count)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "records"
    for row in range(6):
        path = folder / f"test.row{row}.jsonl.gz"
        open_records(path, {**HEADER, "row": f"row{row}"})
        found = records(300, 5 + row)
        for first in range(0, 300, 100):
            append(path, Batch(tuple(found[first : first + 100]), 1.5 + first, "a device", "abc"))
    (folder / "timing").mkdir()
    (folder / "timing" / "one.json.gz").write_bytes(b"\x1f\x8bwhatever")
    open_records(folder / "empty.jsonl.gz", HEADER)
    return folder


def test_what_is_packed_comes_back(folder: Path, tmp_path: Path) -> None:
    tarball = tmp_path / TARBALL
    pack(folder, tarball)
    unpack(tarball, tmp_path / "again")
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    again = tmp_path / "again"
    assert sorted(path.relative_to(again) for path in again.rglob("*") if path.is_file()) == names
    for name in names:
        if name.name.endswith(".jsonl.gz"):
            one, other = read_records(folder / name), read_records(again / name)
            assert other == replace(one, path=again / name)
        else:
            assert (again / name).read_bytes() == (folder / name).read_bytes()


def test_rows_about_the_same_queries_cost_little_together(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / TARBALL)
    assert (tmp_path / TARBALL).stat().st_size < sum(path.stat().st_size for path in folder.glob("*.gz")) / 4


def test_the_same_records_make_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / TARBALL)
    unpack(tmp_path / TARBALL, tmp_path / "again")
    pack(tmp_path / "again", tmp_path / "second.tar.xz")
    assert (tmp_path / "second.tar.xz").read_bytes() == (tmp_path / TARBALL).read_bytes()


def test_unpacked_rows_can_be_continued(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / TARBALL)
    unpack(tmp_path / TARBALL, tmp_path / "again")
    path = tmp_path / "again" / "test.row0.jsonl.gz"
    header = {**HEADER, "row": "row0"}
    assert open_records(path, header).done == set(range(300))
    append(path, Batch((Record(300, "00000000", 1, (), 1, 1),), 1.0, "a device", "abc"))
    assert len(read_records(path).records) == 301


def test_what_a_crash_cut_short_is_left_out(folder: Path, tmp_path: Path) -> None:
    path = folder / "test.row0.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-9])
    pack(folder, tmp_path / TARBALL)
    unpack(tmp_path / TARBALL, tmp_path / "again")
    assert len(read_records(tmp_path / "again" / path.name).records) == 200


def test_nothing_is_overwritten_and_nothing_is_packed_from_nothing(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / TARBALL)
    with pytest.raises(DataError, match="is there already; nothing was unpacked"):
        unpack(tmp_path / TARBALL, folder)
    with pytest.raises(DataError, match="holds no records; run an experiment first"):
        pack(tmp_path / "nowhere", tmp_path / "other.tar.xz")
    assert not (tmp_path / "other.tar.xz").exists()


@pytest.mark.parametrize("damage", ["cut", "flip", "text"])
def test_a_damaged_file_leaves_nothing_behind(folder: Path, tmp_path: Path, damage: str) -> None:
    tarball = tmp_path / TARBALL
    pack(folder, tarball)
    data = bytearray(tarball.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 1
    tarball.write_bytes(b"hello" if damage == "text" else bytes(data[:-40] if damage == "cut" else data))
    with pytest.raises(DataError, match="damaged, or not a file of packed records"):
        unpack(tarball, tmp_path / "again")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["records", TARBALL]


@pytest.mark.parametrize("name", ["../outside.jsonl", "/tmp/outside.jsonl"])
def test_no_name_leads_outside(tmp_path: Path, name: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size = 2
        tar.addfile(entry, io.BytesIO(b"{}"))
    (tmp_path / TARBALL).write_bytes(lzma.compress(packed.getvalue()))
    with pytest.raises(DataError, match="is not a file of records"):
        unpack(tmp_path / TARBALL, tmp_path / "again")
    assert [path.name for path in tmp_path.iterdir()] == [TARBALL]


def test_an_archive_unpacks_to_no_more_than_was_expected(tmp_path: Path) -> None:
    """The size that a member claims is believed before a byte of it is unpacked: 4 GB of zeros fit into 625 kB."""
    tarball = tmp_path / TARBALL
    entry = tarfile.TarInfo("zeros.bin")
    entry.size = 4 * 2**30
    tarball.write_bytes(lzma.compress(entry.tobuf() + bytes(2**20)))
    with pytest.raises(DataError, match="unpacks to more than 1,073,741,824 bytes; nothing was unpacked"):
        unpack(tarball, tmp_path / "records")
    assert [path.name for path in tmp_path.iterdir()] == [TARBALL]


def header(kind: bytes, size: int, name: str = "x.bin", **fields: object) -> bytes:
    """The block of a tar file that comes before a part of that kind."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.size = kind, size
    for field, value in fields.items():
        setattr(entry, field, value)
    return entry.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(("kind", "megabytes"), [(b"L", 160), (b"x", 160), (b"K", 2), (b"g", 2)])
def test_a_name_takes_no_more_memory_than_names_do(tmp_path: Path, kind: bytes, megabytes: int) -> None:
    """Long names are parts of their own, which are read before the file that they name is seen."""
    size = megabytes * 2**20
    packed = lzma.compress(header(kind, size) + bytes(size) + header(b"0", 0) + bytes(1024), preset=0)
    (tmp_path / TARBALL).write_bytes(packed)
    del packed
    tracemalloc.start()
    with pytest.raises(DataError, match=f"a name in it has {size:,} bytes, expected at most 1,048,576"):
        unpack(tmp_path / TARBALL, tmp_path / "again")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MOST_BYTES + 2**23  # a file is read into that much
    assert [path.name for path in tmp_path.iterdir()] == [TARBALL]


PAX = b"22 GNU.sparse.map=a,b\n"


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ([header(b"L", 2) + b"ab".ljust(512, b"\0")] * 2_000, "damaged, or not a file of packed records"),
        ([header(b"0", 0, f"{number}.bin") for number in range(30)], "holds more than 20 files"),
        (
            [header(b"0", 512) + bytes(512), header(b"1", 0, "y.bin", linkname="x.bin")],
            "'y.bin' is not a file",
        ),
        ([header(b"2", 0, linkname="/etc/passwd")], "'x.bin' is not a file of records"),
        ([header(b"3", 0)], "'x.bin' is not a file of records"),
        ([header(b"0", -512) + bytes(512)], "'x.bin' is not a file of records|damaged"),
        ([header(b"g", 12) + b"12 a=bcdefg\n".ljust(512, b"\0"), header(b"0", 0)], "'x.bin' is not a file"),
        ([header(b"x", len(PAX)) + PAX.ljust(512, b"\0"), header(b"0", 0)], "damaged"),
        ([header(b"0", 0, ".")], "'.' is not a file of records"),
    ],
    ids=["chain", "many", "link", "symlink", "device", "negative", "global", "no number", "the folder"],
)
def test_what_is_no_plain_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: list[bytes], sentence: str
) -> None:
    """A link would be written as often as it is named, a chain of names be followed as deep as it goes."""
    monkeypatch.setattr("factordiff.report.tarball.MOST_FILES", 20)
    (tmp_path / TARBALL).write_bytes(lzma.compress(b"".join(parts) + bytes(10_240)))
    with pytest.raises(DataError, match=sentence):
        unpack(tmp_path / TARBALL, tmp_path / "again")
    assert [path.name for path in tmp_path.iterdir()] == [TARBALL]


def test_a_stream_unpacks_to_no_more_than_was_said() -> None:
    packed = lzma.compress(bytes(range(256)) * 16)
    stream = XzStream(packed, "here", 4_096)
    assert stream.read(3) + stream.read(2) == bytes(range(5))
    assert (stream.seek(1_000), stream.read(2), stream.tell()) == (1_000, bytes([232, 233]), 1_002)
    stream.finish()
    assert (stream.read(1), stream.tell()) == (b"", 4_096)
    with pytest.raises(EOFError, match="lies before"):
        stream.seek(3)
    for ask in (lambda one: one.finish(), lambda one: one.seek(4_096), lambda one: one.check_room(4_096)):
        with pytest.raises(DataError, match="here: unpacks to more than 4,095 bytes; nothing was unpacked"):
            ask(XzStream(packed, "here", 4_095))
    with pytest.raises(EOFError, match="cut short"):
        XzStream(packed[:-20], "here").finish()
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 2**30}]
    with pytest.raises(lzma.LZMAError, match="Memory usage limit"):
        XzStream(lzma.compress(b"x", filters=filters), "here").read(1)


def test_what_a_kill_left_is_not_packed(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "before")
    (folder / ".x.jsonl.gz.lock").write_text("process 1")
    (folder / ".writing-x.jsonl.gz-0").write_bytes(b"half")
    pack(folder, tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()
