"""The results in docs/results are what their records say, and the records are of what is shipped."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from factordiff.arc.dataset import Dataset
from factordiff.cli.app import app
from factordiff.experts.registry import find_expert
from factordiff.networks.store import weight_hash
from factordiff.report.tarball import TARBALL

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
VERDICTS = {f"**{word}**" for word in ("confirmed", "not confirmed", "undecided here")}


@pytest.fixture(scope="module")
def lines() -> dict[str, list[dict[str, Any]]]:
    """Every line of every row, read with nothing of the library."""
    with tarfile.open(RESULTS / TARBALL) as tar:
        return {
            entry.name.removesuffix(".jsonl"): [json.loads(line) for line in tar.extractfile(entry) or ()]
            for entry in tar
            if entry.name.endswith(".jsonl")
        }


def test_the_records_are_of_the_shipped_data_and_the_report_says_which_experts_have_changed(
    lines: dict[str, list[dict[str, Any]]],
) -> None:
    assert lines
    data, others = Dataset.load().artefact.sha256, set()
    for name, (head, *_) in lines.items():
        assert head["row"] == name.rpartition("/")[2]  # what is timed lies in a folder of its own
        assert head["data"] == data
        for expert, weights in head["weights"].items():
            if weights != weight_hash(find_expert(expert).folder):
                others.add(expert)
    said = re.search(
        r"Measured with other weights than those that ship today: ([^.]+)\.",
        (RESULTS / "README.md").read_text(),
    )
    assert others == (set(said[1].split(", ")) if said else set())


@pytest.mark.parametrize(
    ("row", "label", "column"),
    [
        ("test.trans-full.single", "single | Trans-IR, full", 0),
        ("test.conv-full.single", "single | Conv-IR, full", 0),
        ("test.trans-full+conv-full.routing", "per pixel | **maximum selection**", 0),
        ("test.trans-occ+trans-full.routing", "per pixel | **maximum selection**", 1),
        ("test.trans-color+trans-occ.routing.t1-0.25", "per pixel | **maximum selection**", 2),
    ],
)
def test_the_table_says_what_a_count_of_the_records_says(
    lines: dict[str, list[dict[str, Any]]], row: str, label: str, column: int
) -> None:
    answers = [line for line in lines[row] if "query" in line]
    assert [line["query"] for line in answers] == list(range(24_000))
    right = sum(line["exact"] for line in answers)
    assert right == sum(line["wrong"] == "" for line in answers)
    table = (
        (RESULTS / "README.md")
        .read_text()
        .partition("\n## As the paper has it (Table 2)")[2]
        .partition("\n## ")[0]
    )
    (found,) = (line for line in table.splitlines() if line.startswith(f"| {label} |"))
    assert found.split(" | ")[3 + 2 * column].startswith(f"{100 * right / 24_000:.1f} % [")


def test_every_published_verdict_has_its_rule() -> None:
    tables = [
        line.strip("| ").split(" | ")
        for line in (RESULTS / "README.md").read_text().splitlines()
        if "|" in line
    ]
    judged = [cells for cells in tables if cells[3:] and cells[3] in VERDICTS]
    assert len(judged) >= 35
    for cells in judged:
        assert len(cells) == 6
        assert cells[5].startswith("Confirmed: ")


QUOTED = [  # figures of the report that pages repeat: page, words around the number, row, what is counted in it
    ("docs/faq.md", r"`trans-color` has ([\d.]+) % of\s+canvases right", "test.trans-color.single", "exact"),
]


@pytest.mark.parametrize(("page", "words", "row", "what"), QUOTED)
def test_pages_quote_what_the_records_say(
    lines: dict[str, list[dict[str, Any]]], page: str, words: str, row: str, what: str
) -> None:
    (said,) = re.findall(words, (ROOT / page).read_text())
    answers = [line for line in lines[row] if "query" in line]
    counted = sum(map(COUNTED[what], answers))
    assert said == f"{100 * counted / len(answers):.1f}"


def test_pages_say_of_cut_answers_and_unseen_tasks_what_the_records_say(
    lines: dict[str, list[dict[str, Any]]],
) -> None:
    text = " ".join((ROOT / "docs" / "faq.md").read_text().split())
    assert "two thirds of the same answers are right once they are cut to the right grid" in text
    answers = [line for line in lines["test.trans-color.single"] if "query" in line]
    if "shape" in answers[0]:  # records of before do not have it
        assert 0.6 < sum(map(cropped, answers)) / len(answers) < 0.73
    assert "of tasks never seen no method solves more than one grid or two" in text
    unseen = {name: rows for name, rows in lines.items() if name.startswith("unseen.")}
    assert len(unseen) > 30
    for name, rows in unseen.items():
        for reading in ("grid", "drawn_grid"):
            assert sum(line.get(reading, 0) for line in rows) <= 2, (name, reading)


def cropped(line: dict[str, Any]) -> bool:
    """Whether no wrong cell lies in the right grid, read with nothing of the library."""
    height, width = line["shape"]
    ends = [run.split("-") for run in line["wrong"].split(",") if run]
    cells = [cell for end in ends for cell in range(int(end[0]), int(end[-1]) + 1)]
    return not any(cell // 10 < height and cell % 10 < width for cell in cells)


COUNTED: dict[str, Callable[[dict[str, Any]], bool]] = {
    "exact": lambda line: bool(line["exact"]),
    "cropped": cropped,
}


def test_cells_are_cut_as_they_are_spelled() -> None:
    assert not cropped({"shape": [3, 3], "wrong": "20-22"})
    assert not cropped({"shape": [3, 3], "wrong": "8,9-10"})
    assert cropped({"shape": [3, 3], "wrong": "3-9,13-19,23-99"})
    assert cropped({"shape": [3, 3], "wrong": ""})


@pytest.mark.slow
def test_the_report_is_made_from_the_records_alone(tmp_path: Path) -> None:
    (tmp_path / TARBALL).write_bytes((RESULTS / TARBALL).read_bytes())
    CliRunner().invoke(app, ["reproduce", "report", "--out", str(tmp_path)], catch_exceptions=False)
    for name in ("README.md", "report.html"):
        assert (tmp_path / name).read_text() == (RESULTS / name).read_text(), name
