"""A bound: what one value may be, and the sentence about one that is not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NoReturn

from factordiff.errors import InvalidInput

LONGEST_SHOWN = 60  # characters of a wrong value in a sentence


class Bound(ABC):
    """What a value may be: `read` gives it as the program takes it, or refuses it by name."""

    @property
    @abstractmethod
    def expected(self) -> str:
        """What is expected, in words."""

    @abstractmethod
    def read(self, value: Any, name: str) -> Any:
        """The value as the program takes it."""

    def refuse(self, value: Any, name: str) -> NoReturn:
        """Say what was expected and what came."""
        raise InvalidInput(f"{name}: expected {self.expected}, got {shown(value)}")


def shown(value: Any, longest: int = LONGEST_SHOWN) -> str:
    """A value as a sentence can show it: one line, never long.

    >>> shown("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a whole number of thousands of digits, a list of lists of lists
        return "something too large to show"
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
