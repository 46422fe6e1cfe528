"""Numbers that are chosen on validation queries by the world's own figure: one search, one budget for every method."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from factordiff.composition.factor_names import check_factors
from factordiff.errors import InvalidInput
from factordiff.experts.expert import Demonstrated
from factordiff.fitting.search import FITTABLE, Fittable, fittable, search, tie_breaks
from factordiff.sampling.request import common_vocabulary
from factordiff.sampling.reveal import RevealRule
from factordiff.sampling.rules import rule_name
from factordiff.worlds.answering import value_of
from factordiff.worlds.queries import Queries
from factordiff.worlds.setting import Answering, Setting, always

METHODS = tuple(one.method for one in FITTABLE.values())
NEAR = ("near:2", "near:8", "whole")  # factors of evidence that any world can offer
ON_THE_WAY = "confidence:16"  # a reveal rule that leaves evidence a path to be earned on

# What a method's options, those that were searched for, make of a setting.
Make = Callable[[Setting, Mapping[str, Any]], Answering]


def fit_numbers(
    label: str,
    wanted: Fittable,
    make: Make,
    setting: Setting,
    choices: Mapping[str, Sequence[Any]] | None = None,
) -> Answering:
    """The method with the numbers, and the `choices` of other options, that are best on the validation queries.

    What was tried is kept, where there is a folder, and not tried again after an interruption.
    """
    queries = setting.to_fit_on(label)
    if label in setting.notes:
        return make(setting, setting.notes[label]["options"])
    sign, place = setting.metric.main.sign, setting.workplace(label)
    known = {} if place is None else place.trials()
    stage = f"fitting {label.removeprefix('fitted:')}"

    def value(options: dict[str, Any]) -> float:
        key = json.dumps(options, sort_keys=True)
        if key not in known:
            known[key] = value_of(make(setting, options), queries, setting)
            if place is not None:
                place.keep(known)
        return sign * float(known[key])

    likelihood = setting.metric.mode != "decoded"
    coordinates = wanted.coordinates(len(setting.experts), likelihood=likelihood, choices=choices)
    setting.tell(stage, 0, setting.budget)
    found = search(
        coordinates,
        len(setting.experts),
        setting.budget,
        value,
        on_trial=lambda done, total: setting.tell(stage, done, total),
        beyond=setting.budget // 2,
        ties=0 if likelihood else tie_breaks(len(setting.experts)),
    )
    runs = len(found.values)
    setting.tell(stage, runs, runs)  # it may have needed fewer
    note = {
        "options": found.best,
        "validation": sign * found.values[found.chosen],
        "queries": len(queries),
        "runs": runs,
        "edge": found.edge,
    }
    setting.note(label, json.loads(json.dumps(note)))
    if place is not None:
        place.remove()
    return make(setting, found.best)


def fit_method(label: str, method: str, fixed: Mapping[str, Any], setting: Setting) -> Answering:
    """A method of the catalogue, its numbers fitted; `fixed` options stay as they were typed."""
    wanted = fittable(method)
    for name in (*wanted.options, *wanted.alone, *wanted.added):
        if name in fixed:
            raise InvalidInput(f"methods: {label!r} fits {name} itself; leave it out, or name {method} alone")

    def make(at: Setting, options: Mapping[str, Any]) -> Answering:
        return always(at.team(method, **{**options, **fixed}))

    choices = {}
    if method == "evidence":
        choices = evidence_choices(setting, setting.to_fit_on(label))
    return fit_numbers(
        label, wanted, make, setting, {name: some for name, some in choices.items() if name not in fixed}
    )


def evidence_choices(setting: Setting, queries: Queries) -> dict[str, tuple[str, ...]]:
    """What evidence may be earned from in a world, and inside which factors; with one choice there is nothing to try.

    In one pass nothing is revealed, so given cells are all there is to earn it from. In the loop a rule that reveals
    most cells at once leaves nothing to learn on the way, so a slower one is tried too.
    """
    offered = [name for name in setting.factors if _named(name) and name != "pixel"]
    found: dict[str, tuple[str, ...]] = {"factors": tuple(dict.fromkeys((*NEAR, *offered)))}
    mask = common_vocabulary(list(setting.experts.values())).mask
    given = not bool(queries.hidden(mask).all())
    if setting.metric.mode == "one-pass":
        found["given_evidence"] = ("folds",)
    elif given:
        found["given_evidence"] = ("none", "folds")
    if isinstance(queries.condition, Demonstrated):
        found["demonstration_evidence"] = ("none", "all")
    rule = setting.reveal if isinstance(setting.reveal, str) else _rule_name(setting.reveal)
    if setting.metric.mode == "decoded" and rule is not None:
        found["reveal"] = tuple(dict.fromkeys((rule, ON_THE_WAY)))
    return found


def _rule_name(rule: RevealRule) -> str | None:
    """What a rule is called; one of somebody's own has no name, and stays as it is."""
    try:
        return rule_name(rule)
    except InvalidInput:
        return None


def _named(factors: str) -> bool:
    """Whether a world's word for factors is one that methods know."""
    try:
        check_factors(factors)
    except InvalidInput:
        return False
    return True
