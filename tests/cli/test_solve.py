"""`factordiff solve`: sources, outputs, refusals and exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from factordiff import compose
from factordiff.arc.task import spell_task
from factordiff.cli.answer_display import show_answer, show_task
from factordiff.cli.app import app
from factordiff.cli.explanation_display import show_explanation
from factordiff.errors import DataError, InvalidInput, Unavailable
from factordiff.experts import registry
from factordiff.sampling.trace import Trace
from factordiff.solving.solver import DEFAULT_EXPERTS, solve
from tests.solving_experts import Rule, task, tiny_experts
from tests.task_files import write_challenges, write_task
from tests.terminal_screen import console, screen, written

run = CliRunner().invoke
BIG = {"train": [{"input": [[1]], "output": [[1]]}], "test": [{"input": [[0] * 11]}]}
BAD_COLOR = {"train": [{"input": [[1, 12]], "output": [[1]]}], "test": [{"input": [[0]]}]}


@pytest.fixture(scope="module")
def experts(tmp_path_factory: pytest.TempPathFactory) -> str:
    return ",".join(tiny_experts(tmp_path_factory.mktemp("experts")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two good tasks, one too large, one with a bad color, one that is no JSON."""
    tasks = tmp_path / "tasks"
    write_task(task("first"), tasks / "a-first.json")
    write_task(task("second"), tasks / "z-second.json")
    (tasks / "big.json").write_text(json.dumps(BIG))
    (tasks / "color.json").write_text(json.dumps(BAD_COLOR))
    (tasks / "half.json").write_text('{"train": [')
    return tasks


def test_a_task_file_is_answered_and_everything_is_written(experts: str, tmp_path: Path) -> None:
    write_task(task(), tmp_path / "plus.json")
    names = {
        "--picture": "p.png",
        "--animate": "a.gif",
        "--trace": "t.json",
        "--out": "s.json",
        "--html": "a.html",
    }
    options = [part for name, file in names.items() for part in (name, str(tmp_path / file))]
    result = run(app, ["solve", str(tmp_path / "plus.json"), "--experts", experts, "--explain", *options])
    assert result.exit_code == 0, result.output
    assert "plus, test 0" in result.stdout
    assert "plus, test 1" in result.stdout
    assert "1 answered" in result.stdout
    assert "a trans-full, temperature 1; b conv-full, temperature 1" in result.stdout
    assert re.search(r"step cell color by a said +margin log-doubt b said +margin log-doubt", result.stdout)
    assert "margin 1.000" not in result.stdout
    assert "-0.0" not in result.stdout
    assert "\x1b[" not in result.stdout  # no terminal, no escape codes

    submission = json.loads((tmp_path / "s.json").read_text())
    assert list(submission) == ["plus"]
    assert [sorted(test) for test in submission["plus"]] == [["attempt_1", "attempt_2"]] * 2
    assert (len(submission["plus"][0]["attempt_1"]), len(submission["plus"][1]["attempt_1"])) == (2, 1)
    assert all(test["attempt_1"] != test["attempt_2"] for test in submission["plus"])
    assert (tmp_path / "a.html").read_text().count("<h3>test ") == 2
    traces = json.loads((tmp_path / "t.json").read_text())
    assert traces["version"] == 1
    told = traces["tasks"]["plus"][1]
    assert (told["test"], told["method"], told["experts"]) == (1, "routing", ["trans-full", "conv-full"])
    assert len(Trace.from_json(json.dumps(told["trace"])).start[0]) == 100
    for file in ("p.png", "a.gif"):
        with Image.open(tmp_path / file) as drawn:
            assert drawn.width > 100


def test_others_are_solved_when_some_are_refused(experts: str, folder: Path, tmp_path: Path) -> None:
    result = run(app, ["solve", str(folder), "--experts", experts, "--out", str(tmp_path / "s.json")])
    assert result.exit_code == 3 == 3, result.output
    assert "2 answered" in result.stdout
    assert "3 refused" in result.stdout
    assert "task big, test pair 0, input: 1x11 cells, expected at most 10x10" in result.stderr
    assert (
        "task color, train pair 0, input, cell (row 0, column 1): expected a whole number 0..9"
        in result.stderr
    )
    assert re.search(r"refused: .*half\.json: not valid JSON", result.stderr)
    assert list(json.loads((tmp_path / "s.json").read_text())) == ["a-first", "z-second"]


