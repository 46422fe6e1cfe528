"""Experts as folders: `config.json` and `model.safetensors`, the Hugging Face layout. Never pickle."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from factordiff.errors import CheckpointError, InvalidInput, MissingDependency, Unavailable
from factordiff.experts.registry import CONFIG, WEIGHTS, find_expert
from factordiff.files import write_whole
from factordiff.networks.config import NetworkConfig
from factordiff.networks.config_file import TYPE, check_config
from factordiff.networks.conv_config import ConvIRConfig
from factordiff.networks.conv_ir import ConvIR
from factordiff.networks.network import Network
from factordiff.networks.sequence import SequenceConfig, SequenceTransformer
from factordiff.networks.trans_config import TransIRConfig
from factordiff.networks.trans_ir import TransIR
from factordiff.networks.weight_file import check_weights, read_weights
from factordiff.schema.bound import shown
from factordiff.schema.fields import read_fields
from factordiff.schema.json_file import check_regular, read_object

MODEL = "model.safetensors"

BACKBONES: dict[str, tuple[type[Network], type[NetworkConfig]]] = {
    "trans-ir": (TransIR, TransIRConfig),
    "conv-ir": (ConvIR, ConvIRConfig),
    "transformer": (SequenceTransformer, SequenceConfig),
}


def build(backbone: str, settings: dict[str, Any] | None = None, seed: int | None = 0) -> Network:
    """A new network of that backbone; `settings` are fields of its configuration. Without a seed it is all zeros."""
    config = configure(backbone, settings)
    return BACKBONES[backbone][0](config, seed)


def configure(backbone: str, settings: dict[str, Any] | None = None) -> NetworkConfig:
    """The configuration of such a network, checked; nothing is built yet."""
    if not isinstance(backbone, str) or backbone not in BACKBONES:
        raise Unavailable(f"backbone: expected one of {', '.join(BACKBONES)}, got {shown(backbone)}")
    config = BACKBONES[backbone][1]
    known = {field.name for field in dataclasses.fields(config)}
    unknown = ", ".join(sorted((settings or {}).keys() - known))
    if unknown:
        named = unknown if unknown.isprintable() and len(unknown) <= 200 else shown(unknown)
        raise Unavailable(f"network: {backbone} has no setting {named}; expected {', '.join(sorted(known))}")
    return read_fields(config, settings or {})


def network_for(backbone: str, settings: dict[str, Any], values: int, cells: int) -> dict[str, Any]:
    """A network's settings for data of so many values and cells; one that is made for other data is refused."""
    if backbone in BACKBONES:
        settings = {**BACKBONES[backbone][1].sized(values, cells), **settings}
    made = configure(backbone, settings)
    if (made.values, made.cells) != (values, cells):
        others = ", ".join(name for name, (_, config) in BACKBONES.items() if config.sized(values, cells))
        raise InvalidInput(
            f"network: the data has {cells} cells of {values} values, this {backbone} is made for {made.cells} of "
            f"{made.values}; set its sizes, or use --backbone {others}, which takes any"
        )
    return settings


def save_expert(
    network: Network,
    folder: str | Path,
    about: dict[str, Any] | None = None,
    dtype: torch.dtype = torch.float32,
) -> Path:
    """Write an expert's folder; `about` (objective, steps, data) travels in its config.json.

    In bfloat16 the file has half the size, and the weights are rounded. Each file appears whole or not at all; the
    configuration comes last.
    """
    folder = Path(folder)
    names = {type_: name for name, (type_, _) in BACKBONES.items()}
    named = network.named_weights().items()
    weights = {name: weight.to("cpu", dtype, copy=True).contiguous() for name, weight in named}
    data = safetensors.torch.save(weights, {"format": "pt"})
    config = {
        "model_type": TYPE,
        "backbone": names[type(network)],
        "network": network.config.as_json(),
        "parameters": network.layout.count,
        "about": about or {},
    }
    write_whole(folder / MODEL, data)
    write_whole(folder / CONFIG, (json.dumps(config, indent=2) + "\n").encode())
    return folder


def read_config(folder: str | Path) -> dict[str, Any]:
    """An expert's config.json."""
    path = Path(folder) / CONFIG
    try:
        return check_config(read_object(path))
    except OSError as error:
        raise _unreadable(path, error) from error
    except InvalidInput as error:
        raise CheckpointError(f"{path}: not an expert's configuration ({error})") from error


def load_expert(
    expert: str | Path, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
) -> Network:
    """The frozen expert of a folder, of a training run, or a shipped one by its name; nothing else is needed.

    The folder may be a stranger's: its configuration has bounds, and must agree with the header of its weight file
    before anything is built from it.
    """
    folder = find_expert(expert).folder
    config = read_config(folder)
    try:
        slots = configure(config["backbone"], config["network"]).weight_slots()
    except (InvalidInput, Unavailable) as error:
        raise CheckpointError(f"{folder / CONFIG}: not an expert's configuration ({error})") from error
    try:
        check_weights(folder / MODEL, slots)
    except OSError as error:
        raise _unreadable(folder / MODEL, error) from error
    count = sum(slot.size for slot in slots.values())
    if config.get("parameters", count) != count:
        raise CheckpointError(
            f"{folder / CONFIG}: it says {config['parameters']:,} parameters, but such a network has {count:,}"
        )
    network = build(config["backbone"], config["network"], seed=None)
    load_weights(network, folder)
    return network.to(device).freeze(dtype)


def load_weights(network: Network, folder: str | Path, *, head: bool = True) -> None:
    """Put a folder's weights into a network of the same configuration; without `head`, its own head stays."""
    path = Path(folder) / MODEL
    try:
        weights = read_weights(path, network.layout.slots)
    except OSError as error:
        raise _unreadable(path, error) from error
    if not head:
        weights |= {name: own for name, own in network.named_weights().items() if name.startswith("head.")}
    with torch.no_grad():
        network.vector.copy_(network.layout.pack(weights))


def weight_hash(folder: str | Path) -> str:
    """The sha256 of an expert's weight file: which weights a figure was measured with."""
    path = Path(folder) / MODEL
    try:
        check_regular(path)
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> CheckpointError:
    """The error for a file of an expert's folder: a wrong folder is told from one that lacks the file."""
    folder = path.parent
    missing = "" if os.path.exists(folder) else f": there is no folder {folder}"
    return CheckpointError(
        f"{path}: cannot be read ({error.strerror}{missing}); expected a folder with {CONFIG} and {MODEL}. "
        f"Name the folder that holds both: a training run keeps them in its folder {WEIGHTS}"
    )


def push_expert(folder: str | Path, repository: str, **options: Any) -> str:
    """Upload an expert's folder to a hub; returns the address of the commit."""
    read_config(folder)
    hub = _hub()
    hub.HfApi().create_repo(repository, exist_ok=True, **options)
    return str(hub.HfApi().upload_folder(repo_id=repository, folder_path=str(folder)))


def pull_expert(repository: str, folder: str | Path | None = None, **options: Any) -> Path:
    """Download an expert from a hub and return its folder."""
    options = {"allow_patterns": [CONFIG, MODEL], **options}
    if folder is not None:
        options["local_dir"] = str(folder)
    return Path(_hub().snapshot_download(repository, **options))


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise MissingDependency(
            "huggingface_hub: install factordiff[hub] to push and pull experts"
        ) from error
    return huggingface_hub
