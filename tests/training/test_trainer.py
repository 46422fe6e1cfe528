"""The trainer: stops anywhere, goes on as if nothing had happened, and says clearly what it cannot do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from factordiff.devices import choose_device, device_name
from factordiff.errors import CheckpointError, Unavailable
from factordiff.experts.registry import WEIGHTS
from factordiff.networks.store import load_expert, read_config, weight_hash
from factordiff.training import trainer as module
from factordiff.training.checkpoint import latest
from factordiff.training.log import read_log
from factordiff.training.machines import Machines
from factordiff.training.provenance import provenance, unlike_the_paper
from factordiff.training.step import BAD_IN_A_ROW, TrainingStep
from factordiff.training.validation import decoded, one_shot
from tests.training.runs import StopAt, digest, trainer
from tests.training.synthetic import Flips


@pytest.mark.parametrize("backbone", ["trans-ir", "conv-ir"])
@pytest.mark.parametrize("stops", [[5], [1, 2, 7]])
def test_a_stopped_and_resumed_run_is_the_run(backbone: str, stops: list[int], tmp_path: Path) -> None:
    fields = {"backbone": backbone, "network": trainer().settings.network, "patience": 30}
    straight = trainer(**fields)
    straight.run()
    for step in stops:
        part = trainer(tmp_path, resume=True, observers=(StopAt(step),), **fields)
        assert part.run()["stopped_by"] == "SIGTERM"
        assert part.done == step
    last = trainer(tmp_path, resume=True, **fields)
    assert last.done == stops[-1]
    assert last.run()["stopped_by"] == "the last step"
    assert digest(last) == digest(straight)
    assert vars(last.progress) | {"seconds": 0} == vars(straight.progress) | {"seconds": 0}
    steps = [event["step"] for event in read_log(tmp_path / "log.jsonl") if event["event"] == "log"]
    assert steps == list(range(1, 13))


def test_a_time_limit_stops_in_time_and_loses_nothing(tmp_path: Path) -> None:
    straight = trainer(max_steps=4)
    straight.run()
    parts = 0
    while True:
        part = trainer(tmp_path, resume=True, max_steps=4)
        if part.run(max_minutes=1e-5)["stopped_by"] == "the last step":
            break
        parts += 1
        assert parts < 5
    assert parts == 3
    assert digest(part) == digest(straight)


def test_a_time_limit_leaves_time_for_the_last_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock of its own: a step takes a second, a pass over the validation set two."""
    now = 100.0

    def takes(seconds: float, function: Any) -> Any:
        def timed(*arguments: Any) -> Any:
            nonlocal now
            now += seconds
            return function(*arguments)

        return timed

    run = trainer(max_steps=1000)
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    for name, passes in (("validation_loss", 1), ("one_shot", 1), ("decoded", module.DECODING_STEPS)):
        monkeypatch.setattr(module, name, takes(2.0 * passes, getattr(module, name)))
    monkeypatch.setattr(TrainingStep, "__call__", takes(1.0, TrainingStep.__call__))
    summary = run.run(max_minutes=5.0)
    assert summary["stopped_by"] == "the time limit"
    assert 280.0 < now - 100.0 <= 300.0


