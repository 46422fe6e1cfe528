"""The paper's pairs of experts on ARC, and four at once: worlds in which nobody owns a cell by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from factordiff.arc.artefact import load_manifest
from factordiff.arc.conditions import inside
from factordiff.arc.grid import SIDE
from factordiff.composition.factor_names import EXAMPLES
from factordiff.devices import DTYPES, chosen_dtype
from factordiff.errors import InvalidInput
from factordiff.networks.named import load_named
from factordiff.worlds.arc_lists import SIZES, arc_list
from factordiff.worlds.compare import FITTED
from factordiff.worlds.metric import Filled, Measure, Metric, Ratio, cells, exact
from factordiff.worlds.queries import Queries
from factordiff.worlds.world import Experts, World, checked_limit

TEAMS: dict[str, tuple[tuple[str, ...], str]] = {
    "arc-full+full": (
        ("trans-full", "conv-full"),
        "two generalists that know the same tasks: every method is level",
    ),
    "arc-early": (
        ("trans-full-early", "conv-full-early"),
        "two generalists that were stopped early: each is wrong where the other is not",
    ),
    "arc-occ+full": (("trans-occ", "trans-full"), "a specialist of occupancy beside a generalist"),
    "arc-col+occ": (("trans-color", "trans-occ"), "two specialists, one flat where the other is at home"),
    "arc-col+occ-default-head": (
        ("trans-color", "trans-occ-default-head"),
        "two specialists, both wrongly sure off their ground: no number per expert is enough",
    ),
    "arc-four": (
        ("trans-full", "conv-full", "trans-color", "trans-occ"),
        "two generalists and two specialists: the surest is often the one who should be quiet",
    ),
}
GRID = "grid"  # the cells of the right grid; the others of its canvas are padding
METHODS = ("alone", "mixture", "product", "geometric-mean", "superdiff", "routing", "soft-routing")


def load_experts(
    names: Sequence[str],
    folders: Mapping[str, str | Path],
    device: torch.device | str,
    dtype: str = "auto",
) -> Experts:
    """Shipped experts, or those in the folders that a person names, in the precision of that name.

    Records name the precision where it is not float32: those of a GPU, which by itself uses bfloat16, are read and
    continued anywhere with `dtype="bfloat16"`.
    """
    unknown = sorted(set(folders) - set(names))
    if unknown:
        raise InvalidInput(f"expert: this world has no {unknown[0]!r}; expected {', '.join(names)}")
    chosen = chosen_dtype(dtype, torch.device(device))
    said = "" if chosen == "float32" else f", {chosen}"
    found = {name: load_named(folders.get(name, name), device, DTYPES[chosen]) for name in names}
    return Experts(
        {name: one.expert for name, one in found.items()},
        [one.objective for one in found.values()],
        {name: f"{one.sha256}{said}" for name, one in found.items()},
    )


def score(filled: Filled) -> dict[str, Ratio]:
    """Right canvases, those that are right once they are cut to the right grid, right cells."""
    cut = exact(filled, filled.queries.parts[GRID])
    return {"exact": exact(filled), "cut to shape": cut, "cells": cells(filled)}


class ArcPair(World):
    """Held-out RE-ARC queries; clusters are tasks. `folders` puts other weights in an expert's place."""

    metric = Metric((Measure("exact"), Measure("cut to shape"), Measure("cells")), score)
    factors = tuple(name for name in EXAMPLES if not name.startswith("near"))
    layout = (SIDE, SIDE)
    batch = 48
    sizes = SIZES

    def __init__(
        self, name: str, folders: Mapping[str, str | Path] | None = None, dtype: str = "auto"
    ) -> None:
        self.name = name
        self.members, self.tests = TEAMS[name]
        self.folders, self.dtype = folders or {}, dtype
        views = ("views",) if len(self.members) == 2 and any("occ" in one for one in self.members) else ()
        self.methods = (*METHODS, *views, *FITTED, "answer-fitted", "union", "oracle")

    def experts(self, device: torch.device | str = "cpu") -> Experts:
        """The pair, or the four."""
        return load_experts(self.members, self.folders, device, self.dtype)

    def queries(self, split: str, limit: int | None = None) -> Queries:
        """The first queries of the fixed list, which goes through the tasks in turn."""
        count = checked_limit(split, limit, self.sizes)
        queries = arc_list(split).first(count)
        return Queries(
            torch.full_like(queries.x_0, 10),
            queries.x_0,
            tuple(queries.task_ids),
            queries.condition(),
            parts={GRID: inside(queries.output_shapes)},
            made_of=torch.arange(count)[:, None],  # each instance once: fits may know every task
        )

    def data(self) -> str:
        """The data set's hash."""
        return str(load_manifest()["sha256"])
