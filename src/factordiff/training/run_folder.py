"""A run's folder, readable at any time: checkpoints, the log, the weights, their snapshots, the curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from factordiff.errors import CheckpointError, InvalidInput, Unavailable
from factordiff.experts.registry import SNAPSHOTS, WEIGHTS
from factordiff.locks import Lock
from factordiff.networks.config_file import STARTED_FROM
from factordiff.networks.network import Network
from factordiff.networks.store import configure, save_expert
from factordiff.schema.bound import shown
from factordiff.schema.objects import Maybe, Named, Parts
from factordiff.schema.values import String, Whole
from factordiff.training import checkpoint
from factordiff.training.log import JsonLines, draw_curves
from factordiff.training.progress import Progress
from factordiff.training.settings import TrainingSettings

LOG, CURVES = "log.jsonl", "curves.png"
IDENTITY = Parts({"backbone": String(), "network": Named()}, optional=("backbone", "network"), more=True)


class RunFolder:
    """Where a run keeps itself, and who may go on in it: a run with the same identity.

    The weights are written before the checkpoint. So wherever a kill falls, beside a checkpoint there are whole
    weights, its own or those of the save that was under way, which the continued run computes again.
    """

    def __init__(self, path: Path, identity: dict[str, Any]) -> None:
        self.path, self.identity = path, identity
        self.lock = Lock.of_folder(path)

    def open(self, resume: bool) -> tuple[checkpoint.Checkpoint, list[str]] | None:
        """Make the folder ready; the checkpoint to go on from, and a sentence for each damaged one passed over."""
        self.lock.take()
        checkpoint.make_folder(self.path)
        found = checkpoint.latest(self.path)
        if found is None:
            return None
        if not resume:
            raise CheckpointError(
                f"{self.path}: there are checkpoints of an earlier run here; continue it with --resume "
                "or choose another folder with --out"
            )
        # A setting that came after the checkpoint had no effect on it, which is what defaults mean.
        saved = {
            name: value for name, value in TrainingSettings().identity().items() if name in self.identity
        }
        try:
            saved |= IDENTITY.read(found[0].run.get("identity"), "identity")
            saved["network"] = configure(saved["backbone"], saved["network"]).as_json()
        except (InvalidInput, Unavailable) as error:
            raise CheckpointError(
                f"{self.path}: the checkpoint does not say what run it is of ({error})"
            ) from error
        for name, value in saved.items():
            now = self.identity.get(name)
            if now != value:
                raise CheckpointError(
                    f"{self.path}: the checkpoint has {name} = {shown(value)}, this run {shown(now)}; "
                    "use the same settings and data, or another folder with --out"
                )
        return found

    def known(self, saved: checkpoint.Checkpoint) -> tuple[Progress, dict[str, Any] | None]:
        """What a checkpoint knows beside its tensors: how far the run is, and whose weights it began with."""
        try:
            Whole(0, 999_999_999).read(_number(saved.tensors.get("step")), "step")
            started = Maybe(STARTED_FROM).read(saved.run.get("started_from"), "started_from")
            return Progress.from_json(saved.run.get("progress")), started
        except InvalidInput as error:
            raise CheckpointError(
                f"{self.path}: the checkpoint does not say how far it is ({error})"
            ) from error

    def log(self, from_step: int) -> JsonLines:
        """The run's log, continued from that step."""
        return JsonLines(self.path / LOG, from_step)

    def save(
        self, step: int, saved: checkpoint.Checkpoint, best_step: int, expert: Network, about: dict[str, Any]
    ) -> None:
        """Write the weights for users, then the checkpoint; each file appears whole or not at all."""
        save_expert(expert, self.path / WEIGHTS, about)
        run = {"identity": self.identity, **saved.run}
        checkpoint.save(self.path, step, checkpoint.Checkpoint(saved.tensors, run, saved.best), best_step)

    def snapshot(self, step: int, expert: Network, about: dict[str, Any]) -> None:
        """Write the weights of a step into a folder that no later step touches."""
        save_expert(expert, self.path / SNAPSHOTS / str(step), about)

    def draw_curves(self) -> None:
        """Draw what the log says so far."""
        draw_curves(self.path / LOG, self.path / CURVES)


def _number(tensor: Tensor | None) -> Any:
    return tensor.item() if tensor is not None and tensor.numel() == 1 else tensor
