"""The world of real text: experts of prose and of code fill in Python files, beside a generalist of their size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from factordiff.experts.expert import Expert
from factordiff.team.team import compose
from factordiff.text.alphabet import BYTES, values
from factordiff.text.corpus import BUILD, CORPUS, Text, load_corpus
from factordiff.text.ownership import prose_of
from factordiff.text.windows import Windows, hidden_cells, mixed_windows
from factordiff.worlds.arc_pairs import load_experts
from factordiff.worlds.methods import BOUND, MethodRow
from factordiff.worlds.metric import Filled, Measure, Metric, Ratio, cells, nats
from factordiff.worlds.queries import Queries
from factordiff.worlds.setting import Answering, Setting, always
from factordiff.worlds.world import Experts, World, checked_limit

MEMBERS, GENERALIST = ("text-prose", "text-code"), "text-all"
WINDOWS = 2_000  # of each split
SHARE = 0.15  # of the characters that are hidden
PARTS = ("prose", "code")


def score(filled: Filled) -> dict[str, Ratio]:
    r"""$-\log_2 r(x_0)$ per hidden character, of all and of each kind, and how many are right."""

    def bits(of: Ratio) -> Ratio:
        return of[0] / math.log(2), of[1]

    found = {f"bits {name}": bits(nats(filled, filled.queries.parts[name])) for name in PARTS}
    return {"bits": bits(nats(filled)), **found, "right": cells(filled)}


def queries_of(windows: Windows) -> Queries:
    """The windows with some of their characters hidden."""
    hidden = hidden_cells(windows, SHARE)
    return Queries(
        torch.where(hidden, BYTES.mask, windows.x_0),
        windows.x_0,
        tuple(f"package {number}" for number in windows.package.tolist()),
        owners=windows.owner,
        parts={name: windows.owner == number for number, name in enumerate(PARTS)},
    )


def passage(text: str) -> Queries:
    """A whole text, of 256 characters at most, as one window with some of its characters hidden."""
    nowhere = torch.zeros(1, dtype=torch.int64)
    x_0 = torch.from_numpy(values(text).astype(np.int64))[None]
    owner = torch.from_numpy((~prose_of(text)).astype(np.int64))[None]
    return queries_of(Windows(x_0, owner, nowhere, nowhere))


class CodeProse(World):
    """Windows of held-out packages with prose and code in them, 15 % hidden; clusters are packages.

    `expert=FOLDER` puts other weights in the place of text-prose, text-code or text-all.
    """

    name = "code-prose"
    tests = "specialists of two kinds of text that alternate: how far do they get towards one trained on both"
    metric = Metric(
        (
            *(Measure(name, "bits", lower_is_better=True) for name in ("bits", "bits prose", "bits code")),
            Measure("right"),
        ),
        score,
        "one-pass",
    )
    methods = (
        "alone", "mixture", "product", "geometric-mean", "routing", "soft-routing",
        "fitted:mixture", "fitted:product", "fitted:routing", "fitted:learned", "fitted:learned[kind=neighbourhood]",
        "told", "answer-fitted", "union", "oracle", "generalist",
    )  # fmt: skip
    factors = ("pixel", "whole")
    batch = 64
    needs = "`factordiff data build code-prose` (the corpus, 91 MB of wheels)"
    recipe = (
        "factordiff data build code-prose\nfactordiff compare code-prose\n"
        "# its experts were trained by:\n"
        "factordiff train sequence --source factordiff.text.sources:Prose --out runs/text-prose\n"
        "factordiff train sequence --source factordiff.text.sources:Code --out runs/text-code\n"
        "factordiff train sequence --source factordiff.text.sources:All --out runs/text-all\n"
        "factordiff compare code-prose --expert text-prose=runs/text-prose --expert text-code=runs/text-code "
        "--expert text-all=runs/text-all"
    )

    def __init__(
        self,
        folders: Mapping[str, str | Path] | None = None,
        corpus: Path = CORPUS,
        dtype: str = "auto",
    ) -> None:
        self.folders, self.file, self.dtype = folders or {}, corpus, dtype
        self._generalist: Expert | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """How many windows each split has; 0 while there is no corpus."""
        there = self.file.is_file()
        return {split: len(self._windows(split)) if there else 0 for split in ("validation", "test")}

    def _windows(self, split: str) -> Windows:
        return mixed_windows(load_corpus(self.file)[split], WINDOWS)

    def experts(self, device: torch.device | str = "cpu") -> Experts:
        """Prose, then code; the generalist is loaded beside them."""
        found = load_experts((*MEMBERS, GENERALIST), self.folders, device, self.dtype)
        self._generalist = found.experts[GENERALIST]
        return Experts({name: found.experts[name] for name in MEMBERS}, ["full", "full"], found.weights)

    def queries(self, split: str, limit: int | None = None) -> Queries:
        """The first windows of a split, which go through its packages in turn."""
        load_corpus(self.file)  # refused with what to do, where there is none
        return queries_of(self._windows(split))[: checked_limit(split, limit, self.sizes)]

    def example(self) -> Queries:
        """The first window of this very file, which nobody learned from: no corpus is needed to look on."""
        text = Path(__file__).read_text()
        cells, prose = values(text), prose_of(text)
        own = Text(cells, prose, np.array([0, len(cells)]), np.zeros(1, np.int16))
        return queries_of(mixed_windows(own, 1))

    def data(self) -> str:
        """The corpus' hash."""
        return load_corpus(self.file).sha256 if self.file.is_file() else f"none: {BUILD}"

    def entries(self) -> dict[str, MethodRow]:
        """The generalist alone: what the way is to."""
        return {"generalist": MethodRow("generalist", BOUND, self._by_generalist)}

    def _by_generalist(self, setting: Setting) -> Answering:
        assert self._generalist is not None  # `experts` comes first
        alone = {GENERALIST: self._generalist}
        return always(compose(alone, "single", reveal=setting.reveal, device=setting.device))
