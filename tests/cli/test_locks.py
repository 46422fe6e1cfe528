"""Two runs in one folder or on one file: the second says who is there, and leaves everything as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from factordiff.cli.app import app
from factordiff.errors import FileError
from factordiff.locks import Lock
from tests.solving_experts import tiny_experts
from tests.training.runs import trainer


@pytest.fixture(scope="module")
def experts(tmp_path_factory: pytest.TempPathFactory) -> str:
    return ",".join(tiny_experts(tmp_path_factory.mktemp("experts")))


def refused(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert isinstance(result.exception, FileError), result.output
    return str(result.exception)


def test_two_evaluations_of_one_file(experts: str, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl.gz"
    with Lock.of_file(out):
        words = ("--experts", experts, "--limit", "1", "--reveal", "confidence:1", "--out", str(out))
        assert "r.jsonl.gz: in use by process" in refused("eval", *words)
    assert list(tmp_path.iterdir()) == []


def test_two_fits_in_one_folder(experts: str, tmp_path: Path) -> None:
    with Lock.of_folder(tmp_path / "fit"):
        words = ("--items", "4", "--held", "2", "--steps", "2", "--out", str(tmp_path / "fit"))
        assert "fit: in use by process" in refused("fit", experts, *words)
    assert list((tmp_path / "fit").iterdir()) == []


def test_two_comparisons_in_one_folder(tmp_path: Path) -> None:
    place = tmp_path / "toy-halves" / "test"
    with Lock.of_folder(place):
        words = ("--limit", "2", "--methods", "mixture", "--out", str(tmp_path))
        assert "in use by process" in refused("compare", "toy-halves", *words)
    assert list(place.iterdir()) == []


def test_two_trainings_in_one_folder(tmp_path: Path) -> None:
    first = trainer(tmp_path, max_steps=2)
    with pytest.raises(FileError, match="in use by process"):
        trainer(tmp_path, resume=True, max_steps=2)
    first.run()
    before = sorted(path.name for path in tmp_path.iterdir())
    assert ".lock" not in before
    trainer(tmp_path, resume=True, max_steps=3).run()
