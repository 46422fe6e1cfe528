"""A training run as the command line starts it: its data, its observers, its last line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from factordiff.cli.training_display import Display, console, divergence_sentence, summary_sentence
from factordiff.errors import InvalidInput

if TYPE_CHECKING:
    import torch

    from factordiff.training.settings import TrainingSettings
    from factordiff.training.source import Source

DIVERGED = 3  # the exit code of a run that stopped on non-finite steps


def source_of(settings: TrainingSettings, device: torch.device, more_data: Path | None) -> Source:
    """The source that was named, or the RE-ARC data set."""
    from factordiff.arc.dataset import Dataset
    from factordiff.arc.source import ArcSource
    from factordiff.training.named_source import named_source

    if not settings.source:
        if settings.preset == "sequence":
            raise InvalidInput(
                "--source: the preset sequence needs one, as --source words.npz; see docs/own-data.md"
            )
        return ArcSource(Dataset.load(device, more=more_data), settings)
    if more_data is not None:
        raise InvalidInput("--more-data: it goes with the RE-ARC data set; leave it or --source out")
    return named_source(settings.source, device)


def run(
    settings: TrainingSettings,
    device_name: str,
    out: Path,
    resume: bool,
    init_from: Path | None,
    new_head: bool,
    more_data: Path | None,
    max_minutes: float | None,
    started: float,
    tensorboard: bool,
) -> None:
    """Train until the end or a stop, and print the summary."""
    from factordiff.cli import inputs
    from factordiff.devices import choose_device, where_to_draw
    from factordiff.experts.registry import CONFIG, WEIGHTS
    from factordiff.files import check_folder
    from factordiff.networks.store import MODEL
    from factordiff.training.log import Observer, TensorBoard
    from factordiff.training.machines import join, leave
    from factordiff.training.run_folder import CURVES, LOG
    from factordiff.training.settings import check_minutes
    from factordiff.training.trainer import Trainer

    check_minutes("--max-minutes", max_minutes)
    written = (LOG, CURVES, f"{WEIGHTS}/{CONFIG}", f"{WEIGHTS}/{MODEL}")
    read = inputs.of_folders([] if init_from is None else [init_from])
    read += inputs.of_data(Path(settings.source) if settings.source else None, more_data)
    check_folder("--out", out, written, read)
    device = choose_device(device_name)
    machines = join(device)
    display = Display(settings.max_steps)
    observers: tuple[Observer, ...] = (display,)
    if tensorboard and machines.writes:
        observers = (*observers, TensorBoard(out / "tensorboard"))
    try:
        source = source_of(settings, where_to_draw(device), more_data)
        trainer = Trainer(
            settings,
            source,
            device=device,
            out=out,
            resume=resume,
            init_from=init_from,
            new_head=new_head,
            machines=machines,
            observers=observers,
        )
        summary = trainer.run(max_minutes, started)
    finally:
        display.close()
        leave()
    if machines.writes:
        if summary["diverged"]:
            Console(stderr=True).print(divergence_sentence(summary, out), soft_wrap=True, highlight=False)
        console.print(summary_sentence(summary, out / WEIGHTS), soft_wrap=True)
    if summary["diverged"]:
        raise typer.Exit(DIVERGED)
