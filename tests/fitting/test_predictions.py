"""What experts are asked while a fit learns: nested masks, nothing visible that is to be guessed, each pass once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff import Vocabulary, compose
from factordiff.errors import DataError, InvalidInput
from factordiff.fitting.data import FittingData, as_data, read_data
from factordiff.fitting.predictions import RATES, predict
from tests.fitting.worlds import halves
from tests.networks.small_networks import condition, partly_masked, small
from tests.toy import CELLS, EXPERTS


def test_hidden_cells_are_nested_and_the_path_is_a_samplers() -> None:
    """Evidence of a cell is what an expert thought of it when it was last hidden; hidden cells have none."""
    answers = torch.tensor([[0, 1, 2, 0], [2, 2, 1, 0], [1, 0, 0, 2]])
    predictions = predict(EXPERTS, FittingData(answers), seed=3)
    items = len(answers)
    assert predictions.asked[:items].all()
    for later in range(1, len(RATES)):
        now, before = (
            predictions.asked[later * items :][:items],
            predictions.asked[(later - 1) * items :][:items],
        )
        assert not (now & ~before).any()
    for row in range(len(predictions)):
        assert torch.equal(predictions.x_t[row] == predictions.mask, predictions.asked[row])
        for cell in range(CELLS):
            item, rate = int(predictions.item[row]), row // items
            for m, expert in enumerate(EXPERTS):
                said = expert.log_probs(predictions.x_t[row : row + 1])[0, cell, answers[item, cell]]
                hidden = bool(predictions.asked[row, cell])
                expected = 0.0
                if hidden:
                    assert float(predictions.of_truth[m, row, cell]) == pytest.approx(float(said), abs=1e-6)
                else:
                    last = max(r for r in range(rate) if predictions.asked[r * items + item, cell])
                    shown = predictions.x_t[last * items + item][None]
                    expected = float(expert.log_probs(shown)[0, cell, answers[item, cell]])
                assert float(predictions.log_density[m, row, cell]) == pytest.approx(expected, abs=1e-9)


def test_given_cells_are_never_hidden() -> None:
    experts, data = halves()
    asked = torch.zeros_like(data.answers, dtype=torch.bool)
    asked[:, 2:5] = True
    predictions = predict(experts, replace(data, asked=asked))
    assert not (predictions.asked & ~asked[predictions.item]).any()
    assert predictions.asked[: len(data)].sum() == asked.sum()


def test_what_is_kept_is_not_asked_again(tmp_path: Path) -> None:
    experts, data = halves(30)
    seen: list[int] = []
    whole = predict(experts, data, batch=8)
    once = experts[0].passes
    experts, _ = halves(30)

    def stop(done: int, total: int) -> None:
        seen.append(done)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict(experts, data, batch=8, folder=tmp_path, on_pass=stop)
    assert 0 < experts[0].passes < once
    again = predict(experts, data, batch=8, folder=tmp_path)
    assert experts[0].passes == once  # nothing was asked twice
    assert torch.equal(again.log_probs, whole.log_probs)
    assert torch.equal(again.log_density, whole.log_density)
    (tmp_path / "passes-00000.safetensors").write_bytes(b"cut")
    assert torch.equal(predict(experts, data, batch=8, folder=tmp_path).log_probs, whole.log_probs)


def test_no_gradients_are_kept_and_threads_give_the_same_rows() -> None:
    """A module that is not frozen would keep every pass in memory; parts by several threads are the same rows."""
    network = small("trans-ir")
    assert network.vector.requires_grad
    items = 11
    data = FittingData(partly_masked(items) % 10, condition(items))
    plain = predict([network], data, batch=3)
    assert not plain.log_probs.requires_grad
    told: list[tuple[int, int]] = []
    torch.set_num_threads(2)
    try:
        threads = predict([network], data, batch=3, on_pass=lambda *step: told.append(step))
    finally:
        torch.set_num_threads(1)  # as tests have it
    assert not threads.log_probs.requires_grad
    assert torch.equal(threads.item, plain.item)
    assert torch.allclose(threads.log_probs, plain.log_probs, atol=1e-5)
    assert told == [(6 * 4, 11 * 4), (11 * 4, 11 * 4)]


class Broken:
    vocabulary = Vocabulary(3)

    def encode(self, condition: Any) -> Any:
        return None

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        return torch.full((*x_t.shape, 3), torch.nan)


@pytest.mark.usefixtures("untyped")
def test_bad_data_and_bad_experts_are_sentences(tmp_path: Path) -> None:
    experts, data = halves()
    with pytest.raises(InvalidInput, match="contain NaN"):
        predict([*experts, Broken()], data)
    with pytest.raises(InvalidInput, match="expected some items to fit on, got none"):
        as_data(torch.zeros(0, 4, dtype=torch.int64))
    with pytest.raises(InvalidInput, match=r"expected int64 answers of shape"):
        as_data([1])
    with pytest.raises(InvalidInput, match=r"expected held of shape \(40,\), got \(3,\)"):
        replace(data, held=torch.ones(3, dtype=torch.bool))
    with pytest.raises(InvalidInput, match="expected a layout of 8 cells"):
        replace(data, layout=(3, 3))
    with pytest.raises(InvalidInput, match="others to choose by, got 40 and 0"):
        replace(data, held=torch.zeros(40, dtype=torch.bool)).sides()
    nothing = replace(data, asked=torch.zeros(40, 8, dtype=torch.bool))
    for use in (nothing.sides, lambda: compose(experts).diagnose(nothing)):
        with pytest.raises(InvalidInput, match="data: expected some asked cells, got none in"):
            use()
    with pytest.raises(InvalidInput, match="some cells are masked"):
        predict(experts, replace(data, answers=torch.full((40, 8), 3)))
    with pytest.raises(DataError, match="cannot be read"):
        read_data(tmp_path / "nothing.safetensors")


def test_sides_keep_what_belongs_together() -> None:
    _, data = halves(8)
    kept = torch.tensor([True, False] * 4)
    fitted, chooses = replace(data, held=kept).sides()
    assert torch.equal(fitted.answers, data.answers[1::2])
    assert torch.equal(chooses.answers, data.answers[::2])
    assert data.kept.tolist() == [False] * 6 + [True] * 2
