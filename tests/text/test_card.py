"""The table of code-prose on small experts of a small corpus, and the cards that are made of it."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import code_prose
from benchmarks.text_card import CARD, FIGURES, card, training_lines, write_text_card
from factordiff.arc.artefact import save_artefact
from factordiff.errors import DataError
from factordiff.experts.registry import SHIPPED
from factordiff.networks.store import build as build_network
from factordiff.networks.store import load_expert, read_config, save_expert, weight_hash
from factordiff.text.build import RECORDED, build
from factordiff.text.packages import pinned, split_of
from tests.networks.small_networks import stir
from tests.text.wheels import packages

SMALL = {"values": 96, "length": 256, "width": 8, "blocks": 1, "heads": 2}
ROWS = {
    "text-prose alone", "text-code alone", "mixture", "geometric mean", "confidence", "soft confidence",
    "mixture, fitted", "product, fitted", "confidence, T fitted", "told", "weights per window", "oracle", "generalist",
}  # fmt: skip


def test_the_whole_table_and_its_cards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wheels = packages(tmp_path / "wheels", files=12)
    save_artefact(build(tmp_path / "wheels", wheels), tmp_path / "corpus.npz")
    for seed, name in enumerate(("prose", "code", "all")):
        network = build_network("transformer", SMALL, seed)
        stir(network, seed, 1.0)
        save_expert(network, tmp_path / f"text-{name}" / "weights", {"objective": "full", "step": 3})
    monkeypatch.setattr(code_prose, "SHIPPED", tmp_path / "shipped")
    monkeypatch.chdir(tmp_path)
    words = ["--experts", "text-prose,text-code", "--generalist", "text-all", "--corpus", "corpus.npz"]
    words += ["--shares", "0.15,0.5", "--windows", "8", "--verbatim", "2", "--device", "cpu", "--ship"]
    monkeypatch.setattr(sys, "argv", ["code_prose.py", *words, "--out", "table.json"])
    monkeypatch.setattr("benchmarks.verbatim.STEPS", 4)
    code_prose.main()
    shown = capsys.readouterr().out
    result = json.loads((tmp_path / "table.json").read_text())
    for share in ("0.15", "0.5"):
        table = result["shares"][share]
        assert set(table["rows"]) == ROWS
        bits = {name: row["bits"] for name, row in table["rows"].items()}
        assert bits["oracle"] <= min(
            bits[name] for name in ("told", "mixture", "confidence", "text-code alone")
        )
        saved, low, high = table["rows"][table[code_prose.BASE]]["saved"]
        assert saved == low == high == 0.0
        way = bits[table[code_prose.BASE]] - bits["generalist"]
        assert table["rows"]["generalist"]["share of the way"] == (pytest.approx(1.0) if way > 0 else None)
        assert f"{bits['told']:.3f}" in shown
    for name in ("text-prose", "text-code", "text-all"):
        told = (tmp_path / "shipped" / name / "README.md").read_text()
        row = "generalist" if name == "text-all" else f"{name} alone"
        assert f"| 15 % | {result['shares']['0.15']['rows'][row]['bits']:.3f} |" in told
        assert "MIT (" in told
        assert "What it repeats of its training text\n\nOf 2 windows each" in told
    shipped = tmp_path / "shipped" / "text-prose"
    assert read_config(shipped)["about"]["step"] == 3
    mine, given = load_expert(shipped), load_expert(tmp_path / "text-prose")
    assert float((mine.vector - given.vector).abs().max()) > 0
    assert float((mine.vector - given.vector).abs().max()) < 0.01 * float(given.vector.abs().max())
    size = (shipped / "model.safetensors").stat().st_size
    assert size < 0.7 * (tmp_path / "text-prose" / "weights" / "model.safetensors").stat().st_size
    write_text_card(shipped, result, ["all of it by night", "weights of step 3"])
    assert training_lines(shipped) == ["all of it by night", "weights of step 3"]
    # Measured again, its card has other figures and the same training.
    words = [
        "--experts",
        "shipped/text-prose,shipped/text-code",
        "--generalist",
        "shipped/text-all",
        *words[4:6],
    ]
    words += ["--shares", "0.15", "--windows", "6", "--device", "cpu", "--cards"]
    monkeypatch.setattr(sys, "argv", ["code_prose.py", *words])
    code_prose.main()
    told = (shipped / "README.md").read_text()
    assert "on 6 windows" in told
    assert "What it repeats" not in told
    assert "- all of it by night\n- weights of step 3\n- weights" in told
    with pytest.raises(DataError, match="these figures are of other weights"):
        write_text_card(shipped, {**result, "weights": {"text-prose": "0" * 64}}, [])


@pytest.mark.parametrize("name", ["text-prose", "text-code", "text-all"])
def test_shipped_cards_say_what_was_measured_of_these_weights(name: str) -> None:
    folder = SHIPPED / name
    measured = json.loads((folder / FIGURES).read_text())
    assert measured["weights"][name] == weight_hash(folder)
    assert measured["corpus"] == RECORDED
    assert (folder / CARD).read_text() == card(folder, measured, training_lines(folder))


@pytest.mark.parametrize("name", ["text-prose", "text-code", "text-all"])
def test_shipped_experts_are_small_and_their_cards_say_where_they_come_from(name: str) -> None:
    folder = SHIPPED / name
    assert load_expert(name).layout.count <= 2_000_000
    assert (folder / "model.safetensors").stat().st_size <= 4_000_000
    assert read_config(folder)["about"]["data"] == f"{RECORDED} {name.removeprefix('text-')}"
    told = (folder / CARD).read_text()
    learned_from = [one for one in pinned() if split_of(pinned())[one.name] == "train"]
    assert f"of {len(learned_from)} packages from PyPI" in told
    for licence, count in Counter(one.license for one in learned_from).items():
        assert f"{licence} ({count})" in told
    repeated = told.split("## What it repeats of its training text")[1]
    assert re.search(r"stretches of 20 characters of what it writes from nothing .*: [\d.]+ %", repeated)
    assert re.search(r"puts back exactly: [\d.]+ % of training text, [\d.]+ % of held-out text", repeated)
