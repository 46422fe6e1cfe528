"""Where an expert is, and what to do about one that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os.path import isdir, isfile
from pathlib import Path

from factordiff.diffusion.objectives import OBJECTIVES
from factordiff.errors import Unavailable
from factordiff.printable import printable

CONFIG = "config.json"  # the file that makes a folder an expert's
WEIGHTS = "weights"  # where a training run keeps its expert
SNAPSHOTS = "snapshots"  # where it keeps what the expert was at certain steps, a folder for each
LONGEST_NAME = 300  # characters of an expert's name that are shown
TEXT = "text-"  # how the names of experts of text begin
SHIPPED = Path(__file__).parent.parent / "weights"
SMALL = "`factordiff train tiny --out runs/tiny` trains a small one in five minutes"


@dataclass(frozen=True)
class Found:
    """An expert's folder, and what the expert is called."""

    name: str
    folder: Path


def shipped_experts(*, of_text: bool = False) -> list[str]:
    """The names of the experts that come with the package: those of grids, or those of text."""
    names = sorted(path.parent.name for path in SHIPPED.glob(f"*/{CONFIG}"))
    return [name for name in names if name.startswith(TEXT) == of_text]


def find_expert(expert: str | Path) -> Found:
    """The expert of a shipped name, of a folder of its own (a run's snapshot is one), or of a training run's folder.

    One that is not there is an error that says how to train it, or where its weights would be looked for.
    """
    given = Path(expert)
    # Not Path.is_file, to which a name that is too long is an error.
    if isfile(given / WEIGHTS / CONFIG) and not isfile(given / CONFIG):
        folder = given / WEIGHTS
    elif isdir(given):
        folder = given
    elif isfile(SHIPPED / expert / CONFIG):
        folder = SHIPPED / expert
    else:
        raise _missing(str(expert))
    place = folder.resolve()
    name = place.parent.name if place.name == WEIGHTS else place.name
    if place.parent.name == SNAPSHOTS:  # a step alone would be the name of every run's
        name = f"{place.parent.parent.name}-{place.name}"
    return Found(printable(name, LONGEST_NAME), folder)


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names of several experts, each of them once: those who share one are numbered.

    >>> distinct_names(["x", "y", "x"])
    ['x (1)', 'y', 'x (2)']
    """
    found: list[str] = []
    for name in names:
        if names.count(name) > 1:
            free = (f"{name} ({number})" for number in range(1, 2 * len(names) + 1))
            name = next(one for one in free if one not in found and one not in names)
        found.append(name)
    return found


def _missing(name: str) -> Unavailable:
    shipped = ", ".join(shipped_experts() + shipped_experts(of_text=True)) or "none in this version"
    return Unavailable(
        f"expert: '{printable(name, LONGEST_NAME)}' is neither a folder nor a shipped expert (shipped: {shipped}); "
        f"{_advice(name)}"
    )


def _advice(name: str) -> str:
    kind, _, short = name.partition("-")
    if name.startswith(TEXT) and short in ("prose", "code", "all"):
        return (
            f"`factordiff train sequence --source factordiff.text.sources:{short.capitalize()} --out runs/{name}` "
            f"trains it (name it as runs/{name}) on what `factordiff data build code-prose` builds"
        )
    objective = "occupancy" if short == "occ" else short
    if kind not in ("trans", "conv") or objective not in OBJECTIVES:
        return f"{SMALL}, whose folder is then its name"
    return (
        f"`factordiff train fast --backbone {kind}-ir --objective {objective} --out runs/{name}` trains it "
        f"(name it as runs/{name}), {SMALL}, and trained weights belong into {SHIPPED / name}"
    )
