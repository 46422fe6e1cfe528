"""Compiled or not, a step decides the same; what cannot be compiled goes on as it is."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import torch

from factordiff.composition.routing import Routing
from factordiff.errors import InvalidInput
from factordiff.sampling import decision
from factordiff.sampling.sampler import sample
from tests.sampling.test_engine import condition, networks


@pytest.mark.slow
def test_fused_steps_give_the_same_answers() -> None:
    command = [sys.executable, "-m", "tests.sampling.fused_run"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout.strip().splitlines()[-1])
    assert len(found) == 12
    for name, one in found.items():
        assert one["same"], name
        assert one["passes"], name
        assert one["density"] < 1e-9, name


def test_what_cannot_be_compiled_goes_on_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(function: Any, **options: Any) -> Any:
        def refuse(*given: Any) -> Any:
            raise RuntimeError("no compiler here")

        return refuse

    experts, told, x_t = networks(), condition(3), torch.full((3, 9), 10)
    plain = sample(experts, Routing(), x_t, told)
    monkeypatch.setattr(decision.torch, "compile", broken)
    assert torch.equal(sample(experts, Routing(), x_t, told, fuse=True).x_0, plain.x_0)
    made: list[decision.Fused] = []
    monkeypatch.setattr("factordiff.sampling.run.Fused", lambda: made.append(decision.Fused()) or made[0])
    sample(experts, Routing(), x_t, told, fuse=True)
    assert made[0].failure == "decision: RuntimeError: no compiler here"
    with pytest.raises(InvalidInput, match="temperatures"):  # a mistake of the caller is not the compiler's
        sample(experts, Routing(temperatures=(1.0,)), x_t, told, fuse=True)


def test_garbage_from_the_compiler_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoiled(function: Any, **options: Any) -> Any:
        return lambda *given: function(*given)._replace(
            said=given[3][..., 0] * float("nan"), tokens=torch.zeros(3, 9, dtype=torch.int64)
        )

    experts, told, x_t = networks(), condition(3), torch.full((3, 9), 10)
    plain = sample(experts, Routing(), x_t, told)
    monkeypatch.setattr(decision.torch, "compile", spoiled)
    made: list[decision.Fused] = []
    monkeypatch.setattr("factordiff.sampling.run.Fused", lambda: made.append(decision.Fused()) or made[0])
    assert torch.equal(sample(experts, Routing(), x_t, told, fuse=True).x_0, plain.x_0)
    assert made[0].failure is not None
    assert made[0].failure.startswith("decision: the faster result is not finite")
