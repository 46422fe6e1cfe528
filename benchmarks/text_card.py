"""The card of an expert of text: what it learned from, what it reaches, how much of it it repeats."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from factordiff.errors import DataError
from factordiff.files import write_whole
from factordiff.networks.store import read_config, weight_hash
from factordiff.text.packages import pinned, split_of

FIGURES, CARD = "figures.json", "README.md"
CORPUS_LINE, WEIGHTS_LINE = "- corpus ", "- weights "  # between them stands how the training went
KIND_OF = {
    "text-prose": "comments and docstrings",
    "text-code": "code without comments and docstrings",
    "text-all": "whole files",
}


def write_text_card(folder: Path, measured: Mapping[str, Any], training: Sequence[str]) -> None:
    """Write figures and card of an expert that `benchmarks/code_prose.py` measured; `training`: how it came to be.

    Figures of other weights than those in the folder are refused.
    """
    found = measured["weights"].get(folder.name)
    if found != weight_hash(folder):
        raise DataError(f"{folder}: these figures are of other weights ({found}); measure this expert again")
    write_whole(folder / FIGURES, (json.dumps(measured, indent=1) + "\n").encode())
    write_whole(folder / CARD, card(folder, measured, training).encode())


def training_lines(folder: Path) -> list[str]:
    """What an expert's card says of its training, to be said again by its next card."""
    lines = (folder / CARD).read_text(encoding="utf-8").splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith(CORPUS_LINE))
    # The last such line: a training may say of which step the weights are.
    last = max(place for place, line in enumerate(lines) if line.startswith(WEIGHTS_LINE))
    return [line.removeprefix("- ") for line in lines[first + 1 : last]]


def card(folder: Path, measured: Mapping[str, Any], training: Sequence[str]) -> str:
    """The card as Markdown."""
    config, name = read_config(folder), folder.name
    row = "generalist" if name == "text-all" else f"{name} alone"
    packages = pinned()
    split = split_of(packages)
    licences = Counter(package.license for package in packages if split[package.name] == "train")
    lines = [
        "---",
        "license: apache-2.0",
        "library_name: factordiff",
        "tags: [discrete-diffusion, masked-diffusion, byte-level]",
        "---",
        f"# {name}",
        "",
        f"A {config['backbone']} denoiser of Python text, {config['parameters']:,} parameters, "
        f"{config['network']['values']} values (newline and printable ASCII), windows of "
        f'{config["network"]["length"]} characters: `factordiff.load_expert("{name}")`.',
        "",
        "## Training",
        "",
        f"- learned from {KIND_OF.get(name, 'text')} of {sum(licences.values())} packages from PyPI",
        "- their licences: " + ", ".join(f"{licence} ({count})" for licence, count in licences.most_common()),
        "- every package with its version, licence and sha256: `src/factordiff/text/packages.json`",
        f"{CORPUS_LINE}{measured['corpus']}",
        *(f"- {line}" for line in training),
        f"{WEIGHTS_LINE}{weight_hash(folder)}",
        "",
        "## Figures",
        "",
        f"Bits per hidden character on {measured['windows']['test']:,} windows of packages held out, each with 20 to "
        "80 % prose; intervals of what is saved are over packages, in `figures.json`.",
        "",
        "| hidden | bits | right |",
        "| --- | --- | --- |",
    ]
    for share, table in measured["shares"].items():
        found = table["rows"][row]
        lines.append(f"| {100 * float(share):g} % | {found['bits']:.3f} | {100 * found['right']:.1f} % |")
    return "\n".join([*lines, *_repeated(measured, name)]) + "\n"


def _repeated(measured: Mapping[str, Any], name: str) -> list[str]:
    found = measured.get("verbatim", {}).get(name)
    if found is None:
        return []
    shares = {measure: f"{100 * share:.1f} %" for measure, share in found.items()}
    return [
        "",
        "## What it repeats of its training text",
        "",
        f"Of {measured['windows']['verbatim']:,} windows each: written, of training text, of held-out text.",
        "",
        f"- stretches of 20 characters of what it writes from nothing that occur there: {shares['written']}; "
        f"of held-out text: {shares['held_out']}",
        f"- hidden stretches of 20 characters that it puts back exactly: {shares['restored_train']} of training text, "
        f"{shares['restored_held_out']} of held-out text",
    ]
