"""`factordiff bench`: how fast sampling is on this machine, as ratios with both sides in one run."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from typer import Option

from factordiff.cli.app import app

if TYPE_CHECKING:
    from factordiff.bench.curve import Point
    from factordiff.bench.measurement import Measurement

PARTS = 7  # that a progress bar can show
DEFAULT_RULE = "product:0.99"  # what `fast` is


@app.command()
def bench(
    device: Annotated[str, Option(help="auto, cpu, cuda or mps.")] = "auto",
    quick: Annotated[bool, Option(help="Few queries and no particles: a minute on two cores.")] = False,
    experts: Annotated[str, Option(help="Names or folders, joined by commas.")] = "trans-full,conv-full",
    rule: Annotated[
        str, Option(help="The adaptive rule: product:0.99, margin:0.995, entropy:0.005 ...")
    ] = DEFAULT_RULE,
    split: Annotated[str, Option(help="validation, test, official or unseen.")] = "validation",
    limit: Annotated[int | None, Option(help="Only the first N queries of the fixed list.")] = None,
    rounds: Annotated[int, Option(help="Ask each query so often, with other demonstrations.")] = 1,
    slow_limit: Annotated[int | None, Option(help="Queries of the straightforward loop.")] = None,
    batch: Annotated[int, Option(help="Rows in flight; 0 chooses for the device.")] = 0,
    curve: Annotated[
        Path | None, Option(help="Instead of the table, draw accuracy against passes here (PNG).")
    ] = None,
    steps: Annotated[int, Option(help="Steps of the straightforward loop.")] = 128,
    out: Annotated[Path | None, Option(help="Write everything measured here as JSON.")] = None,
) -> None:
    """Measure the sampler against the straightforward 128-step loop of the same experts.

    Example: factordiff bench --quick --experts trans-full,conv-full
    """
    import torch

    from factordiff.arc.dataset import Dataset
    from factordiff.arc.grid import CELLS, COLORS
    from factordiff.bench.baselines import Bench
    from factordiff.cli import inputs
    from factordiff.devices import choose_device, device_name
    from factordiff.errors import InvalidInput
    from factordiff.experts.registry import find_expert
    from factordiff.files import check_outputs
    from factordiff.networks.store import load_expert, weight_hash
    from factordiff.report.code_version import commit
    from factordiff.sampling.request import check_memory
    from factordiff.sampling.rules import reveal_rule

    where = choose_device(device)
    chosen = reveal_rule(rule)
    names = [name.strip() for name in experts.split(",") if name.strip()]
    if not names:
        raise InvalidInput("experts: expected at least one name or folder, got none")
    wanted = {"--out": out, "--curve": curve}
    check_outputs(
        {option: file for option, file in wanted.items() if file is not None}, inputs.of_experts(names)
    )
    for name, number in (("limit", limit), ("slow_limit", slow_limit), ("steps", steps)):
        if number is not None and number < 1:
            raise InvalidInput(f"{name}: expected at least 1, got {number}")
    if batch < 0:
        raise InvalidInput(f"batch: expected a number of rows, or 0 to choose for the device, got {batch}")
    check_memory(batch, 4 * CELLS * COLORS.size * len(names), where, "batch", "rows", "use a smaller --batch")
    cuda = where.type == "cuda"
    networks = [load_expert(name, where, torch.bfloat16 if cuda else torch.float32) for name in names]
    count = limit or (None if cuda and not quick else 2_400 if cuda else 3 if quick else 120)
    dataset = Dataset.load(where)
    queries = dataset.evaluation(split, count, rounds)  # type: ignore[arg-type]
    setup = Bench(
        networks,
        queries,
        chosen,
        batch=batch or (1_100 if cuda else 3 if quick else 24),
        slow=min(slow_limit or (2_400 if cuda else 3 if quick else 24), len(queries)),
        fkc=0 if quick else 240 if cuda else 2,
        repeats=2 if quick else 5,
        steps=steps,
    )
    about = {
        "device": device_name(where) if cuda else f"{device_name(where)}, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "dtype": str(networks[0].dtype),
        "commit": commit(),
        "data": dataset.artefact.sha256,
        "experts": names,
        "weights": [weight_hash(find_expert(name).folder) for name in names],
        "rule": rule,
        "split": split,
        "queries": len(queries),
        "rounds": rounds,
        "batch": setup.batch,
    }
    console = Console()
    keep = _Kept(out, about)
    if curve is not None:
        title = f"{'+'.join(names)}, {split}, {len(queries)} queries"
        _curve(console, setup, title, rule, curve, keep)
        return
    figures = _measured(console, setup, keep)
    console.print(shown(figures, about))
    for figure in figures:
        if figure.details:
            console.print(explained(figure), style="dim", highlight=False)


class _Kept:
    """What was measured so far, as JSON: a run that is cut off leaves what it had, and what it was about to do."""

    def __init__(self, file: Path | None, about: dict[str, Any]) -> None:
        self._file = file
        self._found: dict[str, Any] = {"about": about}
        self._begun = time.monotonic()

    def part(self, name: str) -> None:
        seconds = self._found.setdefault("begun_at_seconds", {})
        seconds[name] = round(time.monotonic() - self._begun, 1)
        self._write()

    def note(self, name: str, value: str) -> None:
        self._found[name] = value
        self._write()

    def add(self, kind: str, one: Any) -> None:
        self._found.setdefault(kind, []).append(vars(one))
        self._write()

    def _write(self) -> None:
        if self._file is not None:
            from factordiff.files import write_whole

            write_whole(self._file, (json.dumps(self._found, indent=2) + "\n").encode())


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


def _measured(console: Console, setup: Any, keep: _Kept) -> list[Measurement]:
    from factordiff.bench.speed import measure

    with _progress(console) as progress:
        bar = progress.add_task("loading", total=PARTS)

        def told(part: str) -> None:
            progress.update(bar, description=part, advance=1)
            keep.part(part)

        figures = []
        for figure in measure(setup, told):
            figures.append(figure)
            keep.add("figures", figure)
        return figures


def _curve(console: Console, setup: Any, title: str, rule: str, file: Path, keep: _Kept) -> None:
    from factordiff.bench.curve import accuracy_against_passes, choice, drawn, every_rule
    from factordiff.bench.overhead import how
    from factordiff.composition.routing import Routing
    from factordiff.engine.fast_network import FastNetwork
    from factordiff.files import write_whole

    rules = list(dict.fromkeys([*every_rule(), rule]))
    engines = [FastNetwork(network) for network in setup.networks]
    with _progress(console) as progress:
        bar = progress.add_task("", total=len(rules))
        points: list[Point] = []
        for point in accuracy_against_passes(
            engines,
            Routing(),
            setup.queries,
            batch=setup.sizes,
            rules=rules,
            on_rule=lambda name: progress.update(bar, description=name),
        ):
            points.append(point)
            keep.add("points", point)
            progress.advance(bar)
        keep.note("how", how(engines))
    write_whole(file, drawn(points, rule, title))
    table = Table(
        "rule", "passes/grid", "exact", "pixel", "McNemar p", "a task's drop", "as good as the loop"
    )
    for point in points:
        table.add_row(
            point.rule,
            f"{point.passes:.2f}",
            f"{100 * point.exact:.2f} %",
            f"{100 * point.pixel:.3f} %",
            f"{point.mcnemar_p:.3f}",
            f"{100 * point.largest_drop:.1f}",
            "yes" if point.equal else "no",
        )
    console.print(table)
    best = choice(points)
    console.print(
        f"fewest passes with the quality of {points[0].rule}, half of what is allowed to spare: "
        f"{best.rule} ({best.passes:.2f} a grid)"
    )


def shown(figures: list[Measurement], about: dict[str, Any]) -> Table:
    """The table for people."""
    title = f"{about['queries']} queries, batch {about['batch']}, {about['rule']}, {about['device']}"
    table = Table(title=title, title_justify="left")
    for heading in ("what", "measured", "must", "aim"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for figure in figures:
        table.add_row(figure.what, f"{figure.value:.3g} {figure.unit}", figure.must, figure.aim)
    return table


def explained(figure: Measurement) -> str:
    """The numbers behind a line of the table."""
    numbers = ", ".join(
        f"{name.replace('_', ' ')} {value:.4g}"
        if isinstance(value, float)
        else f"{name.replace('_', ' ')} {value}"
        for name, value in (figure.details or {}).items()
    )
    return f"{figure.what}: {numbers}"
