"""By which code a number was computed."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

CHANGED = "-changed"
PACKAGE = Path(__file__).resolve().parent.parent
NAMED = "FACTORDIFF_COMMIT"  # the environment's word on the commit
PROJECT = Path("src") / PACKAGE.name  # where the package lies in the project's own tree


def short(name: str) -> str:
    """A commit's name as people write it; that files were changed is still said, and a version stays as it is."""
    commit = name.removesuffix(CHANGED)
    return f"{commit[:12] if re.fullmatch('[0-9a-f]{40,64}', commit) else commit}{name[len(commit) :]}"


@cache
def commit() -> str:
    """The commit of the code, with a mark if files were changed; of an installed package its version.

    $FACTORDIFF_COMMIT names it where the code has travelled: a copy's repository may be older than its files.
    """
    return os.environ.get(NAMED) or _of_tree(PACKAGE) or _of_installed(PACKAGE) or "unknown"


def _of_tree(package: Path) -> str:
    """The commit, if the package lies in the project's own tree; another repository around it says nothing of it."""
    try:
        tree = Path(_git(package, "rev-parse", "--show-toplevel"))
        if tree.resolve() / PROJECT != package:
            return ""
        _git(package, "ls-files", "--error-unmatch", "__init__.py")
        changed = _git(package, "status", "--porcelain", "--untracked-files=no", ".")
        return f"{_git(package, 'rev-parse', 'HEAD')}{CHANGED if changed else ''}"
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(folder: Path, *words: str) -> str:
    # What git is told by its environment, as in a hook, is about another repository.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    ended = subprocess.run(
        ["git", *words], cwd=folder, capture_output=True, text=True, check=True, timeout=10, env=plain
    )
    return ended.stdout.strip()


def _of_installed(package: Path) -> str:
    """Name and version, if this very folder is what was installed."""
    try:
        installed = distribution(package.name)
    except PackageNotFoundError:
        return ""
    here = Path(str(installed.locate_file(package.name))).resolve() == package
    return f"{package.name} {installed.version}" if here else ""
