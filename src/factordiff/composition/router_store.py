"""Routers as folders: config.json, model.safetensors, and a card that says for which experts."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import safetensors.torch

from factordiff.composition.router import Router, RouterConfig
from factordiff.errors import CheckpointError, InvalidInput
from factordiff.experts.registry import CONFIG, SHIPPED
from factordiff.files import write_whole
from factordiff.networks.parameters import Layout
from factordiff.networks.store import MODEL
from factordiff.networks.weight_file import read_weights
from factordiff.schema.fields import read_fields
from factordiff.schema.json_file import read_object
from factordiff.schema.objects import Listed, Maybe, Named, Parts
from factordiff.schema.values import String

TYPE = "factordiff-router"
CARD = "README.md"
SHIPPED_ROUTERS = SHIPPED / "routers"
FITTED = Listed(Parts({"name": String(), "weights": Maybe(String())}), 1_000)  # the experts it was fitted to


def save_router(router: Router, folder: str | Path) -> Router:
    """Write a router's folder, each file whole or not at all, the configuration last; the router that lies there."""
    folder = Path(folder)
    layout = Layout(router.config.slots())
    weights = {
        name: weight.contiguous().clone() for name, weight in layout.unpack(router.vector.cpu()).items()
    }
    config = {
        "model_type": TYPE,
        "router": router.as_json(),
        "parameters": router.parameters,
        "experts": [{"name": name, "weights": weights_} for name, weights_ in router.fitted_to],
        "about": router.about,
    }
    write_whole(folder / MODEL, safetensors.torch.save(weights, {"format": "pt"}))
    write_whole(folder / CARD, card(router).encode())
    write_whole(folder / CONFIG, (json.dumps(config, indent=2) + "\n").encode())
    return dataclasses.replace(router, folder=folder, _moved={})


def load_router(folder: str | Path) -> Router:
    """The router of a folder."""
    folder = Path(folder)
    path = folder / CONFIG
    try:
        content = read_object(path)
        if content.get("model_type") != TYPE:
            raise InvalidInput("it is of something else")
        config = read_fields(RouterConfig, content.get("router"), "router")
        fitted = FITTED.read(content.get("experts"), "experts")
        about = Named().read(content.get("about", {}), "about")
        slots = config.slots()
        vector = Layout(slots).pack(read_weights(folder / MODEL, slots))
    except OSError as error:
        raise CheckpointError(
            f"{folder}: not a router's folder ({error.strerror}: {Path(error.filename or path).name}); expected "
            f"{CONFIG} and {MODEL}, as `factordiff fit` writes them"
        ) from error
    except InvalidInput as error:
        raise CheckpointError(f"{path}: not a router's configuration ({error})") from error
    return Router(config, vector, tuple((one["name"], one["weights"]) for one in fitted), about, folder)


def check_experts(router: Router, experts: Sequence[tuple[str, str | None]], allow: bool = False) -> None:
    """Refuse experts that a router was not fitted to; `experts` are names and hashes, None where nobody knows one.

    A router that was fitted to objects has no hashes to compare. One that does not know its experts by their place
    takes them in any order.
    """
    wanted = [hash_ for _, hash_ in router.fitted_to]
    if allow or not wanted or _same_elsewhere(router, [hash_ for _, hash_ in experts]):
        return
    if len(wanted) != len(experts):
        raise InvalidInput(
            f"router: it was fitted to {len(wanted)} experts, got {len(experts)}; fit another, or say "
            "other_experts='allow'"
        )
    for (name, weights), (fitted, known) in zip(experts, router.fitted_to, strict=True):
        if known is not None and weights != known:
            raise InvalidInput(
                f"router: it was fitted to {fitted} with other weights than those of {name}; fit it again, or say "
                "other_experts='allow'"
            )


def _same_elsewhere(router: Router, given: Sequence[str | None]) -> bool:
    """Whether these are its experts in whatever order, and the order is nothing to it."""
    wanted = [hash_ for _, hash_ in router.fitted_to]
    known = None not in wanted and not router.config.by_place
    return known and Counter(given) == Counter(wanted)


def shipped_router(experts: Sequence[tuple[str, str | None]]) -> Path | None:
    """The folder of the shipped router that was fitted to experts of these hashes; None without one."""
    given = [hash_ for _, hash_ in experts]
    folders = sorted(path.parent for path in SHIPPED_ROUTERS.glob(f"*/{CONFIG}"))
    for folder in folders:
        router = load_router(folder)
        if given == [hash_ for _, hash_ in router.fitted_to] or _same_elsewhere(router, given):
            return folder
    return None


def card(router: Router) -> str:
    """What the folder says to people."""
    config = router.config
    lines = [
        f"# A router for {' + '.join(name for name, _ in router.fitted_to) or 'any experts'}",
        "",
        f"Kind: {config.kind}, {config.head} head, {router.parameters:,} parameters.",
        "",
        *(f"- {key}: {value}" for key, value in router.about.items()),
        *(f"- fitted to {name}: {hash_ or 'an object, not a folder'}" for name, hash_ in router.fitted_to),
        "",
        "Use: `compose(experts, 'learned', router=FOLDER)`. Other experts are refused unless told.",
    ]
    return "\n".join(lines) + "\n"
