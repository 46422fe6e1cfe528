"""The notebook runs from top to bottom, and what it shows last in a cell is something to look at."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "factordiff.ipynb"


def code_cells() -> list[str]:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def shown_by(code: str, namespace: dict[str, Any]) -> Any:
    """Run a cell; its value is that of its last line, as in a notebook."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(NOTEBOOK), "exec"), namespace)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), namespace)


@pytest.fixture(scope="module")
def shown() -> list[Any]:
    namespace: dict[str, Any] = {"__name__": "notebook"}
    return [shown_by(code, namespace) for code in code_cells()]


def test_the_notebook_runs(shown: list[Any]) -> None:
    assert len(shown) == len(code_cells()) > 8


def test_grids_maps_and_answers_are_drawn(shown: list[Any]) -> None:
    drawings = [one._repr_svg_() for one in shown if hasattr(one, "_repr_svg_")]
    pages = [one._repr_html_() for one in shown if hasattr(one, "_repr_html_")]
    assert len(drawings) >= 4  # the picture, its routing map, the task, the answer's routing map
    assert len(pages) >= 2  # the answers
    assert all(text.startswith("<svg") for text in drawings)
    assert all("<svg" in text for text in pages)


def test_it_is_stored_without_outputs() -> None:
    """Outputs would go stale; the test is what shows that it runs."""
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
