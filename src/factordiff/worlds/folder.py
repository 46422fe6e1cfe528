"""Where a comparison's records go, and what was fitted for them, so that an interrupted one goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factordiff.errors import DataError
from factordiff.files import write_whole
from factordiff.fitting.fit_folder import FitFolder
from factordiff.report.records import SUFFIX

ROUTER, FIT, UNFINISHED = ".router", ".fit.json", ".fitting"


@dataclass(frozen=True)
class Folder:
    """A folder, and what its records are of: another world's are not taken for this one's."""

    path: Path
    about: dict[str, Any]

    def file(self, label: str) -> Path:
        """The file of a row."""
        return self._of_row(label, SUFFIX)

    def router(self, label: str) -> Path:
        """The folder of a row's fitted router."""
        return self._of_row(label, ROUTER)

    def workplace(self, label: str, header: Mapping[str, Any]) -> FitFolder:
        """Where a row's fit keeps what it has worked out until it is done."""
        return FitFolder(self._of_row(label, UNFINISHED), header)

    def note(self, label: str, header: Mapping[str, Any], fit: Mapping[str, Any]) -> None:
        """Write down what was fitted for a row."""
        self.path.mkdir(parents=True, exist_ok=True)
        content = {"header": header, "fit": fit}
        write_whole(self._of_row(label, FIT), (json.dumps(content) + "\n").encode())

    def noted(self, label: str, header: Mapping[str, Any]) -> dict[str, Any] | None:
        """What was fitted for a row of this header, if it was."""
        path = self._of_row(label, FIT)
        if not path.exists():
            return None
        try:
            content = dict(json.loads(path.read_text()))
            fit = dict(content["fit"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}: damaged ({error}); remove it and the records beside it") from None
        return fit if content.get("header") == json.loads(json.dumps(header)) else None

    def _of_row(self, label: str, suffix: str) -> Path:
        return self.path / f"{re.sub(r'[^A-Za-z0-9.+=-]+', '-', label).strip('-')}{suffix}"
