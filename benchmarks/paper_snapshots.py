"""What training longer does to the paper's own networks, over the snapshots of `factordiff train paper`.

python benchmarks/paper_snapshots.py --specialists runs/paper-trans-color runs/paper-trans-occ --device cuda
python benchmarks/paper_snapshots.py --pair runs/paper-trans-full runs/paper-conv-full --device cuda

Two questions that the paper leaves open. (1) Its product of the color and the occupancy specialist has 73.2 %; ours
next to nothing. The color specialist is never shown background, so how far it forbids background is fixed by nothing
but how long it was trained: `log p(bg)` is the median, over the background cells of all queries with everything
masked, of its log-probability of background; beside it stand the methods that multiply or add it. (2) Its two full
experts compose to more than ours: `either` is how often at least one is right, `phi` the correlation of their errors.
Each folder holds one folder per step. Validation queries, exact canvases.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from factordiff import compose
from factordiff.arc.dataset import Dataset
from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.arc.grid import COLORS, SIDE
from factordiff.composition.views import split
from factordiff.evaluation.specialists import BACKGROUND
from factordiff.report.charts import curves
from factordiff.team.team import Team

AT_ONCE = 600
METHODS = ("product", "fkc", "mixture", "routing")
OCC_TEMPERATURE = 0.25  # the paper's, for its occupancy specialist

Say = Callable[[str], None]


def common_steps(folders: Sequence[Path]) -> list[int]:
    """The steps of which every folder holds a snapshot."""
    held = [{int(one.name) for one in folder.iterdir() if one.name.isdecimal()} for folder in folders]
    return sorted(set.intersection(*held))


def right(team: Team, queries: EvaluationSet) -> np.ndarray:
    """Which canvases are exact."""
    found = []
    for start in range(0, len(queries), AT_ONCE):
        index = torch.arange(start, min(start + AT_ONCE, len(queries)))
        x_t = torch.full((len(index), SIDE * SIDE), COLORS.mask)
        answers = team.sample(x_t, queries.condition(index)).x_0
        found.append((answers.cpu() == queries.x_0[index].cpu()).all(-1).numpy())
    return np.concatenate(found)


@torch.no_grad()
def background_log_prob(team: Team, queries: EvaluationSet) -> float:
    """The median of log p(background) at background cells, with every cell masked."""
    (expert,) = team.experts
    found = []
    for start in range(0, len(queries), AT_ONCE):
        index = torch.arange(start, min(start + AT_ONCE, len(queries)))
        x_0 = queries.x_0[index].to(team.device)
        encoded = expert.encode(queries.condition(index).to(team.device))
        log_bg, _, _ = split(expert.log_probs(torch.full_like(x_0, COLORS.mask), encoded))
        found.append(log_bg[x_0 == BACKGROUND].float().cpu())
    return float(torch.cat(found).median())


def specialists(folders: Sequence[Path], queries: EvaluationSet, device: str, say: Say) -> list[list[str]]:
    """A line per snapshot: log p(bg), then exact % by method."""
    lines = []
    for step in common_steps(folders):
        pair = [folder / str(step) for folder in folders]
        line = [f"{background_log_prob(compose(pair[:1], device=device), queries):.2f}"]
        for method in METHODS:
            options = {"temperatures": (1.0, OCC_TEMPERATURE)} if method == "routing" else {}
            team = compose(pair, method, device=device, **options)
            line.append(f"{100 * right(team, queries).mean():.1f}")
            say(f"step {step}: {method} {line[-1]} %")
        lines.append([str(step), *line])
    return lines


def siblings(folders: Sequence[Path], queries: EvaluationSet, device: str, say: Say) -> list[list[str]]:
    """A line per snapshot: each alone, either, phi, and routed."""
    lines = []
    for step in common_steps(folders):
        pair = [folder / str(step) for folder in folders]
        one, other = (right(compose([expert], device=device), queries) for expert in pair)
        phi = np.corrcoef(one, other)[0, 1] if one.std() and other.std() else float("nan")
        routed = right(compose(pair, "routing", device=device), queries)
        shares = [f"{100 * share.mean():.1f}" for share in (one, other, one | other)]
        lines.append([str(step), *shares, f"{phi:.2f}", f"{100 * routed.mean():.1f}"])
        say(f"step {step}: {' '.join(lines[-1][1:])}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--specialists", nargs=2, type=Path, metavar=("COLOR", "OCCUPANCY"))
    asked.add_argument("--pair", nargs=2, type=Path, metavar=("TRANS", "CONV"))
    parser.add_argument("--limit", type=int, default=600, help="the first N validation queries")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--picture", type=Path, help="draw the specialists' curves into this PNG")
    given = parser.parse_args()
    queries = Dataset.load().evaluation("validation", given.limit)
    console, progress = Console(highlight=False), Console(stderr=True, highlight=False)
    if given.specialists:
        headings = ["step", "log p(bg)", *METHODS]
        lines = specialists(given.specialists, queries, given.device, progress.print)
    else:
        headings = ["step", "trans", "conv", "either", "phi", "routing"]
        lines = siblings(given.pair, queries, given.device, progress.print)
    table = Table(*headings, show_edge=False, pad_edge=False)
    for line in lines:
        table.add_row(*line)
    console.print(table)
    if given.picture and given.specialists:
        steps = [float(line[0]) for line in lines]
        drawn = {
            name: (steps, [float(line[2 + place]) for line in lines]) for place, name in enumerate(METHODS)
        }
        given.picture.write_bytes(curves(drawn, "training steps", "exact %"))


if __name__ == "__main__":
    main()
