"""The trainer: steps, checks, checkpoints, and a clean end whatever happens."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from factordiff.devices import DTYPES, device_name
from factordiff.networks.store import build, load_weights, network_for, read_config, weight_hash
from factordiff.training.checkpoint import Checkpoint, restore
from factordiff.training.computation import check_batch, decided
from factordiff.training.log import Event, Observer
from factordiff.training.machines import Machines
from factordiff.training.progress import Progress
from factordiff.training.run_folder import RunFolder
from factordiff.training.settings import TrainingSettings, check_minutes
from factordiff.training.signals import caught_signals
from factordiff.training.source import Source
from factordiff.training.step import BAD_IN_A_ROW, RecordedStep, TrainingStep
from factordiff.training.validation import DECODING_STEPS, decoded, filled_in, one_shot, validation_loss

LAST_CHECK = 1 + DECODING_STEPS / 2  # how much longer than a check, of two passes, the last one takes


class Trainer:
    """One run: made from settings and a source, continued from its folder, advanced by `run`."""

    def __init__(
        self,
        settings: TrainingSettings,
        source: Source,
        *,
        device: torch.device | str = "cpu",
        out: Path | None = None,
        resume: bool = False,
        init_from: Path | None = None,
        new_head: bool = False,
        machines: Machines | None = None,
        observers: tuple[Observer, ...] = (),
    ) -> None:
        self.device = torch.device(device)
        self.machines = machines or Machines()
        self.settings = settings = decided(settings, self.device, self.machines)
        self.settings = settings = dataclasses.replace(
            settings,
            network=network_for(settings.backbone, settings.network, source.vocabulary.size, source.cells),
        )
        self.source, self.observers = source, observers
        self.progress = Progress()
        self.best: Tensor | None = None
        self.stopped_by = ""
        self.diverged, self.seconds_saving = False, 0.0
        self._saved = (-1, -1)  # the step and the last check of the newest checkpoint
        check_batch(settings.batch, source, self.device, self.machines)
        network = build(settings.backbone, settings.network, settings.seed)
        self.started_from: dict[str, Any] | None = None  # whose weights these were at first
        if init_from is not None:
            about = read_config(init_from)["about"]
            # A head answers its objective's question: for another one it begins anew.
            same_question = about.get("objective") == settings.objective
            load_weights(network, init_from, head=same_question and not new_head)
            began_anew = {"new_head": True} if new_head and same_question else {}
            self.started_from = {"weights": weight_hash(init_from), "about": about, **began_anew}
        self.expert = build(settings.backbone, settings.network).to(self.device)
        self.expert.dtype = DTYPES[settings.dtype]
        self.step = TrainingStep(
            network.to(self.device),
            source,
            settings,
            DTYPES[settings.dtype],
            DTYPES[settings.newton_schulz],
            self.machines.rank,
            self.machines.world,
        )
        self.done = 0
        self.folder: RunFolder | None = None
        if out is not None and self.machines.writes:
            identity = settings.identity() | {"network": network.config.as_json(), "data": source.digest}
            self.folder = RunFolder(out, identity)
        if out is not None:
            self._open(resume)

    def _open(self, resume: bool) -> None:
        if self.folder is not None:
            found = self.folder.open(resume)
            if found is not None:
                self._restore(*found)
            self.observers = (self.folder.log(self.done), *self.observers)
        # The other machines may not see the folder: they take everything from the first.
        for tensor in self.step.state().values():
            self.machines.share(tensor)
        self.progress, self.done, self.best = self.machines.from_first((self.progress, self.done, self.best))

    def _restore(self, saved: Checkpoint, damaged: list[str]) -> None:
        assert self.folder is not None
        known = self.folder.known(saved)
        restore(saved, self.step.state(), self.folder.path)
        self.best = None if saved.best is None else saved.best.to(self.device)
        self.progress, self.started_from = known
        self.done = int(saved.tensors["step"])
        # A run that ended on non-finite losses goes on behind them when it is continued.
        self.step.counters["in_a_row"].zero_()
        for sentence in damaged:
            self._tell({"event": "note", "step": self.done, "note": f"passed over: {sentence}"})

    def _tell(self, event: Event) -> None:
        if self.machines.writes:
            for observer in self.observers:
                observer(event)

    def run(self, max_minutes: float | None = None, started: float | None = None) -> dict[str, Any]:
        """Train until the last step, a limit, or a signal; returns the run's summary.

        `started` (a reading of `time.monotonic`) is when the minutes began to count.
        """
        check_minutes("max_minutes", max_minutes)
        began = time.monotonic()
        limit = math.inf if max_minutes is None else 60.0 * max_minutes
        before, first = self.progress.seconds, self.done
        origin = began - before  # where the clock of the whole run would have started without a pause
        parameters, device = self.step.network.layout.count, device_name(self.device)
        self._tell({"event": "start", "step": self.done, "parameters": parameters, "device": device})
        # The folder was locked when it was opened, and is until the run has ended.
        alone = nullcontext() if self.folder is None else self.folder.lock
        with alone, caught_signals() as signalled:
            begun = started or began
            self._loop(begun, begun + limit, min(8.0, 0.1 * limit), signalled, origin)
            self.progress.seconds = time.monotonic() - origin
            finished = not self.stopped_by
            if not finished:  # whoever stopped the run may not wait for the last check
                self._save()
            measured = self._check(last=not self.diverged)  # what is not finite draws nothing
            if finished:
                self._save()
            if self.best is not None:  # what is said at the end is true of the weights that are kept
                measured = self._measure(self.best, last=True)
            summary = self._summary(measured, self.done - first, self.progress.seconds - before)
            self._tell(summary)
            if self.folder is not None:
                self.folder.draw_curves()
        return summary

    def _loop(
        self, begun: float, deadline: float, reserve: float, signalled: Callable[[], str], origin: float
    ) -> None:
        """TrainingStep until something ends the run; `reserve` seconds before the deadline are for ending it well."""
        settings = self.settings
        advance: Callable[[], None] = RecordedStep(self.step) if settings.graph == "on" else self.step
        check_seconds = 0.0
        last_save = last_log = time.monotonic()
        logged_step = self.done
        # Looking at a step's outcome waits for the device and the other machines: not after every step then.
        looks_always = self.device.type != "cuda" and self.machines.world == 1
        first = self.done + 1
        while self.done < settings.max_steps and not self.stopped_by:
            advance()
            self.done += 1
            if self.done == first:
                int(self.step.counters["step"])  # waits for the device, this once
                seconds = time.monotonic() - begun
                self._tell({"event": "first step", "step": first, "seconds_to_first_step": seconds})
            at_log = self.done % settings.log_every == 0
            at_check = self.done % settings.check_every == 0
            at_snapshot = settings.snapshot_every > 0 and self.done % settings.snapshot_every == 0
            if not (at_log or at_check or at_snapshot or looks_always or self.done == settings.max_steps):
                continue
            if at_log:
                self._log(self.done - logged_step, time.monotonic() - last_log)
                logged_step, last_log = self.done, time.monotonic()
            if int(self.step.counters["in_a_row"]) >= BAD_IN_A_ROW:
                self.done = int(self.step.counters["step"])
                self.diverged = True
                self.stopped_by = f"{BAD_IN_A_ROW} non-finite losses or gradients in a row"
            elif at_check and self.done < settings.max_steps:
                check_began = time.monotonic()
                self._check()
                check_seconds = time.monotonic() - check_began
                last_log += check_seconds
            if self.done < settings.max_steps:
                self._maybe_stop(deadline - reserve - LAST_CHECK * check_seconds, signalled)
            now = time.monotonic()
            due = (at_log or at_check) and now - last_save >= settings.save_seconds
            if at_snapshot and not self.diverged:
                self._snapshot()
                due = True  # a run that goes on from here never computes the snapshot's step again
            if due and self.folder is not None:
                self.progress.seconds = now - origin
                self._save()
                last_save = time.monotonic()
                last_log += last_save - now

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

    def _measure(self, weights: Tensor, last: bool) -> dict[str, float]:
        """How good weights are; drawn step by step too when it is for the last time."""
        with torch.no_grad():
            self.expert.vector.copy_(weights)
        condition, x_0 = self.source.validation(self.settings.validation_items)
        condition, x_0 = None if condition is None else condition.to(self.device), x_0.to(self.device)
        loss = validation_loss(self.expert, condition, x_0, self.settings.objective)
        measured = {"loss": self.machines.from_first(loss)}  # the machines must decide alike
        if condition is None:  # nothing tells what to draw, so that only filling in can be right or wrong
            return measured | filled_in(self.expert, x_0)
        measured |= one_shot(self.expert, condition, x_0)
        return measured | decoded(self.expert, condition, x_0) if last else measured

    def _check(self, last: bool = False) -> dict[str, float]:
        """Measure the averaged weights and keep the account of early stopping."""
        measured = self._measure(self.step.ema, last)
        # Checks between the regular ones (at a stop) do not count, or a resumed run would stop elsewhere.
        regular = self.done % self.settings.check_every == 0
        if regular and self.progress.count_check(self.done, measured["loss"]) and self.settings.patience:
            self.best = self.step.ema.clone()
        self._tell({"event": "check", "step": self.done, **measured})
        return measured

    def _save(self) -> None:
        """Write checkpoint and weights, unless this moment is saved already; weights that nobody could use are not."""
        now = (self.done, self.progress.last_check)
        if self.folder is None or now == self._saved or not bool(self.step.ema.isfinite().all()):
            return
        began = time.monotonic()
        with torch.no_grad():
            self.expert.vector.copy_(self.step.ema if self.best is None else self.best)
        run: dict[str, Any] = {"settings": self.settings.as_json(), "progress": self.progress.as_json()}
        if self.started_from is not None:
            run["started_from"] = self.started_from
        saved = Checkpoint(self.step.state(), run, self.best)
        about = self._about(self._kept_step())
        self.folder.save(self.done, saved, self.progress.best_step, self.expert, about)
        self._saved = now
        seconds = time.monotonic() - began
        self.seconds_saving += seconds
        self._tell({"event": "save", "step": self.done, "seconds": seconds})

    def _snapshot(self) -> None:
        """Keep this step's weights, whichever are the best so far."""
        if self.folder is None:
            return
        with torch.no_grad():
            self.expert.vector.copy_(self.step.ema)
        self.folder.snapshot(self.done, self.expert, self._about(self.done))

    def _about(self, step: int) -> dict[str, Any]:
        """What weights of that step say about themselves."""
        about: dict[str, Any] = {"objective": self.settings.objective, "step": step}
        about |= {"data": self.source.digest, "settings": self.settings.as_json()}
        if self.started_from is not None:
            about["started_from"] = self.started_from
        return about

    def _kept_step(self) -> int:
        """Of which step the weights for users are: the best one of a run that stops early."""
        return self.done if self.best is None else self.progress.best_step

    def _summary(self, measured: dict[str, float], steps: int, seconds: float) -> Event:
        return {
            "event": "end",
            "step": self.done,
            **measured,
            "weights_of_step": self._kept_step(),
            "backbone": self.settings.backbone,
            "objective": self.settings.objective,
            "steps_this_time": steps,
            "seconds_this_time": seconds,
            "seconds": self.progress.seconds,
            "seconds_saving_this_time": self.seconds_saving,
            "skipped": int(self.step.counters["skipped"]),
            "stopped_by": self.stopped_by or "the last step",
            "diverged": self.diverged,
        }
