"""`factordiff eval`, `card` and `experts` on a small untrained expert, through the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from factordiff.cli.app import app
from factordiff.errors import CheckpointError, DataError, FactorDiffError, InvalidInput
from factordiff.networks.store import build, save_expert
from factordiff.report.card import CARD, read_figures
from factordiff.report.code_version import short
from factordiff.report.records import read_records
from factordiff.training.settings import preset

SMALL = {"width": 16, "context": 16, "encoder": 8, "heads": 2, "latents": 2, "cycles": [1, 1]}


def call(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def expert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = {**preset("fast").as_json(), "network": SMALL, "batch": 64}
    about = {"objective": "occupancy", "step": 7, "data": "x", "settings": settings}
    return save_expert(build("trans-ir", SMALL), tmp_path_factory.mktemp("experts") / "small-occ", about)


@pytest.fixture(scope="module")
def records(expert: Path) -> Path:
    path = expert.parent / "validation.jsonl.gz"
    call("eval", "--experts", str(expert), "--limit", "3", "--reveal", "confidence:2", "--out", str(path))
    return path


def test_an_evaluation_continues_where_it_stopped(expert: Path, records: Path) -> None:
    before = read_records(records)
    assert [record.query for record in before.records] == [0, 1, 2]
    assert all(len(record.answer) == 8 for record in before.records)
    shown = call(
        "eval", "--experts", str(expert), "--limit", "5", "--reveal", "confidence:2", "--out", str(records)
    )
    assert "the first 5 queries only" in " ".join(shown.split())
    after = read_records(records)
    assert after.records[:3] == before.records
    assert len(after.batches) == 2
    with pytest.raises(
        FactorDiffError, match=r"settings\.reveal is 'confidence:2' in the file and 'confidence:3' now"
    ):
        call(
            "eval",
            "--experts",
            str(expert),
            "--limit",
            "5",
            "--reveal",
            "confidence:3",
            "--out",
            str(records),
        )


@pytest.mark.parametrize(("method", "option"), [("mixture", "--weights"), ("product", "--beta")])
def test_an_expert_with_all_the_weight_is_alone(tmp_path: Path, method: str, option: str) -> None:
    def answers(name: str, *arguments: str) -> list[str]:
        path = tmp_path / f"{name}.jsonl.gz"
        call("eval", *arguments, "--limit", "2", "--reveal", "confidence:3", "--out", str(path))
        return [record.answer for record in read_records(path).records]

    pair = ("--experts", "trans-full,trans-color", "--method", method, option)
    alone = answers("alone", "--experts", "trans-full")
    assert answers("first", *pair, "1,0") == alone
    assert answers("second", *pair, "0,1") != alone


def test_compiled_or_not_the_answers_are_the_same(expert: Path, records: Path, tmp_path: Path) -> None:
    path = tmp_path / "compiled.jsonl.gz"
    call(
        "eval",
        "--experts",
        str(expert),
        "--limit",
        "3",
        "--reveal",
        "confidence:2",
        "--compile",
        "--out",
        str(path),
    )
    found = read_records(path)
    assert found.header["settings"]["compiled"] is True
    assert found.records == read_records(records).records[:3]


def test_own_question_and_tasks_one_by_one(expert: Path) -> None:
    shown = call(
        "eval", "--experts", str(expert), "--limit", "2", "--reveal", "confidence:1", "--question", "occupancy",
        "--per-task",
    )  # fmt: skip
    assert "question" in shown
    assert shown.count("0.0 %") >= 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--question", "shape"), "question: expected one of full, occupancy, color"),
        (("--out", "plain.json"), r"expected a name that ends in \.jsonl\.gz"),
        (("--out", "."), r"expected a name that ends in \.jsonl\.gz"),
        (("--out", "/dev/null/x.jsonl.gz"), "out: .* cannot be written into /dev/null"),
        (("--cycles", "2"), "cycles: expected two numbers"),
        (("--cycles", f"{10**30},1"), "cycles: expected at most 100 of each"),
        (("--rounds", "1000000"), "rounds: expected 1, or up to 1,000 on validation or test"),
        (("--cycles", "a,b"), "cycles: expected numbers joined by commas, got 'a,b'"),
        (("--temperatures", "1"), "temperatures: the method 'single' does not take it; its options: none"),
        (("--method", "product", "--beta", "hot"), "beta: expected a number for each expert, .* got 'hot'"),
        (("--beta", "nan"), "beta: the method 'single' does not take it"),
        (("--weights", "-1,2"), "weights: the method 'single' does not take it"),
        (("--method", "soft-routing", "--softness", "x"), "softness: expected a number, got 'x'"),
        (("--limit", "0"), "limit: expected at least 1, got 0"),
        (("--dtype", "int8"), "dtype: expected auto, float32 or bfloat16"),
        (("--batch", "-1"), "batch: expected at least 1"),
    ],
)
def test_bad_arguments_are_named(expert: Path, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call("eval", "--experts", str(expert), "--limit", "1", *arguments)


def test_nothing_is_begun_when_the_method_makes_no_sense(expert: Path, tmp_path: Path) -> None:
    """A file with a header and no record would stand in the way of the right command."""
    for wrong in (
        ("--reveal", "confidence:0"),
        ("--method", "views"),
        ("--method", "routing", "--temperatures", "nan"),
    ):
        with pytest.raises(InvalidInput):
            call(
                "eval",
                "--experts",
                str(expert),
                "--limit",
                "1",
                *wrong,
                "--out",
                str(tmp_path / "a.jsonl.gz"),
            )
        assert not list(tmp_path.iterdir())


def test_a_commits_short_name_still_says_that_files_were_changed() -> None:
    assert short("b758bfb6c7b5980666bc65a8afaea271a0eae67e") == "b758bfb6c7b5"
    assert short("b758bfb6c7b5980666bc65a8afaea271a0eae67e-changed") == "b758bfb6c7b5-changed"
    assert short("unknown") == "unknown"


def test_a_card_holds_what_the_records_say(expert: Path, records: Path) -> None:
    own = expert.parent / "own.jsonl.gz"
    again = expert.parent / "again.jsonl.gz"
    options = ("eval", "--experts", str(expert), "--reveal", "confidence:2")
    call(*options, "--limit", "4", "--question", "occupancy", "--out", str(own))
    call(*options, "--limit", "2", "--batch", "1", "--out", str(again))
    log = {
        "event": "end",
        "step": 9,
        "seconds": 90.0,
        "loss": 0.5,
        "exact": 0.25,
        "largest_share_at_foreground": 0.111,
    }
    (expert.parent / "log.jsonl").write_text(json.dumps(log) + "\n")
    short = expert.parent / "short.jsonl.gz"
    call("eval", "--experts", str(expert), "--limit", "1", "--reveal", "confidence:2", "--out", str(short))
    call("card", str(expert), str(records), str(again), str(short), str(own), "--run", str(expert.parent))
    figures = read_figures(expert)
    assert figures is not None
    one = figures.find("validation")
    assert one is not None
    right = [record.exact for record in read_records(records).records]
    assert one.right().tolist() == right
    assert one.exact == pytest.approx(sum(right) / len(right))
    assert figures.find("validation", "occupancy") is not None
    assert figures.find("test") is None
    # Every two runs of the same list, on the queries that both have.
    assert [(two.queries, two.equal) for two in figures.agreements] == [(2, 1.0), (1, 1.0), (1, 1.0)]
    text = (expert / CARD).read_text()
    (command,) = re.findall(r"`(factordiff train fast .*?)`", text)
    told = dict(word.split("=") for word in command.split("--network ")[1].split()[0].split(","))
    assert told == {name: str(value) for name, value in SMALL.items() if name != "cycles"}
    assert command.startswith("factordiff train fast --refinement 1,1 --no-sees-sizes --network ")
    assert command.endswith(" --batch 64")
    assert "1.5 minutes, seed 0" in text
    assert "| validation | occupancy | 4 |" in text
    assert "on validation, occupancy question (" in text, "what it was trained for is what it is judged by"
    assert "answers equal (full question)" in text
    assert "small-occ" in call("experts", str(expert))


def test_records_of_other_weights_make_no_card(expert: Path, records: Path, tmp_path: Path) -> None:
    other = save_expert(build("trans-ir", SMALL, seed=1), tmp_path / "other")
    with pytest.raises(DataError, match="not of the weights"):
        call("card", str(other), str(records))
    assert not (other / CARD).exists()


def test_no_card_for_a_folder_that_is_not_there(records: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"there is no folder .*nowhere"):
        call("card", str(tmp_path / "nowhere"), str(records))
    assert not (tmp_path / "nowhere").exists()


def test_the_list_of_experts_names_what_ships_or_how_to_train() -> None:
    from factordiff.experts.registry import shipped_experts

    shown = call("experts")
    assert (
        all(name in shown for name in shipped_experts()) if shipped_experts() else "factordiff train" in shown
    )


def test_experts_of_one_folder_name_are_told_apart_in_the_records(tmp_path: Path) -> None:
    """A header with one hash for both would let a run with other weights continue the same file."""
    for seed, folder in enumerate(("a", "b", "c")):
        save_expert(build("trans-ir", SMALL, seed), tmp_path / folder / "x", {"objective": "full"})

    def arguments(second: str) -> tuple[str, ...]:
        experts = f"{tmp_path / 'a' / 'x'},{tmp_path / second / 'x'}"
        rest = ("--limit", "1", "--reveal", "confidence:2", "--out", str(tmp_path / "r.jsonl.gz"))
        return ("eval", "--experts", experts, "--temperatures", "x (1)=0.5", *rest)

    call(*arguments("b"))
    header = read_records(tmp_path / "r.jsonl.gz").header
    assert list(header["weights"]) == ["x (1)", "x (2)"]
    assert len(set(header["weights"].values())) == 2
    assert header["method"]["temperatures"] == [0.5, 1.0]
    with pytest.raises(DataError, match=r"of another run: weights\.x \(2\) is"):
        call(*arguments("c"))
