"""Where a number was computed, and by which code."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import torch


def device_name(device: torch.device) -> str:
    """The device as records and cards call it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type} {platform.machine()}"


def commit() -> str:
    """The commit of the code, with a mark if files were changed; unknown where git does not know."""
    here = Path(__file__).parent.parent
    try:
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no", "."],
            cwd=here, capture_output=True, text=True, check=True, timeout=10,
        ).stdout.strip()  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return f"{head}{'-changed' if changed else ''}"
