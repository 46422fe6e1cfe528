"""HEX: several runs of one query, each in another reveal order, and a vote over their whole answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from factordiff.composition.composition import Composition
from factordiff.composition.method import declare
from factordiff.composition.mixture import Mixture
from factordiff.composition.options import BETA, PARTICLES, TEMPERATURES, WEIGHTS, Option
from factordiff.composition.product import Product
from factordiff.composition.routing import Routing
from factordiff.errors import InvalidInput

ORDERS = replace(
    PARTICLES, name="orders", help="Reveal orders that vote.", default=5, most=8.0, argument="particles"
)
WITHIN = Option(
    "within",
    "How experts combine in each run.",
    kind="choice",
    default="mixture",
    choices=("mixture", "product", "routing"),
)
TAKES = {"mixture": "weights", "product": "beta", "routing": "temperatures"}


@declare("hex", ORDERS, WITHIN, WEIGHTS, BETA, TEMPERATURES, fewest=1, selection="whole-vote", paths="orders")
def order_vote(
    within: Literal["mixture", "product", "routing"] = "mixture",
    weights: Sequence[float] | None = None,
    beta: Sequence[float] | None = None,
    temperatures: Sequence[float] | None = None,
) -> Composition:
    """A vote over whole answers, one for each reveal order: blocks of all masked cells, of half of them, and so on.

    Each run takes the likeliest values; `within` says how several experts are one, and takes its own numbers (weights
    of the mixture, beta of the product, temperatures of routing). Among answers with equally many votes the one that
    the experts' cell by cell mixture finds likeliest along its path is taken.

    Source: arXiv 2510.05040 (HEX), votes over block schedules. No code was found: the lengths, whole answers as what
    is voted on (there is no final answer inside a grid) and the tie rule are ours.
    """
    if within not in TAKES:
        raise InvalidInput(f"within: expected one of {', '.join(TAKES)}, got {within!r}")
    given = {"weights": weights, "beta": beta, "temperatures": temperatures}
    for name, numbers in given.items():
        if numbers is not None and name != TAKES[within]:
            raise InvalidInput(f"{name}: within {within!r} takes {TAKES[within]}, not {name}")
    if within == "mixture":
        return Mixture(weights)
    return Product(beta) if within == "product" else Routing(temperatures=temperatures)
