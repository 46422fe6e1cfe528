"""Bits per hidden character of experts of prose and code, of every way to combine them, and of a generalist.

    python benchmarks/code_prose.py --experts runs/text-prose,runs/text-code --generalist runs/text-all --out table.json

Fixed numbers (weights, exponents, temperatures) are fitted on windows of the validation packages, exactly, and
everything is measured on windows of the test packages; intervals are over packages. `--verbatim N` also measures, with
N windows of each kind, how much training text each expert reproduces. `--ship` puts the experts into the package, as
bfloat16, and their cards beside them; figures are then of those. `--cards` writes the cards of experts that are there
already anew; what they say of the training stays. The shipped ones at full counts:

    python benchmarks/code_prose.py --verbatim 2000 --cards --device cuda
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, it finds its neighbours

import numpy as np
import torch

from benchmarks.text_bits import (
    InfillScore,
    best_mixture,
    best_product,
    best_temperatures,
    fill_in,
    hidden_log_probs,
)
from benchmarks.text_card import CARD, training_lines, write_text_card
from benchmarks.verbatim import verbatim
from factordiff.composition.composition import Composition
from factordiff.composition.mixture import Mixture
from factordiff.composition.product import GeometricMean, Product
from factordiff.composition.routing import Routing, SoftRouting
from factordiff.composition.single import Single
from factordiff.devices import choose_device, device_name
from factordiff.experts.registry import SHIPPED, Found, find_expert
from factordiff.networks.store import build, load_expert, load_weights, read_config, save_expert, weight_hash
from factordiff.report.statistics import Estimate, mean
from factordiff.text.corpus import CORPUS, load_corpus
from factordiff.text.sources import Code, Prose, TextSource
from factordiff.text.windows import Windows, hidden_cells, mixed_windows
from factordiff.training.provenance import provenance

BASE = "best of one number per expert"


def interval(one: InfillScore, other: InfillScore, packages: np.ndarray) -> Estimate:
    """Bits per hidden character that the first costs less, over packages."""
    saved = ((other.bits - one.bits) / one.cells.sum() * len(one.cells)).cpu().numpy()
    return mean(saved, packages, (-np.inf, np.inf))


def fitted(experts: list[Any], windows: Windows, share: float) -> dict[str, Composition]:
    """Every method with the numbers that are best on these windows."""
    said = hidden_log_probs(experts, windows.x_0, hidden_cells(windows, share))
    return {
        "mixture, fitted": Mixture(best_mixture(said)),
        "product, fitted": Product(best_product(said)),
        "confidence, T fitted": Routing(temperatures=best_temperatures(said)),
    }


def measure(
    experts: list[Any], names: list[str], generalist: Any, windows: dict[str, Windows], share: float
) -> tuple[dict[str, InfillScore], dict[str, str]]:
    """All rows at one share of hidden characters, and the fitted numbers."""
    found = fitted(experts, windows["validation"], share)
    methods: dict[str, Composition] = {f"{name} alone": Single(index) for index, name in enumerate(names)}
    methods |= {"mixture": Mixture(), "geometric mean": GeometricMean(), "confidence": Routing()}
    methods |= {"soft confidence": SoftRouting(), **found}
    test = windows["test"]
    hidden = hidden_cells(test, share)
    rows = fill_in(experts, methods, test.x_0, hidden, test.owner)
    if generalist is not None:
        rows["generalist"] = fill_in([generalist], {"it": Single(0)}, test.x_0, hidden)["it"]
    return rows, {name: repr(method) for name, method in found.items()}


def table(rows: dict[str, InfillScore], packages: np.ndarray) -> dict[str, Any]:
    """Bits, accuracy, what each saves against the best fixed numbers, and the share of the way to the generalist.

    Which fixed numbers are the best is decided on these very windows, in their favour. Where the generalist is no
    better there is no way to go.
    """
    fixed = [name for name in rows if name.endswith("alone") or "mixture" in name or "product" in name]
    base = min(fixed, key=lambda name: rows[name].bits_per_cell)
    way = None
    if "generalist" in rows:
        way = rows[base].bits_per_cell - rows["generalist"].bits_per_cell
    found = {}
    for name, filled in rows.items():
        saved = interval(filled, rows[base], packages)
        found[name] = {
            "bits": filled.bits_per_cell,
            "right": filled.share_right,
            "saved": [saved.value, saved.low, saved.high],
            "share of the way": saved.value / way if way is not None and way > 0 else None,
        }
    return {BASE: base, "rows": found}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--experts", default="text-prose,text-code", help="of prose, then of code")
    parser.add_argument("--generalist", default="text-all", help="'' for none")
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    parser.add_argument("--windows", type=int, default=2_000, help="of each split")
    parser.add_argument("--shares", default="0.15,0.5,0.85")
    parser.add_argument("--verbatim", type=int, default=0, metavar="N")
    parser.add_argument(
        "--ship",
        action="store_true",
        help="copy the experts into the package as bfloat16 first; write their cards",
    )
    parser.add_argument("--cards", action="store_true", help="write the cards of shipped experts anew")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = choose_device(arguments.device)
    corpus = load_corpus(arguments.corpus)
    splits = ("validation", "test")
    windows = {split: mixed_windows(corpus[split], arguments.windows).to(device) for split in splits}
    folders = [find_expert(name) for name in [*arguments.experts.split(","), arguments.generalist] if name]
    runs = [found.folder.parent for found in folders]
    if arguments.ship:
        folders = [shipped(found) for found in folders]
    everyone = {found.name: load_expert(found.folder, device) for found in folders}
    names = [found.name for found in folders[: len(arguments.experts.split(","))]]
    experts = [everyone[name] for name in names]
    generalist = everyone[folders[-1].name] if arguments.generalist else None
    packages = windows["test"].package.cpu().numpy()
    result: dict[str, Any] = {
        "corpus": corpus.sha256,
        "weights": {found.name: weight_hash(found.folder) for found in folders},
        "windows": {split: len(windows[split]) for split in splits},
        "device": device_name(device),
        "shares": {},
    }
    for share in map(float, arguments.shares.split(",")):
        began = time.monotonic()
        rows, numbers = measure(experts, names, generalist, windows, share)
        result["shares"][f"{share:g}"] = {**table(rows, packages), "fitted": numbers}
        show(share, result["shares"][f"{share:g}"], time.monotonic() - began)
    if arguments.verbatim:
        result["windows"]["verbatim"] = arguments.verbatim
        kinds: dict[str, type[TextSource]] = dict(zip(names, (Prose, Code), strict=False))
        result["verbatim"] = {
            name: reproduced(expert, kinds.get(name, TextSource), corpus, arguments, device)
            for name, expert in everyone.items()
        }
    if arguments.ship or arguments.cards:
        for found, run in zip(folders, runs, strict=True):
            told = provenance(found.folder, run) if arguments.ship else training_lines(found.folder)
            write_text_card(found.folder, result, told)
            print(f"wrote {found.folder / CARD}")
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


def shipped(found: Found) -> Found:
    """A copy of an expert among those of the package, rounded to bfloat16."""
    config = read_config(found.folder)
    network = build(config["backbone"], config["network"])
    load_weights(network, found.folder)
    folder = save_expert(network, SHIPPED / found.name, config["about"], torch.bfloat16)
    return Found(found.name, folder)


def reproduced(
    expert: Any, kind: type[TextSource], corpus: Any, arguments: Any, device: Any
) -> dict[str, float]:
    """What one expert reproduces of the text that it learned from."""
    source = kind(device, arguments.corpus)
    items = torch.arange(arguments.verbatim, device=device)
    train = source.draw(12345, torch.zeros((), dtype=torch.int64, device=device), items)[1]
    held_out = source.validation(arguments.verbatim)[1]
    found = vars(verbatim([expert], Single(0), corpus["train"].of_kind(kind.kind), train, held_out))
    print(
        f"{kind.kind}: " + ", ".join(f"{name} {100 * value:.1f} %" for name, value in found.items()),
        flush=True,
    )
    return found


def show(share: float, found: dict[str, Any], seconds: float) -> None:
    print(f"\n{100 * share:g} % hidden, {seconds:.0f} s; saved against {found[BASE]}; {found['fitted']}")
    print(f"{'':22} {'bits':>6} {'right':>7}  {'saved [95 % over packages]':28} share of the way")
    for name, row in sorted(found["rows"].items(), key=lambda item: -item[1]["bits"]):
        saved = "{:+.3f} [{:+.3f}, {:+.3f}]".format(*row["saved"])
        way = "" if row["share of the way"] is None else f"{100 * row['share of the way']:.0f} %"
        print(f"{name:22} {row['bits']:6.3f} {100 * row['right']:6.1f}%  {saved:28} {way}", flush=True)


if __name__ == "__main__":
    main()
