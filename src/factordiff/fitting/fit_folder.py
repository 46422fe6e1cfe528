"""Where a fit keeps what it has worked out, so that it can be stopped anywhere and go on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from factordiff.errors import CheckpointError, InvalidInput
from factordiff.files import write_whole
from factordiff.schema.json_file import read_object

IDENTITY, TRIALS = "identity.json", "trials.json"


class FitFolder:
    """A folder of one fit. One of another fit is refused and left alone."""

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.folder = folder
        wanted, file = json.loads(json.dumps(identity)), folder / IDENTITY
        if file.exists():
            there = self._read(file)
            for key in sorted(wanted.keys() | there.keys()):
                if there.get(key) != wanted.get(key):
                    raise CheckpointError(
                        f"{folder}: an interrupted fit lies here with {key} {there.get(key)!r}, now it is "
                        f"{wanted.get(key)!r}; go on with the same settings, remove the folder, or choose another"
                    )
        else:
            write_whole(file, json.dumps(wanted, indent=2).encode())

    def __repr__(self) -> str:
        return f"FitFolder({self.folder})"

    def trials(self) -> dict[str, Any]:
        """What came of what was tried before, by setting."""
        file = self.folder / TRIALS
        return self._read(file) if file.exists() else {}

    def keep(self, trials: Mapping[str, Any]) -> None:
        """Write down what was tried, and what came of it."""
        write_whole(self.folder / TRIALS, json.dumps(trials).encode())

    def remove(self) -> None:
        """Nothing is left to go on with."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def _read(file: Path) -> dict[str, Any]:
        try:
            return read_object(file)
        except (OSError, InvalidInput) as error:
            raise CheckpointError(f"{file}: cannot be read ({error}); remove its folder") from error
