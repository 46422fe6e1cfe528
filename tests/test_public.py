"""The public list: one name, one home, and the type checker sees what the interpreter finds."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest
import torch

import factordiff


def shown_to_the_type_checker() -> dict[str, str]:
    """Name to home, from the file of types."""
    found = {}
    for node in ast.parse(Path(factordiff.__file__).with_suffix(".pyi").read_text()).body:
        if isinstance(node, ast.ImportFrom):
            assert node.module is not None
            for alias in node.names:
                assert alias.asname == alias.name  # `X as X` is what marks a re-export
                assert alias.name not in found
                found[alias.name] = node.module
    return found


def test_the_interpreter_finds_what_the_type_checker_sees() -> None:
    assert set(factordiff.__all__) == set(shown_to_the_type_checker())
    assert len(factordiff.__all__) > 50


@pytest.mark.parametrize("name", factordiff.__all__)
def test_every_name_is_the_thing_it_names(name: str) -> None:
    assert getattr(factordiff, name) is getattr(import_module(shown_to_the_type_checker()[name]), name)


def test_names_are_listed_once_and_sorted() -> None:
    assert factordiff.__all__ == sorted(set(factordiff.__all__))
    assert set(factordiff.__all__) <= set(dir(factordiff))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'smaple'"):
        factordiff.smaple  # noqa: B018


def test_the_version_is_the_projects() -> None:
    project = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    assert f'version = "{factordiff.__version__}"' in project


def test_what_an_error_asks_for_can_be_imported() -> None:
    """A condition without sizes is refused with `Condition(..., inside=Inside(...))`."""
    blank = torch.zeros(1, 1, 4, dtype=torch.int64)
    condition = factordiff.Condition(blank[0], blank, blank, torch.ones(1, 1, dtype=torch.bool))
    with pytest.raises(factordiff.InvalidInput) as refused:
        condition.grids(sees_sizes=True)
    asked_for = set(re.findall(r"\b[A-Z]\w+", str(refused.value)))
    assert {"Condition", "Inside"} <= asked_for <= set(factordiff.__all__)
