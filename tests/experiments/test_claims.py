"""Tables and verdicts from records made by hand, against figures computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from factordiff.experiments import claims, opening, overview, padding, single_experts
from factordiff.experiments.catalogue import document, provenance
from factordiff.experiments.composition import EXPERIMENT as COMPOSITION
from factordiff.experiments.differences import routing_minus_rivals
from factordiff.experiments.fitted import EXPERIMENT as FITTED
from factordiff.experiments.overlap import EXPERIMENT as OVERLAP
from factordiff.experiments.pairs import COL_OCC, EARLY, FULL_FULL, OCC_FULL, single
from factordiff.experiments.protocols import ALL_FITTED, AS_PRINTED, PROTOCOLS
from factordiff.experiments.tuning import fitted_row
from factordiff.experiments.voting import EXPERIMENT as VOTING
from factordiff.report.findings import write_finding
from factordiff.report.outcomes import RecordFolder, aligned
from factordiff.report.statistics import difference
from tests.experiments.records import PER_TASK, QUERIES, TASKS, share, write, write_pair, write_search


@pytest.fixture
def paper_like(tmp_path):
    """Rates as the paper has them, roughly."""
    same = dict.fromkeys(("geometric-mean", "superdiff", "fkc", "rne"), 0.9)
    write_pair(tmp_path, FULL_FULL, {**same, "routing": 0.9}, (0.8, 0.7))
    write_pair(
        tmp_path,
        OCC_FULL,
        {**same, "geometric-mean": 0.7, "fkc": 0.7, "superdiff": 0.8, "rne": 0.6, "routing": 0.9},
        (0.0, 0.8),
    )
    low = dict.fromkeys(("geometric-mean", "superdiff", "fkc", "rne"), 0.5)
    write_pair(tmp_path, COL_OCC, {**low, "routing": 1.0}, (0.0, 0.0))
    return RecordFolder(tmp_path)


def judged(archive: RecordFolder, protocol=AS_PRINTED) -> dict[str, str]:
    return {verdict.claim: verdict.judgement for verdict in claims.verdicts(archive, protocol)}


def one(verdicts: dict[str, str], words: str) -> str:
    (found,) = [judgement for claim, judgement in verdicts.items() if words in claim]
    return found


def test_verdicts_on_rates_like_the_paper(paper_like):
    found = judged(paper_like)
    assert one(found, "consistently outperforms") == "not confirmed"  # a tie on Full+Full is not above
    assert one(found, "outperforms or matches") == "confirmed"  # and not worse either
    assert one(found, "Occ+Full: routing beats the strongest") == "confirmed"
    assert one(found, "several per-sample methods fall below") == "confirmed"
    assert one(found, "Occ+Full: routing does not fall below") == "confirmed"
    assert one(found, "nearly useless") == "undecided here"  # of 20 tasks, one in seven may be right
    assert one(found, "90.5 %") == "confirmed"
    assert one(found, "12 points or more") == "confirmed"
    assert one(found, "Full+Full: all compositions improve") == "confirmed"
    assert one(found, "not worse than the best per-sample") == "confirmed"
    assert one(found, "Full+Full: routing beats the best expert") == "confirmed"
    assert one(found, "grows with specialisation") == "confirmed"


def test_experts_that_are_right_on_nothing_are_useless_once_there_are_tasks_enough(tmp_path):
    for tasks, judgement in ((60, "undecided here"), (120, "confirmed")):
        for name in COL_OCC.experts:
            write(tmp_path / str(tasks), single(name), share(0.0), tasks=tasks)
        assert one(judged(RecordFolder(tmp_path / str(tasks))), "nearly useless") == judgement


def test_a_reversed_ranking_is_said(tmp_path):
    rates = dict.fromkeys(("geometric-mean", "superdiff", "fkc", "rne"), 0.9)
    write_pair(tmp_path, COL_OCC, {**rates, "routing": 0.6}, (0.3, 0.3))
    found = judged(RecordFolder(tmp_path))
    assert one(found, "Col+Occ: every per-sample method stays below") == "not confirmed"
    assert one(found, "nearly useless") == "not confirmed"
    assert one(found, "90.5 %") == "not confirmed"
    assert one(found, "not worse than the best per-sample") == "undecided here"  # not run


def test_a_claim_about_all_methods_waits_for_all_of_them(tmp_path):
    """Routing above the only rival that was run is not yet above the strongest; a rival above it decides at once."""
    write_pair(tmp_path, COL_OCC, {"geometric-mean": 0.5, "routing": 1.0}, (0.0, 0.0))
    write_pair(tmp_path, FULL_FULL, {"geometric-mean": 0.9, "routing": 0.9}, (0.8, 0.7))
    write_pair(tmp_path, OCC_FULL, {"superdiff": 0.9, "routing": 0.7}, (0.0, 0.8))
    report = claims.verdicts(RecordFolder(tmp_path), AS_PRINTED)
    found = {verdict.claim: verdict.judgement for verdict in report}
    assert one(found, "Col+Occ: every per-sample method stays below") == "undecided here"
    assert one(found, "12 points or more") == "undecided here"
    assert one(found, "not worse than the best per-sample") == "undecided here"
    assert one(found, "all compositions improve") == "undecided here"
    assert one(found, "several per-sample methods fall below") == "undecided here"
    assert one(found, "grows with specialisation") == "undecided here"
    assert one(found, "Occ+Full: routing beats the strongest") == "not confirmed"
    assert one(found, "consistently outperforms") == "not confirmed"
    figures = next(v.figures for v in report if "12 points" in v.claim)
    assert figures.endswith("not run: Density (SuperDiff), FKC, RNE")


def test_the_table_has_the_paper_beside_ours_and_both_readings(paper_like):
    section = COMPOSITION.report(paper_like)
    lines = {row[1]: row[2:] for row in section.tables[0].rows if row is not None}
    assert lines["Trans-IR, full"][0] == "93.0"
    assert lines["Trans-IR, full"][1].startswith("80.0 %")
    assert lines["Trans-IR, full"][5] == "—"  # not in Col+Occ
    assert lines["FKC, highest target"][4] == "78.4"
    assert lines["FKC, highest target"][5].startswith("50.0 %")
    assert lines["FKC, weighted draw"][5].startswith("40.0 %")
    assert lines["**maximum selection**"][5].startswith("100.0 % [83.2, 100.0]")  # of 20 tasks
    assert lines["view factorisation"] == ("—",) * 6
    table = next(one for one in section.long_tables if one.caption.startswith("Col+Occ"))
    assert table.sortable
    assert len(table.rows) == TASKS
    assert dict(zip(table.headings, table.rows[3], strict=True))["FKC"] == "50.0"  # the better reading


def test_rows_of_different_length_meet_on_the_queries_they_share(tmp_path):
    write(tmp_path, FULL_FULL.row("routing"), share(0.9))
    write(tmp_path, FULL_FULL.row("mixture"), share(0.5)[:100])
    archive = RecordFolder(tmp_path)
    routed, mixed = (archive.outcomes(FULL_FULL.row(method)) for method in ("routing", "mixture"))
    found = routed.against(mixed)
    assert found.queries == 100
    tasks = np.array([f"task{query % TASKS:04d}" for query in range(100)])
    assert found.gain == difference(share(0.9)[:100], share(0.5)[:100], tasks)
    assert [len(row) for row in aligned(routed, mixed)] == [100, 100]


def test_overlap_counts_by_hand(tmp_path):
    task = np.arange(QUERIES) % TASKS
    one_right = np.where(task < 10, True, np.arange(QUERIES) // TASKS < 15)  # the second ten tasks: half
    other_right = np.where(task < 10, np.arange(QUERIES) // TASKS < 15, True)
    routed = np.ones(QUERIES, dtype=bool)
    one_right[0] = other_right[0] = False  # query 0, task 0: right only in composition
    routed[TASKS * 20 + 3] = False  # task 3 loses a query that Trans-IR had
    write(tmp_path, single(EARLY.experts[0]), one_right)
    write(tmp_path, single(EARLY.experts[1]), other_right)
    write(tmp_path, EARLY.row("routing"), routed)
    section = OVERLAP.report(RecordFolder(tmp_path))
    lines = {row[0]: row[2] for row in section.tables[0].rows}
    assert lines["grids right only in composition"] == f"1 of {QUERIES:,}"
    assert lines["tasks won / lost / tied against the better expert in hindsight"] == "1 / 1 / 18"
    assert lines["tasks where it matches or exceeds Trans-IR"] == "19 of 20"
    assert lines["tasks where it matches or exceeds Conv-IR"] == "20 of 20"
    assert lines["worst loss of a task, points"] == "-3.3 (task0003)"
    verdicts = {verdict.claim: verdict.judgement for verdict in section.verdicts}
    assert one(verdicts, "right only in composition") == "confirmed"
    assert one(verdicts, "wins more tasks than it loses") == "undecided here"
    assert one(verdicts, "never catastrophically worse") == "confirmed"
    figures = {verdict.claim: verdict.figures for verdict in section.verdicts}
    assert one(figures, "wins more tasks") == "1 won, 1 lost, 18 tied, sign test p = 1.0000"
    assert one(figures, "never catastrophically worse").startswith("worst task task0003: -3.3 points [-")


RULES = {  # what a rule must say where the claim says so
    "every pair, every method": "Not confirmed: one of them wholly below, or exactly level.",
    "all compositions improve": "Not confirmed: one of them wholly below, or exactly level.",
    "grows with specialisation": "Not confirmed: one of them wholly below, or exactly level.",
    "gains more than": "Not confirmed: one of them wholly below, or exactly level.",
    "well above": "above +1 point (well above: by more than 1 point)",
    "not worse": "above -0.3 points (not worse: by less than 0.3 points)",
    "does not fall below": "above -0.3 points (not worse: by less than 0.3 points)",
    "wins more tasks": "exact sign test (ties left out) p < 0.05",
    "12 points or more": "above +12 points",
    "below 5 % exact": "below 5 %",
    "paper: 90.5 %": "above the paper's 90.5 %",
    "plateaus": "above -0.5 points (gains less than 0.5 points)",
    "negligible (read as: below 10 %)": "less than 10 % above it",
    "beats": "above 0",
}


def test_every_verdict_has_a_rule_that_agrees_with_its_words(paper_like, tmp_path):
    for row in (*OVERLAP.rows(), *VOTING.rows()):
        if not row.file(tmp_path).exists():
            write(tmp_path, row, share(0.9))
    found = [verdict for section in document(tmp_path).sections for verdict in section.verdicts]
    unrun = [verdict for section in document(tmp_path / "empty").sections for verdict in section.verdicts]
    both = sum(len(claims.verdicts(paper_like, protocol)) for protocol in PROTOCOLS)
    assert len(found) == both + 12, "four on voting, four on overlap, three on temperatures, one on compute"
    for verdict in (*found, *unrun):
        assert verdict.rule.startswith("Confirmed: ")
        assert verdict.rule.endswith(".")
    for words, rule in RULES.items():
        judged = [verdict for verdict in found if words in verdict.claim]
        assert judged, words
        assert all(rule in verdict.rule for verdict in judged), words


def test_a_picture_shows_all_methods_on_the_same_queries(tmp_path, monkeypatch):
    """Routing has the whole list and FKC its first part, of which routing has all: neither is ahead of the other."""
    for module in (overview, opening):
        monkeypatch.setattr(module, "BEYOND", 100)
    right = np.arange(QUERIES) < 100
    write(tmp_path, FULL_FULL.row("routing"), right)
    write(tmp_path, FULL_FULL.row("superdiff"), right)
    write(tmp_path, FULL_FULL.row("geometric-mean"), ~right | (np.arange(QUERIES) < 50))
    write(tmp_path, FULL_FULL.row("fkc"), right[:100], right[:100])
    archive = RecordFolder(tmp_path)
    shown = {dot.name: dot.figure.value for dot in overview.protocol_dots(archive, FULL_FULL, AS_PRINTED)}
    assert shown == {
        "Average (PoE)": 0.5,
        "Density (SuperDiff)": 1.0,
        "FKC": 1.0,
        "routing per pixel": 1.0,
    }
    first = {dot.name: dot.figure.value for dot in opening._dots(archive, FULL_FULL)}
    assert first == {"Density (SuperDiff), as the paper has it": 1.0, "routing, as the paper has it": 1.0}


def test_growth_is_told_on_the_same_tasks(tmp_path):
    """Tasks differ much and both gaps with them, so their intervals overlap; how much they grow varies little."""
    number, hard = np.arange(QUERIES) // TASKS, np.arange(QUERIES) % TASKS < TASKS // 2
    for pair, ahead in ((OCC_FULL, 10), (COL_OCC, 11)):
        write(tmp_path, pair.row("superdiff"), number < 15)
        write(tmp_path, pair.row("routing"), number < np.where(hard, 15 + ahead, 15))
    archive = RecordFolder(tmp_path)
    rows = [archive.outcomes(pair.row(m)) for pair in (OCC_FULL, COL_OCC) for m in ("routing", "superdiff")]
    assert rows[0].against(rows[1]).gain.high > rows[2].against(rows[3]).gain.low
    grown, queries = claims.growth(*rows)
    assert grown.value == pytest.approx(0.5 / PER_TASK)
    assert grown.low > 0
    assert queries == QUERIES


def test_relatives_are_told_from_experts_trained_apart(paper_like):
    assert single_experts.relatives(paper_like) == []
    for expert, began in (("trans-occ", "trans-full"), ("trans-full", "an earlier stage"), ("conv-full", "")):
        write_finding(paper_like.folder, single_experts.ancestor(expert), {"data": "d"}, began)
    (sentence,) = single_experts.relatives(paper_like)
    assert sentence.startswith("Trans-IR, occupancy began with the weights of Trans-IR, full")
    assert sentence in single_experts.report(paper_like).paragraphs


def test_provenance_names_hashes_device_commit_and_time(paper_like):
    section = provenance(paper_like)
    assert ("data", "`d`") in section.tables[0].rows
    assert ("trans-occ", "`trans-occ`") in section.tables[0].rows
    lines = {row[0]: row[1:] for row in section.long_tables[0].rows}
    assert lines["test.trans-full+conv-full.routing"] == ("600", "2", "a device", "c0ffee")


def write_fitted(folder, pair, rates):
    """Searches that end where they begin, and the rows that they lead to."""
    for method, rate in rates.items():
        write_search(folder, pair, method, lambda row: 0.5)
        row = fitted_row(RecordFolder(folder), pair, method, 600)
        if not row.file(folder).exists():
            write(folder, row, share(rate))


def test_the_second_protocol_judges_the_same_claims_on_fitted_rivals(tmp_path):
    low = dict.fromkeys(("geometric-mean", "superdiff", "fkc", "rne"), 0.5)
    write_pair(tmp_path, COL_OCC, {**low, "routing": 1.0}, (0.0, 0.0))
    level = {"product": 0.9, "mixture": 0.9, "routing": 0.9}
    write_fitted(tmp_path, COL_OCC, level)
    archive = RecordFolder(tmp_path)
    words = "Col+Occ: every per-sample method stays below"
    assert one(judged(archive), words) == "confirmed"
    assert one(judged(archive, ALL_FITTED), words) == "not confirmed", "the product is exactly level"
    assert one(judged(archive, ALL_FITTED), "12 points or more") == "not confirmed"
    figures = next(v.figures for v in claims.verdicts(archive, ALL_FITTED) if words in v.claim)
    assert figures.startswith("closest rival product, exponents: +0.00 points [+0.00, +0.00]")
    assert figures.endswith("not run: RNE, exponents, proposal and resampling") or "not run: " in figures
    lines = {row[0]: row[1:] for row in FITTED.report(archive).tables[0].rows if row is not None}
    assert lines["mixture, weights"][2].startswith("90.0 % [90.0, 90.0]")
    assert lines["mixture, weights"][2].endswith("(as printed)")
    assert lines["mixture, weights"][:2] == ("—", "—")
    assert lines["learned router"] == ("—",) * 3


def test_verdicts_name_their_protocol_and_none_is_mixed(paper_like):
    for protocol in PROTOCOLS:
        found = claims.verdicts(paper_like, protocol)
        assert {verdict.protocol for verdict in found} == {protocol.name}
    printed, fitted = (claims.verdicts(paper_like, protocol) for protocol in PROTOCOLS)
    assert {verdict.judgement for verdict in fitted} == {"undecided here"}, "nothing is fitted yet"
    alone = {verdict.claim for verdict in printed} - {verdict.claim for verdict in fitted}
    assert len(alone) == 1, "the experts alone have nothing to fit"
    assert "nearly useless" in alone.pop()


def test_cropped_figures_stand_beside_those_of_the_canvas(paper_like):
    section = padding.report(paper_like)
    alone, printed, fitted = section.tables
    lines = {row[0]: row for row in alone.rows}
    # What is wrong lies in cells 5 and 6 of the first row; the right grid is 3x3.
    assert lines["Trans-IR, full"][1:] == ("80.0 % [80.0, 80.0]", "100.0 % [83.2, 100.0]", "20.0")
    assert (printed.caption, fitted.caption) == ("As the paper has it.", "All fitted.")
    assert len([row for row in printed.rows if row and "Col+Occ" in row[0]]) == 5
    assert [row[1:] for row in fitted.rows if row and "Col+Occ" in row[0]] == [("—",) * 3], (
        "nothing is fitted yet"
    )
    (every,) = section.long_tables
    rows = {row[0]: row[1:] for row in every.rows}
    assert rows.keys() == {path.name.removesuffix(".jsonl.gz") for path in paper_like.folder.glob("*.gz")}
    assert rows["test.trans-full.single"] == lines["Trans-IR, full"][1:]


def test_every_paired_difference_has_its_tests_and_the_tasks_it_won(tmp_path):
    """Query by query: routing has all of the even tasks and half of the odd ones, the product half of all."""
    number, task = np.arange(QUERIES) // TASKS, np.arange(QUERIES) % TASKS
    half = number < PER_TASK // 2
    write(tmp_path, COL_OCC.row("routing"), np.where(task % 2 == 0, True, half))
    write(tmp_path, COL_OCC.row("geometric-mean"), half)
    table = routing_minus_rivals(RecordFolder(tmp_path), AS_PRINTED)
    (line,) = table.rows
    assert line[:2] == ("Col+Occ", "per pixel minus Average (PoE)")
    assert line[2].startswith("+25.00 points [+")
    assert line[4:] == ("p < 0.0001", "10 / 0 / 10", "p = 0.0020", f"{QUERIES}")
    assert table.caption.endswith(AS_PRINTED.name)


def test_no_table_mixes_the_protocols(paper_like):
    """A table's caption names one protocol where both have rows: none has rows of the other."""
    made = document(paper_like.folder)
    both = [AS_PRINTED.name, ALL_FITTED.name]
    for section in made.sections:
        for table in section.tables:
            assert not set(both) & {cell for row in table.rows if row for cell in row}
            assert not all(name in table.caption.lower() for name in both), table.caption
