"""The rows of a comparison by the names that people type: methods, fitted methods, and bounds.

`mixture`, `routing[temperatures=1,0.25]` are methods with their options, `fitted:mixture` is one whose numbers are
chosen on validation, `fitted:learned[kind=neighbourhood]` one whose router is fitted there. `alone` stands for each
expert alone; `told`, `oracle`, `union` and `answer-fitted` are bounds. A method of one's own is a composition, a team,
or a function from the setting (with its validation queries) to a team.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from factordiff.composition.composition import Composition
from factordiff.composition.factor_names import check_factors
from factordiff.composition.method import spec, specs
from factordiff.errors import InvalidInput, Unavailable
from factordiff.sampling.rules import reveal_rule
from factordiff.team.team import Team
from factordiff.worlds.bounds import Oracle, TrueOwner
from factordiff.worlds.fitting import METHODS, fit_method
from factordiff.worlds.queries import Queries
from factordiff.worlds.router_fitting import RouterChoice, fit_learned
from factordiff.worlds.setting import Answering, PreparedMethod, Setting, always

ALONE, SCALAR, SAMPLE, FACTOR, BOUND = "alone", "one number per expert", "per sample", "per factor", "bound"
FAMILIES = {
    "single": ALONE,
    **dict.fromkeys(("mixture", "product", "geometric-mean", "drawn-expert"), SCALAR),
    **dict.fromkeys(("superdiff", "superdiff-and", "fkc", "rne", "vote", "hex", "tie"), SAMPLE),
}
ORACLE, UNION = "oracle", "union"
BOUNDS = ("told", ORACLE, UNION, "answer-fitted")
FITTED = "fitted:"
BRACKETED = re.compile(r"([a-z-]+)(?:\[(.*)\])?")
REVEAL = "reveal"  # may stand among a method's options: another rule than the comparison's
# Of the first of two experts, tried on the answer.
SHARES = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0, 20.0, 50.0)
LOUD, QUIET = 1.0, 0.05  # with more experts: every choice of who counts and who hardly does
MOST_CHOICES = 5  # experts for which all choices are tried; with more, each alone is loud

Given = str | Mapping[str, Any] | Composition | Team | Callable[[Setting], Team]


@dataclass(frozen=True)
class MethodRow:
    """One row: what it is called, and how it is made; without `prepare` it comes of other rows.

    `method` spells a method and its options where the name does not: records of other options are another row's.
    """

    label: str
    family: str
    prepare: Callable[[Setting], Answering] | None
    method: str = ""

    @property
    def fitted(self) -> bool:
        """Whether its numbers, or its router, are fitted on validation."""
        return self.label.startswith(FITTED)


def entries(
    given: Sequence[Given] | Mapping[str, Given] | str, names: Sequence[str], owned: bool
) -> list[MethodRow]:
    """The rows that were asked for, refused if one means nothing here."""
    if isinstance(given, str):
        given = split_methods(given)
    pairs = given.items() if isinstance(given, Mapping) else ((None, one) for one in given)
    found = [row for label, one in pairs for row in _rows(label, one, names, owned)]
    if not found:
        raise InvalidInput("methods: expected at least one, got none")
    labels = [row.label for row in found]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise InvalidInput(
            f"methods: {twice[0]!r} is there twice; give methods of your own names in a mapping"
        )
    return found


def split_methods(text: str) -> list[str]:
    """Methods joined by commas; commas inside brackets belong to an option.

    >>> split_methods("mixture, routing[temperatures=1,0.25]")
    ['mixture', 'routing[temperatures=1,0.25]']
    """
    return [part.strip() for part in re.split(r",(?![^\[]*\])", text) if part.strip()]


def _rows(label: str | None, given: Given, names: Sequence[str], owned: bool) -> list[MethodRow]:
    if isinstance(given, str):
        return _named(given, names, owned, label)
    if isinstance(given, Mapping):
        options = dict(given)
        method = options.pop("method", None)
        if not isinstance(method, str):
            raise InvalidInput(f"methods: expected {{'method': NAME, option: value}}, got {dict(given)!r}")
        spelled = ";".join(f"{name}={value}" for name, value in sorted(options.items()))
        return [
            _method(label or method, method, options, names, f"{method}[{spelled}]" if spelled else method)
        ]
    if isinstance(given, Composition):
        return [MethodRow(label or type(given).__name__, FACTOR, lambda setting: always(setting.team(given)))]
    if isinstance(given, Team):
        return [MethodRow(label or given.method_name, FACTOR, lambda setting: always(given))]
    if callable(given):
        name = label or getattr(given, "__name__", "method").strip("<>")
        return [MethodRow(name, FACTOR, lambda setting: always(given(setting)))]
    raise InvalidInput(
        f"methods: expected names, compositions, teams or functions, got {type(given).__name__}"
    )


def _named(text: str, names: Sequence[str], owned: bool, label: str | None) -> list[MethodRow]:
    if label not in (None, text) and (text == "alone" or text in BOUNDS or text.startswith(FITTED)):
        raise InvalidInput(
            f"methods: {text!r} keeps its name, by which the table knows it; expected {{{text!r}: {text!r}}}, got "
            f"{{{label!r}: {text!r}}}"
        )
    if text == "alone":
        return [_alone(number, name) for number, name in enumerate(names)]
    if text in BOUNDS:
        if text == "told" and not owned:
            raise InvalidInput(
                "methods: 'told' needs the owner of each cell, and these queries do not say it"
            )
        return [_bound(text)]
    if text.startswith(FITTED):
        return [_fitted(text, names)]
    bracketed = BRACKETED.fullmatch(text)
    if bracketed is None or bracketed[1] not in specs():
        raise Unavailable(
            f"methods: expected alone, {', '.join(BOUNDS)}, fitted:METHOD or one of {', '.join(specs())}, got {text!r}"
        )
    return [_method(label or text, bracketed[1], _read(bracketed[1], _pairs(text, bracketed)), names, text)]


def _fitted(text: str, names: Sequence[str]) -> MethodRow:
    """A method whose numbers or router are fitted on validation; options in brackets stay as they are."""
    bracketed = BRACKETED.fullmatch(text.removeprefix(FITTED))
    if bracketed is None or bracketed[1] not in METHODS:
        raise Unavailable(f"methods: expected fitted: and one of {', '.join(METHODS)}, got {text!r}")
    method, given = bracketed[1], _pairs(text, bracketed)
    family = FAMILIES.get(method, FACTOR)
    if method == "learned":
        choice = RouterChoice.read(given)
        return MethodRow(text, family, lambda setting: fit_learned(text, choice, setting))
    options = _read(method, given)
    _check(method, options, names)
    return MethodRow(text, family, lambda setting: fit_method(text, method, options, setting))


def _pairs(text: str, bracketed: re.Match[str]) -> dict[str, str]:
    """The options behind a method's name, as they were typed."""
    found = {}
    for part in filter(None, (bracketed[2] or "").split(";")):
        name, equals, value = part.partition("=")
        if not equals:
            raise InvalidInput(f"methods: expected {bracketed[1]}[option=value;option=value], got {text!r}")
        found[name.strip()] = value
    return found