def test_a_challenges_file_and_standard_input(experts: str, tmp_path: Path) -> None:
    write_challenges([task("one"), task("two")], tmp_path / "challenges.json")
    content = json.loads((tmp_path / "challenges.json").read_text())
    (tmp_path / "challenges.json").write_text(json.dumps({**content, "three": BIG}))
    result = run(app, ["solve", str(tmp_path / "challenges.json"), "--experts", experts])
    assert result.exit_code == 3
    assert "two, test 1" in result.stdout
    assert "task three" in result.stderr

    result = run(app, ["solve", "-", "--experts", experts], input=json.dumps(spell_task(task())))
    assert result.exit_code == 0, result.output
    assert "stdin, test 1" in result.stdout
    result = run(app, ["solve", "-", "--experts", experts], input=json.dumps(BIG))
    assert result.exit_code == 3
    assert "0 answered, 1 refused" in result.stdout


def test_the_same_seed_draws_the_same_and_another_does_not(tmp_path: Path) -> None:
    write_task(task(), tmp_path / "plus.json")
    (one,) = tiny_experts(tmp_path, ("trans-full",), sure=False)

    def steps(seed: int) -> str:
        drawn = f"--experts {one} --method vote --runs 2 --attempts 1 --seed {seed} --trace {tmp_path}/t.json"
        assert run(app, ["solve", str(tmp_path / "plus.json"), *drawn.split()]).exit_code == 0
        return (tmp_path / "t.json").read_text()

    first = steps(1)
    assert steps(1) == first
    assert steps(2) != first


def test_exact_takes_a_pass_per_cell(experts: str, tmp_path: Path) -> None:
    write_task(task(), tmp_path / "plus.json")
    one = experts.split(",")[0]
    once = ["solve", str(tmp_path / "plus.json"), "--experts", one, "--attempts", "1"]
    assert "100 passes" in run(app, [*once, "--reveal", "exact"]).stdout
    assert "100 passes" not in run(app, once).stdout


