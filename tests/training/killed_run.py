"""A small run that is killed at a chosen moment; run as `python -m tests.training.killed_run OUT MOMENT`.

MOMENT is `never`, `time:SECONDS` after the run began, or `save:COUNT:POINT`: inside the COUNT-th file that is
written, at one of five points. The kill is a real SIGKILL. Prints the digest of the state at the end.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import torch

from factordiff import files as written
from tests.training.runs import digest, trainer

POINTS = ("open", "half", "written", "synced", "renamed")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_inside_a_save(count: int, point: str) -> None:
    """Replace the system calls of `write_whole` by ones that kill the process in the middle."""
    files = 0
    plain_open, plain_fsync, plain_replace = open, os.fsync, os.replace

    class HalfWritten:
        def __init__(self, file: Any) -> None:
            self.file = file

        def __enter__(self) -> HalfWritten:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, data: bytes) -> None:
            if files == count and point == "half":
                self.file.write(data[: len(data) // 2])
                self.file.flush()
                die()
            self.file.write(data)

        def flush(self) -> None:
            self.file.flush()

        def fileno(self) -> int:
            return int(self.file.fileno())

    def killing_open(path: Any, mode: str = "r", *rest: Any) -> Any:
        nonlocal files
        file = plain_open(path, mode, *rest)
        if mode != "xb":
            return file
        files += 1
        if files == count and point == "open":
            die()
        return HalfWritten(file)

    def killing_fsync(descriptor: int) -> None:
        if files == count and point == "written":
            die()
        plain_fsync(descriptor)
        if files == count and point == "synced":
            die()

    def killing_replace(*paths: Any) -> None:
        plain_replace(*paths)
        if files == count and point == "renamed":
            die()

    written.open = killing_open  # type: ignore[attr-defined]
    written.os.fsync, written.os.replace = killing_fsync, killing_replace  # type: ignore[assignment]


def main() -> None:
    torch.set_num_threads(1)
    out, moment = Path(sys.argv[1]), sys.argv[2].split(":")
    run = trainer(out, resume=True, max_steps=int(sys.argv[3]))
    if moment[0] == "save":
        die_inside_a_save(int(moment[1]), moment[2])
    elif moment[0] == "time":
        threading.Timer(float(moment[1]), die).start()
    run.run()
    print(digest(run))
    sys.stdout.flush()
    os._exit(0)  # not even a timer that is still running


if __name__ == "__main__":
    main()
