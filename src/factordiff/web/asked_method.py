"""The part of a request that says who answers and how, and how any body is read: one sentence if it is wrong.

The options of the methods are fields of a request, made of the methods' own declarations.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from factordiff.arc.grid import LONGEST_SHOWN
from factordiff.arc.task_files import DuplicateKey, unique_keys
from factordiff.composition.factor_names import pattern
from factordiff.composition.method import MethodSpec, spec, specs
from factordiff.composition.options import Option
from factordiff.errors import InvalidInput
from factordiff.sampling.adaptive import Repaired
from factordiff.sampling.blocks import ByBlock
from factordiff.sampling.reveal import Ancestral, ByConfidence, RevealRule
from factordiff.sampling.rules import reveal_rule
from factordiff.schema.bound import shown
from factordiff.web.limits import API_VERSION, Limits

# A block may not be larger than the canvas, and its digits not so many that reading them takes long.
SIZE = "([1-9]|10)"  # a factor is no larger than the canvas
FACTORS = f"^({pattern(SIZE)})$"
CHOSEN_HERE = ("router", "other_experts")  # no client names a folder: it is the shipped router of the experts
WORK = ("particles", "runs", "orders")  # options that multiply what a solve costs
LARGEST_WHOLE = 2**53 - 1  # the largest whole number that JavaScript keeps

Number = Annotated[float, Field(allow_inf_nan=False)]
Model = TypeVar("Model", bound=BaseModel)
Request = TypeVar("Request", bound="AskedMethod")


class AskedMethod(BaseModel):
    """Who answers, and how. `with_options` adds the options of the methods and the bounds."""

    model_config = ConfigDict(extra="forbid", strict=True, ignored_types=(cached_property,))

    version: Literal[1] = API_VERSION  # type: ignore[assignment]
    experts: Annotated[list[str], Field(min_length=1, fail_fast=True)] | None = Field(
        None, description="Names from /about; ties go to the first; by default the first two."
    )
    method: str | None = None
    reveal: str | None = Field(
        None,
        max_length=40,
        description="fast, exact, or a rule with its number, as margin:0.9; by default what suits the method.",
    )
    seed: int = Field(0, ge=0, le=LARGEST_WHOLE)
    stream: bool = Field(True, description="False: one JSON object at the end.")
    detail: bool = Field(True, description="False: no distributions.")
    deadline: float = Field(60.0, ge=0.01, description="Seconds.")

    @property
    def names(self) -> tuple[str, ...]:
        """The experts, in tie order."""
        assert self.experts is not None, "whoever reads a request fills them in"
        return tuple(self.experts)

    @property
    def how(self) -> MethodSpec:
        """The method."""
        return spec(self.method or ("routing" if len(self.names) > 1 else "single"))

    @property
    def rule(self) -> RevealRule:
        """The reveal rule."""
        return reveal_rule(self.reveal or self.how.reveal)

    @property
    def options(self) -> dict[str, Any]:
        """The options that were given, checked by the method that takes them."""
        declared = {option.name for method in offered().values() for option in method.options}
        given = {
            name: value
            for name in type(self).model_fields
            if name in declared and (value := getattr(self, name)) is not None
        }
        return self.how.check(given, self.names)

    def check_method(self, known: Sequence[str], limits: Limits) -> None:
        """Fill in the experts; refuse those that are not `known`, too many steps, and options of other methods."""
        if self.experts is None:
            self.experts = list(known[:2])
        _check_experts(self.names, known, limits)
        if _steps(self.rule) > limits.steps:
            raise InvalidInput(f"reveal: expected at most {limits.steps} steps, got {self.reveal!r}")
        self.options  # noqa: B018 - refuses what the method does not take


def offered() -> dict[str, MethodSpec]:
    """The methods that a client may name, with the options that it may set."""
    return {
        name: replace(one, options=tuple(o for o in one.options if o.name not in CHOSEN_HERE))
        for name, one in specs().items()
    }


def with_options(base: type[Request], limits: Limits) -> type[Request]:
    """A request with the options of every method that is offered, within these limits."""
    return _with_options(base, limits, tuple(offered().values()))


@cache
def _with_options(base: type[Request], limits: Limits, methods: tuple[MethodSpec, ...]) -> type[Request]:
    about = "By default routing, or single with one expert."
    fields: dict[str, Any] = {
        "method": (Literal[tuple(one.name for one in methods)] | None, Field(None, description=about)),
        "deadline": (float, Field(limits.deadline, ge=0.01, le=limits.deadline, description="Seconds.")),
    }
    for one in methods:
        for option in one.options:
            fields.setdefault(option.name, _field(option, limits))
    return create_model(base.__name__, __base__=base, **fields)


def _field(option: Option, limits: Limits) -> tuple[Any, Any]:
    """An option as a field; whoever leaves it out has the method's default."""
    if option.per_expert:
        numbers = Annotated[list[Number], Field(fail_fast=True)]
        return dict[str, Number] | numbers | None, Field(None, description=option.help)
    if option.kind == "choice":
        return Literal[option.choices] | None, Field(None, description=option.help)
    if option.kind == "factors":
        return str | None, Field(None, pattern=FACTORS, description=option.help)
    most = min(option.most, limits.particles if option.name in WORK else LARGEST_WHOLE)
    bounds: dict[str, Any] = {"le": most, "gt" if option.above else "ge": max(option.least, -LARGEST_WHOLE)}
    if option.kind == "whole":
        bounds = {name: math.floor(bound) for name, bound in bounds.items()}
        return int | None, Field(None, description=option.help, **bounds)
    return Number | None, Field(None, description=option.help, **bounds)


