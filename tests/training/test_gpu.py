"""What only a GPU can show: a recorded step is the step, and a deterministic run resumes bit by bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from factordiff.training.step import RecordedStep
from tests.training.runs import StopAt, digest, trainer
from tests.training.synthetic import SEQUENCES, Counting, Flips

pytestmark = pytest.mark.gpu


SOURCES = {
    "trans-ir": {"source": Flips(side=3, device="cuda")},
    "transformer": {"source": Counting("cuda"), "backbone": "transformer", "network": SEQUENCES},
}


@pytest.mark.parametrize("backbone", SOURCES)
def test_a_recorded_step_is_the_step(backbone: str) -> None:
    ends = []
    for recorded in (False, True):
        run = trainer(device="cuda", graph="off", dtype="float32", **SOURCES[backbone])
        advance = RecordedStep(run.step) if recorded else run.step
        for _ in range(10):
            advance()
        assert int(run.step.counters["step"]) == 10
        ends.append(run.step.network.vector.detach().clone())
    assert float((ends[0] - ends[1]).norm() / ends[0].norm()) < 1e-4


def test_a_deterministic_run_resumes_bit_by_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    try:
        fields = {
            "device": "cuda",
            "source": Flips(side=3, device="cuda"),
            "graph": "off",
            "dtype": "bfloat16",
        }
        straight = trainer(**fields)
        straight.run()
        trainer(tmp_path, observers=(StopAt(5),), **fields).run()
        resumed = trainer(tmp_path, resume=True, **fields)
        assert resumed.done == 5
        resumed.run()
        assert digest(resumed) == digest(straight)
    finally:
        torch.use_deterministic_algorithms(False)
