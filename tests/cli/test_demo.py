"""The demo prints what was measured, and degrades to letters where there is no terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
import torch
from PIL import Image
from rich.console import Console, RenderableType
from typer.testing import CliRunner

from factordiff import compose
from factordiff.arc.dataset import Dataset
from factordiff.cli import demo as verb
from factordiff.cli.app import app
from factordiff.cli.demo_arc import demonstrate, featured
from factordiff.cli.painting_display import PAINTS, scene
from factordiff.errors import InvalidInput
from factordiff.networks.store import build, save_expert
from factordiff.sampling.path import NOBODY, filling
from factordiff.solving.answer import Answer
from factordiff.solving.solver import solve
from factordiff.toy.exactness import Measured
from factordiff.toy.painting import paint, picture
from tests.solving_experts import Rule, plus_one, task
from tests.terminal_screen import console, screen, written

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
    scenes = filling(painted.samples.trace, [NOBODY] * len(picture()))
    cells, speakers = scenes[-1]
    assert cells == painted.x_0.tolist()
    assert set(speakers) == {0, 1}
    assert set(scenes[0][0]) == {NOBODY}
    filled = [sum(cell != NOBODY for cell in scene[0]) for scene in scenes]
    assert filled == sorted(filled)
    assert filled[-1] == len(picture())


@pytest.mark.parametrize("colors", [False, True])
def test_grid_draws_every_cell(colors: bool) -> None:
    with_or_without = Console(
        width=100, file=StringIO(), force_terminal=colors, color_system="truecolor" if colors else None
    )
    cells = [0, 1, NOBODY, 4] * 16
    title, *rows = scene(with_or_without, "step 3", cells, [0, 1, NOBODY, 1] * 16).plain.splitlines()
    assert title.startswith("step 3")
    assert rows == [rows[0]] * 8
    assert rows[0].split() == (
        ["a", "b", ".", "b"] * 2 if colors else ["#", ".", "=", "#", ".", "=", *"ab.b" * 2]
    )


def test_letters_tell_every_value_apart() -> None:
    assert (
        len(set(PAINTS.letters))
        == len(set(PAINTS.exact))
        == len(set(PAINTS.sixteen))
        == len(picture().unique())
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    small = {"width": 16, "context": 16, "encoder": 8, "heads": 2, "latents": 2, "cycles": [1, 1]}
    place = tmp_path_factory.mktemp("experts")
    return [str(save_expert(build("trans-ir", small, seed), place / f"expert-{seed}")) for seed in (0, 1)]


@pytest.mark.parametrize("width", [80])
def test_on_arc_what_is_shown_is_what_is_counted(folders: list[str], tmp_path: Path, width: int) -> None:
    on = console(width, None)
    demonstrate(on, folders, tmp_path, count=2)
    shown = written(on)
    lines = shown.splitlines()
    assert max(len(line) for line in lines if not line.startswith("wrote")) <= width
    queries = Dataset.load().evaluation("official", 2)
    for index in range(2):
        assert queries.task(index).id in shown
    assert re.search(r"shown 0 +becomes", shown)  # the demonstrations
    assert re.search(r"input +a alone +b alone +together +decided by", shown)
    assert "of these 2 tests, in one attempt" in shown
    for line in ("expert-0 alone", "expert-1 alone", "together"):
        assert re.search(rf"{line}\W+0", shown), line
    assert re.search(r"factordiff solve [0-9a-f]{8} --show --explain", shown)  # what to type next
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    with Image.open(tmp_path / "demo.gif") as moving:
        assert moving.format == "GIF"
        assert moving.width >= 600


def test_the_featured_answer_is_right_and_stitched() -> None:
    """Of the right ones, that in which the expert that decides fewer cells decides the most."""

    def answered(columns: int, rule: Callable[[torch.Tensor], torch.Tensor]) -> Answer:
        column = torch.arange(100) % 10
        pair = {
            "left": Rule(rule, lambda place: column < columns),
            "right": Rule(rule, lambda place: column >= columns),
        }
        return solve(task(), compose(pair), attempts=1)[0]

    def copy(query: torch.Tensor) -> torch.Tensor:
        return query

    wrong, uneven, even = answered(2, copy), answered(0, plus_one), answered(2, plus_one)
    assert [bool(one.first_right) for one in (wrong, uneven, even)] == [False, True, True]
    assert featured([wrong, uneven, even, even]) == 2
    assert featured([wrong, uneven]) == 1
    assert featured([wrong, wrong]) == 0


@pytest.mark.slow
def test_the_shipped_demo_shows_a_right_answer_on_about_a_screen(tmp_path: Path) -> None:
    on = console(80, "truecolor")
    demonstrate(on, [], tmp_path)
    lines = ["".join(place.letter for place in line) for line in screen(written(on))]
    print("\n".join(lines))
    assert not any(line.startswith("step") for line in lines)  # drawn over, and gone in the end
    assert len("\n".join(lines).rstrip().splitlines()) < 48
    counts = {
        name: int(re.search(rf"^{name} +│ (\d)", "\n".join(lines), re.MULTILINE)[1])  # type: ignore[index]
        for name in ("trans-color alone", "trans-occ alone", "together")
    }
    assert counts["together"] > max(counts["trans-color alone"], counts["trans-occ alone"])
