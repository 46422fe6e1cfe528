"""What lies outside the package: a method of an installed package, a world in a file of one's own."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import factordiff.cli  # noqa: F401  (registers the verbs)
from factordiff import TabularExpert, compose
from factordiff.cli.app import app
from factordiff.composition import method
from factordiff.composition.method import declare, specs
from factordiff.composition.mixture import Mixture
from factordiff.errors import FactorDiffError, InvalidInput, Unavailable
from factordiff.worlds.catalogue import world

PAGE = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
TRIMMED, PAIRS = (next(one for one in CODE if part in one) for part in ("class TrimmedMean", "class Pairs"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where somebody works; methods that come from there are gone after the test."""
    specs()
    monkeypatch.setattr(method, "_SPECS", dict(method._SPECS))
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]
    method._import_all.cache_clear()


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """A package beside the others, as pip leaves it: its module, and its entry points."""
    (folder / "trimming.py").write_text(code)
    about = folder / "trimming-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: trimming\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[factordiff]\ntrimming = trimming\n")
    monkeypatch.syspath_prepend(str(folder))
    method._import_all.cache_clear()


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), terminal_width=120)
    if isinstance(result.exception, FactorDiffError):
        raise result.exception
    assert result.exit_code == 0, f"{result.output}\n{result.exception!r}"
    return result.output


def test_the_method_of_an_installed_package_is_found_by_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(folder, monkeypatch, TRIMMED)
    coins = [TabularExpert(torch.tensor([p, 1 - p])) for p in (0.9, 0.6, 0.55, 0.1)]
    assert "trimmed-mean; trim 0.4" in repr(compose(coins, "trimmed-mean", trim=0.4))
    for verb in ("solve", "eval"):
        assert "--trim" in run(verb, "--help")


def test_a_package_that_cannot_be_imported_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(folder, monkeypatch, "import nothing_of_that_name")
    with pytest.raises(
        Unavailable, match=r"^trimming: the package trimming adds it to factordiff, .*'nothing_of_that_name'"
    ):
        specs()


@pytest.mark.usefixtures("folder")
def test_a_name_of_ours_is_not_taken_in_silence() -> None:
    with pytest.raises(
        InvalidInput, match=r"^method: 'mixture' is declared in factordiff.composition.mixture and in tests"
    ):
        declare("mixture")(lambda: Mixture())


def test_a_world_in_a_file_of_ones_own_is_compared(folder: Path) -> None:
    (folder / "mine.py").write_text(PAIRS.split("\n\ntable = ")[0])
    assert "pairs: experts that are flat" in run("worlds", "mine:Pairs")
    shown = run("compare", "mine:Pairs", "--out", "runs")
    assert re.search(r"routing[ │]+100\.0", shown)
    assert (folder / "runs" / "pairs" / "test" / "table.tex").exists()


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("class Pairs: ...", "world: other:Pairs is no World; make it a class of"),
        (
            "from factordiff.worlds.world import World\nclass Pairs(World):\n  name = tests = 'pairs'",
            "world: other:Pairs does not say its data, experts, queries, sizes, metric, methods",
        ),
        ("", "world: other has no class 'Pairs'; expected module:Class"),
    ],
)
def test_what_is_no_world_is_a_sentence(folder: Path, code: str, sentence: str) -> None:
    (folder / "other.py").write_text(code)
    with pytest.raises(InvalidInput, match=f"^{re.escape(sentence)}"):
        world("other:Pairs")
