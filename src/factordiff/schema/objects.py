"""Values made of values: pairs, lists, objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from factordiff.errors import InvalidInput
from factordiff.schema.bound import Bound, shown


@dataclass(frozen=True)
class Two(Bound):
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

    expected = "an object"

    def read(self, value: Any, name: str) -> dict[str, Any]:
        """The object."""
        if not isinstance(value, Mapping):
            self.refuse(value, name)
        if self.each is None:
            return dict(value)
        return {key: self.each.read(one, f"{name}, {shown(key)}") for key, one in value.items()}


@dataclass(frozen=True)
class Parts(Bound):
    """An object of certain parts, each of its own kind; `more` says whether it may have others."""

    bounds: Mapping[str, Bound]
    optional: tuple[str, ...] = ()
    more: bool = False

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        return f"an object of {', '.join(self.bounds)}"

    def read(self, value: Any, name: str) -> dict[str, Any]:
        """The object, part by part; what it has beside them as it is."""
        if not isinstance(value, Mapping):
            self.refuse(value, name)
        before, read = f"{name}, " if name else "", dict(value)
        for part, bound in self.bounds.items():
            if part in value:
                read[part] = bound.read(value[part], f"{before}{part}" if name else part)
            elif part not in self.optional:
                raise InvalidInput(f"{before}{part}: missing")
        if not self.more and len(read) > len(self.bounds.keys() & read.keys()):
            unknown = min(map(str, read.keys() - self.bounds.keys()))
            raise InvalidInput(f"{before}{shown(unknown)}: unknown; expected {', '.join(self.bounds)}")
        return read
