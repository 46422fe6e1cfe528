"""`factordiff infill` on antibodies: shares and regions are filled, the rest stays, bad files are refused."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from factordiff.cli import infill as _verb  # noqa: F401
from factordiff.cli.app import app
from factordiff.errors import FactorDiffError
from factordiff.worlds.antibody.document import humanness, read_antibodies
from factordiff.worlds.antibody.sequences import read_sequences
from tests.worlds.test_antibody import airr, chain, folder  # noqa: F401

SEQUENCE = "EVQLVESGGGLVQPGGSLRLSCAAS"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["infill", *arguments, "--device", "cpu"])


@pytest.fixture(autouse=True)
def without_promb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "promb", None)
    humanness.cache_clear()


def test_a_share_of_a_fasta_file_is_filled(folder: Path) -> None:  # noqa: F811
    (folder / "two.fasta").write_text(f">a\n{SEQUENCE}\n>b\n{SEQUENCE[::-1]}\n")
    result = run(str(folder / "two.fasta"), "--mask", "0.2", "--out", str(folder / "out.fasta"))
    assert result.exit_code == 0, result.output
    assert "of 5 hidden residues as they were; sapiens + antiberty, routing" in result.output
    filled = {one.name: one.residues for one in read_sequences(folder / "out.fasta")}
    assert list(filled) == ["a", "b"]
    for document in read_antibodies(folder / "two.fasta"):
        hidden = document.hidden("0.2").tolist()
        assert sum(hidden) == 5
        pairs = zip(document.sequence.residues, filled[document.title], hidden, strict=True)
        assert all(old == new for old, new, was_hidden in pairs if not was_hidden)


def test_a_region_of_an_airr_file_is_filled(folder: Path) -> None:  # noqa: F811
    result = run(str(airr(folder / "some.tsv.gz", [chain("ARDY")])), "--mask", "cdr3", "--method", "mixture")
    assert result.exit_code == 0, result.output
    assert "of 4 hidden residues" in result.output
    assert "promb" not in result.output


def test_humanness_is_said_where_promb_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    database = types.SimpleNamespace(compute_peptide_content=lambda text: 1.0 if text == SEQUENCE else 0.25)
    promb = types.SimpleNamespace(init_db=lambda name, verbose: database)
    monkeypatch.setitem(sys.modules, "promb", promb)
    (folder / "one.fa").write_text(f">a\n{SEQUENCE}\n")
    result = run(str(folder / "one.fa"), "--mask", "0.9")
    assert "(promb): 100 % before, 25 % now" in " ".join(result.output.split())
    humanness.cache_clear()


@pytest.mark.parametrize(
    ("text", "mask", "said"),
    [
        (
            f">a\n{SEQUENCE}\n",
            "cdr3",
            "--mask: expected a share of the residues such as 0.15, got 'cdr3'; regions",
        ),
        (f">a\n{SEQUENCE}B\n", "0.2", "one.fasta, line 2, column 26: 'B' is none of the 20 amino acids"),
        (
            ">a\n" + 6 * SEQUENCE + "\n",
            "0.2",
            "one.fasta: a has 150 residues, and the models read at most 142",
        ),
    ],
)
def test_refusals(text: str, mask: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.fasta").write_text(text)
    with pytest.raises(FactorDiffError) as refused:
        raise run("one.fasta", "--mask", mask).exception
    assert str(refused.value).startswith(said)


def test_a_region_that_is_none(folder: Path) -> None:  # noqa: F811
    (document,) = read_antibodies(airr(folder / "some.tsv", [chain("ARDY")]))
    with pytest.raises(FactorDiffError, match=r"or some of fwr1, cdr1, .*, got 'cdr4'"):
        document.hidden("cdr4")


def test_models_that_were_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTORDIFF_DATA", str(tmp_path))
    (tmp_path / "one.fasta").write_text(f">a\n{SEQUENCE}\n")
    with pytest.raises(FactorDiffError, match="run `factordiff data fetch antibody` first"):
        raise run(str(tmp_path / "one.fasta")).exception
