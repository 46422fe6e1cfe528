"""`factordiff infill`: what it prints, writes and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from click.testing import Result
from rich.style import Style
from rich.text import Text
from typer.testing import CliRunner

from factordiff.arc.svg import expert_color
from factordiff.cli import infill as _verb  # noqa: F401
from factordiff.cli.app import app
from factordiff.cli.infill_display import drawn
from factordiff.errors import FactorDiffError
from factordiff.experts import registry
from factordiff.networks.store import build, save_expert
from factordiff.team.infill import Infilled
from factordiff.text.document import TextDocument, lines_of
from tests.networks.small_networks import small, stir

TEXT = 'import os\n\n\ndef f(é):\n\treturn "x"  # said\n'
SMALL = {"values": 96, "length": 256, "width": 8, "blocks": 1, "heads": 2}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "file.py").write_bytes(TEXT.encode())
    for seed, name in enumerate(("prose", "code")):
        network = build("transformer", SMALL, seed)
        stir(network, seed, 1.0)
        save_expert(network, tmp_path / name)
    monkeypatch.setattr(registry, "SHIPPED", tmp_path / "shipped")  # where nothing is
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    words = ["infill", *arguments, "--device", "cpu"]
    return CliRunner().invoke(app, words if "--experts" in words else [*words, "--experts", "prose,code"])


def test_lines_are_filled_and_the_rest_stays(desk: Path) -> None:
    result = run("file.py", "--mask", "1,5", "--out", "filled.py")
    assert result.exit_code == 0, result.output
    lines = lines_of((desk / "filled.py").read_bytes().decode())
    given = lines_of(TEXT)
    assert [len(line) for line in lines] == [len(line) for line in given]
    assert lines[1:4] == given[1:4]  # what is not ASCII too
    assert lines[4] != given[4]
    shown = result.output.splitlines()
    assert shown[0] == lines[0].rstrip("\n")
    assert set(shown[1]) <= {"a", "b"}
    assert len(shown[1]) == len("import os")
    count = shown[1].count("a") + shown[6].count("a")
    assert f"a prose: {count} characters" in result.output
    assert "hidden characters as they were; prose + code, routing" in result.output


def test_letters_stand_below_their_characters_where_a_line_is_too_long() -> None:
    long = "a b " * 30  # broken by a terminal of 50 columns
    text = f"{long}\nshort\n"
    cells = len(text)
    hidden = torch.zeros(cells, dtype=torch.bool)
    hidden[[0, 49, 50, 119]] = True
    who = torch.zeros(cells, dtype=torch.long)
    who[[49, 119]] = 1
    filled = Infilled(torch.zeros(cells, dtype=torch.long), hidden, who, 1)
    rows = drawn(text, filled, False, 50).plain.split("\n")
    assert rows == [
        long[:50], "a" + " " * 48 + "b", long[50:100], "a", long[100:], " " * 19 + "b", "short", "",
    ]  # fmt: skip
    assert drawn(text, filled, False).plain.split("\n")[0] == long  # whole where nothing breaks it


def test_a_share_of_the_characters(desk: Path) -> None:
    one = run("file.py", "--mask", "0.5", "--method", "mixture", "--seed", "3")
    assert one.exit_code == 0, one.output
    hidden = int(TextDocument(TEXT).hidden("0.5", 3).sum())
    assert f"of {hidden} hidden characters" in one.output
    assert f"* all together: {hidden} characters" in one.output


def test_characters_stand_on_the_color_of_who_decided(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLORTERM": "truecolor"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain = TextDocument(TEXT)
    for mask in ("4-5", "0.5"):
        result = run("file.py", "--mask", mask)
        assert result.exit_code == 0, result.output
        body, legend = result.output.split("\x1b[0m prose: ")[0], Text.from_ansi(result.output).plain
        shown = Text.from_ansi(body.rpartition("\n")[0])
        colors = {expert_color(index).upper(): name for index, name in enumerate(("prose", "code"))}
        decided = [
            colors[span.style.bgcolor.get_truecolor().hex.upper()]
            for span in shown.spans
            if isinstance(span.style, Style) and span.style.bgcolor is not None
            for _ in range(span.start, span.end)
        ]
        # Newlines are given, and so is what is not ASCII.
        assert len(decided) == int(plain.hidden(mask).sum())
        for name in ("prose", "code"):
            assert f"{name}: {decided.count(name)} characters" in legend


def test_one_expert_alone(desk: Path) -> None:
    result = run("file.py", "--mask", "2-4", "--experts", "code")
    assert result.exit_code == 0, result.output
    assert "code, single" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.py"], "none.py: cannot be read (No such file or directory)"),
        (["file.py", "--mask", "4-9"], "--mask: expected lines from 1 to 5, got 4-9"),
        (["file.py", "--mask", "some"], "--mask: expected lines such as 10-14"),
        (["file.py", "--mask", "2-3"], "--mask: 2-3 hides nothing of file.py"),
        (["empty.py"], "empty.py: it is empty"),
        (["binary.py"], "binary.py: byte 0 is not UTF-8"),
        (["file.py", "--experts", "grids"], "--experts: those of grids speak 10 values, file.py needs 96"),
        (
            ["file.py", "--experts", "text-prose"],
            "expert: 'text-prose' is neither a folder nor a shipped expert",
        ),
    ],
)
def test_refusals(arguments: list[str], said: str, desk: Path) -> None:
    (desk / "empty.py").write_text("")
    (desk / "binary.py").write_bytes(b"\xff\x00")
    save_expert(small("trans-ir"), desk / "grids")
    with pytest.raises(FactorDiffError) as refused:
        raise run(*arguments).exception
    assert str(refused.value).startswith(said)
    if "text-prose" in arguments:
        assert "--source factordiff.text.sources:Prose --out runs/text-prose" in str(refused.value)


def test_lines_end_at_newlines_only() -> None:
    hidden = TextDocument("a\x0cb\nc\r\n").hidden("1-2")
    assert torch.equal(hidden, torch.tensor([True, True, True, False, True, False, False]))
