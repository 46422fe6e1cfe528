"""Compiled steps compute the same function as plain ones."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backbone", "kind"),
    [
        ("trans-ir", "latents"),
        ("trans-ir", "literal"),
        ("conv-ir", "latents"),
        ("conv-ir", "literal"),
        ("transformer", "sequence"),
    ],
)
def test_loss_and_gradient(backbone: str, kind: str) -> None:
    command = [sys.executable, "-m", "tests.training.compiled_run", backbone, kind]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    errors = json.loads(ended.stdout.strip().splitlines()[-1])
    assert max(errors["float32"]) <= 1e-4
    assert max(errors["bfloat16"]) <= 2e-2
    assert errors["no average"] == [0.0, 0.0]  # with a decay of 0
