"""Code and prose: small experts on a small corpus, held against what `benchmarks/text_bits.py` measures alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from rich.console import Console

from benchmarks.text_bits import fill_in
from factordiff.arc.artefact import save_artefact
from factordiff.cli.demo_world import watch
from factordiff.composition.mixture import Mixture
from factordiff.composition.routing import Routing
from factordiff.composition.single import Single
from factordiff.errors import DataError, InvalidInput
from factordiff.networks.store import build as build_network
from factordiff.networks.store import save_expert
from factordiff.text.alphabet import BYTES, letters
from factordiff.text.build import build
from factordiff.text.corpus import load_corpus
from factordiff.text.windows import hidden_cells, mixed_windows
from factordiff.worlds import code_prose
from factordiff.worlds.catalogue import compare_world
from factordiff.worlds.code_prose import GENERALIST, MEMBERS, SHARE, CodeProse
from tests.networks.small_networks import stir
from tests.text.wheels import packages

SMALL = {"values": 96, "length": 256, "width": 8, "blocks": 1, "heads": 2}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> CodeProse:
    """Three networks that were never trained, and windows of nine packages."""
    desk = tmp_path_factory.mktemp("code-prose")
    save_artefact(build(desk / "wheels", packages(desk / "wheels", files=12)), desk / "corpus.npz")
    for seed, name in enumerate((*MEMBERS, GENERALIST)):
        network = build_network("transformer", SMALL, seed)
        stir(network, seed, 1.0)
        save_expert(network, desk / name, {"objective": "full", "step": 3})
    return CodeProse({name: desk / name for name in (*MEMBERS, GENERALIST)}, desk / "corpus.npz")


def test_queries_are_windows_of_held_out_packages(world: CodeProse) -> None:
    queries = world.queries("test", 6)
    windows = mixed_windows(load_corpus(world.file)["test"], 6)
    assert torch.equal(queries.x_0, windows.x_0)
    assert torch.equal(queries.hidden(BYTES.mask), hidden_cells(windows, SHARE))
    assert queries.owners is not None
    assert torch.equal(queries.parts["prose"], queries.owners == 0)
    assert torch.equal(queries.parts["code"], ~queries.parts["prose"])
    assert len(set(queries.clusters)) > 1
    assert not set(queries.clusters) & set(world.queries("validation").clusters)
    assert len(world.queries("test")) == world.sizes["test"] > 6


def test_the_rows_are_those_that_bits_measures(world: CodeProse) -> None:
    table = compare_world(world, "alone,mixture,routing,told,oracle,generalist", limit=8)
    experts = list(world.experts().experts.values())
    windows = mixed_windows(load_corpus(world.file)["test"], 8)
    methods = {"text-prose": Single(0), "text-code": Single(1), "mixture": Mixture(), "routing": Routing()}
    expected = fill_in(experts, methods, windows.x_0, hidden_cells(windows, SHARE), windows.owner)
    right = next(measure for measure in table.measures if measure.name == "right")
    for name in (*methods, "told", "oracle"):
        assert table[name].value(table.main) == pytest.approx(expected[name].bits_per_cell, rel=1e-6), name
        assert table[name].value(right) == pytest.approx(expected[name].share_right), name
    assert world._generalist is not None
    alone = fill_in([world._generalist], {"it": Single(0)}, windows.x_0, hidden_cells(windows, SHARE))
    assert table["generalist"].value(table.main) == pytest.approx(alone["it"].bits_per_cell, rel=1e-6)
    assert table.top is table["generalist"]


def test_routers_are_fitted_and_the_way_is_to_the_generalist(world: CodeProse, tmp_path: Path) -> None:
    rows = "fitted:mixture,fitted:learned[steps=4;head=mixture],oracle,generalist"
    table = compare_world(world, rows, limit=6, validation=12, budget=3, out=tmp_path)
    assert "The way is from `fitted:mixture` to `generalist`" in table.caption()
    learned = table["fitted:learned[steps=4;head=mixture]"]
    parts = [measure for measure in table.measures if measure.name in ("bits prose", "bits code")]
    both = sum(learned.sums[measure.name] for measure in parts)
    assert both == pytest.approx(learned.sums["bits"])
    way = table["fitted:mixture"].value(table.main) - table["generalist"].value(table.main)
    share = table.share(table["generalist"])
    assert share == (pytest.approx(1.0) if way >= 0.02 else None)
    # The picture of all worlds shows the way that all of them have.
    base, oracle = table["fitted:mixture"].value(table.main), table["oracle"].value(table.main)
    figures = table.figures()
    assert figures["oracle"]["share_to_oracle"] == pytest.approx(1.0)
    gone = (base - learned.value(table.main)) / (base - oracle)
    assert figures[learned.label]["share_to_oracle"] == pytest.approx(gone)
    # Records were kept: the same table again runs nothing.
    again = compare_world(world, rows, limit=6, validation=12, budget=3, out=tmp_path)
    assert again.text() == table.text()


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    nowhere = CodeProse(corpus=tmp_path / "none.npz")
    assert nowhere.sizes == {"validation": 0, "test": 0}
    with pytest.raises(
        DataError, match="there is no corpus here; build it with `factordiff data build code-prose`"
    ):
        nowhere.queries("test")
    with pytest.raises(InvalidInput, match="this world has no 'text-verse'"):
        CodeProse({"text-verse": tmp_path}).experts()


def test_the_example_needs_no_corpus(tmp_path: Path) -> None:
    queries = CodeProse(corpus=tmp_path / "none.npz").example()
    assert len(queries) == 1
    text = letters(queries.x_0[0].tolist())
    assert text == Path(code_prose.__file__).read_text()[: len(text)]
    assert 0 < int(queries.hidden(BYTES.mask).sum()) < len(text) // 3


def test_the_demo_shows_lines_and_who_decided(world: CodeProse, capsys: pytest.CaptureFixture[str]) -> None:
    watch(Console(width=200), world)
    shown = capsys.readouterr().out
    queries = world.example()
    hidden = int(queries.hidden(BYTES.mask).sum())
    assert f"of {hidden} hidden cells are right" in shown
    given = letters(torch.where(queries.hidden(BYTES.mask), 0, queries.x_0)[0].tolist())
    first = next(line for line in shown.splitlines() if line.startswith('"""'))
    assert all(one == other for one, other in zip(first, given.split("\n")[0], strict=False) if other != "\n")
    marks = [line for line in shown.splitlines() if line.strip() and set(line) <= {"a", "b", " "}]
    assert sum(line.count("a") + line.count("b") for line in marks) == hidden
