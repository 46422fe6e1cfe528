"""Devices: which there are, which is chosen, and what it is called."""

from __future__ import annotations

import os
import platform

import torch

from factordiff.errors import InvalidInput, Unavailable

DEVICES = ("auto", "cpu", "cuda", "mps")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


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


def chosen_dtype(name: str, device: torch.device) -> str:
    """The precision of that name; `auto` is bfloat16 on a GPU and float32 elsewhere."""
    dtype = ("bfloat16" if device.type == "cuda" else "float32") if name == "auto" else name
    if dtype not in DTYPES:
        raise InvalidInput(f"dtype: expected auto, float32 or bfloat16, got {name!r}")
    return dtype


def memory_of(device: torch.device) -> int | None:
    """The bytes of memory there are; None where the system does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


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
