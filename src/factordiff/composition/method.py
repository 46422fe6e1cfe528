"""Methods by name: a composition, what may be set about it, and how it is decoded.

A method is declared where its composition is defined, with `declare`; nothing else has to know it. A module of one's
own that does the same adds a method for `compose` once it is imported; one that an installed package names among its
entry points is found by the command line and the page too (`own_modules`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Literal, TypeVar

from torch import Tensor

from factordiff import composition as package
from factordiff.composition.composition import Composition
from factordiff.composition.factors import as_labels
from factordiff.composition.options import RESAMPLING, Option
from factordiff.errors import InvalidInput, Unavailable
from factordiff.own_modules import import_packages

Selection = Literal["draw", "highest-target", "vote", "whole-vote", "first"]
# Where an item's particles go: all by the reveal rule, each in an order of its own, each by an expert of its own and
# relayed, or in runs of each expert alone, which are voted on together.
Paths = Literal["alike", "orders", "relay", "alone"]
Build = TypeVar("Build", bound=Callable[..., Composition])

# Options that say how a method is decoded; the others are arguments of its composition.
DECODING = ("particles", "selection", "resampling", "every")


@dataclass(frozen=True)
class Method:
    """A composition, decoded by argmax unless it needs drawn values."""

    name: str
    composition: Composition
    temperature: float = 0.0
    particles: int = 1
    selection: Selection = "first"
    resampling: float = RESAMPLING.default
    paths: Paths = "alike"
    every: int = 1  # steps between relays


@dataclass(frozen=True)
class MethodSpec:
    """What is declared about a method."""

    name: str
    build: Callable[..., Composition]
    options: tuple[Option, ...] = ()
    fewest: int = 2  # experts
    most: int | None = None
    drawn: bool = False  # whether values are drawn, not the likeliest taken
    selection: Selection = "first"  # unless it is an option
    paths: Paths = "alike"  # a relay has a particle for each expert
    objectives: bool = False  # whether `build` is told what each expert was trained on
    reveal: str = "fast"  # the reveal rule that suits it
    overlapping: bool = False  # whether its factors may overlap: then `partition` may be a kernel

    @property
    def summary(self) -> str:
        """The first line of what is written about it."""
        return (self.build.__doc__ or "").strip().split("\n")[0]

    def option(self, name: str) -> Option:
        """Its option of that name; one it does not take is refused with those that it takes."""
        for option in self.options:
            if option.name == name:
                return option
        takes = ", ".join(option.name for option in self.options) or "none"
        raise InvalidInput(f"{name}: the method {self.name!r} does not take it; its options: {takes}")

    @property
    def factors(self) -> str:
        """The name of its factors when nobody says anything; cell by cell for methods that do not take any."""
        return str(next((option.default for option in self.options if option.kind == "factors"), "pixel"))

    def check(self, given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """What was given, as the method takes it; wrong names, lengths and numbers are refused before anything runs."""
        if not self.fewest <= len(names) <= (self.most or len(names)):
            wanted = {(1, 1): "one expert", (2, 2): "two experts"}.get((self.fewest, self.most or 0))
            wanted = wanted or f"at least {self.fewest} experts"
            raise InvalidInput(f"method: {self.name!r} takes {wanted}, got {len(names)}; name another method")
        values = {name: self.option(name).check(value, names) for name, value in given.items()}
        if isinstance(values.get("factors"), Tensor) and not self.overlapping:
            as_labels("factors", values["factors"])  # refuses the kernel of factors that overlap
        return values

    def method(self, values: Mapping[str, Any], objectives: Sequence[str], partition: Any = None) -> Method:
        """The method with checked values; `partition` is what its factors mean for the cells at hand."""
        settings = {
            option.argument or option.name: values.get(option.name, option.default) for option in self.options
        }
        decoding = {name: settings.pop(name) for name in DECODING if name in settings}
        if "factors" in settings:
            del settings["factors"]
            settings["partition"] = partition
        if self.objectives:
            settings["objectives"] = objectives
        decoding = {"selection": self.selection, "paths": self.paths, **decoding}
        if self.paths == "relay":
            decoding["particles"] = len(objectives)
        temperature = 1.0 if self.drawn else 0.0
        return Method(self.name, self.build(**settings), temperature, **decoding)


_SPECS: dict[str, MethodSpec] = {}


def declare(name: str, *options: Option, **about: Any) -> Callable[[Build], Build]:
    """Make a composition (or a function that gives one) known under a name; `about` are fields of `MethodSpec`.

    Its options are passed to it by name, `factors` as `partition`.
    """

    def register(build: Build) -> Build:
        homes = {build.__module__, _SPECS[name].build.__module__ if name in _SPECS else build.__module__}
        if len(homes) > 1 and any(home.startswith(f"{package.__name__}.") for home in homes):
            raise InvalidInput(
                f"method: {name!r} is declared in {' and in '.join(sorted(homes))}; give yours another name"
            )
        _SPECS[name] = MethodSpec(name, build, options, **about)
        return build

    return register


def specs() -> dict[str, MethodSpec]:
    """Every method there is, by name."""
    _import_all()
    return dict(sorted(_SPECS.items()))


def spec(name: str) -> MethodSpec:
    """The method of that name."""
    known = specs()
    if name not in known:
        raise Unavailable(f"method: expected one of {', '.join(known)}, got {name!r}")
    return known[name]


@cache
def _import_all() -> None:
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    import_packages()
