"""Very small runs for the tests of the trainer."""

from __future__ import annotations

import hashlib
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

from factordiff.training.settings import TrainingSettings
from factordiff.training.trainer import Trainer
from tests.training.synthetic import Flips

NETWORK = {"layout": [3, 3], "width": 16, "context": 12, "encoder": 4, "cycles": [1, 1], "latents": 4}
SETTINGS = TrainingSettings(
    preset="test",
    network=NETWORK,
    batch=6,
    max_steps=12,
    warmup=3,
    decay_from=3,
    lr=5e-3,
    lr_rest=3e-3,
    ema=0.9,
    check_every=5,
    validation_items=8,
    log_every=1,
    save_seconds=0.0,
    compile="none",
)


def trainer(out: Path | None = None, resume: bool = False, source: Any = None, **changes: Any) -> Trainer:
    settings = replace(SETTINGS, **{key: value for key, value in changes.items() if key in vars(SETTINGS)})
    others = {key: value for key, value in changes.items() if key not in vars(SETTINGS)}
    return Trainer(settings, source or Flips(side=3), out=out, resume=resume, **others)


def digest(run: Trainer) -> str:
    """The sha256 of everything that training determines: weights, optimizers, averages, counters."""
    state = hashlib.sha256()
    for name, tensor in sorted(run.step.state().items()):
        state.update(name.encode())
        state.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return state.hexdigest()


class StopAt:
    """An observer that asks for an end at a step, as the operating system would."""

    def __init__(self, step: int) -> None:
        self.step = step

    def __call__(self, event: dict[str, Any]) -> None:
        if event["event"] == "log" and event["step"] == self.step:
            os.kill(os.getpid(), signal.SIGTERM)
