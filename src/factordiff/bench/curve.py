"""Accuracy against passes: each adaptive rule at a grid of settings, as numbers and as a figure; and the choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.bench.quality import Quality
from factordiff.composition.composition import Composition
from factordiff.engine.batch_sizes import BatchSizes
from factordiff.engine.engine import Engine
from factordiff.experts.expert import Expert
from factordiff.pictures import png
from factordiff.sampling.adaptive import ByEntropy, ByMargin, ByProduct
from factordiff.sampling.rules import REPAIR, reveal_rule

# Not as strict as can be: those settings are the loop again, at its price.
GRID: dict[str, tuple[float, ...]] = {
    "margin": (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999),
    "entropy": (8.0, 4.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.005),
    "product": (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999),
    "frechet": (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999),
    "confidence": (1, 2, 4, 8, 16, 32, 64, 128),
}
LOOP = "confidence:128"
DEFAULTS = (
    f"margin:{ByMargin().threshold:g}",
    f"entropy:{ByEntropy().gamma:g}",
    f"product:{ByProduct().threshold:g}",
    f"frechet:{ByProduct().threshold:g}",
)
# Repaired where it was unsure: each threshold of a margin, with what fell short of it revealed again.
REPAIRED = (0.5, 0.8, 0.9, 0.95, 0.99)
MARKS = {
    "margin": "o",
    "margin+repair": "*",
    "entropy": "s",
    "product": "^",
    "frechet": "v",
    "confidence": "x",
}


@dataclass(frozen=True)
class Point:
    """One rule at one setting."""

    rule: str  # as a person types it: margin:0.95
    exact: float  # share of queries
    pixel: float
    passes: float  # executed, per query, all experts
    mcnemar_p: float = 1.0  # against the loop
    largest_drop: float = 0.0  # of a task, against the loop
    equal: bool = False  # quality, to the loop's

    @property
    def family(self) -> str:
        """The rule without its numbers."""
        return "+".join(part.partition(":")[0] for part in self.rule.split("+"))


def accuracy_against_passes(
    experts: Sequence[Expert],
    composition: Composition,
    queries: EvaluationSet,
    *,
    batch: BatchSizes,
    rules: Sequence[str] | None = None,
    on_rule: Callable[[str], None] = lambda rule: None,
) -> Iterator[Point]:
    """Answer every query under every rule, the first of which the others are held against: the loop."""
    x_0, condition = queries.x_0, queries.condition()
    x_t = torch.full_like(x_0, experts[0].vocabulary.mask)
    loop, engine = None, Engine(batch)
    tasks = queries.task_indices.cpu().numpy()
    for rule in rules if rules is not None else every_rule():
        on_rule(rule)
        reveal = reveal_rule(rule)
        drawn = engine.sample(experts, composition, x_t, condition, reveal=reveal)
        right = drawn.x_0 == x_0
        exact = right.all(-1).cpu().numpy()
        loop = exact if loop is None else loop
        quality = Quality.of(exact, loop, tasks)
        passes = float(drawn.nominal_passes.double().mean())
        yield Point(
            rule,
            quality.exact,
            float(right.double().mean()),
            passes,
            quality.mcnemar_p,
            quality.largest_drop,
            quality.equal,
        )


def choice(points: Sequence[Point]) -> Point:
    """The point of fewest passes among those as good as the loop, the first, with half of what is allowed to spare.

    The largest drop of 120 tasks is the maximum of 120 noisy numbers: a rule that is just within bounds on the queries
    it was chosen by is as likely as not beyond them on others.
    """
    loop = points[0].exact

    def with_room(point: Point) -> bool:
        return Quality(point.exact, loop, point.mcnemar_p, point.largest_drop).within(0.5)

    return min(filter(with_room, points), key=lambda point: point.passes)


def every_rule() -> list[str]:
    """The whole grid, by name; the loop first."""
    plain = [f"{name}:{number:g}" for name, numbers in GRID.items() for number in numbers]
    repaired = [f"margin:{number:g}{REPAIR}{number:g}" for number in REPAIRED]
    return list(dict.fromkeys([LOOP, *plain, *repaired]))


def drawn(points: Sequence[Point], chosen: str, title: str) -> bytes:
    """The curves as a PNG, whole and near the fewest passes; the chosen rule has a ring, the defaults have labels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    whole, near = figure.subplots(1, 2)
    for axes in (whole, near):
        for family in dict.fromkeys(point.family for point in points):
            line = sorted((point.passes, 100 * point.exact) for point in points if point.family == family)
            axes.plot(*zip(*line, strict=True), marker=MARKS.get(family, "."), markersize=4, label=family)
        for point in points:
            if point.rule == chosen:
                axes.plot(
                    point.passes, 100 * point.exact, "o", markersize=14, fillstyle="none", color="black"
                )
        axes.set_xlabel("passes per grid, all experts")
    cheap = [point for point in points if point.family != "confidence"] or points
    for number, point in enumerate(point for point in cheap if point.rule in {*DEFAULTS, chosen}):
        at = (point.passes, 100 * point.exact)
        arrow = {"arrowstyle": "-", "color": "grey", "linewidth": 0.6}
        near.annotate(
            point.rule, at, (30, -30 - 14 * number), textcoords="offset points", fontsize=8, arrowprops=arrow
        )
    near.set_xlim(0.97 * min(point.passes for point in cheap), 1.1 * max(point.passes for point in cheap))
    whole.set_xscale("log")
    whole.set_ylabel("exact %")
    whole.legend(fontsize=8)
    figure.suptitle(title, fontsize=10)
    return png(figure)