def test_the_default_experts_are_the_shipped_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(DEFAULT_EXPERTS) <= set(registry.shipped_experts())
    write_task(task(), tmp_path / "plus.json")
    monkeypatch.setattr(registry, "SHIPPED", tmp_path / "none")
    result = run(app, ["solve", str(tmp_path / "plus.json")])
    assert isinstance(result.exception, Unavailable)
    assert "'trans-full' is neither a folder nor a shipped expert" in str(result.exception)
    assert "factordiff train fast --backbone trans-ir --objective full --out runs/trans-full" in str(
        result.exception
    )
    assert str(tmp_path / "none" / "trans-full") in str(result.exception)
    tiny_experts(tmp_path / "weights", DEFAULT_EXPERTS)
    monkeypatch.setattr(registry, "SHIPPED", tmp_path / "weights")
    result = run(app, ["solve", str(tmp_path / "plus.json"), "--temperatures", "conv-full=0.25"])
    assert result.exit_code == 0, result.output
    assert f"{' + '.join(DEFAULT_EXPERTS)}, routing" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        (["nowhere.json"], DataError, r"nowhere\.json: cannot be read"),
        (["."], DataError, "has no .json file"),
        (["-"], DataError, "standard input: not valid JSON"),
        (["task", "--picture", "p.jpeg"], InvalidInput, "--picture: expected a file name that ends in .png"),
        (["task", "--animate", "a.png"], InvalidInput, "--animate: expected a file name that ends in .gif"),
        (["task", "--html", "a.txt"], InvalidInput, "--html: expected a file name that ends in .html"),
        (["task", "--animate", "a.gif", "--method", "vote"], InvalidInput, "animate: a vote over several"),
        (["task", "--out", "task/s.json"], InvalidInput, "--out: task/s.json cannot be written into .*task"),
        (["task", "--trace", "."], InvalidInput, r"--trace: \. is a folder"),
        (
            ["task", "--temperatures", "trans-full=hot"],
            InvalidInput,
            "temperatures: expected a number for each",
        ),
        (["task", "--temperatures", "nobody=1"], InvalidInput, "no expert is called 'nobody'"),
        (
            ["task", "--temperatures", "nan,1"],
            InvalidInput,
            "temperatures: expected a finite positive number",
        ),
        (
            ["task", "--out", "x.json", "--trace", "./x.json"],
            InvalidInput,
            "--out: x.json is also the file of",
        ),
        (["task", "--factors", "knot"], InvalidInput, "factors: expected one of pixel"),
        (["task", "--method", "magic"], Unavailable, "method: expected one of"),
        (["task", "--experts", ","], InvalidInput, "at least one expert"),
        (["task", "--device", "abacus"], Unavailable, "device: expected one of"),
        (["list"], DataError, "expected a task .* or an object that maps ids to tasks"),
    ],
)
def test_errors_name_what_is_wrong(
    arguments: list[str],
    error: type,
    sentence: str,
    experts: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    if arguments[0] == "task":
        write_task(task(), tmp_path / "task")
    (tmp_path / "list").write_text("[1, 2]")
    before = sorted(tmp_path.iterdir())
    result = run(app, ["solve", "--experts", experts, *arguments], input="")
    assert isinstance(result.exception, error), result.output
    assert re.search(sentence, str(result.exception))
    assert sorted(tmp_path.iterdir()) == before  # nothing half written


def test_names_that_look_like_markup_are_shown_as_they_are(experts: str, tmp_path: Path) -> None:
    """Ids are the keys of a challenges file: whatever somebody wrote there."""
    write_challenges([task("[/bold]"), task("[red]x")], tmp_path / "odd.json")
    result = run(app, ["solve", str(tmp_path / "odd.json"), "--experts", experts])
    assert result.exit_code == 0, result.output
    assert "[/bold], test 0" in result.output
    assert "[red]x, test 0" in result.output


def test_a_folder_names_a_task_once(experts: str, tmp_path: Path) -> None:
    write_task(task(), tmp_path / "one" / "plus.json")
    write_task(task(), tmp_path / "two" / "plus.json")
    result = run(app, ["solve", str(tmp_path), "--experts", experts])
    assert result.exit_code == 3
    assert "1 answered" in result.stdout
    assert "ids must be unique" in result.stderr


@pytest.mark.parametrize("colors", ["truecolor", "standard", None])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_an_answer_fits_the_terminal(width: int, colors: str | None) -> None:
    """No line is longer than the window, every title is there, and every row of attempt 1 can be read."""
    copy = Rule(lambda query: query, lambda place: place[0] >= 0)
    answer = solve(task(), compose({"copy": copy, "other": copy}))[0]
    on = console(width, colors)
    show_answer(on, answer)
    show_task(on, task())
    show_explanation(on, answer.explain())
    lines = ["".join(place.letter for place in line) for line in screen(written(on))]
    assert max(map(len, lines)) <= width
    for title in ("input", "attempt 1", "decided by", "attempt 2", "truth", "shown 1", "asked 1"):
        assert any(title in line for line in lines)
    assert not any("…" in line for line in lines)
    assert "attempt 1 is wrong: 6 of 8 cells differ" in " ".join(" ".join(lines).split())
    if colors is None:
        assert any(re.search(r"1!2!3!0 +a a a a", line) for line in lines)  # wrong cells marked, who decided
    assert ("\x1b[" in written(on)) == (colors is not None)


def test_ids_are_published_tasks(experts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(app, ["solve", "0ca9ddb6", "--experts", experts, "--show", "--attempts", "1"])
    assert result.exit_code == 0, result.output
    assert "0ca9ddb6, test 0" in result.stdout
    assert re.search(r"shown 0 +becomes +shown 1 +becomes", result.stdout)
    assert "of 1 known answers right; " in result.stdout
    result = run(app, ["show", "0ca9ddb6"])
    assert result.exit_code == 0
    assert re.search(r"asked 0 +becomes", result.stdout)
    assert "trained on others of its kind" in result.stdout
    assert "0 4 0 4 0 7 1 7 0" in result.stdout  # a row of the published answer
    assert isinstance(run(app, ["show", "0ca9ddb7"]).exception, DataError)


def test_show_draws_files_and_refuses_what_is_no_task(folder: Path) -> None:
    result = run(app, ["show", str(folder)])
    assert result.exit_code == 3
    assert result.stdout.count("asked 1") == 2
    assert "a-first" in result.stdout
    assert "published" not in result.stdout
    assert re.search(r"refused: .*half\.json: not valid JSON", result.stderr)


def test_three_experts_answer_together(tmp_path: Path) -> None:
    write_task(task(), tmp_path / "plus.json")
    three = tiny_experts(tmp_path / "experts", ("trans-full", "conv-full", "trans-occ"))
    options = ["--experts", ",".join(three), "--temperatures", "trans-full=9,conv-full=9", "--explain"]
    result = run(app, ["solve", str(tmp_path / "plus.json"), *options, "--out", str(tmp_path / "s.json")])
    assert result.exit_code == 0, result.output
    # The third is the least sure of all, until the others are softened: every cell is its color 8.
    assert "a trans-full: 0 cells   b conv-full: 0 cells   c trans-occ: 100 cells" in result.stdout
    assert "trans-full + conv-full + trans-occ, routing" in result.stdout
    attempts = json.loads((tmp_path / "s.json").read_text())["plus"][0]
    assert {color for row in attempts["attempt_1"] for color in row} == {8}
    assert attempts["attempt_2"] != attempts["attempt_1"]


def test_the_terminal_says_what_attempt_2_is(experts: str, tmp_path: Path) -> None:
    write_task(task(), tmp_path / "plus.json")
    shown = run(app, ["solve", str(tmp_path / "plus.json"), "--experts", experts]).stdout
    assert re.search(r"input +attempt 1 +decided by +attempt 2", shown)
    # Everything is background to them, in any orientation: what is left is a second choice.
    assert re.search(
        r"attempt 2 is what the team answers with its second choice at row \d, column \d, where", shown
    )
    assert "0 of 1 known answers right at once, 0 in two attempts" in shown
    shown = run(app, ["solve", str(tmp_path / "plus.json"), "--experts", experts, "--attempts", "1"]).stdout
    assert "attempt 2" not in shown
    assert "0 of 1 known answers right; " in shown


@pytest.mark.slow
def test_every_task_of_arc_gets_an_answer_or_a_refusal(experts: str, tmp_path: Path) -> None:
    from factordiff.arc.build.official import arc_agi_1
    from factordiff.arc.grid import fits

    tasks = {one.id: one for part in arc_agi_1().values() for one in part.values()}
    assert len(tasks) == 800
    write_challenges(tasks.values(), tmp_path / "all.json")
    result = run(
        app,
        [
            "solve",
            str(tmp_path / "all.json"),
            "--experts",
            experts,
            "--attempts",
            "1",
            "--out",
            str(tmp_path / "s.json"),
        ],
    )
    assert result.exit_code == 3, result.exception

    answered = json.loads((tmp_path / "s.json").read_text())
    complaints = re.findall(r"^refused: task (\w+), (.*)$", result.stderr, re.MULTILINE)
    assert len(complaints) == len(result.stderr.splitlines())  # nothing else is said there
    for name, reason in complaints:
        place = re.match(
            r"(train|test) pair (\d+), (input|output): (\d+)x(\d+) cells, expected at most 10x10", reason
        )
        assert place, reason
        pair = (tasks[name].demonstrations if place[1] == "train" else tasks[name].tests)[int(place[2])]
        grid = pair.input if place[3] == "input" else pair.output
        assert grid is not None
        assert grid.shape == (int(place[4]), int(place[5]))
    # The tests' outputs are hidden here: a task is answered when all its other grids fit.
    shown = {
        name: [grid for pair in one.demonstrations for grid in pair.grids()] for name, one in tasks.items()
    }
    small = {
        name
        for name, one in tasks.items()
        if all(map(fits, [*shown[name], *(pair.input for pair in one.tests)]))
    }
    assert answered.keys() == small
    assert {name for name, _ in complaints} == tasks.keys() - small
    for name, tests in answered.items():
        assert len(tests) == len(tasks[name].tests)
        for attempt in (attempt for test in tests for attempt in test.values()):
            assert 1 <= len(attempt) <= 10
            assert 1 <= len(attempt[0]) <= 10
    print(f"\n{len(answered)} answered, {len(complaints)} refused")
