"""`factordiff eval`: the accuracy of experts and their compositions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

from rich.console import Console
from typer import Option

from factordiff.cli.app import app
from factordiff.cli.method_options import MethodCommand, given_options
from factordiff.errors import InvalidInput

Number = TypeVar("Number", int, float)


@app.command("eval", cls=MethodCommand)
def evaluate_command(
    experts: Annotated[str, Option(help="Names or folders of experts, joined by commas.")],
    method: Annotated[str, Option(help="How they are combined; one expert alone needs none.")] = "",
    split: Annotated[str, Option(help="test, validation, official or unseen.")] = "validation",
    limit: Annotated[int | None, Option(help="Only the first N queries of the fixed list.")] = None,
    question: Annotated[str, Option(help="full, or a specialist's own: occupancy, color.")] = "full",
    rounds: Annotated[int, Option(help="Ask each query so often, with other demonstrations.")] = 1,
    reveal: Annotated[
        str, Option(help="fast, exact, margin:0.9, confidence:20 ...; by default what suits the method.")
    ] = "",
    cycles: Annotated[str, Option(help="Refinement cycles H,L in place of the trained ones.")] = "",
    batch: Annotated[int, Option(help="Queries between two entries in --out; 0 chooses.")] = 0,
    seed: Annotated[int, Option(help="Seed of methods that draw.")] = 0,
    device: Annotated[str, Option(help="auto, cpu, cuda or mps.")] = "auto",
    dtype: Annotated[str, Option(help="auto, float32 or bfloat16.")] = "auto",
    compile: Annotated[
        bool | None,
        Option(help="Compile the experts and record their passes; by default for long lists on a GPU."),
    ] = None,
    data: Annotated[
        Path | None, Option(help="Queries of another data set, as `factordiff data build` writes it.")
    ] = None,
    per_task: Annotated[bool, Option(help="Show the tasks one by one, worst first.")] = False,
    out: Annotated[Path | None, Option(help="Write one JSON line per query here.")] = None,
) -> None:
    """Measure exact and pixel accuracy, with intervals and what it cost.

    Example: factordiff eval --experts trans-full,conv-full --method routing --limit 24
    """
    typed = locals()  # a field of the request for each
    from factordiff.cli.evaluation import EvalRequest, measure, show

    names = [name.strip() for name in experts.split(",") if name.strip()]
    options = given_options(method or ("single" if len(names) == 1 else "routing"))
    read = {"experts": names, "cycles": numbers("cycles", cycles, int), "options": options}
    console, request = Console(), EvalRequest(**{**typed, **read})
    show(console, request, *measure(request, console))


def numbers(option: str, text: str, kind: Callable[[str], Number]) -> tuple[Number, ...] | None:
    """The numbers of an option, joined by commas; none where it was not given."""
    try:
        return tuple(kind(part) for part in text.split(",")) if text else None
    except ValueError:
        raise InvalidInput(f"{option}: expected numbers joined by commas, got {text!r}") from None
