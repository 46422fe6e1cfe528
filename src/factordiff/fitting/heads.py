"""Routers of each head on the same rows, or one that begins as another; who is taken is chosen elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from factordiff.composition.router import Head, Kind, Router, RouterConfig
from factordiff.errors import InvalidInput
from factordiff.fitting.predictions import Predictions
from factordiff.fitting.router_fit import FitSettings, Fitted, fit_router
from factordiff.schema.values import Whole

RATE = {"shared": 1e-2, "neighbourhood": 2e-3}  # of learning, by the router's kind
HEADS: dict[str, tuple[Head, ...]] = {
    "mixture": ("mixture",),
    "product": ("product",),
    "both": ("mixture", "product"),
}


def chosen_heads(head: str) -> tuple[Head, ...]:
    """The heads that a person asked for: one, or both, of which held-out data choose."""
    if head not in HEADS:
        raise InvalidInput(f"head: expected one of {', '.join(HEADS)}, got {head!r}")
    return HEADS[head]


@dataclass(frozen=True)
class RouterWish:
    """What a router is to be: its kind, the heads that are tried, what it sees and adds, and the steps of its fit."""

    kind: Kind = "shared"
    heads: tuple[Head, ...] = ("mixture", "product")
    evidence: bool = False
    bias: bool = False
    complement: bool = False
    steps: int = 600

    def __post_init__(self) -> None:
        Whole(1).read(self.steps, "steps")
        if isinstance(self.heads, str):
            raise InvalidInput(f"heads: expected some of mixture, product in a list, got {self.heads!r}")

    def config(self, experts: int, mask: int, layout: tuple[int, int] | None) -> RouterConfig:
        """The router of the first head for so many experts."""
        more = self.evidence, self.bias, self.complement
        return RouterConfig(experts, mask, self.kind, self.heads[0], layout, *more)


def fit_heads(
    fitted: Predictions | Sequence[Predictions],
    held: Predictions | Sequence[Predictions],
    config: RouterConfig,
    heads: Sequence[Head],
    *,
    steps: int,
    seed: int = 0,
    folder: Path | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> list[Fitted]:
    """Routers that differ in their head alone, each as it was best on the held rows.

    With a `folder` an interrupted fit goes on where it was. `on_step(done, total)` hears of all heads together.
    """
    settings = FitSettings(steps, rate=RATE[config.kind], seed=seed)
    found = []
    for number, head in enumerate(heads):

        def told(step: int, of_steps: int, before: int = number * steps) -> None:
            if on_step is not None:
                on_step(before + step, len(heads) * of_steps)

        checkpoint = None if folder is None else folder / f"{head}.safetensors"
        found.append(
            fit_router(
                fitted, held, replace(config, head=head), settings, checkpoint=checkpoint, on_step=told
            )
        )
    return found


def fit_from(
    begun: Router,
    fitted: Predictions,
    held: Predictions,
    *,
    steps: int,
    seed: int = 0,
    folder: Path | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> Fitted:
    """A router that begins as another; held out it is never worse than that one."""
    settings = FitSettings(steps, rate=RATE[begun.config.kind], seed=seed)
    checkpoint = None if folder is None else folder / "from-mixture.safetensors"
    return fit_router(
        fitted, held, begun.config, settings, start=begun, checkpoint=checkpoint, on_step=on_step
    )
