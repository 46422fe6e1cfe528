"""Where an expert is, and what to do about one that is not there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from factordiff.errors import Unavailable
from factordiff.experts import store

WEIGHTS = "weights"  # where a training run keeps its expert
SMALL = "`factordiff train tiny --out runs/tiny` trains a small one in five minutes"

# The experts of the paper by name: what `factordiff train` has to be told.
_TRAINING = {
    "trans-full": "--backbone trans-ir --objective full",
    "conv-full": "--backbone conv-ir --objective full",
    "trans-occ": "--backbone trans-ir --objective occupancy",
    "trans-color": "--backbone trans-ir --objective color",
}


@dataclass(frozen=True)
class Found:
    """An expert's folder, and what the expert is called."""

    name: str
    folder: Path


def find_expert(expert: str | Path) -> Found:
    """The expert of a shipped name, of a folder of its own, or of a training run's folder.

    One that is not there is an error that says how to train it, or where its weights would be looked for.
    """
    run = Path(expert) / WEIGHTS
    if (run / store.CONFIG).is_file() and not (Path(expert) / store.CONFIG).is_file():
        return Found(Path(expert).resolve().name, run)
    try:
        folder = store.expert_folder(expert)
    except Unavailable as error:
        raise Unavailable(f"{error}; {_advice(str(expert))}") from None
    place = folder.resolve()
    return Found(place.parent.name if place.name == WEIGHTS else place.name, folder)


def _advice(name: str) -> str:
    if name not in _TRAINING:
        return f"{SMALL}, whose folder is then its name"
    return (
        f"`factordiff train fast {_TRAINING[name]} --out runs/{name}` trains it (name it as runs/{name}), {SMALL}, "
        f"and trained weights belong into {store.SHIPPED / name}"
    )
