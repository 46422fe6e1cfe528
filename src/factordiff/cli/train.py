"""`factordiff train`: train an expert, stop anywhere, go on later."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from factordiff.cli.app import app
from factordiff.errors import InvalidInput

if TYPE_CHECKING:
    from factordiff.training.settings import TrainingSettings


@app.command()
def train(
    preset: Annotated[str, Argument(help="paper, fast, tiny or sequence.")] = "fast",
    source: Annotated[
        str | None,
        Option(
            help="Other data than RE-ARC: module:Class, or an .npz with integer arrays train and validation."
        ),
    ] = None,
    objective: Annotated[str | None, Option(help="full, occupancy or color.")] = None,
    backbone: Annotated[
        str | None, Option(help="trans-ir, conv-ir, or transformer for sequences without a condition.")
    ] = None,
    device: Annotated[str, Option(help="auto, cpu, cuda or mps.")] = "auto",
    seed: Annotated[int | None, Option(help="Of the weights, the batches and the noise.")] = None,
    max_minutes: Annotated[float | None, Option(help="Stop in time, start-up included.")] = None,
    out: Annotated[
        Path | None, Option(help="The run's folder; if none is given, runs/PRESET-BACKBONE-OBJECTIVE.")
    ] = None,
    resume: Annotated[bool, Option("--resume", help="Go on from the folder's last checkpoint.")] = False,
    tasks: Annotated[str | None, Option(help="Task ids such as 67a3c6ac,68b16354; all: every task.")] = None,
    emphasis: Annotated[
        str | None, Option(help="How often tasks are drawn beside the others: 67a3c6ac=4,68b16354=2.")
    ] = None,
    init_from: Annotated[
        Path | None,
        Option(
            help="Start from the weights of this expert's folder; trained for another objective, its head begins anew."
        ),
    ] = None,
    new_head: Annotated[
        bool, Option("--new-head", help="With --init-from: its head begins anew all the same.")
    ] = False,
    max_steps: Annotated[int | None, Option(help="The schedule's last step.")] = None,
    warmup: Annotated[int | None, Option(help="Steps over which the learning rate rises.")] = None,
    decay_from: Annotated[int | None, Option(help="The step from which it falls linearly to zero.")] = None,
    batch: Annotated[int | None, Option(help="The global batch; machines divide it.")] = None,
    lr: Annotated[float | None, Option(help="Muon's learning rate.")] = None,
    lr_rest: Annotated[float | None, Option(help="AdamW's learning rate.")] = None,
    ema: Annotated[
        float | None, Option(help="Decay of the averaged weights; 0: the weights themselves.")
    ] = None,
    refinement: Annotated[str | None, Option(help="H,L: outer and inner cycles, such as 2,2.")] = None,
    conditioning: Annotated[str | None, Option(help="latents or paper.")] = None,
    literal: Annotated[
        bool | None, Option(help="With the paper's conditioning: the rest of its network too.")
    ] = None,
    pair_patch: Annotated[int | None, Option(help="Side of a demonstration token (trans-ir).")] = None,
    head: Annotated[str | None, Option(help="Initial output head: zero or default.")] = None,
    network: Annotated[
        str | None, Option(help="More of the network's settings, such as width=64,blocks=2.")
    ] = None,
    identity_share: Annotated[
        float | None, Option(help="Share of batches in the data's own orientation.")
    ] = None,
    rename: Annotated[
        float | None, Option(help="Share of items whose exchangeable colors are renamed.")
    ] = None,
    more: Annotated[
        float | None, Option(help="Share of items from the training-only set of --more-data.")
    ] = None,
    more_data: Annotated[
        Path | None, Option(help="A training-only set, as `factordiff data more` builds it.")
    ] = None,
    sized: Annotated[
        float | None, Option(help="Share of queries drawn evenly over the sizes of inputs.")
    ] = None,
    weight_decay: Annotated[float | None, Option(help="Weight decay of both optimizers.")] = None,
    agreement: Annotated[
        float | None, Option(help="Weight of the loss that makes demonstrations agree.")
    ] = None,
    rotary: Annotated[bool | None, Option(help="Rotary positions in attention (trans-ir).")] = None,
    positions: Annotated[str | None, Option(help="sinusoidal or learned (trans-ir).")] = None,
    field: Annotated[
        bool | None, Option(help="Let each cell see what the demonstrations say at its place.")
    ] = None,
    sees_sizes: Annotated[
        bool | None, Option(help="Let it see where grids end: padding is not color 0.")
    ] = None,
    frames: Annotated[int | None, Option(help="Demonstrations per item.")] = None,
    min_frames: Annotated[int | None, Option(help="Fewest demonstrations per item.")] = None,
    dtype: Annotated[str | None, Option(help="auto, float32 or bfloat16.")] = None,
    newton_schulz: Annotated[str | None, Option(help="Muon's precision: auto, float32 or bfloat16.")] = None,
    compile: Annotated[str | None, Option(help="auto, none or blocks.")] = None,
    compile_mode: Annotated[str | None, Option(help="torch.compile's mode.")] = None,
    graph: Annotated[str | None, Option(help="Record the step in a CUDA graph: auto, on or off.")] = None,
    kernels: Annotated[
        str | None, Option(help="Our own GPU kernels for the blocks: auto, on or off.")
    ] = None,
    deterministic: Annotated[bool, Option("--deterministic", help="Bit-exact on one GPU; slower.")] = False,
    check_every: Annotated[int | None, Option(help="Steps between validations.")] = None,
    validation_items: Annotated[int | None, Option(help="Queries per validation.")] = None,
    patience: Annotated[int | None, Option(help="Stop after this many checks without progress.")] = None,
    log_every: Annotated[int | None, Option(help="Steps between log lines.")] = None,
    save_seconds: Annotated[float | None, Option(help="Seconds between checkpoints.")] = None,
    snapshot_every: Annotated[
        int | None, Option(help="Steps between weights kept in OUT/snapshots/STEP; 0: none.")
    ] = None,
    tensorboard: Annotated[bool, Option("--tensorboard", help="Write TensorBoard files too.")] = False,
) -> None:
    """Train an expert. The last line printed is the run's summary.

    Example: factordiff train tiny --max-steps 5 --out runs/first

    Data of your own: factordiff train sequence --source words.npz --out runs/words

    What is not given is the preset's: `paper` is the paper's network, `fast` that of the shipped experts, `tiny` runs
    on a laptop, `sequence` is for data without a grid.

    Stop it with --max-minutes, Ctrl-C or a kill, and go on with the same command and --resume.

    Exit codes:
    0 the run ended, or was stopped and can go on,
    1 an error, explained in one sentence,
    2 a wrong option,
    3 ten losses or gradients in a row were not finite; checkpoint and weights from before them are kept.
    """
    typed = {name: value for name, value in locals().items() if value is not None}
    started = time.monotonic()
    from factordiff.training.provenance import FLAGS
    from factordiff.training.settings import TrainingSettings

    # An option is called as the setting, of the run or of its network, that it sets.
    settable = {field.name for field in dataclasses.fields(TrainingSettings)} - {"network"}
    given = {name: value for name, value in typed.items() if name in settable}
    if tasks is not None:
        given["tasks"] = None if tasks == "all" else tuple(tasks.split(","))
    if emphasis is not None:
        given["emphasis"] = _emphasis(emphasis)
    fields: dict[str, Any] = {name: value for name, value in typed.items() if name in FLAGS}
    if refinement is not None:
        fields["cycles"] = _cycles(refinement)
    if network is not None:
        fields |= _network(network)
    settings = _settings(preset, given, fields)
    if deterministic:
        settings = _deterministic(settings)
    out = out or Path("runs") / f"{preset}-{settings.backbone}-{settings.objective}"
    if new_head and init_from is None:
        raise InvalidInput("--new-head: goes with --init-from; without it every weight begins anew")
    from factordiff.cli.training_run import run

    run(settings, device, out, resume, init_from, new_head, more_data, max_minutes, started, tensorboard)


def _cycles(text: str) -> list[int]:
    try:
        outer, inner = (int(part) for part in text.split(","))
    except ValueError as error:
        raise InvalidInput(f"--refinement: expected H,L such as 2,2, got {text!r}") from error
    return [outer, inner]


def _network(text: str) -> dict[str, Any]:
    """The named settings as the JSON that they would be; words need no quotes."""
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, separator, value = part.partition("=")
        if not (separator and name and value):
            raise InvalidInput(f"--network: expected NAME=VALUE,NAME=VALUE such as width=64, got {text!r}")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _emphasis(text: str) -> dict[str, int]:
    try:
        return {task: int(times) for task, times in (part.split("=") for part in text.split(","))}
    except ValueError as error:
        raise InvalidInput(
            f"--emphasis: expected ID=TIMES,ID=TIMES such as 67a3c6ac=4, got {text!r}"
        ) from error


def _settings(name: str, given: dict[str, Any], network: dict[str, Any]) -> TrainingSettings:
    """The preset with what was given in its place; the decay begins after the warm-up unless something else is said."""
    from factordiff.training.settings import preset

    base = preset(name)
    linear = base.decay_from == base.warmup
    if "decay_from" not in given:
        steps, warmup = given.get("max_steps", base.max_steps), given.get("warmup", base.warmup)
        given = {**given, "decay_from": warmup if linear else steps}
    if "min_frames" not in given and "frames" in given:
        given = {**given, "min_frames": given["frames"]}
    return dataclasses.replace(base, **given, network={**base.network, **network})


def _deterministic(settings: TrainingSettings) -> TrainingSettings:
    import torch

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    return dataclasses.replace(settings, compile="none", graph="off")
