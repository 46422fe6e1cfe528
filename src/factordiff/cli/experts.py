"""`factordiff experts` and `factordiff card`: which experts there are, and how good they are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.box import SIMPLE
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table
from typer import Argument, Option

from factordiff.cli.app import app

LISTED = {"validation": 4_800, "test": 24_000}
CAPTION = (
    "exact canvases; * of the first queries of the list. Cut to shape: the card, factordiff experts NAME"
)


@app.command()
def experts(name: Annotated[str, Argument(help="Show this expert's card: a name or a folder.")] = "") -> None:
    """List the experts that come with the package, with their figures.

    Example: factordiff experts trans-full
    """
    from factordiff.experts.registry import SMALL, find_expert, shipped_experts
    from factordiff.files import read_regular
    from factordiff.printable import visible
    from factordiff.report.card import CARD

    console = Console()
    if name:
        path = find_expert(name).folder / CARD
        if not path.is_file():
            console.print(f"{name} has no card yet")
            return
        text = read_regular(path).decode(errors="replace")
        below_front_matter = text.split("---\n", 2)[2] if text.startswith("---\n") else text
        console.print(Markdown(visible(below_front_matter)))
        return
    names, of_text = shipped_experts(), shipped_experts(of_text=True)
    if not names + of_text:
        console.print(f"No experts come with this version; {SMALL}", highlight=False, soft_wrap=True)
        return
    table = Table(box=SIMPLE, caption=CAPTION, pad_edge=False, padding=(0, 1, 0, 0))  # 80 columns hold it
    for heading in ("expert", "backbone", "objective"):
        table.add_column(heading, no_wrap=True)
    for heading in ("validation", "test", "own question"):
        table.add_column(heading, justify="right", no_wrap=True)
    for shipped in names:
        table.add_row(shipped, *_row(find_expert(shipped).folder))
    console.print(table)
    if of_text:
        console.print(f"Of text, for factordiff infill: {', '.join(of_text)}", highlight=False)


def _row(folder: Path) -> list[str]:
    from factordiff.networks.store import read_config
    from factordiff.report.card import read_figures

    config, figures = read_config(folder), read_figures(folder)
    objective = str(config["about"].get("objective", "full"))

    def accuracy(split: str, question: str) -> str:
        found = None if figures is None else figures.find(split, question)
        if found is None:
            return ""
        return f"{100 * found.exact:.1f} %" + ("*" if found.queries < LISTED[split] else "")

    cells = [config["backbone"], objective, accuracy("validation", "full"), accuracy("test", "full")]
    if objective != "full":
        validation = accuracy("validation", objective)
        cells.append(accuracy("test", objective) or (validation and f"{validation} (val.)"))
    return cells


@app.command()
def card(
    folder: Annotated[Path, Argument(help="The expert's folder: config.json and model.safetensors.")],
    records: Annotated[list[Path], Argument(help="Files written by eval --out or reproduce.")],
    run: Annotated[Path | None, Option(help="The folder of the training run, for its length.")] = None,
) -> None:
    """Write an expert's card and figures from records of its evaluations.

    Of several runs on one list the longest is the figure; the others are compared with it, answer by answer.

    Example: factordiff card runs/mine/weights validation.jsonl.gz test.jsonl.gz --run runs/mine
    """
    from factordiff.experts.registry import CONFIG
    from factordiff.files import check_folder
    from factordiff.networks.store import MODEL
    from factordiff.report.card import CARD, FIGURES, measure_figures, write_card
    from factordiff.training.provenance import provenance

    check_folder("FOLDER", folder, (CARD, FIGURES), [*records, folder / CONFIG, folder / MODEL])
    write_card(folder, measure_figures(folder, records), provenance(folder, run))
    Console().print(f"wrote {folder / CARD} and {folder / FIGURES}", highlight=False)


@app.command()
def store(
    expert: Annotated[str, Argument(help="The expert: a name, a folder, or a training run.")],
    folder: Annotated[Path, Argument(help="Where to write it.")],
) -> None:
    """Write an expert in bfloat16, half the size: as the shipped ones are. Its figures are those of the new file.

    Example: factordiff store trans-full half/trans-full
    """
    import torch

    from factordiff.cli import inputs
    from factordiff.errors import InvalidInput
    from factordiff.experts.registry import CONFIG, find_expert
    from factordiff.files import check_folder
    from factordiff.networks.store import MODEL, load_expert, read_config, save_expert, weight_hash

    found = find_expert(expert).folder
    if (folder / MODEL).exists():
        raise InvalidInput(f"folder: {folder} holds an expert already; choose another, or remove it first")
    check_folder("FOLDER", folder, (CONFIG, MODEL), inputs.of_folders([found]))
    about = {**read_config(found)["about"], "stored_from": weight_hash(found)}
    save_expert(load_expert(found), folder, about, torch.bfloat16)
    Console().print(
        f"wrote {folder / MODEL} ({(folder / MODEL).stat().st_size / 1e6:.1f} MB)", highlight=False
    )
