"""`worlds`, `compare`, `demo --world` and `data fetch` as people type them."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import factordiff.cli  # noqa: F401  (registers the verbs)
from factordiff.cli import comparing
from factordiff.cli.app import app
from factordiff.errors import FactorDiffError
from factordiff.worlds.antibody import fetching
from factordiff.worlds.catalogue import WORLDS
from factordiff.worlds.methods import BOUND, FACTOR, SCALAR
from factordiff.worlds.mosaic.world import Mosaic
from tests.worlds.test_antibody import folder  # noqa: F401  (tiny models)
from tests.worlds.test_mosaic import folders  # noqa: F401  (tiny networks)


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    if isinstance(result.exception, FactorDiffError):
        raise result.exception
    assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"
    return " ".join(result.output.split())


def test_the_list_has_every_world() -> None:
    shown = run("worlds")
    assert all(name in shown for name in WORLDS)
    assert "factordiff[hf]" in shown
    about = run("worlds", "arc-mosaic")
    assert "factordiff train fast --tasks 0520fde7," in about
    assert "--expert mosaic-4=runs/mosaic-4" in about


def test_compare_writes_what_it_shows_and_goes_on(tmp_path: Path) -> None:
    words = ("--methods", "mixture,routing,told", "--against", "mixture", "--out", str(tmp_path))
    shown = run("compare", "toy-halves-sure", *words)
    assert "minus mixture" in shown
    assert "toy-halves-sure, test. Every outcome enumerated" in shown
    place = tmp_path / "toy-halves-sure" / "test"
    assert "| told | 0.000 |" in (place / "table.md").read_text()
    assert "\\toprule" in (place / "table.tex").read_text()
    assert (place / "table.png").read_bytes()[:4] == b"\x89PNG"
    assert json.loads((place / "table.json").read_text())["rows"]["told"]["share"] == 1.0
    assert "toy-halves-sure" in run("worlds", "--shares", str(tmp_path))
    assert (tmp_path / "shares.png").read_bytes()[:4] == b"\x89PNG"
    before = (place / "mixture.jsonl.gz").read_bytes()
    run("compare", "toy-halves-sure", "--methods", "mixture,product", "--out", str(tmp_path))
    assert (place / "mixture.jsonl.gz").read_bytes() == before


def test_the_picture_has_the_way_to_the_oracle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {
        "fitted:mixture": {"family": SCALAR, "share": 0.0, "share_to_oracle": 0.0},
        "fitted:learned": {"family": FACTOR, "share": 3.0, "share_to_oracle": 0.25},
        "oracle": {"family": BOUND, "share": 12.0, "share_to_oracle": 1.0},
    }
    (tmp_path / "text" / "test").mkdir(parents=True)
    (tmp_path / "text" / "test" / "table.json").write_text(json.dumps({"rows": rows}))
    drawn: list[Any] = []
    monkeypatch.setattr(comparing, "shares", lambda *given: drawn.append(given) or b"")
    assert "text" in run("worlds", "--shares", str(tmp_path))
    assert drawn[0][0] == {"text": {"fitted:mixture": 0.0, "fitted:learned": 0.25}}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("compare", "nowhere"), "world: expected one of sudoku"),
        (("compare", "sudoku", "--sequences", "x.fasta"), "--sequences: the world 'sudoku' does not take it"),
        (("compare", "sudoku", "--puzzles", "no.txt"), "no.txt: cannot be read"),
        (("compare", "toy-cells", "--puzzles", "x.txt"), "--puzzles: the world 'toy-cells' does not take it"),
        (("compare", "sudoku", "--dtype", "float32"), "--dtype: the world 'sudoku' does not take it"),
        (("compare", "arc-early", "--dtype", "half", "--limit", "1"), "dtype: expected auto, float32 or bf"),
        (("compare", "arc-mosaic", "--expert", "mosaic-1"), "--expert: expected NAME=FOLDER, got 'mosaic-1'"),
        (("compare", "toy-views", "--limit", "0"), "limit: expected at least 1, got 0"),
        (("compare", "toy-views", "--split", "train"), "split: expected one of validation, test"),
        (("compare", "toy-views", "--out", "/dev/null/x"), "--out: /dev/null/x"),
        (("worlds", "--shares", "nowhere"), "no table in nowhere has a way to an oracle"),
        (("data", "fetch", "everything"), "fetch: expected antibody, got 'everything'"),
        (("demo", "--world", "nowhere"), "world: expected one of sudoku"),
    ],
)
def test_what_means_nothing_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(FactorDiffError, match=sentence):
        run(*words)


def test_records_of_a_gpu_go_on_anywhere(folders: dict[str, Path], tmp_path: Path) -> None:  # noqa: F811
    named = [word for name, place in folders.items() for word in ("--expert", f"{name}={place}")]
    line = ["compare", "arc-mosaic", *named, "--methods", "routing", "--limit", "1", "--split", "validation"]
    line += ["--reveal", "confidence:2", "--device", "cpu", "--out", str(tmp_path)]
    run(*line, "--dtype", "bfloat16")  # as a GPU does by itself
    file = tmp_path / "arc-mosaic" / "validation" / "routing.jsonl.gz"
    before = file.read_bytes()
    said = json.loads(gzip.decompress(before).decode().splitlines()[0])["weights"]
    assert len(said) == 4
    assert all(name.endswith(", bfloat16") for name in said.values())
    run(*line, "--dtype", "bfloat16")
    assert file.read_bytes() == before
    with pytest.raises(FactorDiffError, match=r"routing\.jsonl\.gz"):
        run(*line, "--dtype", "float32")


def test_the_demo_of_each_kind_of_world(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(Mosaic, "reveal", "confidence:3")  # networks that know nothing are never sure
    assert "views" in run("demo", "--world", "toy-views")
    assert re.search(r"\b(\d+) of \1 hidden cells are right", run("demo", "--world", "sudoku"))
    named = ",".join(f"{name}={place}" for name, place in folders.items())
    shown = run("demo", "--world", "arc-mosaic", "--experts", named)
    assert "decided by owner" in shown
    assert "of 400 hidden cells are right" in shown


def test_fetch_leaves_what_is_there(folder: Path) -> None:  # noqa: F811
    assert run("data", "fetch", "antibody").count("already in") == 2
    assert fetching.model_folder("sapiens").is_relative_to(folder)


def test_the_commands_that_train_the_mosaics_experts_run(tmp_path: Path) -> None:
    from factordiff.worlds.mosaic.tasks import training_commands

    command = training_commands(str(tmp_path))[1].split()
    assert command[:3] == ["factordiff", "train", "fast"]
    changed = ["train", "tiny", *command[3:]]
    changed[changed.index("--max-steps") + 1] = "2"
    changed[changed.index("--decay-from") + 1] = "1"
    run(*changed, "--device", "cpu", "--validation-items", "4", "--batch", "4")
    assert (tmp_path / "mosaic-2" / "weights" / "config.json").is_file()
