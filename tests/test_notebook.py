"""The notebook runs from top to bottom, and what is stored in it is what it shows."""

from __future__ import annotations

import base64
import importlib.util
import io
import json
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOK = FOLDER / "factordiff.ipynb"


@pytest.fixture(scope="module")
def execute() -> ModuleType:
    spec = importlib.util.spec_from_file_location("execute", FOLDER / "execute.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))


def outputs(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        output.get("data", {})
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
        for output in cell["outputs"]
    ]


@pytest.mark.slow
def test_it_is_stored_with_what_it_shows(execute: ModuleType, stored: dict[str, Any]) -> None:
    """Run anew, every cell shows what is stored; if weights or code changed: `make notebook`."""
    assert execute.differences(stored, execute.executed(stored)) == []


def test_every_cell_shows_something(stored: dict[str, Any]) -> None:
    for number, cell in enumerate(cell for cell in stored["cells"] if cell["cell_type"] == "code"):
        assert cell["execution_count"] == number + 1
        assert cell["outputs"], "".join(cell["source"])


def test_pictures_are_of_a_kind_that_code_hosts_show(stored: dict[str, Any]) -> None:
    """SVG and PNG files, not drawings inside HTML, which code hosts take out."""
    shown = outputs(stored)
    assert not any("text/html" in data for data in shown)
    drawings = ["".join(data["image/svg+xml"]) for data in shown if "image/svg+xml" in data]
    assert len(drawings) >= 6
    for drawing in drawings:
        assert ElementTree.fromstring(drawing).tag.endswith("svg")
    pictures = [
        Image.open(io.BytesIO(base64.b64decode(data["image/png"]))) for data in shown if "image/png" in data
    ]
    assert len(pictures) >= 5
    assert all(picture.width >= 500 for picture in pictures)
    assert max(getattr(picture, "n_frames", 1) for picture in pictures) >= 10  # one of them moves


def test_no_output_tells_of_the_machine(stored: dict[str, Any]) -> None:
    text = json.dumps(
        [{kind: part for kind, part in data.items() if kind != "image/png"} for data in outputs(stored)]
    )
    assert "/home/" not in text
    assert "/work/" not in text
    assert "/tmp/" not in text


def test_a_changed_output_is_found(execute: ModuleType) -> None:
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": ["print(1)\n", "2"], "outputs": []}
    once = execute.executed({"cells": [cell]})
    assert [output["output_type"] for output in once["cells"][0]["outputs"]] == ["stream", "execute_result"]
    other = execute.executed({"cells": [{**cell, "source": ["print(1)\n", "3"]}]})
    assert execute.differences(once, once) == []
    assert len(execute.differences(once, other)) == 1
