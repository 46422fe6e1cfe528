"""A report takes the place of the former one whole, or nothing is touched."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks import publish_report
from factordiff.experiments import catalogue
from factordiff.experiments.pairs import COL_OCC
from factordiff.report.records import read_records
from tests.cli.in_process import contents
from tests.experiments.records import share, write


@pytest.fixture
def former(tmp_path: Path) -> Path:
    results = tmp_path / "docs" / "results"
    (results / "pictures").mkdir(parents=True)
    (results / "records").mkdir()
    (results / "unfinished").mkdir()
    for name in (
        "README.md",
        "report.html",
        "records.tar.xz",
        "bench-cpu.json",
        "pictures/old.png",
        "records/old",
        "unfinished/records-1.tar.xz",
    ):
        (results / name).write_text("former")
    return results


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write(tmp_path / "run" / "records", COL_OCC.row("routing"), share(0.7))
    return tmp_path / "run"


def test_a_run_that_is_not_whole_is_refused(run: Path, former: Path) -> None:
    before = contents(former)
    with pytest.raises(SystemExit, match=r"rows are not run yet.*Nothing was published"):
        publish_report.main([str(run), "--results", str(former)])
    assert contents(former) == before


def test_records_that_take_too_much_room_are_refused(
    run: Path, former: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(former)
    monkeypatch.setattr(catalogue, "warning", lambda archive: "")
    monkeypatch.setattr(publish_report, "LARGEST", 10)
    with pytest.raises(SystemExit, match=r"its records take [\d,]+ bytes, expected at most 10"):
        publish_report.main([str(run), "--results", str(former)])
    assert contents(former) == before


def test_a_report_for_which_the_tracked_files_have_no_room_is_refused(
    run: Path, former: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stays is counted, what the report replaces is not."""
    top = former.parents[1]
    (top / "weights").write_bytes(bytes(5_000))
    (former / "unfinished" / "records-1.tar.xz").write_bytes(bytes(900_000))
    (former / "bench-cpu.json").write_bytes(bytes(300))
    for words in (["init", "-q"], ["add", "docs/results", "weights"]):
        subprocess.run(["git", *words], cwd=top, check=True)
    new = top / "new"
    new.mkdir()
    (new / "README.md").write_bytes(bytes(7))
    assert publish_report.tracked_after(former, new) == 5_000 + 300 + len("former") + 7  # that of records/old
    before = contents(former)
    monkeypatch.setattr(catalogue, "warning", lambda archive: "")
    monkeypatch.setattr(publish_report, "TRACKED", 6_000)
    with pytest.raises(SystemExit, match=r"all tracked files take [\d,]+ bytes, expected at most 6,000"):
        publish_report.main([str(run), "--results", str(former)])
    assert contents(former) == before


def test_nothing_of_the_former_report_is_left(
    run: Path, former: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "warning", lambda archive: "")
    publish_report.main([str(run), "--results", str(former)])
    found = contents(former)
    assert found.pop("bench-cpu.json") == b"former"
    assert b"former" not in found.values()
    assert found["README.md"].startswith(b"# ")
    assert "pictures/first-screen.png" in found
    assert not any(name.startswith("records/") for name in found)
    assert [path.name for path in former.parent.iterdir()] == ["results"]
    again = former.parent / "again"
    publish_report.unpack(former / "records.tar.xz", again)
    row = COL_OCC.row("routing")
    assert read_records(row.file(again)).records == read_records(row.file(run / "records")).records
