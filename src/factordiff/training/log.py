"""What a run reports, as JSON lines and for TensorBoard."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from factordiff.errors import FileError, MissingDependency
from factordiff.files import write_whole

Event = dict[str, Any]
Observer = Callable[[Event], None]


def read_log(path: Path) -> list[Event]:
    """The events of a log; a last line that a kill cut off is left out."""
    events = []
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                events.append(json.loads(line))
            except ValueError:
                break
    return events


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
                if (
                    event["event"] == "save"
                ):  # a checkpoint outlives the machine, and so must the log of its steps
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
