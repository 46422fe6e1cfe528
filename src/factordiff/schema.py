"""What a value that comes from a file may be, declared once: in the annotation of the field that holds it.

`width: Annotated[int, Whole(1, 4096)]` is checked by `check_fields` when the object is made, whoever makes it, and
`read_fields` makes one from JSON that a stranger wrote. What does not fit is an `InvalidInput` that names the field;
the reader of a file puts the file's name before it.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn, TypeVar, get_type_hints

from factordiff.errors import InvalidInput

LONGEST_SHOWN = 60  # characters of a wrong value in a sentence
LARGEST_COUNT = 2**53 - 1  # the largest whole number that every reader of JSON keeps

Made = TypeVar("Made")


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
    """A finite number."""

    least: float = -math.inf
    most: float = math.inf

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        if self.most < math.inf:
            return f"a number from {self.least:g} to {self.most:g}"
        return "a finite number" if self.least == -math.inf else f"a finite number of at least {self.least:g}"

    def read(self, value: Any, name: str) -> float:
        """The number; a whole one that no float can hold is refused."""
        if type(value) not in (int, float) or not self.least <= value <= self.most:
            self.refuse(value, name)
        try:
            number = float(value)
        except OverflowError:
            self.refuse(value, name)
        return number if math.isfinite(number) else self.refuse(value, name)


@dataclass(frozen=True)
class Flag(Bound):
    """True or false."""

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        return "true or false"

    def read(self, value: Any, name: str) -> bool:
        """The flag."""
        return value if isinstance(value, bool) else self.refuse(value, name)


@dataclass(frozen=True)
class Text(Bound):
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
class Pair(Bound):
    """Two values of one kind: a list in JSON, a tuple here."""

    each: Bound

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        return f"a list of two, each {self.each.expected}"

    def read(self, value: Any, name: str) -> tuple[Any, Any]:
        """The two as a tuple."""
        if not isinstance(value, list | tuple) or len(value) != 2:
            self.refuse(value, name)
        return self.each.read(value[0], name), self.each.read(value[1], name)


@dataclass(frozen=True)
class Maybe(Bound):
    """A value, or nothing (null)."""

    bound: Bound

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        return f"{self.bound.expected}, or null"

    def read(self, value: Any, name: str) -> Any:
        """The value or None."""
        return None if value is None else self.bound.read(value, name)


@dataclass(frozen=True)
class Listed(Bound):
    """A list of values of one kind, as a tuple."""

    each: Bound
    most: int

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        return f"a list of at most {self.most:,}"

    def read(self, value: Any, name: str) -> tuple[Any, ...]:
        """The values as a tuple."""
        if not isinstance(value, list | tuple) or len(value) > self.most:
            self.refuse(value, name)
        return tuple(self.each.read(one, f"{name}, number {place}") for place, one in enumerate(value, 1))


@dataclass(frozen=True)
class Named(Bound):
    """An object from names to values of one kind, or of any kind."""

    each: Bound | None = None

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        return "an object"

    def read(self, value: Any, name: str) -> dict[str, Any]:
        """The object."""
        if not isinstance(value, Mapping):
            self.refuse(value, name)
        if self.each is None:
            return dict(value)
        return {key: self.each.read(one, f"{name}, {shown(key)}") for key, one in value.items()}


@cache
def bounds_of(kind: type) -> dict[str, Bound]:
    """The bound of each field of a dataclass that declares one."""
    hints = get_type_hints(kind, include_extras=True)
    declared = {
        field.name: [one for one in getattr(hints[field.name], "__metadata__", ()) if isinstance(one, Bound)]
        for field in dataclasses.fields(kind)
    }
    return {name: found[0] for name, found in declared.items() if found}


def check_fields(made: Any) -> None:
    """Check a frozen dataclass against its declared bounds; lists become tuples. For `__post_init__`."""
    for name, bound in bounds_of(type(made)).items():  # type: ignore[arg-type]
        object.__setattr__(made, name, bound.read(getattr(made, name), name))


def read_fields(kind: type[Made], content: Any, name: str = "") -> Made:
    """A dataclass from a JSON object: every field within its bounds, none missing, none unknown."""
    before = f"{name}, " if name else ""
    if not isinstance(content, Mapping):
        raise InvalidInput(f"{name or 'content'}: expected an object, got {shown(content)}")
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(map(str, content.keys() - fields.keys()))
    if unknown:
        raise InvalidInput(f"{before}{shown(unknown[0])}: unknown; expected {', '.join(fields)}")
    for field in fields.values():
        optional = (
            field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        )
        if field.name not in content and not optional:
            raise InvalidInput(f"{before}{field.name}: missing")
    bounds = bounds_of(kind)  # type: ignore[arg-type]
    return kind(
        **{
            key: bounds[key].read(value, f"{before}{key}") if key in bounds else value
            for key, value in content.items()
        }
    )


def shown(value: Any) -> str:
    """A value as a sentence can show it: one line, never long.

    >>> shown("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a whole number of thousands of digits, a list of lists of lists
        return "something too large to show"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."
