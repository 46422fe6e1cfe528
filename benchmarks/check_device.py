"""Is a device's arithmetic ours? Random numbers, batches, compositions and samples on it against the CPU's.

    python benchmarks/check_device.py cuda

Random numbers and batches must be equal bit for bit, whole-number results too; distributions up to rounding.
"""

from __future__ import annotations

import sys

import torch

from factordiff.arc.dataset import Dataset
from factordiff.composition.confidence import computed_by, log_doubt
from factordiff.composition.correctors import feynman_kac
from factordiff.composition.product import GeometricMean
from factordiff.composition.routing import Routing
from factordiff.composition.superdiff import SuperDiff
from factordiff.diffusion.process import noise
from factordiff.engine import doubt_kernel
from factordiff.sampling.sampler import sample
from factordiff.state import SamplerState
from factordiff.streams import Purpose, hash_words, uniform
from factordiff.toy.painting import IndependentCells


def random_log_probs(*shape: int) -> torch.Tensor:
    index = torch.arange(torch.Size(shape).numel()).view(shape)
    return torch.log_softmax(6.0 * uniform(3, index).float(), -1)


class OnDevice(IndependentCells):
    """The demo's expert, its table moved to a device."""

    def __init__(self, log_table: torch.Tensor, device: torch.device) -> None:
        super().__init__(log_table)
        self.log_table = self.log_table.to(device)


def checks(device: torch.device) -> dict[str, bool]:
    """Name of a check -> whether it held."""
    cpu = torch.device("cpu")
    item, cell = torch.arange(300), torch.arange(100)
    keys = [(7, Purpose.TOKEN, item.to(d)[:, None], 3, cell.to(d)[None, :]) for d in (cpu, device)]
    held = {
        "hashes": torch.equal(*(hash_words(*key).cpu() for key in keys)),
        "uniforms": torch.equal(*(uniform(*key).cpu() for key in keys)),
        "uniforms, float32": torch.equal(*(uniform(*key, dtype=torch.float32).cpu() for key in keys)),
    }
    weights = torch.tensor([0.6, *[0.4 / 7] * 7])
    drawn = []
    for d in (cpu, device):
        dataset = Dataset.load(d)
        condition, x_0 = dataset.draw(5, 11, item.to(d), 3, weights.to(d), min_frames=2)
        t, uniforms = noise(5, 11, item.to(d), 300, 100)
        parts = condition.query, condition.context_inputs, condition.context_outputs, condition.present
        drawn.append([part.cpu() for part in (*parts, x_0, t, uniforms)])
    held["batches"] = all(torch.equal(one, two) for one, two in zip(*drawn, strict=True))

    spoken = random_log_probs(2, 50, 100, 10)
    with computed_by(doubt_kernel.log_doubt):
        doubts = log_doubt(spoken.to(device)).cpu()
    held["log-doubts in one kernel"] = bool((doubts - log_doubt(spoken)).abs().max() < 1e-12)
    x_t = torch.full((50, 100), 10)
    for composition in (GeometricMean(), SuperDiff(), Routing(temperatures=[1.0, 0.25])):
        found = []
        for d in (cpu, device):
            composed = composition(spoken.to(d), SamplerState.begin(x_t.to(d), 10, 2))
            found.append((composed.log_probs.cpu(), composed.routing, log_doubt(composed.log_probs).cpu()))
        (one, z_one, doubt_one), (two, z_two, doubt_two) = found
        same = torch.allclose(one, two, atol=1e-5) and torch.allclose(doubt_one, doubt_two, atol=1e-4)
        if z_one is not None and z_two is not None:
            same = same and torch.equal(z_one.cpu(), z_two.cpu())
        held[f"{composition!r}"] = same

    tables = [random_log_probs(36, 4), random_log_probs(2, 36, 4)[1]]
    start = torch.full((40, 36), 4)
    for name, composition, options in (
        ("samples by routing", Routing(), {"temperature": 0.0}),
        ("samples by fkc", feynman_kac(), {"temperature": 1.0, "particles": 4}),
    ):
        answers = [
            sample([OnDevice(table, d) for table in tables], composition, start.to(d), **options).x_0.cpu()  # type: ignore[arg-type]
            for d in (cpu, device)
        ]
        held[name] = torch.equal(*answers)
    return held


def main() -> None:
    device = torch.device(sys.argv[1] if len(sys.argv) > 1 else "cuda")
    held = checks(device)
    for name, right in held.items():
        print(f"{'equal' if right else 'DIFFERENT':10s}{name}")
    sys.exit(0 if all(held.values()) else 1)


if __name__ == "__main__":
    main()
