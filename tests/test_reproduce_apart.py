"""`reproduce` in several processes: every row is of one unit, and what is carried comes back whole."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks import reproduce_apart
from benchmarks.reproduce_apart import PIECE, Unit, carried_in, carried_out, claim, units
from factordiff.experiments.catalogue import EXPERIMENTS
from factordiff.experiments.pairs import COL_OCC, EARLY, FULL_FULL
from factordiff.experiments.runner import _asked_for
from factordiff.experiments.tuning import fitted_as
from factordiff.networks.store import build, save_expert
from factordiff.report.outcomes import RecordFolder
from factordiff.report.tarball import pack
from tests.cli.in_process import contents, records, run
from tests.experiments.conftest import sets  # noqa: F401
from tests.experiments.lookup import lookup_bench
from tests.experiments.records import share, write

TINY = {"width": 8, "context": 8, "latents": 2, "heads": 2, "blocks": 1, "encoder": 8, "cycles": (1, 1)}
SMALL = ("--limit", "2", "--steps", "2", "--particles", "2", "--device", "cpu", "--batch", "1")


def test_every_row_and_every_search_is_of_one_unit(sets, tmp_path):  # noqa: F811
    runner = lookup_bench(sets, tmp_path)
    found = units(runner)
    assert len({unit.name for unit in found}) == len(found)
    assert [unit.cost for unit in found] == sorted((unit.cost for unit in found), reverse=True)
    for name, experiment in EXPERIMENTS.items():
        if name == "compute":
            continue
        searched = [fitted_as(group, method, {}, 600, "validation") for group, method in experiment.trials()]
        for row in (*experiment.rows(), *searched):
            (owner,) = (unit for unit in found if _asked_for(row, unit.name))
            assert name in owner.experiments, (row.name, owner)
    for pair in (FULL_FULL, COL_OCC):
        evidence = next(unit for unit in found if unit.name == f"{'+'.join(pair.experts)}.evidence")
        assert evidence.experiments[-1] == "official", "published tasks with what the search chose"


def test_each_unit_is_claimed_once_and_begins_with_experts_of_its_own(tmp_path):
    plan = [
        Unit(("a", "b"), "routing", (), 9),
        Unit(("c", "d"), "routing", (), 8),
        Unit(("a", "b"), "product", (), 7),
        Unit(("b", "c"), "mixture", (), 6),
        Unit(("a",), "single", (), 1),
    ]
    left, known = [list(plan), list(plan)], [set(), set()]
    taken = []
    for place in (0, 1, 0, 0, 0, 1, 1):
        unit = claim(left[place], known[place], tmp_path, place)
        if unit is not None:
            known[place] |= set(unit.experts)
            taken.append((place, unit.name))
    assert taken[:2] == [(0, "a+b.routing"), (1, "c+d.routing")]
    assert taken[2:] == [(0, "a+b.product"), (0, "a.single"), (0, "b+c.mixture")], "known experts first"
    assert claim(left[0], known[0], tmp_path, 0) is None


def test_a_unit_runs_its_own_rows_alone_and_makes_no_finding(sets, tmp_path):  # noqa: F811
    runner = lookup_bench(sets, tmp_path, only="trans-full-early+conv-full-early.routing", findings=False)
    EXPERIMENTS["overlap"].run(runner)
    names = {path.name for path in tmp_path.iterdir()}
    assert "test.trans-full-early+conv-full-early.routing.jsonl.gz" in names
    assert len([name for name in names if name.startswith("validation.")]) > 5, "its search"
    assert all(".trans-full-early+conv-full-early.routing." in name for name in names)


def test_what_is_packed_for_the_next_call_is_what_was_there(tmp_path):
    folder = tmp_path / "out" / "records"
    for pair in (FULL_FULL, COL_OCC, EARLY):
        for method in ("routing", "product", "mixture"):
            write(folder, pair.row(method), share(0.7))
    (folder / "routers" / "a+b").mkdir(parents=True)
    (folder / "routers" / "a+b" / "config.json").write_text("{}")
    (folder / ".left.lock").write_text("")
    carried_out(folder, tmp_path / "back")
    pieces = sorted(path.name for path in (tmp_path / "back").iterdir())
    assert 1 < len(pieces) <= 7
    assert pieces == [PIECE.format(number + 1) for number in range(len(pieces))]
    again = tmp_path / "other" / "records"
    again.parent.mkdir()
    carried_in(tmp_path / "back", again)
    there = {name: data for name, data in contents(folder).items() if "lock" not in name}
    assert contents(again) == there
    assert [path.name for path in again.parent.iterdir()] == ["records"], "nothing is left beside it"
    newer = COL_OCC.row("geometric-mean")
    write(again, newer, share(0.5))
    carried_in(tmp_path / "back", again)  # what is there is newer
    assert RecordFolder(again).outcomes(newer) is not None


def test_pieces_of_two_calls_are_refused_and_nothing_is_unpacked(tmp_path):
    """A piece that an older call left would put its shorter rows in place of the newer ones."""
    folder, carried = tmp_path / "out" / "records", tmp_path / "carried"
    for method in ("routing", "product", "mixture"):
        write(folder, COL_OCC.row(method), share(0.7)[:100])
    carried_out(folder, carried)
    for piece in sorted(carried.iterdir())[1:]:
        piece.unlink()
    shutil.rmtree(folder)
    write(folder, COL_OCC.row("mixture"), share(0.7))
    pack(folder, carried / PIECE.format(5))
    again = tmp_path / "other" / "records"
    again.parent.mkdir()
    with pytest.raises(
        SystemExit, match=r"mixture\.jsonl\.gz is in records-1\.tar\.xz and in records-5\.tar\.xz"
    ):
        carried_in(carried, again)
    assert list(again.parent.iterdir()) == []


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> list[str]:
    """Untrained experts in place of both full pairs."""
    folder = tmp_path_factory.mktemp("experts")
    words = []
    for seed, name in enumerate((*FULL_FULL.experts, *EARLY.experts)):
        save_expert(build("trans-ir", TINY, seed), folder / name, {"objective": "full"})
        words += ["--expert", f"{name}={folder / name}"]
    return words


@pytest.mark.slow
def test_a_process_that_fails_is_told_and_the_log_comes_back(
    tiny: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--out", str(tmp_path / "out"), "--experiments", "voting", "--processes", "1"]
    more = ["--back", str(tmp_path / "back"), "--", *SMALL, *tiny, "--expert", "trans-full=nowhere"]
    assert reproduce_apart.main([*words, *more]) == 1
    assert capsys.readouterr().out.endswith("FAILED: see the logs above\n")
    assert "'nowhere' is neither a folder nor" in (tmp_path / "back" / "log.txt").read_text()


@pytest.mark.slow
def test_two_processes_in_two_calls_leave_the_records_of_one(tiny: list[str], tmp_path: Path) -> None:
    """The first call has no time for anything but its start, the second goes on on another machine."""
    more = ("--", *SMALL, *tiny)
    names = ("--experiments", "voting,overlap", "--processes", "2")
    first, second, back = tmp_path / "first", tmp_path / "second", tmp_path / "back"
    begun = ("--minutes", "0.25", "--grace", "0.2", "--back", str(back))
    assert reproduce_apart.main(["--out", str(first), *names, *begun, *more]) == 0
    carried = ("--carried", str(back)) if list(back.glob("records-*")) else ()
    assert reproduce_apart.main(["--out", str(second), *names, *carried, "--back", str(back), *more]) == 0
    for name in ("voting", "overlap"):
        ended = run("reproduce", name, *SMALL, *tiny, "--out", str(tmp_path / "one"))
        assert ended[0] == 0, ended
    assert records(second) == records(tmp_path / "one")
    assert (back / "log.txt").read_text().count("trans-full+conv-full.vote") == 1
    assert (second / "records" / "overlap-maps.json.gz").exists()
    shutil.rmtree(second)
    second.mkdir()
    carried_in(back, second / "records")
    assert records(second) == records(tmp_path / "one")
