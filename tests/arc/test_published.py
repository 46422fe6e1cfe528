"""The published tasks in the package are those that were published, and are found by id."""

from __future__ import annotations

from pathlib import Path

import pytest

from factordiff.arc.build.official import fitting_tasks
from factordiff.arc.published import is_familiar, looks_like_an_id, published_task, published_tasks
from factordiff.arc.task import content_hash
from factordiff.errors import DataError


def test_they_are_the_training_tasks_that_fit_answers_included() -> None:
    found = published_tasks()
    assert len(found) == 178
    assert content_hash(found.values()) == content_hash(fitting_tasks().values())
    assert sum(map(is_familiar, found)) == 120


def test_an_unknown_id_is_refused_with_the_nearest() -> None:
    with pytest.raises(DataError, match=r"0ca9ddb7: no file has this name, .* Did you mean 0ca9ddb6\?"):
        published_task("0ca9ddb7")


def test_a_file_of_that_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert looks_like_an_id("0ca9ddb6")
    assert not looks_like_an_id("task.json")
    (tmp_path / "0ca9ddb6").write_text("{}")
    assert not looks_like_an_id("0ca9ddb6")
