"""The quick half of the benchmarks: counts, which no machine can change."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks import compare_apart, train_text
from benchmarks.background_lift import Lifted, lifted
from benchmarks.bench_sampling import STEPS, TARGETS, passes
from benchmarks.hard_tasks import continued, outcomes, poor_tasks, steps_of
from benchmarks.language_shapes import Blocks, beside_a_shape, beside_models
from benchmarks.llada_shape import SHAPES, LladaShaped
from benchmarks.train_text import affordable_steps
from factordiff.arc.artefact import save_artefact
from factordiff.arc.dataset import Dataset
from factordiff.arc.grid import COLORS
from factordiff.experts.condition import Condition
from factordiff.experts.expert import substitute
from factordiff.text.build import build
from tests.text.wheels import packages

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("order", "temperature"), [("confidence", 0.0), ("ancestral", 1.0)])
def test_same_answers_in_fewer_passes_than_the_naive_loop(order: str, temperature: float) -> None:
    counted = passes(order, temperature)
    assert counted["same_answers"]
    assert counted["naive_passes"] == 2 * 64 * STEPS
    assert counted["ratio"] >= TARGETS[order]


def test_one_cell_per_pass_in_confidence_order() -> None:
    assert passes("confidence", 0.0, batch=2)["passes"] == 2 * 2 * 100


def test_models_of_a_shape_are_measured_beside_their_composition() -> None:
    cpu = torch.device("cpu")
    models = [LladaShaped(SHAPES["tiny"], seed, cpu, torch.float32) for seed in (1, 2)]
    row = beside_models(models, cpu, 2, "routing", 1, Blocks(positions=12, length=4, steps=2))
    assert row["parameters"] == 2 * 2000 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128)
    assert row["step_s"] > 0
    assert row["passes_s"] > 0
    x_t, asked = torch.full((2, 12), 2000), torch.arange(24).view(2, 12) % 5 == 0
    everywhere = models[0].log_probs(x_t, None)
    assert torch.allclose(models[0].log_probs_at(x_t, None, asked), everywhere[asked], atol=1e-5)
    assert (everywhere[..., SHAPES["tiny"].mask] == -torch.inf).all()


def test_a_run_says_what_was_chosen_for_each_batch(capsys: pytest.CaptureFixture[str]) -> None:
    how = Blocks(positions=12, length=4, steps=2)
    beside_a_shape("tiny", torch.device("cpu"), [1, 2], ["routing"], 1, how)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    forms = [(row["batch"], row["form"]) for row in rows]
    assert forms == [
        (batch, form) for batch in (1, 2) for form in ("plain", "unrecorded", "recorded", "chosen")
    ]
    assert all(row["passes_s"] > 0 for row in rows)
    assert {row.get("how", "") for row in rows} == {""}  # nothing is recorded on a CPU
    assert len({row["passes_s"] for row in rows}) == len(rows)  # each is held against passes in turn with it
    for row in rows:
        assert row["composition_over_passes"] == row["step_s"] / row["passes_s"] - 1


def test_eight_billion_parameters_are_eight_billion() -> None:
    shape = SHAPES["llada-8b"]
    layer = 4 * shape.width**2 + 3 * shape.width * shape.inner
    assert 2 * shape.tokens * shape.width + shape.layers * layer == pytest.approx(8.0e9, rel=0.01)


def test_groups_of_rows_become_one_folder(tmp_path: Path) -> None:
    for part, files in (
        ("0", ("mixture.jsonl.gz", "table.md", ".lock")),
        ("1", ("fitted-mixture.fit.json",)),
    ):
        folder = tmp_path / part / "held"
        (folder / "left.fitting").mkdir(parents=True)
        for name in files:
            (folder / name).write_text(name)
    compare_apart.together([tmp_path / "0", tmp_path / "1"], tmp_path / "all")
    found = sorted(path.name for path in (tmp_path / "all" / "held").iterdir())
    assert found == ["fitted-mixture.fit.json", "mixture.jsonl.gz"]
    called = compare_apart.command("toy-cells", "mixture,product", tmp_path, ["--budget", "2"])
    assert called[3:] == [
        "compare",
        "toy-cells",
        "--methods",
        "mixture,product",
        "--out",
        str(tmp_path),
        "--budget",
        "2",
    ]


@pytest.mark.slow
def test_rows_in_processes_are_the_rows_of_one(tmp_path: Path) -> None:
    apart, one = tmp_path / "apart", tmp_path / "one"
    assert (
        compare_apart.main(
            ["toy-halves", "mixture,told", "fitted:mixture", "--out", str(apart), "--", "--budget", "2"]
        )
        == 0
    )
    subprocess.check_call(
        compare_apart.command("toy-halves", "mixture,told,fitted:mixture", one, ["--budget", "2"])
    )
    tables = [(folder / "toy-halves" / "test" / "table.json").read_text() for folder in (apart, one)]
    assert tables[0] == tables[1]


def test_steps_that_fit_a_time() -> None:
    log = [
        {"event": "first step", "seconds_to_first_step": 60.0},
        {"event": "log", "steps_per_second": 10.0},
        {"event": "log", "steps_per_second": 40.0},
        {"event": "end"},
    ]
    # 8 % of 420 s are spare, a minute goes into the start: 326.4 s at 40 steps a second.
    assert affordable_steps(log, 7.0) == 13_000
    assert affordable_steps(log[:1], 7.0) == 100
    assert affordable_steps(log, 0.1) == 100


@pytest.mark.slow
def test_text_experts_are_trained_for_as_long_as_was_asked(tmp_path: Path) -> None:
    save_artefact(
        build(tmp_path / "wheels", packages(tmp_path / "wheels", files=12)),
        tmp_path / "data" / "code-prose.npz",
    )
    words = [
        sys.executable,
        str(Path(train_text.__file__).resolve()),
        "prose",
        "--out",
        "run",
        "--minutes",
        "0.05",
    ]
    words += [
        "--probe",
        "4",
        "--batch",
        "2",
        "--validation-items",
        "2",
        "--network",
        "width=24,blocks=1",
    ]
    shown = subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert "prose: 100 steps in 0.05 minutes; the others: --steps 100" in shown
    assert (tmp_path / "run" / "weights" / "model.safetensors").is_file()


def test_stripes_of_two_periods_are_ambiguous() -> None:
    """Rows 3 5 3 3 and one that is hidden: it is 5 if three rows repeat, 3 if four do."""
    shown = np.repeat(np.array([[3], [5], [3], [3], [0]], dtype=np.uint8), 5, axis=1)
    assert {np.frombuffer(one, np.uint8)[-1] for one in continued(shown)} == {3, 5}
    shown[3] = 0  # then two rows or three may repeat
    assert {bytes(np.frombuffer(one, np.uint8)[15::5]) for one in continued(shown)} == {
        bytes((5, 3)),
        bytes((3, 5)),
    }
    shown[4] = 7
    assert continued(shown) == set()


def test_the_page_of_hard_tasks_has_what_the_cards_have() -> None:
    page = (ROOT / "docs" / "training" / "README.md").read_text().split("## Tasks below 90 %")[1]
    (heading,) = re.findall(r"^\| steps in all \| (.+) \|$", page, re.MULTILINE)
    last = re.findall(r"^\| [\d,]+ \| (.+) \|$", page, re.MULTILINE)[-1]
    shown = dict(zip(heading.split(" | "), map(float, last.split(" | ")), strict=True))
    tasks = np.array(Dataset.load().evaluation("validation").task_ids)
    right = outcomes("trans-full")
    assert shown == pytest.approx({task: 100 * right[tasks == task].mean() for task in shown})
    assert set(shown) == set(poor_tasks(tasks, {"trans-full": right}))


def test_steps_are_told_stage_by_stage() -> None:
    assert steps_of({"step": 500, "started_from": {"about": {"step": 26_000}}}) == "26,000 + 500"


def test_more_background_is_all_that_a_lifted_expert_says_otherwise() -> None:
    class Fixed:
        """The same logits everywhere."""

        def __init__(self, sharp: float) -> None:
            self.vocabulary, self.sharp = COLORS, sharp

        def encode(self, condition: Condition) -> Tensor:
            return condition.query

        def log_probs(self, x_t: Tensor, encoded: Tensor) -> Tensor:
            logits = self.sharp * torch.nn.functional.one_hot(encoded.clamp(min=1), COLORS.size).float()
            return substitute(logits.index_fill(-1, torch.tensor([0]), -20.0), x_t, COLORS)

    queries = Dataset.load().evaluation("validation", 2)
    expert, condition = Fixed(5.0), queries.condition()
    x_t = torch.full((2, 100), COLORS.mask)
    x_t[:, :3] = 7
    plain = expert.log_probs(x_t, expert.encode(condition))
    said = Lifted(expert, 4.0).log_probs(x_t, expert.encode(condition))
    torch.testing.assert_close(said.exp().sum(-1), torch.ones(2, 100))
    assert torch.equal(said[:, :3], plain[:, :3])
    torch.testing.assert_close(
        said[:, 3:, 1:].log_softmax(-1), plain[:, 3:, 1:].log_softmax(-1), msg="its colors"
    )
    torch.testing.assert_close(
        (said[..., 0] - said[..., 1] - plain[..., 0] + plain[..., 1])[:, 3:], torch.full((2, 97), 4.0)
    )
    told: list[str] = []
    (none, some) = lifted(expert, Fixed(0.0), queries, (0.0, 40.0), told.append)
    assert none[0] == "0"
    assert some[0] == "40"
    assert float(some[1]) > float(none[1])
    assert none[2] == some[2]
    assert len(told) == 2
