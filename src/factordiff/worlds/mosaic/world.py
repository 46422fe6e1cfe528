"""The world where ownership is spatial: no weight per sample can be right, and the surest may be wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from factordiff.arc.artefact import load_manifest
from factordiff.composition.evidence import Evidence
from factordiff.composition.factor_names import partition
from factordiff.experts.condition import on_device
from factordiff.fitting.search import fittable
from factordiff.sampling.given_evidence import Scores
from factordiff.worlds.arc_lists import arc_list
from factordiff.worlds.arc_pairs import GRID, load_experts
from factordiff.worlds.compare import FITTED
from factordiff.worlds.fitting import fit_numbers
from factordiff.worlds.methods import FACTOR, MethodRow
from factordiff.worlds.metric import Filled, Measure, Metric, Ratio, cells, exact
from factordiff.worlds.mosaic.canvas import QUARTERS, WIDTH, Quartered, apart
from factordiff.worlds.mosaic.demonstrations import demonstration_evidence
from factordiff.worlds.mosaic.mosaics import SIZES, mosaics
from factordiff.worlds.mosaic.tasks import EXPERTS, training_commands
from factordiff.worlds.queries import Queries
from factordiff.worlds.setting import Answering, PreparedMethod, Setting
from factordiff.worlds.world import Experts, World, checked_limit

BLOCKS = "block:10x10"
DEMONSTRATIONS = "demonstrations"
FITTED_DEMONSTRATIONS = f"fitted:{DEMONSTRATIONS}"


def score(filled: Filled) -> dict[str, Ratio]:
    """Right quarters, those that are right once they are cut to the right grid, right mosaics, right cells."""
    right = filled.right == filled.hidden
    every = torch.full((len(right),), float(QUARTERS), dtype=torch.float64)

    def quarters(right: Bool[Tensor, "query cell"]) -> Ratio:
        return apart(right).all(-1).double().sum(1), every

    cut = quarters(right | ~filled.queries.parts[GRID])
    return {
        "quarters": quarters(right),
        "cut to shape": cut,
        "mosaics": exact(filled),
        "cells": cells(filled),
    }


def by_demonstrations(setting: Setting) -> Answering:
    """Who predicts a quarter's demonstrations best answers for the quarter; then what the path says is added."""
    return _demonstrated(setting, {}, {})


def fitted_demonstrations(setting: Setting) -> Answering:
    """The same with a temperature and biases that were fitted; what demonstrations say is found out once."""
    gathered: dict[bytes, Scores] = {}
    return fit_numbers(
        FITTED_DEMONSTRATIONS,
        fittable("evidence"),
        lambda at, options: _demonstrated(at, options, gathered),
        setting,
    )


def _demonstrated(setting: Setting, options: Mapping[str, Any], gathered: dict[bytes, Scores]) -> Answering:
    experts = list(setting.experts.values())
    quarters = partition(BLOCKS, WIDTH * WIDTH, (WIDTH, WIDTH))

    def prepared(queries: Queries) -> PreparedMethod:
        shown = (queries.condition.context_inputs, queries.condition.context_outputs)
        key = hashlib.sha256(b"".join(part.numpy().tobytes() for part in shown)).digest()
        if key not in gathered:
            evidence, passes = demonstration_evidence(
                experts, on_device(queries.condition, torch.device(setting.device))
            )
            gathered[key] = evidence, passes.cpu()
        evidence, passes = gathered[key]
        earned = Evidence(
            quarters,
            evidence=evidence,
            temperature=options.get("evidence_temperature", 1.0),
            bias=options.get("bias"),
        )
        return PreparedMethod((setting.team(earned),), passes * QUARTERS)

    return prepared


class Mosaic(World):
    """Four tasks on 20x20 cells, each with its own demonstrations; each expert knows 30 of the 120 tasks."""

    name = "arc-mosaic"
    tests = "spatial owners and experts that are wrongly sure off their tasks: who is told, or finds out, must win"
    metric = Metric(
        (Measure("quarters"), Measure("cut to shape"), Measure("mosaics"), Measure("cells")), score
    )
    methods = (
        "alone", "mixture", "product", "geometric-mean", "superdiff", "routing", f"routing[factors={BLOCKS}]",
        "soft-routing", DEMONSTRATIONS, *FITTED, FITTED_DEMONSTRATIONS, "answer-fitted", "union", "told", "oracle",
    )  # fmt: skip
    factors = (BLOCKS, "pixel", "component", "whole")
    layout = (WIDTH, WIDTH)
    batch = 12
    sizes = SIZES
    rows = QUARTERS

    def __init__(self, folders: Mapping[str, str | Path] | None = None, dtype: str = "auto") -> None:
        self.folders, self.dtype = folders or {}, dtype

    @property
    def recipe(self) -> str:  # type: ignore[override]
        """The commands that trained its experts, and the one that compares with others in their place."""
        named = " ".join(f"--expert {name}=runs/{name}" for name in EXPERTS)
        return "\n".join([*training_commands(), f"factordiff compare {self.name} {named}"])

    def experts(self, device: torch.device | str = "cpu") -> Experts:
        """The four, each asked about every quarter."""
        small = load_experts(EXPERTS, self.folders, device, self.dtype)
        each = {name: Quartered(expert) for name, expert in small.experts.items()}
        return Experts(each, small.objectives, small.weights)

    def queries(self, split: str, limit: int | None = None) -> Queries:
        """The first mosaics of a split: of the queries of that ARC list."""
        count = checked_limit(split, limit, self.sizes)
        return mosaics(split, count, arc_list(split))

    def data(self) -> str:
        """The data set's hash, and which mosaics of it."""
        return f"mosaics-1 of {load_manifest()['sha256']}"

    def entries(self) -> dict[str, MethodRow]:
        """Evidence from each quarter's demonstrations, as it is and fitted."""
        return {
            DEMONSTRATIONS: MethodRow(DEMONSTRATIONS, FACTOR, by_demonstrations),
            FITTED_DEMONSTRATIONS: MethodRow(FITTED_DEMONSTRATIONS, FACTOR, fitted_demonstrations),
        }
