"""A site with experts: what is missing or does not fit is said before anything is written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from factordiff.cli.app import app
from factordiff.errors import InvalidInput, MissingDependency, Unavailable
from factordiff.web.browser_site import RUNTIME_FILES, check_runtime, write_solver
from factordiff.web.onnx_export import export_onnx
from factordiff.web.site import bundled
from tests.networks.small_networks import small
from tests.web.serving import LIBRARY
from tests.web.stubs import CELL, Copyist, copying


def test_a_runtime_that_is_not_there_is_named_with_what_fetches_it(tmp_path: Path) -> None:
    for name in RUNTIME_FILES[:-1]:
        (tmp_path / name).write_text("")
    with pytest.raises(
        Unavailable, match=r"ort-wasm-simd-threaded.wasm is not there; `make site-with-experts`"
    ):
        check_runtime(tmp_path)
    (tmp_path / RUNTIME_FILES[-1]).write_text("")
    assert check_runtime(tmp_path) == tmp_path


def test_without_onnx_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingDependency, match=r"install factordiff\[onnx\]"):
        export_onnx("small", small("trans-ir", layout=[10, 10]), tmp_path / "small.onnx")
    assert list(tmp_path.iterdir()) == []


def test_experts_that_cannot_be_exported_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    with pytest.raises(InvalidInput, match="export: stub is no network on a canvas of 100 cells"):
        export_onnx("stub", Copyist(CELL >= 0), tmp_path / "stub.onnx")
    with pytest.raises(InvalidInput, match="export: blind does not see sizes"):
        export_onnx("blind", small("trans-ir", layout=[10, 10]), tmp_path / "blind.onnx")
    with pytest.raises(InvalidInput, match="export: even is no network"):
        write_solver(tmp_path, copying(), LIBRARY)


def test_the_flag_belongs_to_an_export() -> None:
    refused = CliRunner().invoke(app, ["play", "--with-experts"])
    assert "add --export DIR" in str(refused.exception) + refused.output


def test_the_workbench_without_a_server_asks_none() -> None:
    script = bundled("workbench", {"api": "browser_api"})
    assert "api/v1" not in script
    assert (
        script.index("modules.decoding =")
        < script.index("modules.api =")
        < script.index("modules.workbench =")
    )
    assert "api/v1" in bundled("workbench")
