"""The command line: one file per verb, each imported only when it is called."""

from __future__ import annotations

from factordiff.cli import (  # noqa: F401
    bench,
    data,
    data_more,
    demo,
    diagnose,
    eval,
    experts,
    fit,
    infill,
    play,
    reproduce,
    show,
    solve,
    train,
    worlds,
)
from factordiff.cli.app import main

__all__ = ["main"]
