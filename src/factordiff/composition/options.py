"""What a person may set: every option of every method is declared once, beside the method that takes it.

Flags, forms, schemas, checks and the table in the docs are all made of these declarations.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from factordiff.composition.factor_names import EXAMPLES
from factordiff.composition.factors import as_factors
from factordiff.errors import InvalidInput
from factordiff.schema.bound import shown
from factordiff.tensors import as_number, as_tensor

Kind = Literal["number", "whole", "choice", "factors", "router"]
LARGEST = 1e30  # far inside single precision, in which experts answer; its inverse is the smallest


@dataclass(frozen=True)
class Option:
    """One setting: its name, kind, bounds, and what it is when nobody says anything.

    `per_expert`: a number for each expert, in order or by name; `usual` is that of an expert who is not named.
    `above`: the least number itself is refused too.
    """

    name: str
    help: str
    kind: Kind = "number"
    default: Any = None
    least: float = 0.0
    most: float = math.inf
    above: bool = False
    choices: tuple[str, ...] = ()
    per_expert: bool = False
    usual: float = 1.0
    argument: str = ""  # what the composition calls it, if not by this name

    def check(self, given: Any, names: Sequence[str]) -> Any:
        """The value as a method takes it, or a sentence about what is wrong; `names` are the experts', in order."""
        if given is None:
            return self.default
        if self.per_expert:
            return self._of_experts(given, names)
        if self.kind == "choice":
            if given not in self.choices:
                raise InvalidInput(
                    f"{self.name}: expected one of {', '.join(self.choices)}, got {shown(given)}"
                )
            return given
        if self.kind == "factors":
            # A name, a function, or labels; what they mean depends on the cells.
            return given if isinstance(given, str) or callable(given) else as_factors(self.name, given)
        if self.kind == "router":
            return str(given) if isinstance(given, Path) else given  # a folder, or a router itself
        return self._number(given, "")

    def read(self, text: str) -> Any:
        """The value that a person typed: `0.5`, or `1,0.25`, or `trans-occ=0.25`; not checked yet."""
        try:
            if not self.per_expert:
                return {"number": float, "whole": int}.get(self.kind, str)(text)
            parts = [part.strip() for part in text.split(",") if part.strip()]
            named = [part.rpartition("=") for part in parts]
            if all(sign for _, sign, _ in named):
                return {name.strip(): float(number) for name, _, number in named}
            return [float(part) for part in parts]
        except ValueError:
            raise InvalidInput(f"{self.name}: expected {self.spelled}, got {text!r}") from None

    @property
    def spelled(self) -> str:
        """How it is written on a command line."""
        if self.per_expert:
            return "a number for each expert, or NAME=NUMBER for some"
        what = {"number": "a number", "whole": "a whole number", "factors": "a name", "router": "a folder"}
        return what.get(self.kind, "|".join(self.choices))

    def _of_experts(self, given: Any, names: Sequence[str]) -> tuple[float, ...]:
        if isinstance(given, np.ndarray | Tensor):
            given = as_tensor(self.name, given).tolist()
        if isinstance(given, str) or not isinstance(given, Mapping | Sequence):
            raise InvalidInput(
                f"{self.name}: expected a number for each expert, or numbers by name, got {shown(given)}"
            )
        if isinstance(given, Mapping):
            unknown = sorted(set(given) - set(names))
            if unknown:
                raise InvalidInput(
                    f"{self.name}: no expert is called {shown(unknown[0])}; expected {', '.join(names)}"
                )
            given = [given.get(name, self.usual) for name in names]
        if len(given) != len(names):
            raise InvalidInput(
                f"{self.name}: expected {len(names)} numbers, one per expert, got {len(given)}"
            )
        numbers = zip(names, given, strict=True)
        return tuple(float(self._number(number, f" for {name}")) for name, number in numbers)

    def _number(self, given: Any, whose: str) -> float | int:
        given = as_number(given)
        allowed = int if self.kind == "whole" else int | float
        within = (
            isinstance(given, allowed)
            and not isinstance(given, bool)
            and abs(given) <= sys.float_info.max  # which NaN is not
            and (self.least < given if self.above else self.least <= given)
            and given <= self.most
        )
        if not within:
            raise InvalidInput(f"{self.name}: expected {self._bounds()}{whose}, got {shown(given)}")
        if self.kind == "whole":
            return given
        check_sizes(self.name, [float(given)], whose)
        return float(given)

    def _bounds(self) -> str:
        what = "a whole number" if self.kind == "whole" else "a finite number"
        if self.most < math.inf:
            return f"{what} from {self.least:g} to {self.most:g}"
        if self.above and self.least == 0:
            return what.replace("finite", "finite positive")
        return f"{what} of at least {self.least:g}"


def check_sizes(name: str, numbers: Sequence[float], whose: str = "") -> None:
    """Refuse finite numbers that single precision, or what is computed with them there, takes for 0 or infinity."""
    for number in numbers:
        if number != 0 and not 1 / LARGEST <= abs(number) <= LARGEST:
            raise InvalidInput(
                f"{name}: expected 0 or a size between {1 / LARGEST:g} and {LARGEST:g}{whose}, got {number:g}"
            )


# Options that several methods take.
WEIGHTS = Option("weights", "Weights of the mixture.", per_expert=True)
BETA = Option("beta", "Exponents of the product.", per_expert=True)
TEMPERATURES = Option("temperatures", "Routing temperatures.", per_expert=True, above=True)
FACTORS = Option(
    "factors", f"{', '.join(EXAMPLES)} (evidence alone), or labels.", kind="factors", default="pixel"
)
BIAS = Option("bias", "Added to the densities.", per_expert=True, least=-math.inf, usual=0.0)
PARTICLES = Option("particles", "Particles of each item.", kind="whole", default=8, least=1.0, most=100_000.0)
RESAMPLING = Option("resampling", "Resample below this share of effective particles.", default=0.5, most=1.0)
SELECTION = Option(
    "selection",
    "Which particle is the answer.",
    kind="choice",
    default="highest-target",
    choices=("draw", "highest-target", "vote", "first"),
)
