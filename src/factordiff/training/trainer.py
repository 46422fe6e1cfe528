"""The trainer: steps, checks, checkpoints, and a clean end whatever happens."""

from __future__ import annotations

import dataclasses
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from factordiff.errors import CheckpointError, Unavailable
from factordiff.experts.refinement import config_as_json
from factordiff.experts.store import build, load_weights, save_expert
from factordiff.training import checkpoint
from factordiff.training.curves import draw_curves
from factordiff.training.log import Event, JsonLines, Observer
from factordiff.training.machines import Machines
from factordiff.training.settings import MAY_CHANGE, Settings
from factordiff.training.source import Source
from factordiff.training.step import BAD_IN_A_ROW, Step, record
from factordiff.training.validation import Validate, one_shot, validation_loss

LOG, CURVES, WEIGHTS = "log.jsonl", "curves.png", "weights"


@dataclass
class Progress:
    """What a run knows beside its tensors: time spent and the state of early stopping."""

    seconds: float = 0.0
    best_loss: float = math.inf
    best_step: int = 0
    checks_since_best: int = 0
    last_check: int = -1


class Trainer:
    """One run: made from settings and a source, continued from its folder, advanced by `run`."""

    def __init__(
        self,
        settings: Settings,
        source: Source,
        *,
        device: torch.device | str = "cpu",
        out: Path | None = None,
        resume: bool = False,
        init_from: Path | None = None,
        machines: Machines | None = None,
        validate: Validate = one_shot,
        observers: tuple[Observer, ...] = (),
    ) -> None:
        self.device = torch.device(device)
        self.machines = machines or Machines()
        self.settings = settings = _computed_how(settings, self.device, self.machines)
        self.source, self.validate = source, validate
        self.out = out
        self.observers = observers
        self.progress = Progress()
        self.best: torch.Tensor | None = None
        self.stopped_by = ""
        fast = self.device.type == "cuda"
        self.dtype = _dtype(settings.dtype, fast)
        network = build(settings.backbone, settings.network, settings.seed)
        if init_from is not None:
            load_weights(network, init_from)
        network = network.to(self.device)
        self.expert = build(settings.backbone, settings.network).to(self.device)
        self.expert.dtype = self.dtype
        self.step = Step(
            network,
            source,
            settings,
            self.dtype,
            _dtype(settings.newton_schulz, fast),
            self.machines.rank,
            self.machines.world,
        )
        self.done = 0
        if out is not None:
            self._open(out, resume)

    def _open(self, out: Path, resume: bool) -> None:
        if self.machines.writes:
            checkpoint.make_folder(out)
            checkpoint.sweep(out)
        found = checkpoint.latest(out)
        if found is not None and not resume:
            raise CheckpointError(
                f"{out}: there are checkpoints of an earlier run here; continue it with --resume "
                "or choose another folder with --out"
            )
        if found is not None:
            saved, damaged = found
            self._restore(saved)
            for sentence in damaged:
                self._tell({"event": "note", "step": self.done, "note": f"passed over: {sentence}"})
        if self.machines.writes:
            self.observers = (JsonLines(out / LOG, self.done), *self.observers)

    def _restore(self, saved: checkpoint.Checkpoint) -> None:
        wanted = self._identity()
        for name, value in saved.run["identity"].items():
            if wanted.get(name) != value:
                raise CheckpointError(
                    f"{self.out}: the checkpoint has {name} = {value!r}, this run {wanted.get(name)!r}; "
                    "use the same settings and data, or another folder with --out"
                )
        with torch.no_grad():
            for name, tensor in self.step.state().items():
                tensor.copy_(saved.tensors[name])
        self.best = saved.tensors["best"].to(self.device) if "best" in saved.tensors else None
        self.progress = Progress(**saved.run["progress"])
        self.done = int(saved.tensors["step"])

    def _identity(self) -> dict[str, Any]:
        """What a checkpoint and the run that continues it must have in common."""
        settings = {key: value for key, value in self.settings.as_json().items() if key not in MAY_CHANGE}
        network = config_as_json(self.step.network.config)
        return {**settings, "network": network, "data": self.source.digest}

    def _tell(self, event: Event) -> None:
        if self.machines.writes:
            for observer in self.observers:
                observer(event)

    def run(self, max_minutes: float | None = None, started: float | None = None) -> dict[str, Any]:
        """Train until the last step, a limit, or a signal; returns the run's summary.

        `started` (a reading of `time.monotonic`) is when the minutes began to count.
        """
        began = time.monotonic()
        deadline = math.inf if max_minutes is None else (started or began) + 60.0 * max_minutes
        before, first = self.progress.seconds, self.done
        self._tell({"event": "start", "step": self.done, "parameters": self.step.network.layout.count})
        with _signals() as signalled:
            self._loop(deadline, signalled, began)
        self.progress.seconds = before + time.monotonic() - began
        check = self._check()
        summary = self._summary(check, self.done - first, self.progress.seconds - before)
        if self.out is not None and self.machines.writes:
            self._save()
            self._tell(summary)
            draw_curves(self.out / LOG, self.out / CURVES)
        else:
            self._tell(summary)
        return summary

    def _loop(self, deadline: float, signalled: Callable[[], str], began: float) -> None:
        settings = self.settings
        advance: Callable[[], None] | None = None
        reserve = 5.0  # seconds for the last check, the last checkpoint and the picture
        last_save = last_log = time.monotonic()
        logged_step, start_seconds = self.done, self.progress.seconds
        eager = self.device.type != "cuda" and self.machines.world == 1
        while self.done < settings.max_steps and not self.stopped_by:
            if advance is None:
                advance, count = self._first_steps()
                self.done += count
            else:
                advance()
                self.done += 1
            at_log = self.done % settings.log_every == 0
            at_check = self.done % settings.check_every == 0
            if not (at_log or at_check or eager):
                continue
            if at_log:
                self._log(self.done - logged_step, time.monotonic() - last_log)
                logged_step, last_log = self.done, time.monotonic()
            if int(self.step.counters["in_a_row"]) >= BAD_IN_A_ROW:
                self.done = int(self.step.counters["step"])
                self.stopped_by = f"{BAD_IN_A_ROW} non-finite losses or gradients in a row"
            elif at_check and self.done < settings.max_steps:
                check_began = time.monotonic()
                self._check()
                reserve = max(reserve, 5.0 + 2.0 * (time.monotonic() - check_began))
                last_log += time.monotonic() - check_began
            self._maybe_stop(deadline - reserve, signalled)
            now = time.monotonic()
            if (at_log or at_check) and self.out is not None and now - last_save >= settings.save_seconds:
                self.progress.seconds = start_seconds + now - began
                if self.machines.writes:
                    self._save()
                last_save = time.monotonic()
                last_log += last_save - now

    def _first_steps(self) -> tuple[Callable[[], None], int]:
        """The first steps (which compile and record) and how to make the others."""
        if self.settings.graph == "on" and self.settings.max_steps - self.done > 8:
            return record(self.step), 3
        self.step()
        return self.step, 1

    def _maybe_stop(self, deadline: float, signalled: Callable[[], str]) -> None:
        reason = signalled() or ("the time limit" if time.monotonic() >= deadline else "")
        patience = self.settings.patience
        if patience and self.progress.checks_since_best >= patience:
            reason = f"no better validation loss in {patience} checks"
        if self.machines.agree(bool(reason), self.device) and not self.stopped_by:
            self.stopped_by = reason or "another machine"

    def _log(self, steps: int, seconds: float) -> None:
        loss, norm = self.step.take_measurements()
        rate = steps / max(seconds, 1e-9)
        self._tell(
            {
                "event": "log",
                "step": self.done,
                "loss": loss,
                "gradient_norm": norm,
                "skipped": int(self.step.counters["skipped"]),
                "steps_per_second": rate,
                "seconds_left": (self.settings.max_steps - self.done) / rate,
            }
        )

    def _check(self) -> Event:
        """Validate the averaged weights and keep the account of early stopping."""
        with torch.no_grad():
            self.expert.vector.copy_(self.step.ema)
        condition, x_0 = self.source.validation(self.settings.validation_items)
        condition, x_0 = condition.to(self.device), x_0.to(self.device)
        loss = validation_loss(self.expert, condition, x_0, self.settings.objective)
        event: Event = {"event": "check", "step": self.done, "loss": loss}
        event |= self.validate(self.expert, condition, x_0)
        # Checks between the regular ones (at a stop) must not count, or a resumed run would stop elsewhere.
        if self.done % self.settings.check_every == 0 and self.done != self.progress.last_check:
            self._count_check(loss)
        self._tell(event)
        return event

    def _count_check(self, loss: float) -> None:
        self.progress.last_check = self.done
        self.progress.checks_since_best += 1
        if loss < self.progress.best_loss:
            self.progress.best_loss, self.progress.best_step = loss, self.done
            self.progress.checks_since_best = 0
            if self.settings.patience:
                self.best = self.step.ema.clone()

    def _save(self) -> None:
        assert self.out is not None
        tensors = dict(self.step.state())
        if self.best is not None:
            tensors["best"] = self.best
        run = {
            "identity": self._identity(),
            "settings": self.settings.as_json(),
            "progress": vars(self.progress),
        }
        checkpoint.save(self.out, self.done, checkpoint.Checkpoint(tensors, run))
        self.export(self.out / WEIGHTS)

    def export(self, folder: Path) -> None:
        """Write the averaged weights (the best ones, if stopping early) as an expert's folder."""
        with torch.no_grad():
            self.expert.vector.copy_(self.step.ema if self.best is None else self.best)
        about = {
            "objective": self.settings.objective,
            "step": self.done if self.best is None else self.progress.best_step,
            "data": self.source.digest,
            "settings": self.settings.as_json(),
        }
        save_expert(self.expert, folder, about)

    def _summary(self, check: Event, steps: int, seconds: float) -> Event:
        return {
            **check,
            "event": "end",
            "backbone": self.settings.backbone,
            "objective": self.settings.objective,
            "steps_this_time": steps,
            "seconds_this_time": seconds,
            "seconds": self.progress.seconds,
            "skipped": int(self.step.counters["skipped"]),
            "stopped_by": self.stopped_by or "the last step",
        }


def _computed_how(settings: Settings, device: torch.device, machines: Machines) -> Settings:
    """The settings with `compile` and `graph` decided for this device."""
    gpu = device.type == "cuda"
    if settings.graph == "on" and not (gpu and machines.world == 1):
        raise Unavailable("graph: recording a step needs one GPU and one process; use --graph off")
    chosen: dict[str, Any] = {
        "compile": ("blocks" if gpu else "none") if settings.compile == "auto" else settings.compile,
        "graph": ("on" if gpu and machines.world == 1 else "off")
        if settings.graph == "auto"
        else settings.graph,
    }
    return dataclasses.replace(settings, **chosen)


def _dtype(name: str, fast: bool) -> torch.dtype:
    if name == "auto":
        return torch.bfloat16 if fast else torch.float32
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


@contextmanager
def _signals() -> Iterator[Callable[[], str]]:
    """Turn SIGTERM and SIGINT into a request to stop at the next step; yields a function that tells of it."""
    caught: list[str] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: ""
        return
    kinds = (signal.SIGTERM, signal.SIGINT)
    before = {
        kind: signal.signal(kind, lambda number, _: caught.append(signal.Signals(number).name))
        for kind in kinds
    }
    try:
        yield lambda: caught[0] if caught else ""
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
