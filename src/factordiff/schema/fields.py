"""Dataclasses whose fields declare what they may be: `width: Annotated[int, Whole(1, 4096)]`.

`check_fields` holds for every object, whoever makes it; `read_fields` makes one from JSON that a stranger wrote. What
does not fit is an `InvalidInput` that names the field; the reader of a file puts the file's name before it.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, TypeVar, get_type_hints

from factordiff.schema.bound import Bound
from factordiff.schema.objects import Parts
from factordiff.schema.values import Anything

Made = TypeVar("Made")


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


@dataclasses.dataclass(frozen=True)
class Fields(Bound):
    """An object that is read into a dataclass."""

    kind: type

    expected = "an object"

    def read(self, value: Any, name: str) -> Any:
        """The dataclass."""
        return read_fields(self.kind, value, name)


def read_fields(kind: type[Made], content: Any, name: str = "") -> Made:
    """A dataclass from a JSON object: every field within its bounds, none missing, none unknown."""
    declared = bounds_of(kind)  # type: ignore[arg-type]
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    optional = tuple(
        one.name
        for one in fields
        if one.default is not dataclasses.MISSING or one.default_factory is not dataclasses.MISSING
    )
    parts = Parts({one.name: declared.get(one.name, Anything()) for one in fields}, optional)
    return kind(**parts.read(content, name))
