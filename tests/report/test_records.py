"""Record files: the same in and out, continued after a crash, refused when they are of something else."""

from __future__ import annotations

import errno
import gzip
import json
import os
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factordiff import files
from factordiff.errors import DataError, FileError
from factordiff.report.findings import has_finding, read_finding, write_finding
from factordiff.report.outcomes import read_outcomes
from factordiff.report.record import Record
from factordiff.report.record_schema import CELLS
from factordiff.report.records import Batch, append, open_records, read_records, write_cells

HEADER = {"row": "x", "data": "d", "weights": {"a": "1", "b": "2"}, "settings": {"steps": 4, "seed": 0}}
RECORDS = (
    Record(0, "aaaaaaaa", 800, (), 100, 90, 3),
    Record(1, "bbbbbbbb", 800, (3, 4, 5, 17), 100, 90, 3, (), True, False),
    Record(2, "cccccccc", 800, (), 100, 90, 3, measures={"nats": (1.25, 4.0)}),
)


def batch(*records: Record) -> Batch:
    return Batch(records, 1.25, "a device", "abc")


@given(st.sets(st.integers(0, 99)))
def test_cells_come_back(cells):
    assert CELLS.read(write_cells(sorted(cells)), "cells") == tuple(sorted(cells))


def test_records_come_back_and_anyone_can_read_them(tmp_path):
    path = tmp_path / "deep" / "x.jsonl.gz"
    open_records(path, HEADER)
    append(path, batch(RECORDS[1], RECORDS[2]))
    append(path, batch(RECORDS[0]))
    file = read_records(path)
    assert file.header == HEADER
    assert tuple(file.records) == RECORDS  # in the order of the list, whatever came first
    assert (file.seconds, file.devices, file.commits) == (2.5, ["a device"], ["abc"])
    lines = subprocess.run(
        ["gzip", "-dc", path], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert json.loads(lines[2])["wrong"] == "3-5,17"


def test_what_is_wrong_in_the_padding_alone_is_right_once_cropped(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    cases = {(): True, (3,): True, (2,): False, (30, 99): True, (22,): False, (13, 21): False}
    records = [
        Record(number, "aaaaaaaa", number, wrong, 1, 1, answer="a", shape=(3, 3))
        for number, wrong in enumerate(cases)
    ]
    open_records(path, HEADER)
    append(path, batch(*records))
    found = read_outcomes(read_records(path))
    assert found.cropped.tolist() == list(cases.values())
    assert found.exact.tolist() == [True] + 5 * [False]
    assert found.where(found.query > 2).cropped.tolist() == [True, False, False]
    append(path, batch(Record(6, "aaaaaaaa", 6, (), 1, 1)))  # from before shapes were kept
    assert read_outcomes(read_records(path)).cropped is None


def test_how_passes_were_put_together_may_change(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    header = {**HEADER, "settings": {"steps": 4, "batch_size": 12, "compiled": False}}
    open_records(path, header)
    append(path, batch(RECORDS[0]))
    open_records(path, {**header, "settings": {"steps": 4, "batch_size": 24, "compiled": True}})
    with pytest.raises(DataError, match=r"settings\.steps is 4 in the file and 5 now"):
        open_records(path, {**header, "settings": {"steps": 5, "batch_size": 12, "compiled": False}})


def test_a_file_that_a_crash_cut_short_continues_where_it_was_whole(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    open_records(path, HEADER)
    append(path, batch(RECORDS[0]))
    whole = path.stat().st_size
    append(path, batch(RECORDS[1]))
    complete = path.read_bytes()
    for cut in range(whole + 1, len(complete), 7):
        path.write_bytes(complete[:cut])
        assert open_records(path, HEADER).done == {0}
        assert path.stat().st_size == whole
        append(path, batch(RECORDS[1]))
        assert path.read_bytes() == complete


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"weights": {"a": "1", "b": "other"}}, "weights.b is '2' in the file and 'other' now"),
        ({"data": "other"}, "data is 'd'"),
        ({"settings": {"steps": 8, "seed": 0}}, "settings.steps is 4"),
    ],
)
def test_records_of_something_else_are_refused_and_left_alone(tmp_path, change, named):
    path = tmp_path / "x.jsonl.gz"
    open_records(path, HEADER)
    append(path, batch(RECORDS[0]))
    before = path.read_bytes()
    with pytest.raises(DataError, match=named):
        open_records(path, {**HEADER, **change})
    assert path.read_bytes() == before


def test_damaged_files_and_other_files_are_refused(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    open_records(path, HEADER)
    append(path, batch(*RECORDS))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"damaged|not a file of records"):
        open_records(path, HEADER)
    assert path.read_bytes() == data
    for content in (b"", b"hello", b"{}"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="not a file of records"):
            read_records(path)
    with pytest.raises(DataError, match="run the experiment first"):
        read_records(tmp_path / "nothing")


def test_findings_are_made_once(tmp_path):
    assert not has_finding(tmp_path, "maps", {"weights": "1"}, {"queries": 7})
    assert read_finding(tmp_path, "maps") is None
    write_finding(tmp_path, "maps", {"weights": "1", "queries": 7}, [1, 2])
    assert has_finding(tmp_path, "maps", {"weights": "1"}, {"queries": 7})
    assert not has_finding(tmp_path, "maps", {"weights": "1"}, {"queries": 8})  # to be made anew
    assert read_finding(tmp_path, "maps") == [1, 2]
    with pytest.raises(DataError, match="another weights: '1' in the file and '2' now"):
        has_finding(tmp_path, "maps", {"weights": "2"}, {"queries": 7})
    (tmp_path / "maps.json.gz").write_bytes(b"x")
    with pytest.raises(DataError, match="damaged"):
        read_finding(tmp_path, "maps")


def test_a_full_disk_leaves_what_was_there_and_a_way_on(tmp_path, monkeypatch):
    path = tmp_path / "x.jsonl.gz"
    open_records(path, HEADER)
    append(path, batch(RECORDS[0]))
    before = path.read_bytes()

    def half(file, data):
        file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "_write_all", half)
    with pytest.raises(FileError, match=r"No space left on device.*call it again: it goes on"):
        append(path, batch(RECORDS[1]))
    assert path.read_bytes() == before
    monkeypatch.undo()
    assert open_records(path, HEADER).done == {0}


def test_a_file_that_got_no_record_stands_in_nobodys_way(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    open_records(path, HEADER)
    append(path, batch(RECORDS[0]))
    begun = path.read_bytes()
    path.write_bytes(begun[:-5])  # killed inside the first batch
    assert open_records(path, {**HEADER, "data": "other"}).header["data"] == "other"
    append(path, batch(RECORDS[0]))
    with pytest.raises(DataError, match="of another run: data is 'other' in the file and 'd' now"):
        open_records(path, HEADER)


def test_packed_records_unpack_to_no_more_than_was_expected(tmp_path):
    """625 kB can be made to unpack to 4 GB."""
    path = tmp_path / "bomb.jsonl.gz"
    one = gzip.compress(bytes(2**26), 9)
    path.write_bytes(one * 17)
    begun = time.monotonic()
    with pytest.raises(DataError, match=r"unpacks to more than|not a file of records"):
        read_records(path)
    assert time.monotonic() - begun < 10
