"""`factordiff reproduce`: small networks through the whole command, and errors that say what to do."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import factordiff.cli.reproduce  # noqa: F401
from factordiff.cli.app import app
from factordiff.errors import DataError, FactorDiffError, InvalidInput, Unavailable
from factordiff.experiments.pairs import EARLY, FULL_FULL
from factordiff.networks.store import build, save_expert
from factordiff.report.records import read_records

TINY = {"width": 8, "context": 8, "latents": 2, "heads": 2, "blocks": 1, "encoder": 8, "cycles": (1, 1)}


def reproduce(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["reproduce", *arguments], catch_exceptions=True)
    if isinstance(result.exception, FactorDiffError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> list[str]:
    """Untrained experts in place of both full pairs."""
    folder = tmp_path_factory.mktemp("experts")
    options = []
    for seed, name in enumerate((*FULL_FULL.experts, *EARLY.experts)):
        save_expert(build("trans-ir", TINY, seed), folder / name, {"objective": "full"})
        options += ["--expert", f"{name}={folder / name}"]
    return options


# A row of the shipped experts: their test list is asked once, for the report, and not by tests.
VALIDATION = "validation.trans-color+trans-occ.routing.t1-0.5"
SMALL = ("--limit", "2", "--steps", "2", "--particles", "2", "--device", "cpu", "--batch", "2")


def test_voting_through_the_command(tiny, tmp_path):
    out = ("--out", str(tmp_path))
    shown = reproduce("voting", *SMALL, *out, *tiny)
    assert "A SUBSET: only the first 2 queries" in shown
    assert "Majority voting" in shown
    records = sorted(path.name for path in (tmp_path / "records").iterdir())
    assert len(records) == 12
    file = read_records(tmp_path / "records" / "test.trans-full+conv-full.vote.jsonl.gz")
    assert len(file.records) == 2
    assert file.records[0].nominal == 2 * 3 * 2
    assert not any(record.answer for record in file.records), (
        "nobody compares them; two fifths of a packed report"
    )
    assert set(file.header["weights"]) == set(FULL_FULL.experts)
    before = {path: path.read_bytes() for path in (tmp_path / "records").iterdir()}
    reproduce("voting", *SMALL, *out, *tiny, "--only", "routing")
    assert {path: path.read_bytes() for path in (tmp_path / "records").iterdir()} == before
    assert "report.html" in reproduce("report", *out).replace("\n", "")
    assert (tmp_path / "README.md").read_text().startswith("# ")
    report = (tmp_path / "README.md").read_text()
    batches = {path: read_records(path).batches for path in (tmp_path / "records").iterdir()}
    assert "records.tar.xz" in reproduce("pack", *out).replace("\n", "")
    shutil.rmtree(tmp_path / "records")
    reproduce("report", *out)  # the tarball is enough
    assert (tmp_path / "README.md").read_text() == report
    assert len(list((tmp_path / "records").iterdir())) == 12
    shutil.rmtree(tmp_path / "records")
    reproduce("voting", *SMALL, *out, *tiny)  # and goes on from there: nothing is run again
    again = {path: read_records(path).batches for path in (tmp_path / "records").iterdir()}
    assert again == batches
    other = [*tiny, "--expert", f"trans-full={tiny[3].partition('=')[2]}"]  # another expert under that name
    with pytest.raises(DataError, match=r"another run: weights\.trans-full"):
        reproduce("voting", *SMALL, *out, *other)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("table-2",), Unavailable, "experiment: expected one of composition"),
        (("voting", "--limit", "0"), InvalidInput, "limit: expected at least 1"),
        (("voting", "--only", "magic"), InvalidInput, "only: no row of this experiment is called magic"),
        (("voting", "--part", "3/2"), InvalidInput, "part: expected K/N"),
        (("voting", "--expert", "trans-full"), InvalidInput, "expert: expected NAME=FOLDER"),
        (("voting", "--dtype", "float8"), InvalidInput, "dtype: expected auto"),
        (("voting", "--steps", "0"), InvalidInput, "steps: expected at least 1, got 0"),
        (("voting", "--particles", "0"), InvalidInput, "particles: expected at least 1, got 0"),
        (("voting", "--minutes", "nan"), InvalidInput, "minutes: expected a number of minutes"),
        (("voting", "--out", "/dev/null"), InvalidInput, "out: /dev/null.records cannot be made or written"),
        (("voting", "--expert", "trans-full=nowhere"), Unavailable, "'nowhere' is neither a folder nor"),
        (("report", "--out", "nowhere"), InvalidInput, "holds no records"),
        (("pack", "--out", "nowhere"), DataError, "holds no records"),
    ],
)
def test_errors_say_what_was_expected(arguments, error, words, tmp_path, tiny):
    name, *options = arguments
    with pytest.raises(error, match=words):
        reproduce(name, "--device", "cpu", "--out", str(tmp_path), *tiny, *options)
    assert not list(tmp_path.iterdir())  # nothing was written


def test_one_expert_is_enough_for_its_own_row(tiny, tmp_path):
    """Sizes are noted of the experts that were run: nobody else's weights are asked for."""
    shown = reproduce("single-experts", *SMALL, "--out", str(tmp_path), *tiny, "--only", "trans-full")
    assert re.search(r"Trans-IR, full +│ [\d,]+ +│ 99.5", shown)


