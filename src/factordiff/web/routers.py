"""Routers on the page: no client names a folder, so the server takes the shipped one that fits the experts."""

from __future__ import annotations

from dataclasses import replace

from factordiff.composition.method import spec
from factordiff.composition.router_store import shipped_router
from factordiff.errors import InvalidInput
from factordiff.team.fit import hashes
from factordiff.team.team import Team

CHOSEN_HERE = ("router", "other_experts")  # options that no client sets


def with_router(team: Team) -> Team:
    """The team with the router that was fitted to its experts, if its method takes one; without one it is refused."""
    if not any(option.kind == "router" for option in spec(team.method_name).options):
        return team
    found = shipped_router(hashes(team))
    if found is None:
        raise InvalidInput(
            f"method: {team.method_name!r} takes experts that a shipped router was fitted to, "
            f"got {', '.join(team.names)}"
        )
    return replace(team, options={**team.options, "router": str(found)})
