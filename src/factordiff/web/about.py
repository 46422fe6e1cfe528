"""Everything that a page needs to offer choices: experts, teams with their numbers, methods with their options."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from factordiff.arc.grid import SIDE
from factordiff.composition.factor_names import NAMES
from factordiff.composition.method import MethodSpec
from factordiff.composition.options import Option
from factordiff.errors import FactorDiffError
from factordiff.sampling.rules import PRESETS, RULES
from factordiff.team.file import read_team, shipped_teams
from factordiff.team.router import with_router
from factordiff.team.team import Team
from factordiff.text.alphabet import BYTES, LETTERS
from factordiff.web.asked_method import CHOSEN_HERE, offered
from factordiff.web.infilling import LONGEST
from factordiff.web.limits import API_VERSION, Limits
from factordiff.web.registry import ExpertRegistry
from factordiff.web.world_stories import StoryText
from factordiff.web.world_story_list import TEXT

IN_A_LINE = ("pixel", "whole", "near:R")  # factors of cells that stand in no rows
LIMITS = ("body", "demonstrations", "particles", "steps", "experts", "deadline")  # those a page has to know


def about_server(registry: ExpertRegistry, limits: Limits) -> dict[str, Any]:
    """What GET /about answers."""
    return {**_choices(registry, limits), "factors": list(NAMES)}


def about_texts(registry: ExpertRegistry, limits: Limits) -> dict[str, Any]:
    """What GET /texts answers: who reads texts, the letters they know, and passages to begin with."""
    return {
        **_choices(registry, limits),
        "factors": list(IN_A_LINE),
        "letters": LETTERS,
        "longest": LONGEST,
        "examples": [_spelled_passage(passage) for passage in TEXT.tasks if isinstance(passage, StoryText)],
    }


def _choices(registry: ExpertRegistry, limits: Limits) -> dict[str, Any]:
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
        "rules": [*PRESETS, *RULES],
        "limits": {name: getattr(limits, name) for name in LIMITS},
    }


def _spelled_passage(passage: StoryText) -> dict[str, Any]:
    """A passage with what its story hides of it, as stretches of characters."""
    query = passage.query()
    hidden = (query.x_t[0] == BYTES.mask).to(torch.int64)
    padded = torch.nn.functional.pad(hidden, (1, 1))
    begins, ends = ((padded.diff() == way).nonzero().flatten().tolist() for way in (1, -1))
    return {
        "name": passage.id,
        "text": passage.text,
        "hidden": list(map(list, zip(begins, ends, strict=True))),
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


def fitting_methods(
    registry: ExpertRegistry, experts: Sequence[str], shape: tuple[int, int] = (SIDE, SIDE)
) -> dict[str, str | None]:
    """Why each method does not take these experts; None where it does. `shape` is that of a canvas."""
    members = tuple(registry[name] for name in experts)
    found: dict[str, str | None] = {}
    for name, method in offered().items():
        try:
            method.check({}, experts)
            team = with_router(Team(members, name, layout=shape))
            if method.objectives:
                team.method_for(math.prod(shape))
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
