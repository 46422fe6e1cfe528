"""What `auto` means: everything that pays on a GPU, nothing that cannot be had elsewhere."""

from __future__ import annotations

import pytest
import torch

from factordiff.errors import Unavailable
from factordiff.training.computation import decided
from factordiff.training.machines import Machines
from factordiff.training.settings import TrainingSettings

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def how(settings: TrainingSettings, device: torch.device, world: int = 1) -> dict[str, str]:
    found = decided(settings, device, Machines(rank=0, world=world))
    return {name: getattr(found, name) for name in ("compile", "graph", "kernels", "dtype", "newton_schulz")}


def test_a_cpu_computes_as_it_is_written() -> None:
    plain = {"compile": "none", "graph": "off", "kernels": "off"}
    assert how(TrainingSettings(), CPU) == {**plain, "dtype": "float32", "newton_schulz": "float32"}


def test_a_gpu_compiles_records_and_uses_our_kernels() -> None:
    fast = {"compile": "blocks", "kernels": "on", "dtype": "bfloat16", "newton_schulz": "bfloat16"}
    assert how(TrainingSettings(), GPU) == {**fast, "graph": "on"}
    assert how(TrainingSettings(), GPU, world=2) == {
        **fast,
        "graph": "off",
    }  # a graph cannot wait for other machines


def test_what_was_asked_for_stays() -> None:
    asked = TrainingSettings(compile="none", graph="off", dtype="float32", newton_schulz="float32")
    assert how(asked, GPU) == how(TrainingSettings(), CPU)  # without compiling, without kernels
    assert how(TrainingSettings(kernels="off"), GPU)["kernels"] == "off"


def test_what_cannot_be_had_is_refused() -> None:
    for device, world in ((CPU, 1), (GPU, 2)):
        with pytest.raises(Unavailable, match="graph: recording a step needs one GPU"):
            how(TrainingSettings(graph="on"), device, world)
    with pytest.raises(Unavailable, match="dtype: bfloat16 is not supported on mps"):
        how(TrainingSettings(dtype="bfloat16"), torch.device("mps"))