def test_the_folder(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    summary = run.run()
    names = {path.name.split("-")[0] for path in tmp_path.iterdir()}
    assert names == {"checkpoint", "log.jsonl", "curves.png", "weights"}
    assert len(list(tmp_path.glob("checkpoint-*"))) == 2
    expert = load_expert(tmp_path / "weights")
    assert torch.equal(expert.vector, run.step.ema)
    about = read_config(tmp_path / "weights")["about"]
    assert (about["objective"], about["step"], about["data"]) == ("full", 12, Flips(side=3).digest)
    events = read_log(tmp_path / "log.jsonl")
    assert [e["step"] for e in events if e["event"] == "check"] == [5, 10, 12]
    (first,) = (event for event in events if event["event"] == "first step")
    assert first["step"] == 1
    assert 0.0 < first["seconds_to_first_step"] < 60.0
    saves = [event for event in events if event["event"] == "save"]
    assert [event["step"] for event in saves] == list(range(1, 13))
    assert summary["seconds_saving_this_time"] == pytest.approx(sum(event["seconds"] for event in saves))
    assert 0.0 < summary["seconds_saving_this_time"] < summary["seconds_this_time"]
    assert events[-1] == json.loads(json.dumps(summary))
    assert {"loss", "pixel", "exact", "decoded_exact", "occupancy"} <= summary.keys()
    assert (tmp_path / "curves.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_an_earlier_run_is_not_overwritten(tmp_path: Path) -> None:
    trainer(tmp_path, max_steps=2).run()
    with pytest.raises(CheckpointError, match="continue it with --resume"):
        trainer(tmp_path)


def test_another_configuration_or_data_set_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    trainer(tmp_path, max_steps=2).run()
    before = {path.name: path.read_bytes() for path in tmp_path.glob("checkpoint-*")}
    for changes, said in (
        ({"lr": 1e-3}, "the checkpoint has lr = 0.005, this run 0.001"),
        ({"objective": "color"}, "objective = 'full', this run 'color'"),
        ({"seed": 3}, "seed = 0, this run 3"),
        ({"tasks": ("a", "b")}, "tasks = None, this run \\['a', 'b'\\]"),
        ({"source": Flips(side=3, values=5)}, "data = 'flips-3-10-2', this run 'flips-3-5-2'"),
        ({"network": {**trainer().settings.network, "conditioning": "paper"}}, "network"),
    ):
        with pytest.raises(CheckpointError, match=said):
            trainer(tmp_path, resume=True, **changes)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("checkpoint-*")} == before
    longer = trainer(tmp_path, resume=True, max_steps=4)  # how long to train is not who is trained
    assert longer.run()["step"] == 4


def test_a_setting_newer_than_the_checkpoint_had_its_default(tmp_path: Path) -> None:
    first = trainer(tmp_path, max_steps=2)
    assert first.folder is not None
    del first.folder.identity["rename"]  # as a version without it would have written
    first.run()
    with pytest.raises(CheckpointError, match=r"the checkpoint has rename = 0\.0, this run 0\.5"):
        trainer(tmp_path, resume=True, max_steps=4, rename=0.5)
    assert trainer(tmp_path, resume=True, max_steps=4).run()["step"] == 4


def test_a_network_older_than_a_field_goes_on(tmp_path: Path) -> None:
    first = trainer(tmp_path, max_steps=2)
    assert first.folder is not None
    del first.folder.identity["network"]["literal"]
    first.run()
    assert trainer(tmp_path, resume=True, max_steps=4).run()["step"] == 4


def test_a_damaged_checkpoint_is_passed_over_and_said(tmp_path: Path) -> None:
    straight = trainer()
    straight.run()
    trainer(tmp_path, max_steps=12, observers=(StopAt(8),)).run()
    newest = sorted(tmp_path.glob("checkpoint-*"))[-1]
    newest.write_bytes(newest.read_bytes()[:-100])
    told: list[dict[str, Any]] = []
    resumed = trainer(tmp_path, resume=True, observers=(told.append,))
    assert resumed.done == 7
    assert "the file is damaged" in told[0]["note"]
    resumed.run()
    assert digest(resumed) == digest(straight)


def poison(run: Any, bad: set[int]) -> None:
    """Make the loss not a number at these steps."""
    plain = run.step.loss

    def loss(*batch: torch.Tensor) -> torch.Tensor:
        step = int(run.step.counters["step"])
        return plain(*batch) * (float("nan") if step in bad else 1.0)

    run.step.loss = loss


def test_non_finite_steps_are_skipped_and_counted() -> None:
    run = trainer()
    poison(run, {0, 4, 5})
    summary = run.run()
    assert summary["skipped"] == 3
    assert int(run.step.counters["updates"]) == 9
    assert summary["step"] == 12
    assert all(torch.isfinite(tensor.double()).all() for tensor in run.step.state().values())


def test_ten_in_a_row_end_the_run_with_a_usable_checkpoint(tmp_path: Path) -> None:
    run = trainer(tmp_path, max_steps=40)
    poison(run, set(range(7, 40)))
    before: dict[int, torch.Tensor] = {}
    run.observers = (*run.observers, lambda event: before.update({event["step"]: run.step.ema.clone()}))
    summary = run.run()
    assert summary["stopped_by"] == "10 non-finite losses or gradients in a row"
    assert summary["step"] == 7 + BAD_IN_A_ROW
    assert summary["skipped"] == BAD_IN_A_ROW
    assert summary["diverged"]
    assert torch.equal(load_expert(tmp_path / "weights").vector, before[7])
    healed = trainer(tmp_path, resume=True, max_steps=40)
    summary = healed.run()
    assert (summary["stopped_by"], summary["diverged"]) == ("the last step", False)
    assert int(healed.step.counters["updates"]) == 30


class Elsewhere(Machines):
    """A machine among two whose partner agrees to everything: steps are looked at now and then only."""

    def agree(self, flag: bool, device: torch.device) -> bool:
        return flag

    def from_first(self, thing: Any) -> Any:
        return thing


def test_ten_in_a_row_are_noticed_after_the_last_step_too() -> None:
    run = trainer(max_steps=20, log_every=50, check_every=50)
    run.machines = Elsewhere(rank=0, world=2)
    poison(run, set(range(5, 20)))
    summary = run.run()
    assert (summary["diverged"], summary["step"]) == (True, 5 + BAD_IN_A_ROW)


def test_early_stopping_exports_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = {5: 1.0, 10: 0.5, 15: 0.6, 20: 0.7, 25: 0.1}
    run = trainer(tmp_path, max_steps=60, patience=2)
    seen: dict[int, torch.Tensor] = {}

    def scripted(loss: float) -> float:
        seen[run.done] = run.step.ema.clone()
        return losses[run.done]

    monkeypatch.setattr(Machines, "from_first", lambda self, loss: scripted(loss))
    summary = run.run()
    assert summary["step"] == 20
    assert summary["stopped_by"] == "no better validation loss in 2 checks"
    assert torch.equal(load_expert(tmp_path / "weights").vector, seen[10])
    assert read_config(tmp_path / "weights")["about"]["step"] == 10
    found = latest(tmp_path)
    assert found is not None
    assert torch.equal(found[0].best, seen[10])  # type: ignore[arg-type]
    # The summary speaks of the weights that are kept, not of the last ones.
    assert summary["weights_of_step"] == 10
    condition, x_0 = run.source.validation(run.settings.validation_items)
    kept = load_expert(tmp_path / "weights")
    assert summary.items() >= (one_shot(kept, condition, x_0) | decoded(kept, condition, x_0)).items()
    assert one_shot(run.expert, condition, x_0) == one_shot(kept, condition, x_0)


def test_weights_to_start_from(tmp_path: Path) -> None:
    first = trainer(tmp_path / "a", max_steps=3)
    first.run()
    second = trainer(tmp_path / "b", init_from=tmp_path / "a" / "weights")
    assert torch.equal(second.step.network.vector, first.step.ema)
    assert torch.equal(second.step.ema, first.step.ema)
    origin = {
        "weights": weight_hash(tmp_path / "a" / "weights"),
        "about": read_config(tmp_path / "a" / "weights")["about"],
    }
    assert second.started_from == origin
    second.run()
    assert read_config(tmp_path / "b" / "weights")["about"]["started_from"] == origin
    assert trainer(tmp_path / "b", resume=True).started_from == origin  # a continued run still knows it
    with pytest.raises(CheckpointError):
        trainer(tmp_path / "c", init_from=tmp_path)


@pytest.mark.parametrize("how", [{"objective": "occupancy"}, {"objective": "full", "new_head": True}])
def test_a_head_begins_anew_for_another_objective_or_when_asked(tmp_path: Path, how: dict[str, Any]) -> None:
    first = trainer(tmp_path / "a", max_steps=3, objective="full")
    first.run()
    second = trainer(tmp_path / "b", init_from=tmp_path / "a" / WEIGHTS, **how).step.network
    before, after = first.step.network.layout.unpack(first.step.ema), second.layout.unpack(second.vector)
    for name, weights in after.items():
        if name.startswith("head."):
            assert not weights.any()
            assert before[name].any(), "the first run had learned nothing to forget"
        else:
            assert torch.equal(weights, before[name])


def test_devices() -> None:
    assert choose_device("cpu").type == "cpu"
    assert choose_device("auto").type in ("cpu", "cuda", "mps")
    with pytest.raises(Unavailable, match="expected one of auto, cpu, cuda, mps, got 'tpu'"):
        choose_device("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(Unavailable, match="cuda was asked for, but this machine has none"):
            choose_device("cuda")
        with pytest.raises(Unavailable, match="recording a step needs one GPU"):
            trainer(graph="on")


def test_a_checkpoint_of_the_real_experts_is_small(tmp_path: Path) -> None:
    for backbone in ("trans-ir", "conv-ir"):
        run = trainer(tmp_path / backbone, source=Flips(side=10), backbone=backbone, network={})
        run._save()
        (path,) = (tmp_path / backbone).glob("checkpoint-*")
        assert path.stat().st_size <= 16_000_000


def test_the_account_of_a_run_names_its_device(tmp_path: Path) -> None:
    trainer(tmp_path, max_steps=2).run()
    lines = provenance(tmp_path / WEIGHTS, tmp_path)
    assert any(f"minutes on {device_name(torch.device('cpu'))}, seed " in line for line in lines)
    assert not any("factordiff train" in line for line in lines), "no command makes these settings"


def test_the_account_of_weights_that_started_from_others_has_both_commands(tmp_path: Path) -> None:
    trainer(tmp_path / "a", max_steps=1, preset="fast").run()
    second = trainer(
        tmp_path / "b", max_steps=2, preset="fast", rename=0.5, init_from=tmp_path / "a" / WEIGHTS
    )
    second.run()
    first_line, second_line, *_ = provenance(tmp_path / "b" / WEIGHTS, None)
    assert "--max-steps 1" in first_line
    assert "--init-from" not in first_line
    assert "--max-steps 2" in second_line
    assert "--rename 0.5" in second_line
    assert weight_hash(tmp_path / "a" / WEIGHTS)[:12] in second_line
    assert "--init-from FOLDER" in second_line
    assert "--new-head" not in second_line


def test_the_account_says_what_is_not_the_papers_and_whether_a_head_began_anew(tmp_path: Path) -> None:
    trainer(tmp_path / "a", max_steps=1, preset="fast", agreement=0.02).run()
    second = {"max_steps": 1, "preset": "fast", "rename": 0.5, "init_from": tmp_path / "a" / WEIGHTS}
    trainer(tmp_path / "b", new_head=True, **second).run()
    lines = provenance(tmp_path / "b" / WEIGHTS, None)
    assert "--init-from FOLDER --new-head" in lines[1]
    (said,) = (line for line in lines if line.startswith("not as the paper has it"))
    assert "agreement loss 0.02" in said  # of the first stage
    assert "values renamed in up to 50% of the items" in said
    assert said.endswith("2 stages")
    for backbone in ("trans-ir", "conv-ir"):
        literal = {"network": {"conditioning": "paper", "literal": True}, "backbone": backbone, "about": {}}
        assert unlike_the_paper(literal) == []
        paper = {
            **literal,
            "network": {"conditioning": "paper"},
        }  # neither field nor attention without latents
        assert unlike_the_paper(paper) == (["rotary positions"] if backbone == "trans-ir" else [])
    again = {**literal, "about": {"settings": {}, "started_from": {"about": {"settings": {}}}}}
    assert unlike_the_paper(again) == ["2 stages"]
