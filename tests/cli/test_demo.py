"""The demo prints what was measured, and degrades to letters where there is no terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console, RenderableType
from typer.testing import CliRunner

from factordiff.arc.dataset import Dataset
from factordiff.cli import demo as verb
from factordiff.cli.app import app
from factordiff.cli.demo_arc import PUBLISHED, demonstrate
from factordiff.errors import InvalidInput
from factordiff.experts.store import build, save_expert
from factordiff.toy.exactness import Measured
from factordiff.toy.painting import paint, picture

run = CliRunner().invoke
SOURCE = Path(__file__).parents[2] / "src"


def test_demo_prints_the_table_and_the_pictures() -> None:
    result = run(app, ["demo", "--toy", "--draws", "320"])
    assert result.exit_code == 0, result.output
    for method in (
        "single",
        "mixture",
        "product",
        "geometric-mean",
        "superdiff",
        "superdiff-and",
        "fkc",
        "rne",
    ):
        assert re.search(rf"^  {method}\b", result.output, re.MULTILINE), method
    for method in ("routing (pixel)", "routing (whole)", "soft-routing", "views", "vote of 3 single runs"):
        assert f"  {method}" in result.output
    for figure in ("0.254", "0.151", "0.183", "0.120"):  # as derived on paper for the same world
        assert figure in result.output
    assert "step 16" in result.output
    assert "\x1b[" not in result.output  # no terminal, no escape codes


def test_demo_refuses_too_few_draws() -> None:
    result = run(app, ["demo", "--toy", "--draws", "3"])
    assert isinstance(result.exception, InvalidInput)
    assert "draws" in str(result.exception)


def test_demo_is_written_in_ascii_where_nothing_else_is_understood() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "factordiff", "demo", "--toy", "--draws", "32"],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.isascii()


def shown(renderable: RenderableType) -> str:
    console = Console(width=100, file=StringIO())
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_an_exact_row_says_yes_and_a_noisy_one_shows_its_noise() -> None:
    exact = Measured("world", "one", "target", 2e-16, None, "")
    noisy = Measured("world", "two", "target", 0.25, 0.01, "")
    table = shown(verb.distances([exact, noisy]))
    assert re.search(r"one .* 2e-16 .* yes", table)
    assert re.search(r"two .* 0\.250 \(0\.010\) .* no", table)


def test_a_narrow_window_leaves_the_readings_out() -> None:
    row = Measured("world", "one", "target", 0.25, None, "A reading.")
    assert "A reading." in shown(verb.distances([row]))
    assert "A reading." not in shown(verb.distances([row], readings=False))


def test_small_distance_by_chance_is_not_called_exact() -> None:
    assert not Measured("world", "lucky", "target", 0.0, 0.01, "").exact


def test_frames_end_with_the_sample_and_name_who_decided() -> None:
    painted = paint("routing", draws=1, trace=True)
    assert painted.samples.trace is not None
    scenes = verb.frames(painted.samples.trace)
    cells, speakers = scenes[-1]
    assert cells == painted.x_0.tolist()
    assert set(speakers) == {0, 1}
    assert set(scenes[0][0]) == {verb.HIDDEN}
    filled = [sum(cell != verb.HIDDEN for cell in scene[0]) for scene in scenes]
    assert filled == sorted(filled)
    assert filled[-1] == len(picture())


@pytest.mark.parametrize("colors", [False, True])
def test_grid_draws_every_cell(colors: bool) -> None:
    drawing = verb.grid([0, 1, verb.HIDDEN, 4], verb.VALUE_STYLES, verb.VALUE_LETTERS, colors)
    assert len(drawing.plain) == 2 * 4 + 1
    assert drawing.plain.count("\n") == 1
    assert ("[]" in drawing.plain) is not colors
    assert len(drawing.spans) == (4 if colors else 1)


def test_letters_tell_every_value_apart() -> None:
    assert len(set(verb.VALUE_LETTERS)) == len(set(verb.VALUE_STYLES)) == len(picture().unique())


def test_on_arc_two_experts_answer_the_first_queries_of_the_lists(tmp_path: Path) -> None:
    small = {"width": 16, "context": 16, "encoder": 8, "heads": 2, "latents": 2, "cycles": [1, 1]}
    folders = [
        str(save_expert(build("trans-ir", small, seed), tmp_path / f"expert-{seed}")) for seed in (0, 1)
    ]
    written = StringIO()
    demonstrate(Console(file=written, width=120), folders, tmp_path, held_out=2)
    shown = written.getvalue()
    queries = Dataset.load().evaluation("test", 2)
    for index in range(2):
        assert f"{queries.task(index).id}, test 0" in shown
    assert shown.count("attempt 1 ") >= 2 + PUBLISHED
    for line in ("expert-0 alone", "expert-1 alone", "per-pixel routing"):
        assert re.search(rf"{line}\W+0 of 2\W+0 of {PUBLISHED}", shown), line
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "demo.gif").read_bytes().startswith(b"GIF8")
