"""`factordiff data build code-prose`: Python files of pinned packages, prose told from code."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from factordiff.cli.progress import progress_bar
from factordiff.errors import InvalidInput


def build_text(out: Path | None, console: Console) -> None:
    """Fetch the packages, build the corpus and say what it is; the wheels are kept beside it."""
    from factordiff.arc.artefact import save_artefact
    from factordiff.files import check_outputs
    from factordiff.text.build import RECORDED, build
    from factordiff.text.corpus import CORPUS
    from factordiff.text.packages import pinned

    out = out or CORPUS
    if out.suffix != ".npz":
        raise InvalidInput(f"--out: expected a file name that ends in .npz, got {out}")
    check_outputs({"--out": out})
    packages = pinned()
    started = time.monotonic()
    with progress_bar("packages fetched and read", 2 * len(packages)) as progress:
        artefact = build(out.with_name("wheels"), packages, progress)
    save_artefact(artefact, out)
    for split, count in artefact.manifest["counts"].items():
        console.print(
            f"{split}: {count['characters']:,} characters of {count['files']:,} files from {count['packages']} "
            f"packages, {100 * count['prose'] / count['characters']:.0f} % of them prose"
        )
    console.print(f"{out}: {out.stat().st_size / 1e6:.1f} MB in {time.monotonic() - started:.0f} s")
    console.print(f"sha256 {artefact.sha256}")
    if artefact.sha256 == RECORDED:
        console.print("identical to the corpus that the shipped experts learned from")
    else:
        console.print(
            "not the corpus that the shipped experts learned from: another Python reads some files otherwise "
            "(it was built with Python 3.11)"
        )
