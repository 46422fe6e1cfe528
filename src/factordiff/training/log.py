"""What a run reports: as JSON lines, for TensorBoard, and as a picture."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from factordiff.errors import CheckpointError, FileError, InvalidInput, MissingDependency
from factordiff.files import write_whole
from factordiff.pictures import png
from factordiff.schema.json_file import check_regular, parse_object

Event = dict[str, Any]
Observer = Callable[[Event], None]


def read_log(path: Path) -> list[Event]:
    """The events of a log, up to the first line that is none: a kill may have cut it off."""
    events: list[Event] = []
    if not path.exists():
        return events
    try:
        check_regular(path)
        text = path.read_bytes().decode(errors="replace")
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error
    for line in text.splitlines():
        try:
            event = parse_object(line)
        except InvalidInput:
            break
        if not _is_event(event):
            break
        events.append(event)
    return events


def _is_event(event: Event) -> bool:
    """Whether it has a kind and a step, and nothing but texts and numbers; a loss is a number, perhaps not finite."""
    kinds = (str, int, float)
    return (
        isinstance(event.get("event"), str)
        and type(event.get("step")) is int
        and all(isinstance(value, kinds) for value in event.values())
        and not isinstance(event.get("loss", 0.0), str)
        and ("loss" in event or event["event"] not in ("log", "check"))
    )


class JsonLines:
    """Appends each event as one line of JSON; what a save reports is on the disk before the run goes on."""

    def __init__(self, path: Path, from_step: int) -> None:
        self.path = path
        # What a killed run logged after its last checkpoint happens again: keep only what came before.
        kept = [event for event in read_log(path) if event.get("step", 0) <= from_step]
        write_whole(path, "".join(json.dumps(event) + "\n" for event in kept).encode())

    def __call__(self, event: Event) -> None:
        """Write one event."""
        try:
            with open(self.path, "a") as file:
                file.write(json.dumps(event) + "\n")
                # A checkpoint outlives the machine, and so must the log of its steps.
                if event["event"] == "save":
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            raise FileError(f"{self.path}: cannot be written ({error.strerror})") from error


class TensorBoard:
    """Sends the numbers of each event to TensorBoard."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingDependency(
                "tensorboard: install factordiff[tensorboard] to use --tensorboard"
            ) from error
        self._writer = SummaryWriter(str(folder))

    def __call__(self, event: Event) -> None:
        """Write one event's numbers."""
        for name, value in event.items():
            if name != "step" and isinstance(value, int | float):
                self._writer.add_scalar(f"{event['event']}/{name}", value, event["step"])
        if event["event"] == "end":
            self._writer.close()


def draw_curves(log: Path, picture: Path) -> None:
    """Loss over the steps (training and validation) and accuracies, as a PNG."""
    from matplotlib.figure import Figure

    events = read_log(log)
    steps = [event for event in events if event["event"] == "log"]
    checks = [event for event in events if event["event"] == "check"]
    figure = Figure(figsize=(10, 4), layout="constrained")
    loss, accuracy = figure.subplots(1, 2)
    loss.plot([e["step"] for e in steps], [e["loss"] for e in steps], lw=0.8, label="training")
    loss.plot([e["step"] for e in checks], [e["loss"] for e in checks], marker=".", label="validation")
    if any(event["loss"] > 0 for event in [*steps, *checks]):
        loss.set_yscale("log")
    loss.set(xlabel="step", ylabel="loss")
    for name in ("pixel", "exact", "occupancy", "given_foreground", "right_at_15", "right_at_50"):
        shown = [e for e in checks if name in e]
        if shown:
            accuracy.plot([e["step"] for e in shown], [100 * e[name] for e in shown], marker=".", label=name)
    accuracy.set(xlabel="step", ylabel="%", ylim=(0, 101))
    for axes in (loss, accuracy):
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    write_whole(picture, png(figure, tight=False))
