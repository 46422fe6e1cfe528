"""What training longer does to the paper's own networks, over the snapshots of `factordiff train paper`.

python benchmarks/paper_snapshots.py --specialists runs/paper-trans-color runs/paper-trans-occ --device cuda
python benchmarks/paper_snapshots.py --pair runs/paper-trans-full runs/paper-conv-full --device cuda
python benchmarks/paper_snapshots.py --draw docs/training/paper-snapshots.json docs/training/paper-snapshots.png

Two questions that the paper leaves open. (1) Its product of the color and the occupancy specialist has 73.2 %; ours
next to nothing. The color specialist is never shown background, so how far it forbids background is fixed by nothing
but how long it was trained: `log p(bg)` is the median, over the background cells of all queries with everything
masked, of its log-probability of background; beside it stand the methods that multiply or add it. (2) Its two full
experts compose to more than ours: `either` is how often at least one is right, `phi` the correlation of their errors.
Each folder holds one folder per step. Validation queries, exact canvases. `--out FILE.json` adds the lines to those of
a file, where a training goes on in several pieces.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from factordiff import compose
from factordiff.arc.dataset import Dataset
from factordiff.arc.evaluation_set import EvaluationSet
from factordiff.arc.grid import COLORS, SIDE
from factordiff.composition.views import split
from factordiff.evaluation.specialists import BACKGROUND
from factordiff.pictures import png
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


def merged(file: Path, question: str, headings: Sequence[str], lines: list[list[str]]) -> dict[str, Any]:
    """What the file knows, with these lines in it, by step."""
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    by_step = {line[0]: line for line in known.get(question, {}).get("lines", [])} | {
        line[0]: line for line in lines
    }
    ordered = sorted(by_step.values(), key=lambda line: int(line[0]))
    return known | {question: {"headings": list(headings), "lines": ordered}}


def drawn(known: dict[str, Any]) -> bytes:
    """The specialists' curves: what composing them gives, and how far the color specialist forbids background."""
    found = known["specialists"]
    columns = list(zip(*([float(number) for number in line] for line in found["lines"]), strict=True))
    steps, veto, *exact = columns
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    left, right_side = figure.subplots(1, 2)
    for name, values in zip(found["headings"][2:], exact, strict=True):
        left.plot(steps, values, "o-", markersize=4, label=name)
    left.set_ylabel("exact %, color + occupancy")
    left.legend(fontsize=8)
    right_side.plot(steps, veto, "o-", markersize=4, color="#444")
    right_side.set_ylabel("median log p(background)\nof the color specialist at background")
    for axes in (left, right_side):
        axes.set_xlabel("training steps")
        axes.set_xlim(left=0)
    return png(figure)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--specialists", nargs=2, type=Path, metavar=("COLOR", "OCCUPANCY"))
    asked.add_argument("--pair", nargs=2, type=Path, metavar=("TRANS", "CONV"))
    asked.add_argument("--draw", nargs=2, type=Path, metavar=("JSON", "PNG"), help="the specialists' curves")
    parser.add_argument("--limit", type=int, default=600, help="the first N validation queries")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="add the lines to those of this JSON file")
    given = parser.parse_args()
    if given.draw:
        given.draw[1].write_bytes(drawn(json.loads(given.draw[0].read_text())))
        return
    queries = Dataset.load().evaluation("validation", given.limit)
    console, progress = Console(highlight=False), Console(stderr=True, highlight=False)
    if given.specialists:
        question, headings = "specialists", ["step", "log p(bg)", *METHODS]
        lines = specialists(given.specialists, queries, given.device, progress.print)
    else:
        question, headings = "pair", ["step", "trans", "conv", "either", "phi", "routing"]
        lines = siblings(given.pair, queries, given.device, progress.print)
    table = Table(*headings, show_edge=False, pad_edge=False)
    for line in lines:
        table.add_row(*line)
    console.print(table)
    if given.out:
        given.out.write_text(json.dumps(merged(given.out, question, headings, lines), indent=1) + "\n")


if __name__ == "__main__":
    main()
