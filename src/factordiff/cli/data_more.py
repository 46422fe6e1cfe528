"""`factordiff data more`: more instances of the same tasks, for training only, large inputs as often as small ones."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Annotated

from typer import Option

from factordiff.cli.data import MANIFEST, PROCESSORS, Workers, console, data
from factordiff.cli.progress import progress_bar
from factordiff.errors import InvalidInput


@data.command()
def more(
    workers: Workers = PROCESSORS,
    seed: Annotated[int, Option(help="2 is the set of docs/data.md.")] = 2,
    out: Annotated[Path, Option(help="Where to write; the manifest goes beside it.")] = Path("more.npz"),
    apart_from: Annotated[
        list[Path] | None,
        Option(help="A data set whose validation and test pairs are left out too (repeat for more)."),
    ] = None,
    instances: Annotated[int, Option(min=1, help="Instances of each task.")] = 3_000,
    attempts: Annotated[int, Option(min=1, help="Attempts at each task to choose from.")] = 40_000,
    task: Annotated[list[str] | None, Option(help="Only this task (repeat for more).")] = None,
) -> None:
    """Build more instances of the 120 tasks for training only, with large inputs as often as small ones.

    None of them is a validation, test or published pair of the shipped data set, under any symmetry. An interrupted
    build goes on where it stopped when it is started again.

    Example: factordiff data more --task 67a3c6ac --instances 20 --attempts 200 --out more.npz
    """
    from factordiff.arc.artefact import load_artefact, save_artefact
    from factordiff.arc.build.selection import selected_tasks
    from factordiff.arc.build.training_only import build_training_only
    from factordiff.cli import inputs
    from factordiff.files import check_outputs

    if out.suffix != ".npz":
        raise InvalidInput(f"--out: expected a file name that ends in .npz, got {out}")
    check_outputs({"--out": out, MANIFEST: out.with_suffix(".json")}, inputs.of_data(*(apart_from or [])))
    others = {f"--apart-from {file}": load_artefact(file) for file in apart_from or []}
    partial = out.with_name(f"{out.name}.partial")
    started = time.monotonic()
    total = len(set(task) if task else selected_tasks()) * attempts
    with progress_bar("attempts", total) as progress:
        artefact = build_training_only(partial, seed, workers, task, others, instances, attempts, progress)
    save_artefact(artefact, out)
    shutil.rmtree(partial, ignore_errors=True)
    counts = artefact.manifest["counts"]
    console.print(
        f"{out}: {counts['pairs']:,} pairs in {time.monotonic() - started:.0f} s, for training only"
    )
    console.print(f"{counts['left_out_as_measured']:,} candidates left out: something is measured with them")
    console.print(f"sha256 {artefact.sha256}")
