"""What a window of 80 columns shows: names as they are typed, never cut; help that reads on from line to line."""

from __future__ import annotations

import re
from io import StringIO

import pytest
import torch
import typer
from rich.console import Console
from rich.text import Text
from typer.testing import CliRunner

from factordiff.cli import demo_world, reproduction, worlds
from factordiff.cli.app import app
from factordiff.cli.bands import Banded
from factordiff.cli.fitting import show_diagnosis
from factordiff.cli.verbs import FIRST
from factordiff.experts.registry import shipped_experts
from factordiff.fitting.diagnosis import Diagnosis, Finding
from factordiff.report.document import Table
from factordiff.worlds.catalogue import WORLDS, compare_world
from factordiff.worlds.catalogue import world as world_of
from tests.cli.verbs import verbs

NARROW = 80
LABELS = ("test.trans-full+conv-full.routing.component", "test.trans-full+conv-full.geometric-mean")


def narrow() -> Console:
    return Console(width=NARROW, file=StringIO(), force_terminal=False)


def said(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def columns(shown: str, place: int) -> str:
    """What stands in one column of a table, its lines joined."""
    rows = [re.split(r"[│┃]", line) for line in shown.splitlines()]
    return "".join(row[place].strip() for row in rows if len(row) > place)


def helped(*words: str) -> str:
    result = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": str(NARROW)})
    assert result.exit_code == 0
    return result.output


def test_the_list_of_experts_is_whole() -> None:
    shown = CliRunner().invoke(app, ["experts"], env={"COLUMNS": str(NARROW)}).output
    assert all(name in shown for name in shipped_experts())
    assert "…" not in shown


def test_the_list_of_worlds_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    console = narrow()
    monkeypatch.setattr(worlds, "_console", lambda: console)
    assert CliRunner().invoke(app, ["worlds"]).exit_code == 0
    assert all(name in said(console) for name in WORLDS)
    assert "…" not in said(console)
    assert len(said(console).splitlines()) < 80  # it was 120


@pytest.mark.parametrize("names", [("trans-occ-default-head", "trans-occ-relative"), ("one", "two", "three")])
def test_a_diagnosis_tells_its_experts_apart_and_what_each_way_was_set_to(names: tuple[str, ...]) -> None:
    ways = ("best product", "best mixture", "best confidence", "learned", "by place", "evidence")
    settings = dict(zip(ways, ("0.4849/1", "0.997/1", "T 1/0.7", "", "", "near:2, T 1e+06"), strict=True))
    findings = tuple(
        Finding(name, 1.0, 1.0, (1.0,) * 4, settings.get(name, "")) for name in (*names, *ways, "oracle")
    )
    gains = dict.fromkeys(ways, (0.0, 0.0))
    sure = torch.zeros(len(names), 100)
    found = Diagnosis(names, (1.0, 0.75, 0.5, 0.25), findings, sure, gains, 12, (10, 10))
    console = narrow()
    show_diagnosis(console, found)
    assert all(name in columns(said(console), 1) for name in names)
    assert all(line.endswith("│") for line in said(console).splitlines() if line.startswith("│"))
    settled = columns(said(console), 8)
    assert all(setting.replace(" ", "") in settled.replace(" ", "") for setting in settings.values())
    assert ("there may be better ones" in said(console)) == (len(names) > 2)


@pytest.mark.parametrize("drawn", [reproduction._rich, Banded])
def test_rows_of_a_table_are_told_apart(drawn) -> None:
    rows = tuple(("composition", label, "24,000", "24,000", "12,345,678") for label in LABELS)
    console = narrow()
    console.print(drawn(Table(("experiment", "row", "queries", "left", "seconds left"), rows, "")))
    assert all(label in columns(said(console), 2) + columns(said(console), 1) for label in LABELS)


@pytest.mark.parametrize(("names", "width"), [(2, 240), (2, 80), (1, 80), (2, 40)])
def test_figures_that_do_not_fit_go_into_bands(names: int, width: int) -> None:
    """In a window of 240 columns the rows of antibodies had no names, and their intervals were cut."""
    figures = [f"nats {number} %, nats [95 %]" for number in range(12)]
    rows = tuple(
        ("one number per expert", label)[2 - names :]
        + tuple(f"{line}.{place:03} [0.{line}{place:02}, 0.9]" for place in range(12))
        for line, label in enumerate(("mixture", "fitted:learned[kind=neighbourhood] (mixture head)"))
    )
    headings = ("", "method")[2 - names :] + tuple(figures)
    console = Console(width=width, file=StringIO(), force_terminal=False)
    console.print(Banded(Table(headings, (rows[0], None, rows[1]), "of a world"), names))
    shown = said(console)
    assert shown.count("of a world") == 1
    assert max(map(len, shown.splitlines())) <= width
    bands = shown.split("nats 0 %")[1:] and re.split(r"\n[^\n]*nats \d+ %", shown)[1:]
    assert len(bands) > 1
    for band in bands:
        assert "mixture" in band
        assert "fitted:learned" in "".join(columns(band, 0).split())
    for cell in (*figures, *rows[0][names:], *rows[1][names:]):
        assert cell in shown


def test_a_worlds_demo_spells_its_rows_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets are part of a row's name, not markup; what is far has a long bar, what is exact has none."""
    few = compare_world(world_of("toy-halves"), "mixture,soft-routing,routing[factors=row]")
    monkeypatch.setattr(demo_world, "compare_world", lambda world, on_progress: few)
    console = narrow()
    demo_world.watch(console, world_of("toy-halves"))
    lines = {line.split()[0]: line for line in said(console).splitlines() if line}
    assert max(map(len, lines.values())) == console.width
    assert lines["routing[factors=row]"].split()[1:] == ["0.000", "exact"]
    assert lines["mixture"].count("█") > 5 * lines["soft-routing"].count("█") > 0


def test_help_says_what_is_written() -> None:
    """Brackets that are not escaped would be taken for markup and left out."""

    def heard(command: typer.core.click.Command) -> list[str]:  # type: ignore[name-defined]
        words = [getattr(parameter, "help", None) or "" for parameter in command.params]
        return [
            *words,
            command.help or "",
            *(one for sub in getattr(command, "commands", {}).values() for one in heard(sub)),
        ]

    for words in heard(typer.main.get_command(app)):
        assert Text.from_markup(words).plain == words.replace("\\[", "[")
    assert "fitted:learned[kind=neighbourhood]" in helped("compare")


def test_help_begins_with_what_a_newcomer_looks_for() -> None:
    listed = re.findall(r"^│ ([a-z]+) ", helped().split("Commands")[1], re.MULTILINE)
    assert tuple(listed[: len(FIRST)]) == FIRST
    assert sorted(listed) == sorted({words[0] for words, _ in verbs()} | {"data"})


def test_paragraphs_of_help_use_the_whole_width() -> None:
    above = helped("solve").split("╭")[0]
    assert "too large for the 10x10 canvas" in " ".join(above.split())
    lines = above.split("Exit code 0")[1].splitlines()
    assert all(len(line.rstrip()) > 60 for line in lines[:3])
