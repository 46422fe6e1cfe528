"""`factordiff data build | verify | show | measure | fetch`: the RE-ARC data set, a corpus, published models."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Argument, Option

from factordiff.cli.app import app
from factordiff.cli.progress import progress_bar
from factordiff.cli.verbs import Verbs
from factordiff.errors import DataError, InvalidInput, MissingDependency, Unavailable

data = Verbs(no_args_is_help=True, help="Build, check and look at data sets.")
app.add_typer(data, name="data")
console = Console(highlight=False, markup=False, soft_wrap=True)  # messages name extras in brackets

MANIFEST = "--out, the manifest beside it"
MOST_WORKERS = 1_024  # more processes than there are tasks to share
PROCESSORS = min(os.cpu_count() or 1, MOST_WORKERS)
Workers = Annotated[
    int, Option(min=1, max=MOST_WORKERS, help="Processes; their number does not change the result.")
]


@data.command()
def build(
    what: Annotated[str, Argument(help="rearc, or code-prose: text of Python files.")] = "rearc",
    workers: Workers = PROCESSORS,
    seed: Annotated[int, Option(help="0 is the shipped data set.")] = 0,
    out: Annotated[
        Path | None,
        Option(
            help="Where to write, rearc.npz or data/code-prose.npz if it is not said; the manifest goes beside it."
        ),
    ] = None,
    task: Annotated[list[str] | None, Option(help="Only this task (repeat for more).")] = None,
) -> None:
    """Build a data set anew: RE-ARC, 1,000 instances of each of the 120 tasks; or the corpus of code-prose.

    An interrupted build goes on where it stopped when it is started again. code-prose fetches 178 pinned packages with
    pip (91 MB), runs nothing of them, and takes a few minutes.

    Example: factordiff data build --task 67a3c6ac --out one-task.npz
    """
    if what == "code-prose":
        from factordiff.cli.data_text import build_text

        if seed or task:
            raise InvalidInput("code-prose: it has no seed and no tasks; leave --seed and --task out")
        build_text(out, console)
    elif what == "rearc":
        _build_rearc(workers, seed, out or Path("rearc.npz"), task)
    else:
        raise InvalidInput(f"data: expected rearc or code-prose, got {what!r}")


def _build_rearc(workers: int, seed: int, out: Path, task: list[str] | None) -> None:
    from factordiff.arc.artefact import load_manifest, save_artefact
    from factordiff.arc.build.assembly import build as build_data
    from factordiff.arc.build.selection import CANDIDATES, selected_tasks
    from factordiff.files import check_outputs

    if out.suffix != ".npz":
        raise InvalidInput(f"--out: expected a file name that ends in .npz, got {out}")
    check_outputs({"--out": out, MANIFEST: out.with_suffix(".json")})
    partial = out.with_name(f"{out.name}.partial")
    started = time.monotonic()
    total = len(set(task) if task else selected_tasks()) * CANDIDATES
    with progress_bar("candidates", total) as progress:
        artefact = build_data(partial, seed, workers, task, progress)
    save_artefact(artefact, out)
    shutil.rmtree(partial, ignore_errors=True)
    console.print(
        f"{out}: {artefact.manifest['counts']['pairs']:,} pairs in {time.monotonic() - started:.0f} s"
    )
    console.print(f"sha256 {artefact.sha256}")
    if artefact.sha256 == load_manifest()["sha256"]:
        console.print("identical to the shipped data set")


@data.command()
def verify(
    file: Annotated[Path | None, Argument(help="An artefact; by default the shipped one.")] = None,
    full: Annotated[bool, Option("--full", help="Rebuild everything, not just a sample.")] = False,
    workers: Workers = PROCESSORS,
    sample: Annotated[int, Option(min=1, help="Instances to rebuild of each task.")] = 10,
) -> None:
    """Check the data set's hashes and rebuild a sample of it with the generators.

    Example: factordiff data verify --sample 1
    """
    from factordiff.arc.artefact import SHIPPED, load_artefact
    from factordiff.arc.build.rearc import generators
    from factordiff.arc.build.verify import rebuild_sample

    artefact = load_artefact(file or SHIPPED)
    console.print(f"{len(artefact.arrays)} parts match the manifest; sha256 {artefact.sha256}")
    try:
        generators()
    except MissingDependency as error:
        console.print(f"hashes only: {error}")
        return
    if full:
        _verify_all(artefact, workers)
        return
    done = rebuild_sample(artefact, sample)
    console.print(f"{done:,} instances rebuilt, {sample} of each task: all identical")


def _verify_all(artefact: Any, workers: int) -> None:
    import tempfile

    from factordiff.arc.build.assembly import build as build_data
    from factordiff.arc.build.selection import CANDIDATES

    if "apart_from" in artefact.manifest:
        raise InvalidInput(
            "--full: this file is for training only and can only be rebuilt beside the files it is apart from; "
            "build it again with `factordiff data more` and compare the sha256"
        )
    with (
        tempfile.TemporaryDirectory() as folder,
        progress_bar("candidates", len(artefact.tasks) * CANDIDATES) as progress,
    ):
        rebuilt = build_data(Path(folder), artefact.manifest["seed"], workers, artefact.tasks, progress)
    for name, part in artefact.manifest["parts"].items():
        if rebuilt.manifest["parts"][name] != part:
            raise DataError(
                f"part '{name}': rebuilt it has sha256 {rebuilt.manifest['parts'][name]['sha256']}"
            )
    console.print(f"everything rebuilt: identical, sha256 {rebuilt.sha256}")


@data.command()
def show(
    tasks: Annotated[list[str] | None, Argument(help="Task ids; none: a contact sheet of all.")] = None,
    out: Annotated[Path, Option(help="Folder for the PNG files.")] = Path("runs/pictures"),
    pairs: Annotated[int, Option(min=1, max=20, help="Pairs of each named task.")] = 4,
    first: Annotated[int, Option(min=0, max=999, help="The first instance shown.")] = 0,
    terminal: Annotated[bool, Option(help="Also draw in the terminal.")] = True,
) -> None:
    """Draw input-output pairs in ARC's colors: the named tasks, or all 120 over five pages.

    Example: factordiff data show 67a3c6ac --pairs 2
    """
    from factordiff.arc.artefact import load_artefact
    from factordiff.arc.drawing import contact_sheets, draw_pairs
    from factordiff.arc.instances import instance_grids, task_index
    from factordiff.cli.terminal_grids import Panel, side_by_side
    from factordiff.files import check_folder

    check_folder("--out", out)
    artefact = load_artefact()
    if not tasks:
        titled = [(task, *instance_grids(artefact, row, first)) for row, task in enumerate(artefact.tasks)]
        for number, page in enumerate(contact_sheets(titled), start=1):
            _save(page, out / f"tasks-{number}.png")
        return
    for task, row in [(task, task_index(artefact, task)) for task in tasks]:
        shown = [
            instance_grids(artefact, row, instance) for instance in range(first, min(first + pairs, 1000))
        ]
        if terminal:
            console.print(task, style="bold")
            panels = [
                panel
                for number, (given, answer) in enumerate(shown, start=first)
                for panel in (Panel(f"input {number}", given), Panel("output", answer))
            ]
            console.print(side_by_side(console, panels), soft_wrap=True)
        _save(draw_pairs(task, shown), out / f"{task}.png")


def _save(picture: Any, file: Path) -> None:
    from factordiff.solving.pictures import save_picture

    save_picture(picture, file)
    console.print(f"wrote {file}")


@data.command()
def measure(
    workers: Workers = PROCESSORS,
    out: Annotated[Path, Option(help="Where to write the measurements.")] = Path("tasks.json"),
) -> None:
    """Measure all 178 tasks that fit 10x10 anew and apply the rule that selects 120 of them.

    Example: factordiff data measure --out tasks.json
    """
    import json

    from factordiff.arc.build.selection import CANDIDATES, MEASUREMENTS, measurements
    from factordiff.arc.build.selection import measure as measure_tasks
    from factordiff.files import check_outputs, write_whole

    check_outputs({"--out": out})
    partial = out.with_name(f"{out.name}.partial")
    with progress_bar("candidates", 178 * CANDIDATES) as progress:
        measured = measure_tasks(partial, workers, progress)
    write_whole(out, (json.dumps(measured, indent=1) + "\n").encode())
    shutil.rmtree(partial, ignore_errors=True)
    console.print(f"wrote {out}")
    if MEASUREMENTS.exists() and measured == measurements():
        console.print("identical to the shipped measurements")


@data.command()
def fetch(name: Annotated[str, Argument(help="antibody: Sapiens and AntiBERTy, 100 MB in all.")]) -> None:
    """Download published models with pip, check their hashes, and keep their weights as safetensors.

    They go to $FACTORDIFF_DATA, by default ~/.cache/factordiff. Neither package is installed or imported.

    Example: factordiff data fetch antibody
    """
    if name != "antibody":
        raise Unavailable(f"fetch: expected antibody, got {name!r}")
    from factordiff.worlds.antibody.fetching import fetch as fetch_models

    fetch_models(console.print)
