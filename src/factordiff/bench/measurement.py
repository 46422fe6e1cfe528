"""A line of the table of `bench`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Measurement:
    """One line of the table: what was measured, what it must be, and what it hopes to be."""

    what: str
    value: float
    unit: str
    must: str
    aim: str = ""
    details: dict[str, Any] | None = None
