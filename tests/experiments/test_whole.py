"""What is missing to a full run is said: rows, those that searches lead to, maps, times; and what is of another run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from factordiff.experiments import compute, whole
from factordiff.experiments.experiment import Experiment
from factordiff.experiments.pairs import COL_OCC, FULL_FULL, single
from factordiff.experiments.tuning import fitted_row
from factordiff.experiments.whole import missing, of_other_runs
from factordiff.report.document import Section
from factordiff.report.findings import write_finding
from factordiff.report.outcomes import RecordFolder
from factordiff.report.records import append, open_records, read_records
from factordiff.report.run_spec import RunSpec
from tests.experiments.records import QUERIES, share, write, write_search


def plan(*rows: RunSpec, trials=(), findings=(), name: str = "one") -> Experiment:
    return Experiment(
        name,
        lambda: list(rows),
        lambda runner: None,
        lambda archive: Section(name),
        lambda: list(trials),
        lambda: list(findings),
    )


def told(folder: Path, *experiments: Experiment) -> list[str]:
    """All but the times, which have a test of their own."""
    found = missing({one.name: one for one in experiments}, RecordFolder(folder))
    return [part for part in found if "Table 7" not in part]


def test_rows_that_are_short_or_not_run_are_counted_once(tmp_path):
    rows = single("trans-full"), single("conv-full"), single("trans-occ")
    write(tmp_path, rows[0], share(0.5))
    write(tmp_path, rows[1], share(0.5)[:100])
    assert told(tmp_path, plan(*rows, *rows)) == [
        "A SUBSET: 1 row has fewer queries than the full run (test.conv-full.single: only 100)",
        "1 of 3 rows are not run yet",
    ]


def test_a_row_is_asked_for_all_queries_that_anybody_wants_of_it(tmp_path):
    """A short plan that comes later does not take the place of a long one."""
    whole_, start = single("trans-full"), single("trans-full", 100)
    write(tmp_path, whole_, share(0.5)[:100])
    assert told(tmp_path, plan(start)) == []
    for order in ((whole_, start), (start, whole_)):
        (said,) = told(tmp_path, plan(*order))
        assert said.startswith("A SUBSET: 1 row has")


def test_a_run_that_ended_between_a_search_and_its_row_is_not_whole(tmp_path):
    searched = plan(trials=[(COL_OCC, "mixture")])
    assert told(tmp_path, searched) == ["1 methods are not fitted yet"]
    write_search(tmp_path, COL_OCC, "mixture", lambda row: 0.9 if (row.weights or (1, 1))[1] > 1 else 0.5)
    assert told(tmp_path, searched) == ["1 of 1 rows are not run yet"]
    row = fitted_row(RecordFolder(tmp_path), COL_OCC, "mixture", None)
    write(tmp_path, row, share(0.8)[:100])
    assert told(tmp_path, searched) == [
        f"A SUBSET: 1 row has fewer queries than the full run ({row.name}: only 100)"
    ]
    row.file(tmp_path).unlink()
    write(tmp_path, row, share(0.8))
    assert told(tmp_path, searched) == []
    published = plan(name="official")
    assert told(tmp_path, searched, published) == ["2 of 3 rows are not run yet"], "official and unseen"


def test_maps_and_times_belong_to_a_full_run(tmp_path):
    drawn = plan(findings=("maps-a", "maps-b"))
    write_finding(tmp_path, "maps-a", {}, [])
    assert told(tmp_path, drawn) == ["1 maps, curves or sizes are not made yet (maps-b)"]
    write_finding(tmp_path, "maps-b", {}, [])
    assert told(tmp_path, drawn) == []
    rows = compute.rows()
    assert missing({}, RecordFolder(tmp_path)) == [f"{len(rows)} rows of Table 7 are not timed yet"]
    for row in rows:
        write(tmp_path / compute.FOLDER, row, share(0.5))
    assert missing({}, RecordFolder(tmp_path)) == []


def reheaded(folder: Path, row: RunSpec, **changes) -> None:
    """The same records under another header, as a run with other settings leaves them."""
    write(folder, row, share(0.5))
    file = read_records(row.file(folder))
    row.file(folder).unlink()
    open_records(row.file(folder), {**file.header, **changes})
    append(row.file(folder), file.batches[0])


def test_records_of_a_cheap_run_beside_others_are_told_apart(tmp_path):
    write(tmp_path, single("trans-full"), share(0.5))
    reheaded(tmp_path, single("conv-full"), settings={"steps": 128, "batch_size": 7, "compiled": True})
    assert of_other_runs(RecordFolder(tmp_path)) == [], "how passes were put together is no matter"
    reheaded(tmp_path, FULL_FULL.row("routing"), settings={"steps": 4, "particles": 2})
    name = f"{FULL_FULL.row('routing').name}.jsonl.gz"
    assert of_other_runs(RecordFolder(tmp_path)) == [
        f"rows are of other settings (particles: 2 in {name})",
        f"rows are of other settings (steps: 4 in {name})",
    ]


def test_rows_in_another_precision_or_of_other_data_are_told_apart(tmp_path):
    for name, dtype in (("trans-full", "bfloat16"), ("conv-full", "bfloat16"), ("trans-occ", "float32")):
        reheaded(tmp_path, single(name), settings={"steps": 128, "dtype": dtype})
    assert of_other_runs(RecordFolder(tmp_path)) == [
        "rows are of other settings (dtype: bfloat16 in test.conv-full.single.jsonl.gz, float32 in "
        "test.trans-occ.single.jsonl.gz)"
    ]
    reheaded(tmp_path, single("trans-color"), data="others")
    assert of_other_runs(RecordFolder(tmp_path))[-1] == "rows are of 2 data sets"


def test_all_of_a_list_is_what_is_listed():
    row = single("trans-full")
    assert whole.planned_queries(row, QUERIES) == QUERIES
    assert whole.planned_queries(replace(row, queries=10), QUERIES) == 10
