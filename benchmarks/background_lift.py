"""How far the color specialist forbids background decides what a product makes of Col+Occ.

python benchmarks/background_lift.py

Its loss looks at foreground alone, so nothing fixes how likely it calls background: a constant added to that one logit
leaves its own question, the colors of the foreground with the background given, as it was. For each such constant the
product's exact canvases stand beside the expert's own: on its own question, and alone as a full expert, as Table 1 of
the paper has it. Validation queries, decoded in eight steps.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.paper_snapshots import Say, background_log_prob, right
from factordiff import compose, load_expert
from factordiff.arc.dataset import Dataset
from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.arc.grid import COLORS, SIDE
from factordiff.evaluation.specialists import BACKGROUND
from factordiff.experts.expert import Expert
from factordiff.types import CellLogProbs, Tokens

LIFTS = (0.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0)
REVEAL = "confidence:8"
HEADINGS = ("added", "log p(bg)", "own question", "alone", "product")


class Lifted:
    """An expert with a constant added to its background logit."""

    def __init__(self, expert: Expert, lift: float) -> None:
        self.expert, self.lift, self.vocabulary = expert, lift, expert.vocabulary

    def encode(self, condition: Any) -> Any:
        """As the expert itself."""
        return self.expert.encode(condition)

    def log_probs(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """Normalised anew; a cell that is filled stays what it is."""
        lift = torch.zeros(self.vocabulary.size, device=x_t.device)
        lift[BACKGROUND] = self.lift
        lifted: Tensor = (self.expert.log_probs(x_t, encoded) + lift).log_softmax(-1)
        return lifted


def own_question(expert: Expert, queries: EvaluationSet) -> float:
    """Exact colorings: background is given, and no answer of the expert is background."""
    truth = queries.x_0
    x_t = torch.where(truth == BACKGROUND, truth, COLORS.mask)
    said = expert.log_probs(x_t, expert.encode(queries.condition()))
    colors = said.index_fill(-1, torch.tensor([BACKGROUND]), -torch.inf).argmax(-1)
    return float((torch.where(truth == BACKGROUND, truth, colors) == truth).all(-1).double().mean())


@torch.no_grad()
def lifted(
    color: Expert, occupancy: Expert, queries: EvaluationSet, lifts: Sequence[float], say: Say = print
) -> list[tuple[str, ...]]:
    """A line for each constant."""
    lines = []
    for lift in lifts:
        expert = Lifted(color, lift)
        alone, product = (
            100 * right(compose(team, method, layout=(SIDE, SIDE), reveal=REVEAL), queries).mean()
            for team, method in (([expert], "single"), ([expert, occupancy], "product"))
        )
        veto = background_log_prob(compose([expert]), queries)
        own = 100 * own_question(expert, queries)
        say(f"{lift:g} added: product {product:.1f} %")
        lines.append((f"{lift:g}", f"{veto:.2f}", f"{own:.1f}", f"{alone:.1f}", f"{product:.1f}"))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--experts", nargs=2, default=("trans-color", "trans-occ"), metavar=("COLOR", "OCC"))
    parser.add_argument("--limit", type=int, default=240, help="the first N validation queries")
    given = parser.parse_args()
    queries = Dataset.load().evaluation("validation", given.limit)
    table = Table(*HEADINGS, show_edge=False, pad_edge=False)
    progress = Console(stderr=True, highlight=False)
    for line in lifted(*map(load_expert, given.experts), queries, LIFTS, progress.print):
        table.add_row(*line)
    Console(highlight=False).print(table)


if __name__ == "__main__":
    main()