def test_a_run_in_pieces_ends_where_one_in_a_whole_does(tiny, tmp_path):
    """A deadline that has passed leaves everything to the next call; no report is drawn in between."""
    pieces, whole = ("--out", str(tmp_path / "pieces")), ("--out", str(tmp_path / "whole"))
    only = ("--only", "trans-full-early,trans-full-early+conv-full-early")
    for _ in range(2):
        shown = reproduce("overlap", *SMALL, *pieces, *tiny, *only, "--minutes", "0.0000001")
        assert "the same command goes on where it was" in shown
        assert not (tmp_path / "pieces" / "report.html").exists()
    assert not list((tmp_path / "pieces").rglob("*.gz"))
    reproduce("overlap", *SMALL, *pieces, *tiny, *only)
    reproduce("overlap", *SMALL, *whole, *tiny, *only)
    one, other = (
        {path.name: read_records(path).records for path in (tmp_path / name / "records").glob("*.jsonl.gz")}
        for name in ("pieces", "whole")
    )
    assert one == other
    trials = [name for name in one if name.startswith("validation.trans-full-early+conv-full-early.routing")]
    assert len(trials) > 5, "a search on validation"


def test_the_plan_names_every_row_and_its_queries(tmp_path):
    shown = reproduce("plan", "--out", str(tmp_path))
    lines = {cells[1]: cells for line in shown.splitlines() if len(cells := line.strip("│").split("│")) == 5}
    found = {name.strip(): [cell.strip() for cell in cells] for name, cells in lines.items()}
    assert found["test.trans-color+trans-occ.geometric-mean"][2] == "24,000"
    assert found["test.trans-color+trans-occ.rne"][2] == "6,000"
    assert found["validation.trans-color+trans-occ.rne, 16 settings"][2] == "9,600"
    assert found["test.trans-full+conv-full.learned.router-shared"][2] == "6,000"
    assert found["test.paper-trans-full.single"][2] == "6,000", "optional, and shipped"
    assert "queries are left" in shown
    assert not list(tmp_path.iterdir())


def test_it_needs_none_of_the_packages_of_the_page(tmp_path):
    """A machine that is lent has the source tree, torch, and little else; some releases of typer want pydantic too."""
    code = f"""
import sys
for name in ("pydantic", "fastapi", "uvicorn", "starlette"):
    sys.modules[name] = None
from pathlib import Path
from rich.console import Console
from factordiff.cli.reproduction import ReproduceRequest, reproduce
request = ReproduceRequest(
    name="temperatures", limit=1, device="cpu", out=Path({str(tmp_path)!r}), batch=0, only="{VALIDATION}", part="1/1",
    minutes=0, seed=0, steps=1, particles=2, dtype="auto", experts=[], compile=None,
)
reproduce(request, Console())
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "records" / f"{VALIDATION}.jsonl.gz").exists()


def test_two_queries_with_the_shipped_experts(tmp_path):
    small = ("--limit", "2", "--steps", "8", "--particles", "2", "--device", "cpu", "--out", str(tmp_path))
    shown = reproduce("temperatures", *small, "--only", VALIDATION)
    assert "A SUBSET" in shown
    file = read_records(tmp_path / "records" / f"{VALIDATION}.jsonl.gz")
    assert [record.nominal for record in file.records] == [16, 16]
