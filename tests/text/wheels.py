"""Packages of a few small files, as wheels in a folder."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from factordiff.text.packages import Package

FILE = '''"""What {name} number {number} is about, said at some length."""

LIMIT = {number}


def {name}_{number}(value):
    """Add {number} to a value."""
    return value + {number}  # as its name says
'''


def source(name: str, number: int) -> str:
    """A file of some 800 characters, a third of them prose."""
    return FILE.format(name=name, number=number) + "".join(
        FILE.format(name=name, number=number + more).split("\n\n", 1)[1] for more in (100, 200, 300, 400)
    )


def wheel(folder: Path, name: str, files: dict[str, str | bytes]) -> Package:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in files.items():
            archive.writestr(inside, text)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Package(name, "1.0", "MIT", path.name, digest)


def packages(folder: Path, count: int = 9, files: int = 4) -> list[Package]:
    folder.mkdir(parents=True, exist_ok=True)
    return [
        wheel(
            folder,
            f"package{one}",
            {f"package{one}/file{two}.py": source(f"thing{one}", two) for two in range(files)},
        )
        for one in range(count)
    ]