def validated(model: type[Model], body: bytes) -> Model:
    """The body as the model has it; pydantic's first complaint as a sentence."""
    try:
        found = model.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = (
            ", ".join(str(part) for part in first["loc"] if not str(part).startswith(("list[", "dict[")))
            or "body"
        )
        if first["type"] == "extra_forbidden":
            known = ", ".join(sorted(model.model_fields))
            raise InvalidInput(f"body: unknown key {shown(place, LONGEST_SHOWN)}; expected {known}") from None
        if first["type"] == "missing":
            raise InvalidInput(f"{_short(place)}: it is missing") from None
        expected = (
            first["msg"].replace("Input should be", "expected").replace("Input should have", "expected")
        )
        got = "" if first["type"] == "json_invalid" else f", got {shown(first['input'], LONGEST_SHOWN)}"
        raise InvalidInput(f"{_short(place)}: {expected[0].lower()}{expected[1:]}{got}") from None
    _refuse_twice(
        body
    )  # last: of what the model takes there is never so much that reading it again takes long
    return found


def _refuse_twice(body: bytes) -> None:
    """Refuse a key that occurs twice in an object: of two values nobody knows which was meant."""
    try:
        json.loads(body, object_pairs_hook=unique_keys)
    except DuplicateKey as error:
        raise InvalidInput(f"body: {error}") from None
    except (ValueError, RecursionError):
        return  # whatever else is wrong is said where it is read


def _check_experts(names: Sequence[str], known: Sequence[str], limits: Limits) -> None:
    if len(names) > limits.experts:
        raise InvalidInput(f"experts: expected at most {limits.experts} names, got {len(names)}")
    for place, name in enumerate(names):
        if name not in known:
            raise InvalidInput(
                f"experts: expected some of {', '.join(known)}, got {shown(name, LONGEST_SHOWN)}"
            )
        if name in names[:place]:
            raise InvalidInput(f"experts: {name} is named twice")


def _steps(rule: RevealRule) -> int:
    """How many steps a rule asks for; rules that go by what the experts say ask for none."""
    if isinstance(rule, Repaired):
        return _steps(rule.rule)
    return rule.steps if isinstance(rule, ByConfidence | Ancestral | ByBlock) else 0


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."
