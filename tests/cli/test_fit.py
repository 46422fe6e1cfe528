"""`factordiff fit` and `factordiff diagnose`, from the words to the folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import safetensors.torch
import torch
from typer.testing import CliRunner

from factordiff import compose
from factordiff.cli import fitting
from factordiff.cli.app import app
from factordiff.composition.router_store import SHIPPED_ROUTERS, load_router
from factordiff.errors import DataError, InvalidInput
from tests.solving_experts import task, tiny_experts
from tests.task_files import write_task


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), terminal_width=200)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def experts(tmp_path: Path) -> str:
    return ",".join(tiny_experts(tmp_path / "experts", ("trans-color", "trans-occ")))


def task_file(folder: Path) -> Path:
    write_task(task(), folder / "plus.json")
    return folder / "plus.json"


def weights_told(file: Path) -> list[bool]:
    """Of each step of each test whether it says how much every expert counts at every cell."""
    traces = json.loads(file.read_text())["tasks"]["plus"]
    steps = [step["weights"] for one in traces for step in one["trace"]["steps"]]
    return [weights is not None and len(weights[0][0]) == 2 for weights in steps]


FEW = ("--items", "6", "--held", "3", "--steps", "6", "--reveal", "confidence:2", "--device", "cpu")


def test_a_router_is_fitted_kept_and_used(experts: str, tmp_path: Path) -> None:
    out = tmp_path / "router"
    shown = run("fit", experts, *FEW, "--out", str(out))
    assert "head mixture" in shown
    assert "head product" in shown
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md", "config.json", "model.safetensors", "report.json", "team.json",
    ]  # fmt: skip
    command = f"- command: factordiff fit {experts} --items 6 --held 3 --steps 6\n"
    assert command in (out / "README.md").read_text()
    report = json.loads((out / "report.json").read_text())
    assert len(report["trials"]) == 2
    assert load_router(out).fitted_to[0][0] == "trans-color"
    learned = ("--method", "learned", "--router", str(out), "--limit", "2", "--reveal", "confidence:2")
    used = run("eval", "--experts", experts, *learned)
    assert "learned" in used
    solved = ("solve", str(task_file(tmp_path)), "--attempts", "1", "--trace", str(tmp_path / "t.json"))
    run(*solved, "--experts", experts, *learned[:4])
    steps = weights_told(tmp_path / "t.json")
    assert steps
    assert all(steps)
    assert run(*solved[:2], "--team", str(out / "team.json")).count("learned") > 0
    with pytest.raises(InvalidInput, match=r"already holds a team\.json; choose another folder"):
        run("fit", experts, *FEW, "--out", str(out))
    others = ",".join([experts.split(",")[0], *tiny_experts(tmp_path / "others", ("trans-full",))])
    with pytest.raises(InvalidInput, match="fitted to trans-occ with other weights"):
        run("eval", "--experts", others, *learned)


def test_without_a_router_the_shipped_one_answers_or_nobody(experts: str, tmp_path: Path) -> None:
    """An untrained router is the plain mixture: under the name of a learned one it would mislead."""
    learned, few = ("--method", "learned"), ("--reveal", "confidence:2", "--device", "cpu")
    for words in (("solve", str(task_file(tmp_path))), ("eval", "--limit", "2")):
        with pytest.raises(
            InvalidInput, match=r"shipped router was fitted to, got trans-color, trans-occ; `fact"
        ):
            run(*words, "--experts", experts, *learned, *few)
    pair, trace = "trans-color,trans-occ-default-head", str(tmp_path / "t.json")
    solved = ("solve", str(task_file(tmp_path)), "--attempts", "1", "--trace", trace, *few)
    run(*solved, "--experts", pair, *learned)
    by_method = (tmp_path / "t.json").read_text()
    run(*solved, "--experts", pair, *learned, "--router", str(SHIPPED_ROUTERS / "col+occ-default-head"))
    assert (tmp_path / "t.json").read_text() == by_method
    assert all(weights_told(tmp_path / "t.json"))


def test_numbers_are_fitted_and_solve_takes_the_team(experts: str, tmp_path: Path) -> None:
    out = tmp_path / "numbers"
    shown = run("fit", experts, "--method", "mixture", "--budget", "3", *FEW, "--out", str(out))
    assert shown.count("%") >= 6
    team, report = (json.loads((out / name).read_text()) for name in ("team.json", "report.json"))
    assert team["method"] == "mixture"
    weights = [trial["setting"].get("weights") for trial in report["trials"]]
    assert len(weights) == len(set(map(str, weights))) >= 3
    assert team["options"] == report["trials"][report["chosen"]]["setting"]
    kept = compose(out / "team.json")
    assert kept.options == {name: tuple(numbers) for name, numbers in team["options"].items()}
    assert "mixture" in run("solve", str(task_file(tmp_path)), "--team", str(out / "team.json"))


def test_solve_by_evidence_says_how_much_each_counts(experts: str, tmp_path: Path) -> None:
    plain = ("solve", str(task_file(tmp_path)), "--experts", experts, "--method", "evidence")
    plain += ("--attempts", "1", "--reveal", "confidence:4", "--trace", str(tmp_path / "t.json"))

    def passes(shown: str) -> int:
        return sum(int(count.replace(",", "")) for count in re.findall(r"([\d,]+) passes", shown))

    path_alone = passes(run(*plain))
    steps = weights_told(tmp_path / "t.json")
    assert steps
    assert all(steps)
    asked = passes(run(*plain, "--demonstration-evidence", "all"))
    assert asked > path_alone > 0


def test_an_interrupted_fit_leaves_a_place_to_go_on_from(
    experts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "router"

    def killed(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fitting, "_written", killed)
        with pytest.raises(AssertionError):
            run("fit", experts, *FEW, "--out", str(out))
    assert not (out / "config.json").exists()
    kept = {path.name for path in (out / "fitting").iterdir()}
    assert {"identity.json", "mixture.safetensors", "passes-00000.safetensors"} <= kept
    run("fit", experts, *FEW, "--out", str(out))
    assert (out / "config.json").exists()
    assert not (out / "fitting").exists()


def test_a_diagnosis_is_printed_drawn_and_written(experts: str, tmp_path: Path) -> None:
    picture, numbers = tmp_path / "a.png", tmp_path / "a.json"
    shown = run("diagnose", experts, "--items", "4", "--picture", str(picture), "--out", str(numbers))
    assert "oracle" in shown
    assert "a router" in " ".join(shown.split())
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert json.loads(numbers.read_text())["experts"] == ["trans-color", "trans-occ"]
    with pytest.raises(InvalidInput, match="items: expected at least 2, got 1"):
        run("diagnose", experts, "--items", "1")


@pytest.mark.parametrize("verb", [("fit", "text-prose,text-code"), ("eval", "--experts", "text-prose")])
def test_experts_of_text_are_not_asked_about_grids(verb: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"experts: text-prose.* know 96 values, the grids of ARC have 10"):
        run(*verb, "--out", str(tmp_path / "out.jsonl.gz"))


def test_a_team_of_ones_own_data_is_not_for_tasks(tmp_path: Path) -> None:
    file, out = tmp_path / "data.safetensors", tmp_path / "out"
    answers = torch.randint(96, (4, 8), generator=torch.Generator().manual_seed(0))
    safetensors.torch.save_file({"answers": answers}, file)
    words = ("--data", str(file), "--method", "routing", "--budget", "1", "--reveal", "confidence:1")
    shown = run("fit", "text-prose,text-code", *words, "--out", str(out), "--device", "cpu")
    assert f'(compose("{out}/team.json"))' in shown
    (tmp_path / "data.npz").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"not a safetensors file .*save_file\({'answers': cells}, FILE\)"):
        run("diagnose", "text-prose,text-code", "--data", str(tmp_path / "data.npz"))


def test_what_is_refused_leaves_no_folder(experts: str, tmp_path: Path) -> None:
    out, words = tmp_path / "out", ("--items", "4", "--device", "cpu")
    with pytest.raises(InvalidInput, match="others to choose by, got 4 and 0"):
        run("fit", experts, *words, "--held", "0", "--out", str(out))
    assert not out.exists()
    out.mkdir()
    with pytest.raises(InvalidInput, match="at least two experts to choose between, got 1"):
        run("fit", experts.split(",")[0], *words, "--held", "2", "--out", str(out))
    assert out.exists()  # it was there before


def test_data_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "data.safetensors"
    safetensors.torch.save_file({"answers": torch.zeros(4, 100, dtype=torch.int64)}, file)
    with pytest.raises(InvalidInput, match="layout: expected height x width, as 10x10, got 'ten'"):
        run("diagnose", "trans-full,conv-full", "--data", str(file), "--layout", "ten")
    found = fitting._data(file, "10x10")
    assert found is not None
    assert (len(found), found.layout) == (4, (10, 10))
