"""A team's router: held against its experts, or, where none is named, the shipped one that was fitted to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from factordiff.composition.correctors import Corrected
from factordiff.composition.learned import Learned
from factordiff.composition.method import spec
from factordiff.composition.router import Router
from factordiff.composition.router_store import check_experts, load_router, shipped_router
from factordiff.errors import InvalidInput

if TYPE_CHECKING:
    from factordiff.team.team import Team


def hashes(team: Team) -> tuple[tuple[str, str | None], ...]:
    """The experts by name, with the hashes of those that came from a folder."""
    return tuple((member.name, None if member.folder is None else member.sha256) for member in team.members)


def check_router(team: Team) -> None:
    """Refuse a router that was fitted to other experts, unless told otherwise, and one that cannot be loaded.

    It may be an option, or part of a composition that somebody made.
    """
    made = team.method.proposal if isinstance(team.method, Corrected) else team.method
    given = vars(made) if isinstance(made, Learned) else team.options
    router = given.get("router")
    if router is not None:
        loaded = router if isinstance(router, Router) else load_router(router)
        check_experts(loaded, hashes(team), given.get("other_experts") == "allow")


def takes_router(method: str) -> bool:
    """Whether a router is among what may be set about a method."""
    return any(option.kind == "router" for option in spec(method).options)


def with_router(team: Team) -> Team:
    """The team with the shipped router of its experts, where its method takes a router and has none."""
    if not isinstance(team.method, str) or not takes_router(team.method):
        return team
    if team.options.get("router") is not None:
        return team
    return replace(team, options={**team.options, "router": shipped_for(team.method, hashes(team))})


def shipped_for(method: str, experts: tuple[tuple[str, str | None], ...]) -> str:
    """The folder of the shipped router that was fitted to these experts; without one the method is refused."""
    found = shipped_router(experts)
    if found is None:
        raise InvalidInput(
            f"method: {method!r} takes experts that a shipped router was fitted to, got "
            f"{', '.join(name for name, _ in experts)}; `factordiff fit` fits one for others"
        )
    return str(found)
