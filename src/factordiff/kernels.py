"""Triton for our own GPU kernels: usable where it is installed, importable everywhere."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

triton: Any = import_module("triton") if find_spec("triton") else None
tl: Any = import_module("triton.language") if triton else None
jit: Any = triton.jit if triton else (lambda function: function)
