"""Everything that a page needs to offer choices: experts, teams with their numbers, methods with their options."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from factordiff.arc.grid import CELLS, SIDE
from factordiff.composition.factor_names import NAMES
from factordiff.composition.method import MethodSpec
from factordiff.composition.options import Option
from factordiff.errors import FactorDiffError
from factordiff.sampling.rules import PRESETS, RULES
from factordiff.team.file import read_team, shipped_teams
from factordiff.team.team import Team
from factordiff.web.limits import API_VERSION, Limits
from factordiff.web.registry import ExpertRegistry
from factordiff.web.request import offered
from factordiff.web.routers import CHOSEN_HERE, with_router

LIMITS = ("body", "demonstrations", "particles", "steps", "experts", "deadline")  # those a page has to know


def about_server(registry: ExpertRegistry, limits: Limits) -> dict[str, Any]:
    """What GET /about answers."""
    try:
        release = version("factordiff")
    except PackageNotFoundError:  # run from a folder, not installed
        release = "unknown"
    return {
        "version": API_VERSION,
        "release": release,
        "experts": [
            {"name": entry.name, "objective": entry.objective, **entry.about}
            for entry in registry.entries.values()
        ],
        "teams": teams_of(registry),
        "methods": [_spelled_method(method) for method in offered().values()],
        "factors": list(NAMES),
        "rules": [*PRESETS, *RULES],
        "limits": {name: getattr(limits, name) for name in LIMITS},
    }


def teams_of(registry: ExpertRegistry) -> list[dict[str, Any]]:
    """The shipped teams whose experts are all here, with the numbers that were fitted for them."""
    found = []
    for name in shipped_teams():
        try:
            team = read_team(name)
        except FactorDiffError:  # its experts are others now, or not here: its numbers are for nobody
            continue
        experts = list(team.pop("experts"))
        for unsaid in ("layout", *CHOSEN_HERE):
            team.pop(unsaid, None)
        if all(one in registry.entries for one in experts) and team["method"] in offered():
            method, reveal = team.pop("method"), team.pop("reveal")
            found.append(
                {"name": name, "experts": experts, "method": method, "reveal": reveal, "options": team}
            )
    return found


def fitting_methods(registry: ExpertRegistry, experts: Sequence[str]) -> dict[str, str | None]:
    """Why each method does not take these experts; None where it does."""
    members = tuple(registry[name] for name in experts)
    found: dict[str, str | None] = {}
    for name, method in offered().items():
        try:
            method.check({}, experts)
            team = with_router(Team(members, name, layout=(SIDE, SIDE)))
            if method.objectives:
                team.method_for(CELLS)
            found[name] = None
        except FactorDiffError as error:
            found[name] = str(error)
    return found


def _spelled_method(method: MethodSpec) -> dict[str, Any]:
    return {
        "name": method.name,
        "summary": method.summary,
        "reveal": method.reveal,
        "options": [_spelled_option(option) for option in method.options],
    }


def _spelled_option(option: Option) -> dict[str, Any]:
    told = ("name", "help", "kind", "default", "least", "most", "choices", "per_expert", "usual")
    spelled = {name: getattr(option, name) for name in told}
    bounds = {name: bound if math.isfinite(bound := spelled[name]) else None for name in ("least", "most")}
    return {**spelled, **bounds, "choices": list(option.choices)}