def _read(method: str, given: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: value if name == REVEAL else spec(method).option(name).read(value)
        for name, value in given.items()
    }


def _check(method: str, options: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse before anything runs."""
    if REVEAL in options:
        reveal_rule(options[REVEAL])
    if isinstance(options.get("factors"), str):
        check_factors(options["factors"])
    spec(method).check({name: value for name, value in options.items() if name != REVEAL}, names)


def _method(
    label: str, method: str, options: Mapping[str, Any], names: Sequence[str], spelled: str
) -> MethodRow:
    _check(method, options, names)
    if method == "learned" and options.get("router") is None:
        raise InvalidInput(
            "methods: 'learned' has no router, and without one it is the plain mixture; ask for 'fitted:learned', or "
            "for 'learned[router=FOLDER]'"
        )
    return MethodRow(
        label,
        FAMILIES.get(method, FACTOR),
        lambda setting: always(setting.team(method, **options)),
        "" if spelled == label else spelled,
    )


def _alone(number: int, name: str) -> MethodRow:
    return MethodRow(name, ALONE, lambda setting: always(setting.alone(number)))


def _bound(name: str) -> MethodRow:
    if name == UNION:
        return MethodRow(name, BOUND, None)
    return MethodRow(name, BOUND, {"told": _told, ORACLE: _oracle, "answer-fitted": _answer_fitted}[name])


def _told(setting: Setting) -> Answering:
    def team(queries: Queries) -> PreparedMethod:
        assert queries.owners is not None
        return PreparedMethod((setting.team(TrueOwner(queries.owners)),))

    return team


def _oracle(setting: Setting) -> Answering:
    by: Any = "probability" if setting.metric.mode == "one-pass" else "choice"
    return lambda queries: PreparedMethod((setting.team(Oracle(queries.x_0, by)),))


def _answer_fitted(setting: Setting) -> Answering:
    """The best mixture or product of each query, chosen by its own answer: what weights per sample could do.

    Only a grid of weights is tried, a coarse one with three experts or more: a lower bound of that bound.
    """
    teams = [setting.team("mixture", weights=weights) for weights in tried(len(setting.experts))]
    teams += [setting.team("product", beta=weights) for weights in tried(len(setting.experts))]
    return lambda queries: PreparedMethod(tuple(teams))


def tried(experts: int) -> list[tuple[float, ...]]:
    """The weights that are tried on the answer; the largest is 1.

    >>> tried(3)[:3]
    [(0.05, 0.05, 1.0), (0.05, 1.0, 0.05), (0.05, 1.0, 1.0)]
    """
    if experts == 2:
        return [(min(1.0, share), min(1.0, 1 / share)) for share in SHARES]
    if experts <= MOST_CHOICES:
        return [choice for choice in product((QUIET, LOUD), repeat=experts) if LOUD in choice]
    loud = [tuple(LOUD if one == m else QUIET for one in range(experts)) for m in range(experts)]
    return [(LOUD,) * experts, *loud]
