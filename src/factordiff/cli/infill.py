"""`factordiff infill`: hide part of a file and let experts fill it in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from factordiff.cli.app import app
from factordiff.cli.method_options import MethodCommand, given_options
from factordiff.errors import InvalidInput

if TYPE_CHECKING:
    from factordiff.team.infill import Document


SEQUENCES = (".fasta", ".fa", ".faa", ".tsv", ".airr", ".tab")  # what antibodies come in


@app.command(cls=MethodCommand)
def infill(
    file: Annotated[
        Path,
        Argument(metavar="FILE", help="A text, or antibodies: .fasta, .fa, .airr or .tsv, also .gz."),
    ],
    mask: Annotated[
        str,
        Option(
            help="A share such as 0.3; of a text also lines such as 10-14 or 3,7-9, of AIRR files regions such as cdr3."
        ),
    ] = "0.15",
    experts: Annotated[
        str | None,
        Option(
            help="Names or folders of experts, joined by commas; the first wins ties. By default text-prose,text-code, "
            "of antibodies sapiens,antiberty."
        ),
    ] = None,
    method: Annotated[str, Option(help="How they answer together; see the guide.")] = "routing",
    reveal: Annotated[
        str, Option(help="fast, exact (one cell per pass), or a rule such as margin:0.9.")
    ] = "fast",
    temperature: Annotated[
        float | None, Option(min=0.0, help="0 takes the likeliest characters, above 0 draws them.")
    ] = None,
    out: Annotated[Path | None, Option(help="Write the filled text into this file.")] = None,
    device: Annotated[str, Option(help="auto, cpu, cuda or mps.")] = "auto",
    seed: Annotated[int, Option(help="Of what is hidden by a share, and of drawn characters.")] = 0,
) -> None:
    """Hide some of a file, fill it in again, and show who decided each character.

    As many characters are filled in as were hidden: the length of what is missing is known.

    Example: factordiff infill example.py --mask 3-4

    Antibodies: factordiff infill chains.tsv --mask cdr3 (after `factordiff data fetch antibody`)
    """
    from factordiff.cli import inputs
    from factordiff.cli.infill_display import fill_and_show
    from factordiff.devices import choose_device
    from factordiff.files import check_outputs
    from factordiff.team.router import with_router
    from factordiff.team.team import compose

    documents = documents_of(file)
    hidden = [document.hidden(mask, seed) for document in documents]
    if not any(bool(cells.any()) for cells in hidden):
        raise InvalidInput(f"--mask: {mask} hides nothing of {file}; there is nothing to fill in")
    who = experts or documents[0].default_experts
    names = [name.strip() for name in who.split(",") if name.strip()]
    alone = len(names) == 1 and method == "routing"
    options: dict[str, Any] = given_options("single" if alone else method)
    if out is not None:
        folders = [documents[0].folder(name) for name in names]
        check_outputs({"--out": out}, [file, *inputs.of_folders(folders), *inputs.of_options(options)])
    where = choose_device(device)
    found = documents[0].experts(names, where)
    team = with_router(compose(found, method, device=where, reveal=reveal, **options))
    size, expected = team.experts[0].vocabulary.size, documents[0].vocabulary.size
    if size != expected:
        raise InvalidInput(
            f"--experts: those of {who} speak {size} values, {file} needs {expected}; name experts of its kind"
        )
    fill_and_show(team, documents, hidden, temperature, seed, out)


def documents_of(file: Path) -> Sequence[Document]:
    """What a file holds, by its ending: another kind of file is another reader here."""
    if file.name.lower().removesuffix(".gz").endswith(SEQUENCES):
        from factordiff.worlds.antibody.document import read_antibodies

        return read_antibodies(file)
    from factordiff.text.document import read_document

    return [read_document(file)]
