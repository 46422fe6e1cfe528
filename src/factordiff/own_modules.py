"""Modules of other people: a class that is named as module:Class, and packages that add to this one."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from factordiff.errors import InvalidInput, Unavailable

GROUP = "factordiff"  # the entry points under which a package names its modules


def named_class(what: str, name: str, expected: str) -> Any:
    """The class that `module:Class` names, in what is installed or in a file where people work."""
    module, separator, attribute = name.partition(":")
    if not (separator and module and attribute):
        raise InvalidInput(f"{what}: {expected}, got {name!r}")
    here = str(Path.cwd())
    sys.path.insert(0, here)  # as `python -m` would have it
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"{what}: there is no module {error.name!r}, neither installed nor in {here}; {expected}"
        ) from error
    finally:
        sys.path.remove(here)
    if not callable(getattr(found, attribute, None)):
        raise InvalidInput(f"{what}: {module} has no class {attribute!r}; {expected}")
    return getattr(found, attribute)


def import_packages() -> None:
    """Import the modules that installed packages name, so that what they declare is known."""
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:  # whatever goes wrong in a module of somebody else
            package = "a package" if point.dist is None else f"the package {point.dist.name}"
            raise Unavailable(
                f"{point.value}: {package} adds it to factordiff, but it cannot be imported ({type(error).__name__}: "
                f"{error}); mend it, or uninstall the package"
            ) from error
