"""What an expert's config.json may say: checked part by part, before anything is built from it."""

from __future__ import annotations

from typing import Any

from factordiff.diffusion.objectives import OBJECTIVES
from factordiff.errors import InvalidInput
from factordiff.schema.objects import Named, Parts
from factordiff.schema.values import Choice, Flag, Real, String, Whole

TYPE = "factordiff"
_READ = {
    "preset": String(100),
    "seed": Whole(),
    "network": Named(),
    "emphasis": Named(),
    **dict.fromkeys(("ema", "identity_share", "rename", "more", "sized"), Real(0.0, 1.0)),
    **dict.fromkeys(("lr", "lr_rest", "agreement"), Real(0.0)),
}
SETTINGS = Parts(_READ, optional=tuple(_READ), more=True)  # the others are read by nobody
STARTED_FROM = Parts({"weights": String(), "about": Named(), "new_head": Flag()}, optional=("new_head",))
# What weights say about themselves, and about those that they were at first.
ABOUT = Parts(
    {
        "objective": Choice(tuple(OBJECTIVES)),
        "step": Whole(),
        "data": String(),
        "settings": SETTINGS,
        "started_from": STARTED_FROM,
    },
    optional=("objective", "step", "data", "settings", "started_from"),
    more=True,
)
EXPERT = Parts(
    {
        "model_type": Choice((TYPE,)),
        "backbone": String(100),
        "network": Named(),
        "parameters": Whole(1),
        "about": Named(),
    },
    optional=("model_type", "parameters", "about"),
    more=True,  # a hub adds its own
)
MOST_STARTS = 50  # weights that began as weights that began as weights


def check_config(content: dict[str, Any]) -> dict[str, Any]:
    """The configuration, with an `about`; a part that is missing or of another kind is an `InvalidInput`."""
    config = {"about": {}, **EXPERT.read(content, "")}
    about, where = config["about"], "about"
    for _ in range(MOST_STARTS):
        ABOUT.read(about, where)
        if "started_from" not in about:
            return config
        about, where = about["started_from"]["about"], f"{where}, started_from"
    raise InvalidInput(f"about: expected at most {MOST_STARTS} started_from inside one another")
