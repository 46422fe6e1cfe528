"""Data of one's own: arrays in a file, classes by name, and runs on them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from factordiff.errors import DataError, InvalidInput
from factordiff.training.arrays import ArraySource
from factordiff.training.named_source import named_source
from factordiff.training.source import Source
from factordiff.training.step import TrainingStep
from tests.training.runs import SETTINGS, StopAt, digest, trainer
from tests.training.synthetic import SEQUENCES, Counting

ROWS = (np.arange(4)[:, None] + np.arange(6)) % 5


def written(path: Path, **arrays: Any) -> Path:
    np.savez_compressed(path, **{"train": ROWS, "validation": ROWS[:2], **arrays})
    return path


def test_rows_of_a_file(tmp_path: Path) -> None:
    source = ArraySource(written(tmp_path / "rows.npz"))
    assert isinstance(source, Source)
    assert (source.vocabulary.size, source.cells) == (5, 6)
    condition, drawn = source.draw(0, torch.tensor(3), torch.arange(400))
    assert condition is None
    rows = {tuple(row) for row in drawn.tolist()}
    assert rows == {tuple(row) for row in ROWS.tolist()}  # all of them, and nothing else
    assert torch.equal(source.draw(0, torch.tensor(3), torch.tensor([7, 2]))[1], drawn[[7, 2]])
    assert not torch.equal(source.draw(0, torch.tensor(4), torch.arange(400))[1], drawn)
    assert torch.equal(source.validation(1)[1], torch.from_numpy(ROWS[:1]))


def test_values_and_hash(tmp_path: Path) -> None:
    plain = ArraySource(written(tmp_path / "a.npz"))
    assert ArraySource(written(tmp_path / "b.npz", values=9)).vocabulary.size == 9
    assert ArraySource(written(tmp_path / "c.npz", train=ROWS.astype(np.uint8))).digest == plain.digest
    assert ArraySource(written(tmp_path / "d.npz", train=ROWS[::-1])).digest != plain.digest


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"train": ROWS * 0.5}, "train: expected whole numbers of shape"),
        ({"train": ROWS[0]}, "train: expected whole numbers of shape"),
        ({"validation": ROWS[:0]}, "validation: expected whole numbers of shape"),
        ({"train": ROWS - 1}, "train: expected values from 0 on, got -1"),
        ({"validation": ROWS[:, :4]}, "rows of the same length, got 6 and 4 cells"),
        ({"values": 3}, "`values` says 3, so that the largest is 2, got 4"),
    ],
)
def test_files_that_are_refused(arrays: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=said):
        ArraySource(written(tmp_path / "bad.npz", **arrays))


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none.npz: cannot be read .*No such file"):
        named_source(str(tmp_path / "none.npz"), "cpu")
    (tmp_path / "text.npz").write_text("not arrays")
    with pytest.raises(DataError, match=r"write it with numpy.savez_compressed"):
        named_source(str(tmp_path / "text.npz"), "cpu")
    np.savez(tmp_path / "other.npz", rows=ROWS)
    with pytest.raises(DataError, match="it has no array 'train'"):
        named_source(str(tmp_path / "other.npz"), "cpu")


def test_a_class_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "class Made:\n    digest, cells = 'x', 2\n    def __init__(self, device):\n        self.device = device\n"
    (tmp_path / "made_here.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    assert isinstance(named_source("tests.training.synthetic:Counting", "cpu"), Counting)
    with pytest.raises(InvalidInput, match="made_here:Made has no vocabulary, draw, validation"):
        named_source("made_here:Made", "cpu")
    with pytest.raises(InvalidInput, match="made_here has no class 'Missing'"):
        named_source("made_here:Missing", "cpu")
    with pytest.raises(InvalidInput, match="there is no module 'nowhere', neither installed nor in"):
        named_source("nowhere:Rows", "cpu")
    with pytest.raises(InvalidInput, match="expected module:Class"):
        named_source("rows.csv", "cpu")
    assert sys.path == before


def counting(out: Path | None = None, **more: Any) -> Any:
    fields = {"backbone": "transformer", "network": SEQUENCES, "ema": 0.0, "batch": 16, "lr_rest": 1e-2}
    return trainer(out, source=Counting(), **{**fields, **more})


def test_a_run_without_a_condition_learns(tmp_path: Path) -> None:
    run = counting(tmp_path, max_steps=200, lr=2e-2, validation_items=32, check_every=200, log_every=50)
    before = run._check()
    summary = run.run()
    assert 0.9 < summary["right_at_15"] <= 1.0
    assert summary["bits_at_15"] < 0.5 * before["bits_at_15"]
    assert before["bits_at_15"] == pytest.approx(np.log2(7), abs=0.1)
    assert "exact" not in summary


def test_it_goes_on_bit_by_bit_and_keeps_no_second_copy(tmp_path: Path) -> None:
    straight = counting()
    straight.run()
    counting(tmp_path, observers=(StopAt(5),)).run()
    resumed = counting(tmp_path, resume=True)
    assert resumed.done == 5
    resumed.run()
    assert digest(resumed) == digest(straight)
    assert "ema" not in resumed.step.state()


def test_networks_and_sources_that_do_not_fit() -> None:
    with pytest.raises(InvalidInput, match="the data has 12 cells of 7 values"):
        trainer(source=Counting())
    with pytest.raises(InvalidInput, match="expected a Condition"):
        trainer(source=Counting(), network={"layout": [3, 4], "values": 7}).run()
    with pytest.raises(InvalidInput, match="agreement: SequenceTransformer reads no demonstrations"):
        counting(agreement=0.1).run()


def test_machines_share_one_batch() -> None:
    run = counting()
    whole = run.step.draw(torch.tensor(2))
    half = TrainingStep(run.step.network, Counting(), SETTINGS, torch.float32, torch.float32)
    half.settings, half.items = run.step.settings, torch.arange(8, 16)
    for part, expected in zip(half.draw(torch.tensor(2)), whole, strict=True):
        assert torch.equal(part, expected[8:])


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            "draw = lambda self, *of: rows(9)",
            r"draw gave torch.int64 of shape \(2, 9\), expected int64 of \(item, 4\)",
        ),
        ("draw = lambda self, *of: (None, rows(4)[1].float())", "draw gave torch.float32 of shape"),
        ("draw = lambda self, *of: rows(4)[1]", r"draw gave a Tensor, expected \(condition, clean cells\)"),
        ("draw = lambda self, *of: (None, rows(4)[1] + 3)", r"draw gave values 3 \.\. 3, expected 0 \.\. 2"),
        ("validation = lambda self, items: rows(5)", r"validation gave torch.int64 of shape \(2, 5\)"),
        ("__init__ = lambda self: None", "Own is called with the device that batches are on"),
        ("__init__ = lambda self, device: fail()", "Own could not read its data .*nothing here"),
    ],
)
def test_classes_that_draw_something_else_are_refused(
    change: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of another length were learned from without a word."""
    code = f"""
import torch
from factordiff import Vocabulary

def rows(cells):
    return None, torch.zeros(2, cells, dtype=torch.int64)

def fail():
    raise FileNotFoundError("nothing here")

class Own:
    vocabulary, cells, digest = Vocabulary(3), 4, "mine"
    __init__ = lambda self, device: None
    draw = lambda self, *of: rows(4)
    validation = lambda self, items: rows(4)
    {change}
"""
    (tmp_path / "own_rows.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_rows", raising=False)
    with pytest.raises(InvalidInput, match=said):
        named_source("own_rows:Own", "cpu")
