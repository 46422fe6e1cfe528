"""The command line: one file per verb, each imported only when it is called."""

from __future__ import annotations

from factordiff.cli import bench as _bench  # noqa: F401
from factordiff.cli import data as _data  # noqa: F401
from factordiff.cli import data_fetch as _data_fetch  # noqa: F401
from factordiff.cli import data_more as _data_more  # noqa: F401
from factordiff.cli import demo as _demo  # noqa: F401
from factordiff.cli import diagnose as _diagnose  # noqa: F401
from factordiff.cli import eval as _eval  # noqa: F401
from factordiff.cli import experts as _experts  # noqa: F401
from factordiff.cli import fit as _fit  # noqa: F401
from factordiff.cli import infill as _infill  # noqa: F401
from factordiff.cli import play as _play  # noqa: F401
from factordiff.cli import reproduce as _reproduce  # noqa: F401
from factordiff.cli import show as _show  # noqa: F401
from factordiff.cli import solve as _solve  # noqa: F401
from factordiff.cli import train as _train  # noqa: F401
from factordiff.cli import worlds as _worlds  # noqa: F401
from factordiff.cli.app import main

__all__ = ["main"]
