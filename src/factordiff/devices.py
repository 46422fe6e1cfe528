"""Devices: which there are, which is chosen, and what it is called."""

from __future__ import annotations

import os
import platform

import torch

from factordiff.errors import Unavailable

DEVICES = ("auto", "cpu", "cuda", "mps")


def available(device: str) -> bool:
    """Whether this machine has such a device."""
    if device == "cuda":
        return torch.cuda.is_available()
    if device == "mps":
        return torch.backends.mps.is_available()
    return device == "cpu"


def device_name(device: torch.device) -> str:
    """The device as logs, records and cards call it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type} {platform.machine()}"


def choose_device(name: str) -> torch.device:
    """The device of that name; `auto` takes the fastest there is."""
    if name not in DEVICES:
        raise Unavailable(f"device: expected one of {', '.join(DEVICES)}, got {name!r}")
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if available(kind))
    if not available(name):
        raise Unavailable(
            f"device: {name} was asked for, but this machine has none that PyTorch {torch.__version__} can use; "
            "use --device auto or --device cpu"
        )
    if name == "cuda":
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    return torch.device(name)


def where_to_draw(device: torch.device) -> torch.device:
    """Where batches are drawn: counter-based draws need 64-bit numbers, which mps lacks."""
    return torch.device("cpu") if device.type == "mps" else device


def device_named(device: torch.device | str | None) -> torch.device:
    """The device, found out to be there before an expert is loaded onto it; `cuda:1` is one of several.

    None is torch's own default, which is the CPU unless somebody set another.
    """
    device = torch.get_default_device() if device is None else device
    kind = device.type if isinstance(device, torch.device) else device.partition(":")[0]
    chosen = choose_device(kind)
    try:
        return chosen if kind == device else torch.device(device)
    except RuntimeError:
        raise Unavailable(f"device: expected a name such as cpu, cuda or cuda:1, got {device!r}") from None
