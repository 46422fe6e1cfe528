"""How an expert's weights came to be, in sentences for its card: the command, its length, its last check."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from factordiff.networks.store import build, read_config
from factordiff.training.log import read_log
from factordiff.training.run_folder import LOG
from factordiff.training.settings import HOW_TO_COMPUTE, PRESETS, WHAT_TO_LOOK_AT

# How a run is computed and watched, not what it learns.
UNTOLD = frozenset({"preset", "dtype", "newton_schulz"} | HOW_TO_COMPUTE | WHAT_TO_LOOK_AT)

# What of a network the command can set.
FLAGS = (
    "cycles",
    "conditioning",
    "literal",
    "pair_patch",
    "head",
    "rotary",
    "positions",
    "field",
    "sees_sizes",
)

# What of a network follows from its data.
FROM_THE_DATA = ("values", "length")


def provenance(folder: Path, run: Path | None) -> list[str]:
    """Lines about the training of the expert in a folder; a run's folder knows how long it took and how it ended."""
    config = read_config(folder)
    about = config["about"]
    lines = _commands(config)
    if "step" in about:
        averaged = about.get("settings", {}).get("ema") != 0.0
        lines.append(
            f"weights {'averaged over the steps up to' if averaged else 'of step'} {about['step']:,}"
        )
    events = [] if run is None else read_log(run / LOG)
    ends = [event for event in events if event["event"] == "end"]
    if ends:
        last = ends[-1]
        devices = sorted({event["device"] for event in events if "device" in event})
        where = f" on {', '.join(devices)}" if devices else ""
        which = "the last of these took " if "started_from" in about else ""
        lines.append(f"{which}{last['seconds'] / 60:.1f} minutes{where}, seed {about['settings']['seed']}")
        lines.append(f"last check: loss {last['loss']:.4f}, {_reached(last)}")
    differences = unlike_the_paper(config)
    if differences:
        lines.append(f"not as the paper has it (docs/paper-map.md): {', '.join(differences)}")
    return lines


def unlike_the_paper(config: dict[str, Any]) -> list[str]:
    """What of a grid network and its training, all stages, is ours and not the paper's."""
    if "conditioning" not in config["network"]:
        return []
    network = build(config["backbone"], config["network"]).config.as_json()
    latents = network["conditioning"] == "latents"
    stages = _stages(config["about"])
    most = {
        name: max((stage.get(name, 0.0) for stage in stages), default=0.0)
        for name in ("agreement", "identity_share", "rename", "more", "sized", "lr", "lr_rest", "ema")
    }
    said = {
        "demonstrations read by latents": latents,
        "the field": latents and network["field"],
        "rotary positions": network.get("rotary"),
        "attention (with rotary positions) and 1x1 maps in Conv-IR": latents
        and config["backbone"] == "conv-ir",
        "sizes seen": network.get("sees_sizes"),
        f"agreement loss {most['agreement']:g}": most["agreement"],
        f"the data's own orientation {most['identity_share']:.0%} of the time": most["identity_share"]
        > 1 / 8,
        f"values renamed in up to {most['rename']:.0%} of the items": most["rename"],
        "emphasis: some tasks more often": any(stage.get("emphasis") for stage in stages),
        "some tasks alone": any(stage.get("tasks") for stage in stages),
        "fewer than three demonstrations": any(stage.get("min_frames", 3) < 3 for stage in stages),
        f"{most['more']:.0%} of the items from a larger set": most["more"],
        f"{most['sized']:.0%} of the queries evenly over sizes": most["sized"],
        f"Muon up to {most['lr']:g} and AdamW up to {most['lr_rest']:g}": most["lr"] > 2e-4,
        f"averaged weights ({most['ema']:g})": most["ema"],
        f"{len(stages)} stages": len(stages) > 1,
    }
    return [words for words, holds in said.items() if holds]


def _stages(about: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings of every stage, the earliest first."""
    earlier = _stages(about["started_from"]["about"]) if "started_from" in about else []
    return [*earlier, about.get("settings", {})]


def _reached(check: dict[str, Any]) -> str:
    if "exact" not in check:
        return (
            f"{check['bits_at_15']:.3f} bits per cell with 15 % hidden, {check['bits_at_50']:.3f} with 50 %"
        )
    return (
        f"in one pass {100 * check['exact']:.1f} % exact, "
        f"largest share of one value at foreground {check['largest_share_at_foreground']:.3f}"
    )


def _commands(config: dict[str, Any]) -> list[str]:
    """The commands that repeat a training, the earliest first; settings made in Python have none."""
    about = config["about"]
    lines, start = [], ""
    if "started_from" in about:
        earlier = about["started_from"]
        lines = _commands({**config, "about": earlier["about"]})
        new_head = " --new-head" if earlier.get("new_head") else ""
        start = f", from those weights ({earlier['weights'][:12]}): add `--init-from FOLDER{new_head}`"
    if about.get("settings", {}).get("preset") in PRESETS:
        lines.append(f"`{command(config)}`{start}")
    return lines


def command(config: dict[str, Any]) -> str:
    """The command that repeats a training, from what the weights' config.json says about it."""
    settings = config["about"]["settings"]
    usual = PRESETS[settings["preset"]].as_json()
    words = ["factordiff", "train", settings["preset"]]
    for name, value in settings.items():
        if name == "network":
            words += _network_words(config["backbone"], value, usual["network"])
        elif name not in UNTOLD and value != usual.get(name):
            words += [f"--{name.replace('_', '-')}", _word(value)]
    return shlex.join(words)


def _network_words(backbone: str, network: dict[str, Any], preset: dict[str, Any]) -> list[str]:
    usual, whole = (build(backbone, one).config.as_json() for one in (preset, network))
    words = []
    for name in FLAGS:
        value = whole.get(name)  # settings of before the preset had it are the network's own default
        if value == usual.get(name):
            continue
        flag = {"cycles": "refinement"}.get(name, name).replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", _word(value)]
    others = {
        name: value
        for name, value in network.items()
        if name not in FLAGS and value != usual.get(name) and name not in FROM_THE_DATA
    }
    return [*words, "--network", _word(others)] if others else words


def _word(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{key}={part}" for key, part in value.items())
    return ",".join(str(part) for part in value) if isinstance(value, list) else str(value)
