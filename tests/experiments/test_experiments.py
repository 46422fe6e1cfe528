"""Every experiment end to end, and the report made from the records alone."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from factordiff.errors import DataError, Unavailable
from factordiff.experiments import claims, compute, fitted, learned, tuning
from factordiff.experiments.catalogue import EXPERIMENTS, chosen, document, warning, write_report
from factordiff.experiments.fitted import METHODS as FITTED_METHODS
from factordiff.experiments.pairs import COL_OCC, DEFAULT_HEAD, FOUR, FULL_FULL, PAIRS, RELATIVE, single
from factordiff.experiments.protocols import PROTOCOLS
from factordiff.experiments.tuning import choice, fitted_outcomes, fitted_row
from factordiff.experiments.whole import missing, of_other_runs
from factordiff.report.document import markdown
from factordiff.report.outcomes import RecordFolder
from tests.experiments.lookup import lookup_bench


def single_experts_score_what_they_are_blind_to(folder):
    archive = RecordFolder(folder)
    # Of 12 queries Trans-IR misses places 1 and 11, Conv-IR 2 and 3, each by one cell of 100.
    trans, conv = (archive.outcomes(single(name)) for name in FULL_FULL.experts)
    assert float(trans.exact.mean()) == pytest.approx(10 / 12)
    assert float(conv.exact.mean()) == pytest.approx(10 / 12)
    assert conv.pixel() == pytest.approx(1 - 2 / 1200)
    table = EXPERIMENTS["single-experts"].report(archive).tables[0]
    lines = {row[0]: row for row in table.rows}
    assert lines["Conv-IR, full"][1:5] == ("1,000,000", "99.3", "99.8", "89.3")
    assert lines["Conv-IR, full"][5].startswith("83.3 % [")
    assert lines["Conv-IR, full"][5].endswith("(first 12)")


def routing_stitches_what_no_expert_gets_alone(folder):
    archive = RecordFolder(folder)
    for row in (FULL_FULL.row("routing"), COL_OCC.row("routing"), COL_OCC.row("views")):
        assert archive.outcomes(row).exact.all()
    # The color expert rules background out, and a product cannot overrule it anywhere.
    assert not archive.outcomes(COL_OCC.row("geometric-mean")).exact.any()
    overlap = EXPERIMENTS["overlap"].report(archive)
    lines = {row[0]: row[2] for row in overlap.tables[0].rows}
    # The early experts err on places {1, 4} and {2, 3, 5}: apart, so one is always right.
    assert lines["grids right only in composition"] == "0 of 12"
    # Each query is a task of its own: composed 1, the better expert 1 everywhere.
    assert lines["tasks won / lost / tied against the better expert in hindsight"] == "0 / 0 / 12"
    assert lines["worst loss of a task, points"].startswith("0.0")


def every_row_of_every_plan_has_records(folder):
    archive = RecordFolder(folder)
    for name, experiment in EXPERIMENTS.items():
        inner = RecordFolder(folder / compute.FOLDER) if name == "compute" else archive
        for row in experiment.rows():
            found = inner.outcomes(row)
            assert found is not None, row.name
            assert len(found) == min(12, row.queries or 12), row.name


def passes_are_counted_as_the_paper_counts_them(folder):
    table = EXPERIMENTS["compute"].report(RecordFolder(folder)).tables[0]
    nominal = {row[0]: (row[1], row[2]) for row in table.rows}
    assert nominal["per-pixel max"] == ("2", "2.00")
    assert nominal["majority vote, one expert, N=3"] == ("3", "3.00")
    assert nominal["majority vote across experts, N=3 each"] == ("6", "6.00")
    assert nominal["FKC, 8 particles"] == ("16", "4.00")  # two particles here
    relative = {row[0]: row[4] for row in table.rows}
    assert relative["two experts, nothing composed (the floor)"] == "1.00x"


def every_method_is_fitted_and_run_with_what_was_chosen(folder):
    archive = RecordFolder(folder)
    for experiment in EXPERIMENTS.values():
        for group, method in experiment.trials():
            assert choice(archive, group, method) is not None, (group.name, method)
            found = fitted_outcomes(archive, group, method, None)
            assert len(found) == 12, (group.name, method)


def a_larger_exponent_overrules_a_veto(folder):
    archive = RecordFolder(folder)
    # At background the color expert gives the truth 1e-6 of its mass, the occupancy expert 0.98.
    assert choice(archive, COL_OCC, "product").options["beta"][1] > 1
    assert fitted_outcomes(archive, COL_OCC, "product", None).exact.all()
    paragraphs = EXPERIMENTS["composition"].report(archive).paragraphs
    assert any("is -14 for trans-color and -0.02 for trans-occ." in text for text in paragraphs)
    assert any("ln 9 = 2.20 nats" in text for text in paragraphs)


def routers_are_fitted_beside_the_records(folder):
    archive = RecordFolder(folder)
    for group in (*PAIRS, FOUR, DEFAULT_HEAD):
        router = learned.fitted_router(archive, group)
        assert [name for name, _ in router.fitted_to] == list(group.experts)
        assert router.about["queries"] == 9
        assert router.about["chosen on"] == 3
        file = archive.file(learned.learned_row(group))
        assert len(file.about("router")) == 64
        assert file.about("method", "others") == [["router", "shared"]], "no path of this machine"
    cells = fitted.learned_cell(archive, COL_OCC)
    assert cells.endswith(" parameters)")


def blocks_of_their_own_appear_with_their_experts(folder):
    archive = RecordFolder(folder)
    relatives, relatives_fitted = EXPERIMENTS["relatives"].report(archive).tables
    lines = {row[0]: row for row in relatives.rows if row is not None}
    assert lines["Col+Occ: per pixel"][1:3] == ("100.0 % [73.5, 100.0] (first 12)",) * 2
    assert {row[0] for row in relatives_fitted.rows} >= {"Occ+Full: per pixel, temperature"}
    assert all("(first 12)" in cell for row in relatives_fitted.rows for cell in row[1:3])
    for name in ("four", "default-head"):
        printed, fitted = EXPERIMENTS[name].report(archive).tables[:2]
        assert printed.caption.startswith("As the paper has it, nothing fitted.")
        assert fitted.caption.startswith("All fitted.")
        assert all("(first 12)" in row[1] for table in (printed, fitted) for row in table.rows)
    others = EXPERIMENTS["default-head"].report(archive).tables[2]
    assert [row[1] for row in others.rows][-1] == "learned router minus view factorisation (told)"
    assert len(others.rows) == len(FITTED_METHODS) + 1
    alone, composed, alike = EXPERIMENTS["paper-networks"].report(archive).tables
    assert [row[0] for row in alone.rows][:2] == ["paper-conv-full", "paper-trans-full"]
    assert composed.rows[-1][1] == "95.2"
    assert next(row[0] for row in alike.rows) == "paper-trans-full + paper-conv-full"


def official_tables_ask_for_the_shape_too(folder):
    section = EXPERIMENTS["official"].report(RecordFolder(folder))
    for table, protocol in zip(section.tables, PROTOCOLS, strict=True):
        assert table.caption.lower().startswith(protocol.name)
    lines = {(row[0], row[1]): row[2:] for table in section.tables for row in table.rows if row is not None}
    grid, task, *_ = lines["Full+Full", "per pixel"]
    assert float(grid.split(" ")[0]) > 50
    assert float(task) <= 100
    assert all("—" not in row for row in lines.values())


def the_report_is_made_from_files_alone(folder, tmp_path):
    written = {path.name for path in write_report(document(folder), tmp_path)}
    assert {"README.md", "report.html", "overlap-bars.png", "forward.png", "temperatures.png"} <= written
    text = (tmp_path / "README.md").read_text()
    assert "not run yet" not in text
    assert text.index("**What was asked.**") < text.index("**What was found.**") < text.index("## ")
    first = text[: text.index("## ")]
    assert "published pairs" in first
    assert "tasks never trained on" in first
    assert "](../worlds.md)" in first
    assert "pictures/first-screen.png" in first
    for experiment in EXPERIMENTS.values():
        assert f"## {experiment.report(RecordFolder(folder)).title}" in text
    for picture in re.findall(r"\]\((pictures/[^)]+)\)", text):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
    html = (tmp_path / "report.html").read_text()
    assert "http" not in html  # nothing is asked of anywhere
    assert not re.search(r'(src="(?!data:)|href="(?!#|\.\./))', html)
    for place in re.findall(r'href="#([^"]+)"', html):
        assert f'<h2 id="{place}">' in html
    assert html.count('class="sortable"') >= 5
    assert markdown(document(folder)) == text  # the same records, the same report


def test_a_limited_run_says_loudly_that_it_is_a_subset(sets, tmp_path):
    runner = lookup_bench(sets, tmp_path / "records", limit=5)
    EXPERIMENTS["single-experts"].run(runner)
    write_report(document(tmp_path / "records"), tmp_path)
    assert "A SUBSET: 6 rows" in (tmp_path / "README.md").read_text().splitlines()[2]
    assert '<p class="warning">A SUBSET' in (tmp_path / "report.html").read_text()
    assert len(RecordFolder(tmp_path / "records").outcomes(single("trans-occ"))) == 5


def test_experts_that_are_not_shipped_are_left_out_and_the_report_says_so(sets, tmp_path):
    runner = lookup_bench(
        sets, tmp_path, limit=2, available=lambda name: name != RELATIVE and "paper-" not in name
    )
    for name in ("relatives", "paper-networks"):
        EXPERIMENTS[name].run(runner)
    assert not list(tmp_path.iterdir())
    assert "Not run yet: `test.trans-occ-relative.single`" in "".join(
        EXPERIMENTS["relatives"].report(runner.archive).paragraphs
    )
    (text,) = EXPERIMENTS["paper-networks"].report(runner.archive).paragraphs
    assert text.startswith("Not in this report: no weights of the paper's own networks (`paper-*`)")


def test_a_router_of_a_limited_run_has_both_sides_and_is_fitted_once(sets, tmp_path, monkeypatch):
    monkeypatch.setattr(learned, "STEPS", 2)
    runner = lookup_bench(sets, tmp_path, limit=2)
    learned.fit_learned_row(runner, COL_OCC)
    router = learned.fitted_router(runner.archive, COL_OCC)
    assert (router.about["queries"], router.about["chosen on"]) == (6, 2)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    learned.fit_learned_row(lookup_bench(sets, tmp_path), COL_OCC)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    other = lookup_bench(sets, tmp_path)
    other.experts = lambda name: replace(runner.experts(name), sha256="others")
    with pytest.raises(DataError, match="fitted to other weights"):
        learned.fit_learned_row(other, COL_OCC)


def test_a_full_run_goes_on_after_a_limited_one(sets, tmp_path):
    """Maps and curves of a subset are made anew from all queries, and no later subset takes their place."""
    names = ("single-experts", "overlap", "temperatures")

    def found(**changes):
        for name in names:
            EXPERIMENTS[name].run(lookup_bench(sets, tmp_path, **changes))
        return {path.name: path.read_bytes() for path in tmp_path.glob("*.json.gz")}

    subset, full = found(limit=3), found()
    assert subset.keys() <= full.keys()
    assert subset["confidence-trans-occ.json.gz"] != full["confidence-trans-occ.json.gz"]
    assert found(limit=2) == full


def nothing_is_missing_and_without_a_file_something_is(folder):
    assert missing(EXPERIMENTS, RecordFolder(folder)) == []
    fitted_names = {
        fitted_row(RecordFolder(folder), COL_OCC, "mixture", None, split).name
        for split in ("test", "official")
    }
    names = [f"{name}.jsonl.gz" for name in fitted_names]
    for name in (*names, "overlap-maps.json.gz", f"{compute.FOLDER}/{compute.rows()[0].name}.jsonl.gz"):
        (folder / name).rename(folder / "away")
        assert missing(EXPERIMENTS, RecordFolder(folder)), name
        (folder / "away").rename(folder / name)
    assert any("steps" in part for part in of_other_runs(RecordFolder(folder))), "two steps are no full run"


def records_survive_a_second_run_unchanged(folder, sets):
    before = {path: path.read_bytes() for path in folder.rglob("*.gz")}
    runner = lookup_bench(sets, folder)
    for experiment in EXPERIMENTS.values():
        experiment.run(runner)
    assert {path: path.read_bytes() for path in folder.rglob("*.gz")} == before


def claims_are_judged_on_what_was_run(folder):
    for protocol in PROTOCOLS:
        verdicts = {verdict.claim: verdict for verdict in claims.verdicts(RecordFolder(folder), protocol)}
        safe = next(v for claim, v in verdicts.items() if "not worse than the best per-sample" in claim)
        assert safe.judgement in ("confirmed", "undecided here")
        assert all(verdict.figures for verdict in verdicts.values())
        assert not any("not run" in verdict.figures for verdict in verdicts.values())


@pytest.mark.slow
def test_every_experiment_from_end_to_end(sets, tmp_path, monkeypatch):
    """One test for all of them: they share their rows, and two workers would run everything twice."""
    monkeypatch.setattr(tuning, "BUDGET", 5)
    monkeypatch.setattr(tuning, "PAST_ENDS", 2)
    monkeypatch.setattr(learned, "STEPS", 3)
    folder = tmp_path / "records"
    runner = lookup_bench(sets, folder)
    for experiment in EXPERIMENTS.values():
        experiment.run(runner)
    single_experts_score_what_they_are_blind_to(folder)
    routing_stitches_what_no_expert_gets_alone(folder)
    every_row_of_every_plan_has_records(folder)
    passes_are_counted_as_the_paper_counts_them(folder)
    every_method_is_fitted_and_run_with_what_was_chosen(folder)
    a_larger_exponent_overrules_a_veto(folder)
    routers_are_fitted_beside_the_records(folder)
    blocks_of_their_own_appear_with_their_experts(folder)
    official_tables_ask_for_the_shape_too(folder)
    claims_are_judged_on_what_was_run(folder)
    the_report_is_made_from_files_alone(folder, tmp_path)
    nothing_is_missing_and_without_a_file_something_is(folder)
    records_survive_a_second_run_unchanged(folder, sets)


def test_an_empty_folder_says_that_nothing_was_run(tmp_path):
    made = document(tmp_path)
    assert "not run yet" in made.warning
    assert "A SUBSET" not in warning(RecordFolder(tmp_path))
    assert {v.judgement for section in made.sections for v in section.verdicts} == {"undecided here"}


def test_names():
    assert [one.name for one in chosen("voting")] == ["voting"]
    assert len(chosen("all")) == 13
    with pytest.raises(Unavailable, match="expected one of composition"):
        chosen("table-2")
