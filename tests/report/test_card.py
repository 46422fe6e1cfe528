"""What a card says of an expert that knows some tasks alone, and figures that somebody else wrote."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from factordiff.errors import DataError
from factordiff.evaluation.runs import RunSettings, header
from factordiff.networks.store import build, save_expert, weight_hash
from factordiff.report.card import FIGURES, Figure, Figures, card, measure_figures, read_figures, write_card
from factordiff.report.record import Record
from factordiff.report.records import Batch, append, open_records
from factordiff.report.run_spec import RunSpec
from tests.solving_experts import TINY

TASKS = {"0ca9ddb6": 1.0, "05269061": 0.5, "08ed6ac7": 0.25, "0520fde7": 0.0}


def figures() -> Figures:
    measured = Figure(
        "validation",
        "full",
        4,
        0.4375,
        0.0,
        1.0,
        0.9,
        "cpu",
        "float32",
        128,
        "unknown",
        1.0,
        TASKS,
        "f0",
        "fast",
        0.75,
    )
    return Figures("weights", "data", (measured,), ())


def card_of(folder: Path, tasks: list[str] | None) -> str:
    about = {"objective": "full", "settings": {"tasks": tasks}}
    save_expert(build("trans-ir", TINY), folder, about)
    return card(folder, figures(), [])


def test_an_expert_of_some_tasks_is_judged_by_these(tmp_path: Path) -> None:
    text = card_of(tmp_path / "some", ["0ca9ddb6", "05269061"])
    assert "It was trained on 2 of these tasks: 75.00 % of their queries are right, and 12.50 %" in text
    assert "(1 of 2 are above): 05269061 (50 %)." in text


@pytest.mark.parametrize("tasks", [None, list(TASKS)])
def test_an_expert_of_all_tasks_is_judged_by_all(tmp_path: Path, tasks: list[str] | None) -> None:
    text = card_of(tmp_path / "all", tasks)
    assert "It was trained on" not in text
    assert "(1 of 4 are above): 0520fde7 (0 %), 08ed6ac7 (25 %), 05269061 (50 %)." in text


def test_the_task_list_is_of_test_or_validation_before_the_published_few(tmp_path: Path) -> None:
    (listed,) = figures().measured
    few = replace(listed, split="official", tasks={"0ca9ddb6": 0.0})
    test = replace(listed, split="test", tasks={"0ca9ddb6": 0.25})
    card_of(tmp_path / "mine", None)
    for measured, words in (
        ((few,), "on official, full question (0 of 1 are above): 0ca9ddb6 (0 %)"),
        ((few, listed), "Tasks below 90 % on validation, full question (1 of 4 are above): 0520fde7 (0 %)"),
        ((few, listed, test), "on test, full question (0 of 1 are above): 0ca9ddb6 (25 %)"),
    ):
        assert words in card(tmp_path / "mine", replace(figures(), measured=measured), [])


def test_what_is_right_once_it_is_cut_stands_beside_the_canvas(tmp_path: Path) -> None:
    text = card_of(tmp_path / "cut", None)
    assert "| exact % [95 %] | cut to shape % | pixel % |" in text
    assert "| 43.75 [0.00, 100.00] | 75.00 | 90.00 | fast |" in text
    before = replace(figures().measured[0], cropped=None)  # figures of a time when nobody asked
    old = card(tmp_path / "cut", replace(figures(), measured=(before,)), [])
    assert "| 43.75 [0.00, 100.00] |  | 90.00 | fast |" in old


def test_a_figure_is_cut_by_the_shapes_of_its_records(tmp_path: Path) -> None:
    """Of four answers one is right, one is wrong in the padding alone, two in the grid."""
    folder = tmp_path / "mine"
    save_expert(build("trans-ir", TINY), folder, {"objective": "full"})
    row = RunSpec(("mine",), "single", "validation")
    about = header(row, RunSettings(), {"mine": weight_hash(folder)}, "data", 4)
    wrong = [(), (57, 99), (0,), (12, 57)]  # the right grid is 3x3
    records = [
        Record(query, f"task{query}", 0, cells, 1, 1, shape=(3, 3)) for query, cells in enumerate(wrong)
    ]
    file = row.file(tmp_path)
    open_records(file, about)
    append(file, Batch(tuple(records), 1.0, "cpu", "unknown"))
    (measured,) = measure_figures(folder, [file]).measured
    assert (measured.exact, measured.cropped) == (0.25, 0.5)


def stranger(folder: Path, **changes: Any) -> Path:
    """A folder whose figures say something else in places."""
    card_of(folder, None)
    write_card(folder, figures(), [])
    saved = json.loads((folder / FIGURES).read_text())
    for name, value in changes.items():
        if name in saved:
            saved[name] = value
        else:
            saved["measured"][0][name] = value
    (folder / FIGURES).write_text(json.dumps(saved))
    return folder


def test_figures_come_back_as_they_were_written(tmp_path: Path) -> None:
    assert read_figures(stranger(tmp_path / "same")) == figures()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"outcomes": "zz"}, "outcomes: expected bytes in hexadecimal, got 'zz'"),
        ({"outcomes": "f0f0"}, "its outcomes are not of 4 queries"),
        ({"queries": 10**12}, "queries: expected a whole number from 1 to 10,000,000"),
        ({"exact": "NaN"}, "exact: expected a number from 0 to 1"),
        ({"tasks": ["0ca9ddb6"]}, "tasks: expected an object"),
        ({"nobody": 1}, "nobody"),
        ({"measured": 3}, "measured: expected a list"),
        ({"weights": None}, "weights: expected a text"),
    ],
)
def test_figures_of_strangers_are_refused_in_a_sentence(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(DataError, match=words):
        read_figures(stranger(tmp_path / "other", **changes))


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "\udcff"])
def test_figures_that_are_no_object(tmp_path: Path, text: str) -> None:
    folder = stranger(tmp_path / "broken")
    (folder / FIGURES).write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(DataError, match="make it anew"):
        read_figures(folder)
