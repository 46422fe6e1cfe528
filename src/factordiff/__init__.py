"""FactorDiff: combine frozen discrete-diffusion experts at inference time, factor by factor.

The public list, by name, is the file of types beside this one: type checkers and this file read the same lines. Each
name is imported when it is first used, so that `import factordiff` is quick.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

_LISTED = ast.parse(Path(__file__).with_suffix(".pyi").read_text()).body
_HOME_OF = {
    alias.name: node.module or ""
    for node in _LISTED
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}

__version__ = "0.1.0"
__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'factordiff' has no attribute {name!r}")
    thing = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = thing  # looked up only once
    return thing


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
