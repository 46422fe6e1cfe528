"""The worlds by name, and a comparison of one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from factordiff.errors import InvalidInput, Unavailable
from factordiff.own_modules import named_class
from factordiff.worlds.compare import assembled, prepared_setting
from factordiff.worlds.comparison import Comparison, Row
from factordiff.worlds.folder import Folder
from factordiff.worlds.methods import BOUND, MethodRow, entries, split_methods
from factordiff.worlds.metric import Filled
from factordiff.worlds.queries import Queries
from factordiff.worlds.setting import BUDGET, OnProgress
from factordiff.worlds.world import FITTED_ON, World

ARC = (
    "arc-full+full", "arc-early", "arc-occ+full", "arc-col+occ", "arc-col+occ-default-head", "arc-four",
)  # fmt: skip
TOYS = ("toy-either", "toy-both", "toy-halves", "toy-halves-sure", "toy-owners", "toy-cells", "toy-views")
SAID = ("name", "tests", "metric", "methods")  # of every world, beside what is abstract
WORLDS: dict[str, tuple[str, str, bool]] = {  # module, class, and whether it takes its name
    "sudoku": ("sudoku.world", "Sudoku", False),
    "arc-mosaic": ("mosaic.world", "Mosaic", False),
    "antibody": ("antibody.world", "Antibody", False),
    "code-prose": ("code_prose", "CodeProse", False),
    **dict.fromkeys(ARC, ("arc_pairs", "ArcPair", True)),
    **dict.fromkeys(TOYS, ("toys", "Toy", True)),
}


def world(name: str, **settings: Any) -> World:
    """The world of that name, or that of a class of one's own; some take settings, such as the folders of experts."""
    if ":" in name:
        return _own_world(name, settings)
    if name not in WORLDS:
        raise Unavailable(
            f"world: expected one of {', '.join(WORLDS)}, or module:Class for one of your own, got {name!r}; "
            "`factordiff worlds` lists them"
        )
    module, kind, named = WORLDS[name]
    make: Callable[..., World] = getattr(import_module(f"factordiff.worlds.{module}"), kind)
    return make(name, **settings) if named else make(**settings)


def _own_world(name: str, settings: dict[str, Any]) -> World:
    kind = named_class(
        "world", name, "expected module:Class (such as mine:Pairs, for the class Pairs in mine.py)"
    )
    if not isinstance(kind, type) or not issubclass(kind, World):
        raise InvalidInput(
            f"world: {name} is no World; make it a class of factordiff.worlds.world.World (CONTRIBUTING.md)"
        )
    missing = sorted(kind.__abstractmethods__) + [one for one in SAID if not hasattr(kind, one)]
    if missing:
        raise InvalidInput(f"world: {name} does not say its {', '.join(missing)} (CONTRIBUTING.md)")
    return kind(**settings)


def compare_world(
    chosen: World,
    methods: str = "",
    *,
    split: str = "test",
    limit: int | None = None,
    validation: int | None = None,
    device: torch.device | str = "cpu",
    batch: int = 0,
    seed: int = 0,
    reveal: str = "",
    budget: int = BUDGET,
    out: Path | None = None,
    on_progress: OnProgress | None = None,
) -> Comparison:
    """A world's table, from records in `out` as far as there are any.

    `validation` is how many queries rows are fitted on, `budget` how many settings each of them may try.
    """
    team = chosen.experts(device)
    queries = chosen.queries(split, limit)
    own = chosen.entries()
    asked = split_methods(methods) if methods else list(chosen.methods)
    rows: list[MethodRow] = []
    for name in asked:
        owned = queries.owners is not None
        rows += [own[name]] if name in own else entries([name], tuple(team.experts), owned)
    fitted = [row.label for row in rows if row.fitted]
    if fitted and split not in FITTED_ON:
        measured = " or ".join(name for name in FITTED_ON if name in chosen.sizes)
        raise InvalidInput(
            f"methods: {fitted[0]} is fitted on {split} queries and cannot be measured on them; expected --split "
            f"{measured}, or rows that are not fitted"
        )
    setting = prepared_setting(
        team.experts,
        chosen.metric,
        validation=chosen.queries(FITTED_ON[split], validation) if fitted else None,
        objectives=team.objectives,
        layout=chosen.layout,
        reveal=reveal or chosen.reveal,
        device=device,
        batch=batch or chosen.batch,
        seed=seed,
        rows=chosen.rows,
        factors=chosen.factors,
        budget=budget,
        on_progress=on_progress,
    )
    about = {
        "world": chosen.name,
        "split": split,
        "data": chosen.data(),
        "weights": dict(team.weights),
        "measures": [measure.name for measure in chosen.metric.measures],
        "reveal": str(setting.reveal),
        "seed": seed,
    }
    if out is not None:
        setting = replace(setting, folder=Folder(out / chosen.name / split, about))
    subset = (
        ""
        if len(queries) >= chosen.sizes[split]
        else f", the first {len(queries):,} of {chosen.sizes[split]:,}"
    )
    table = assembled(rows, setting, queries, f"{chosen.name}, {split}{subset}")
    told = {
        **about,
        "validation": 0 if setting.validation is None else len(setting.validation),
        "budget": budget,
    }
    references = _references(chosen, queries)
    return replace(table, rows=(*table.rows, *references), about={**told, **table.about})


def _references(chosen: World, queries: Queries) -> list[Row]:
    """Rows of answers that come from no composition; they cost no pass."""
    found = []
    for label, x_0 in chosen.references(queries).items():
        mask = int(queries.x_t.max())
        ratios = chosen.metric.score(Filled(queries, queries.hidden(mask), x_0))
        found.append(
            Row(
                label,
                BOUND,
                {name: sums.numpy() for name, (sums, _) in ratios.items()},
                {name: sizes.numpy() for name, (_, sizes) in ratios.items()},
                np.array(queries.clusters),
                0.0,
                "no expert",
            )
        )
    return found
