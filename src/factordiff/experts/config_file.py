"""What an expert's config.json may say: checked part by part, before anything is built from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from factordiff.diffusion.objectives import OBJECTIVES
from factordiff.errors import InvalidInput
from factordiff.schema import Bound, Choice, Named, Real, Text, Whole

TYPE = "factordiff"
CONFIG_BOUNDS: dict[str, Bound] = {
    "model_type": Choice((TYPE,)),
    "backbone": Text(100),
    "network": Named(),
    "parameters": Whole(1),
    "about": Named(),
}
# What weights say about themselves. They may say more, which nobody reads.
ABOUT_BOUNDS: dict[str, Bound] = {
    "objective": Choice(tuple(OBJECTIVES)),
    "step": Whole(),
    "data": Text(),
    "stored_from": Text(),
    "settings": Named(),
    "started_from": Named(),
}
SETTING_BOUNDS: dict[str, Bound] = {
    "preset": Text(100),
    "seed": Whole(),
    "ema": Real(0.0, 1.0),
    "network": Named(),
}
MOST_STARTS = 50  # weights that began as weights that began as weights


def check_config(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with an `about`; a part that is missing or of another kind is an `InvalidInput`."""
    for key in ("backbone", "network"):
        if key not in config:
            raise InvalidInput(f"{key}: missing")
    config = {**config, "about": config.get("about", {})}
    check_known(config, CONFIG_BOUNDS, "")
    check_about(config["about"])
    return config


def check_about(about: Mapping[str, Any]) -> None:
    """Check what weights say about themselves, and about the weights that they began as."""
    for starts in range(MOST_STARTS):
        where = "about" + starts * ", started_from"
        check_known(about, ABOUT_BOUNDS, f"{where}, ")
        check_known(about.get("settings", {}), SETTING_BOUNDS, f"{where}, settings, ")
        if "started_from" not in about:
            return
        start = about["started_from"]
        if "weights" not in start or "about" not in start:
            raise InvalidInput(f"{where}, started_from: expected weights and about")
        check_known(start, {"weights": Text(), "about": Named()}, f"{where}, started_from, ")
        about = start["about"]
    raise InvalidInput(f"about: expected at most {MOST_STARTS} started_from inside one another")


def check_known(content: Mapping[str, Any], bounds: Mapping[str, Bound], where: str) -> None:
    """Check those keys that have a bound; the others may be anything."""
    for key, bound in bounds.items():
        if key in content:
            bound.read(content[key], f"{where}{key}")
