"""What a card says of an expert that knows some tasks alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from factordiff.networks.store import build, save_expert
from factordiff.report.card import Figure, Figures, card
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
