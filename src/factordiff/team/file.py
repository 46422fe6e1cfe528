"""A team as a file: its experts by name and hash, its method and every number that was set. JSON, nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factordiff.composition.method import spec
from factordiff.composition.router import Router
from factordiff.composition.router_store import save_router
from factordiff.errors import CheckpointError, InvalidInput, Unavailable
from factordiff.experts.registry import SHIPPED, find_expert
from factordiff.files import write_whole
from factordiff.networks.store import weight_hash
from factordiff.sampling.rules import rule_name
from factordiff.schema.bound import shown
from factordiff.schema.json_file import read_object
from factordiff.schema.objects import Listed, Maybe, Named, Parts, Two
from factordiff.schema.values import String, Whole

if TYPE_CHECKING:
    from factordiff.team.team import Team

VERSION = 1
SHIPPED_TEAMS = SHIPPED / "teams"
EXPERT = Parts({"name": String(), "expert": String(4_096), "weights": Maybe(String())}, optional=("weights",))
ROUTER = Parts({"folder": String(4_096), "weights": String()})
LAYOUT = Two(Whole(1, 100_000))
TEAM = Parts(
    {
        "version": Whole(),
        "experts": Listed(EXPERT, 1_000),
        "method": String(),
        "options": Named(),
        "reveal": String(),
        "layout": Maybe(LAYOUT),
    }
)


def shipped_teams() -> list[str]:
    """The names of the teams that come with the package."""
    return sorted(path.stem for path in SHIPPED_TEAMS.glob("*.json"))


def find_team(name: str | Path) -> Path:
    """The file of a team: a file of its own, or a shipped one by its name."""
    if Path(name).is_file():
        return Path(name)
    if str(name) in shipped_teams():
        return SHIPPED_TEAMS / f"{name}.json"
    raise Unavailable(
        f"team: {str(name)!r} is neither a file nor a shipped team (shipped: {', '.join(shipped_teams())}); "
        f"experts are given as a list, such as [{str(name)!r}]"
    )


def save_team(team: Team, file: str | Path) -> Path:
    """Write the team, and its router where that is only in memory; made of experts in folders and a named method."""
    if not isinstance(team.method, str):
        raise InvalidInput(
            f"team: its method is a {team.method_name} of your own, and a file can only name methods; declare it "
            "under a name (composition.method.declare)"
        )
    experts = []
    for member in team.members:
        if member.folder is None:
            raise InvalidInput(
                f"team: {member.name} is an object, and a file can only name folders; keep what is in Team.options "
                "(a router with save_router), and compose your objects with it again"
            )
        shipped = member.folder.parent == SHIPPED
        where = member.folder.name if shipped else str(member.folder.resolve())
        experts.append({"name": member.name, "expert": where, "weights": weight_hash(member.folder)})
    options = dict(team.options)
    for name, value in options.items():
        if name != "router" and not isinstance(value, str | int | float | tuple):
            raise InvalidInput(f"{name}: it was given as a tensor, and a file can only name factors")
    reveal = team.reveal if isinstance(team.reveal, str) else rule_name(team.reveal)
    if options.get("router") is not None:
        options["router"] = _named_router(options["router"], Path(file))
    content = {
        "version": VERSION,
        "experts": experts,
        "method": team.method,
        "options": options,
        "reveal": reveal,
        "layout": team.layout,
    }
    write_whole(Path(file), (json.dumps(content, indent=2) + "\n").encode())
    return Path(file)


def _named_router(router: Router | str, file: Path) -> dict[str, str]:
    """A router by its folder, as seen from the team's file where it lies beside or below it, and its hash.

    One that is only in memory is written beside the file: that of team.json into team-router.
    """
    if isinstance(router, Router) and router.folder is None:
        router = save_router(router, file.with_name(f"{file.stem}-router"))
    folder = router.folder if isinstance(router, Router) else Path(router)
    assert folder is not None
    folder, here = folder.resolve(), file.parent.resolve()
    place = folder.relative_to(here) if folder.is_relative_to(here) else folder
    return {"folder": str(place), "weights": weight_hash(folder)}


def read_team(file: str | Path) -> dict[str, Any]:
    """What `compose` needs to put the team together again; experts whose weights are others are refused."""
    path = find_team(file)
    try:
        content = TEAM.read(read_object(path), "")
        if content["version"] != VERSION:
            raise InvalidInput(f"version: expected {VERSION}, got {content['version']}")
        options, router = _read_options(content["method"], content["options"])
        names = [one["name"] for one in content["experts"]]
        if len(set(names)) < len(names):
            raise InvalidInput(f"experts: expected different names, got {shown(names)}")
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error
    except InvalidInput as error:
        raise CheckpointError(f"{path}: not a team as `Team.save` writes it ({error})") from error
    experts = {one["name"]: one["expert"] for one in content["experts"]}
    for one in content["experts"]:
        weights, folder = one.get("weights"), _folder(path, one["expert"])
        if weights is not None and weight_hash(folder) != weights:
            raise CheckpointError(
                f"{path}: {one['name']} has other weights now than when the team was saved; its numbers were set for "
                "those. Put the weights back, or compose and fit the team again"
            )
    if router is not None:
        folder = (path.parent / router["folder"]).resolve()
        if weight_hash(folder) != router["weights"]:
            raise CheckpointError(
                f"{path}: the router in {folder} is another now than when the team was saved; fit the team again"
            )
        options["router"] = str(folder)
    given = {name: content[name] for name in ("method", "reveal", "layout")}
    return {"experts": experts, **given, **options}


def _read_options(method: str, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str] | None]:
    """The options by name, each one that the method takes, and the router apart; `compose` checks their values."""
    options = dict(given)
    for name in options:
        if spec(method).option(name).kind == "factors":
            String().read(options[name], f"options, {name}")  # labels are none of what a file can hold
    router = options.pop("router", None)
    return options, None if router is None else ROUTER.read(router, "options, router")


def _folder(file: Path, expert: str) -> Path:
    try:
        return find_expert(expert).folder
    except OSError as error:
        raise CheckpointError(f"{file}: {shown(expert)} is no folder ({error.strerror})") from error
