"""The site of the docs, built in this process with every connection refused."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from sphinx.cmd.build import main

ROOT = Path(__file__).parents[1]


def build(out: Path, source: Path = ROOT) -> list[str]:
    """Build the site of a folder's pages with the settings of `make docs`; returns the warnings."""

    def refuse(*_: object) -> None:
        raise AssertionError("the docs ask another machine for something")

    warnings = out.with_suffix(".warnings")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        settings = ["-c", str(ROOT / "docs"), "-d", str(out.with_suffix(".doctrees")), "-w", str(warnings)]
        done = main(["-q", "--fail-on-warning", "--keep-going", *settings, str(source), str(out)])
    told = warnings.read_text().splitlines()
    assert (done == 0) == (not told)
    return told
