"""`factordiff infill`: hide part of a file and let experts fill it in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factordiff.cli.app import app
from factordiff.cli.method_options import MethodCommand, given_options
from factordiff.errors import InvalidInput

if TYPE_CHECKING:
    from factordiff.text.document import Document

DEFAULT_EXPERTS = "text-prose,text-code"


@app.command(cls=MethodCommand)
def infill(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A text file, such as a Python file.")],
    mask: Annotated[
        str, typer.Option(help="Lines such as 10-14 or 3,7-9, or a share of the characters such as 0.3.")
    ] = "0.15",
    experts: Annotated[
        str, typer.Option(help="Names or folders of experts, joined by commas; the first wins ties.")
    ] = DEFAULT_EXPERTS,
    method: Annotated[str, typer.Option(help="How they answer together; see the guide.")] = "routing",
    reveal: Annotated[
        str, typer.Option(help="fast, exact (one cell per pass), or a rule such as margin:0.9.")
    ] = "fast",
    temperature: Annotated[
        float | None, typer.Option(min=0.0, help="0 takes the likeliest characters, above 0 draws them.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the filled text into this file.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    seed: Annotated[int, typer.Option(help="Of what is hidden by a share, and of drawn characters.")] = 0,
) -> None:
    """Hide some of a file, fill it in again, and show who decided each character.

    As many characters are filled in as were hidden: the length of what is missing is known.

    Example: factordiff infill example.py --mask 3-4
    """
    from factordiff.cli.infill_display import fill_and_show
    from factordiff.solving.team import compose
    from factordiff.training.machines import choose_device

    document = document_of(file)
    hidden = document.hidden(mask, seed)
    if not bool(hidden.any()):
        raise InvalidInput(f"--mask: {mask} hides nothing of {file}; there is nothing to fill in")
    names = [name.strip() for name in experts.split(",") if name.strip()]
    alone = len(names) == 1 and method == "routing"
    options: dict[str, Any] = given_options("single" if alone else method)
    team = compose(names, method, device=choose_device(device), reveal=reveal, **options)
    if team.experts[0].vocabulary != document.vocabulary:
        raise InvalidInput(
            f"--experts: those of {experts} speak {team.experts[0].vocabulary.size} values, a text has "
            f"{document.vocabulary.size}; name experts of text"
        )
    if out is not None:
        from factordiff.evaluation.places import check_file

        check_file("--out", out)
    fill_and_show(team, document, hidden, temperature, seed, out)


def document_of(file: Path) -> Document:
    """What a file holds, by its ending; whatever has `cells`, `hidden`, `shown`, `vocabulary` and `window` will do."""
    from factordiff.text.document import read_document

    return read_document(file)
