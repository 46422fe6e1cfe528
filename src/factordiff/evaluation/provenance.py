"""By which code a number was computed."""

from __future__ import annotations

import subprocess
from pathlib import Path

CHANGED = "-changed"


def short(name: str) -> str:
    """A commit's name as people write it; that files were changed is still said."""
    return f"{name.removesuffix(CHANGED)[:12]}{CHANGED if name.endswith(CHANGED) else ''}"


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
    return f"{head}{CHANGED if changed else ''}"
