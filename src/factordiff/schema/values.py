"""Single values: numbers, flags, texts, names."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from factordiff.schema.bound import Bound

LARGEST_COUNT = 2**53 - 1  # the largest whole number that every reader of JSON keeps


@dataclass(frozen=True)
class Whole(Bound):
    """A whole number; true and false are none."""

    least: int = 0
    most: int = LARGEST_COUNT

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        if self.most == LARGEST_COUNT:
            return f"a whole number of at least {self.least:,}"
        return f"a whole number from {self.least:,} to {self.most:,}"

    def read(self, value: Any, name: str) -> int:
        """The number."""
        if type(value) is not int or not self.least <= value <= self.most:
            self.refuse(value, name)
        return value


@dataclass(frozen=True)
class Real(Bound):
    """A number, finite unless told otherwise."""

    least: float = -math.inf
    most: float = math.inf
    finite: bool = True

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        if not self.finite:
            return "a number"
        if self.most < math.inf:
            return f"a number from {self.least:g} to {self.most:g}"
        return "a finite number" if self.least == -math.inf else f"a finite number of at least {self.least:g}"

    def read(self, value: Any, name: str) -> float:
        """The number; a whole one that no float can hold is refused."""
        if type(value) not in (int, float):
            self.refuse(value, name)
        if self.finite and not self.least <= value <= self.most:
            self.refuse(value, name)
        try:
            number = float(value)
        except OverflowError:
            self.refuse(value, name)
        return number if not self.finite or math.isfinite(number) else self.refuse(value, name)


@dataclass(frozen=True)
class Flag(Bound):
    """True or false."""

    expected = "true or false"

    def read(self, value: Any, name: str) -> bool:
        """The flag."""
        return value if isinstance(value, bool) else self.refuse(value, name)


@dataclass(frozen=True)
class String(Bound):
    """A text that is not too long."""

    longest: int = 1_000

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        return f"a text of at most {self.longest:,} characters"

    def read(self, value: Any, name: str) -> str:
        """The text."""
        return value if isinstance(value, str) and len(value) <= self.longest else self.refuse(value, name)


@dataclass(frozen=True)
class Choice(Bound):
    """One of some names."""

    names: tuple[str, ...]

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        return f"one of {', '.join(self.names)}"

    def read(self, value: Any, name: str) -> str:
        """The name."""
        return value if isinstance(value, str) and value in self.names else self.refuse(value, name)


@dataclass(frozen=True)
class Anything(Bound):
    """No bound at all."""

    expected = "anything"

    def read(self, value: Any, name: str) -> Any:
        """The value as it is."""
        return value
