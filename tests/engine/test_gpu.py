"""The engine on a GPU: recorded steps with our own kernel give the loop's answers, and say so."""

from __future__ import annotations

import pytest
import torch

from factordiff.composition.confidence import log_doubt
from factordiff.engine import doubt_kernel
from factordiff.engine.engine import Engine
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.adaptive import ByMargin, ByProduct
from factordiff.sampling.reveal import ByConfidence, RevealRule
from factordiff.sampling.sampler import sample
from factordiff.streams import uniform
from tests.engine.test_engine import differences, request

pytestmark = pytest.mark.gpu


class Moved:
    """A table that is asked from the GPU."""

    def __init__(self, expert: TabularExpert) -> None:
        self.expert, self.vocabulary = expert, expert.vocabulary

    def encode(self, condition: torch.Tensor) -> torch.Tensor:
        return condition

    def log_probs(self, x_t: torch.Tensor, encoded: torch.Tensor) -> torch.Tensor:
        return self.expert.log_probs(x_t.cpu(), encoded.cpu()).to(x_t.device)


@pytest.mark.parametrize("rule", [ByConfidence(6), ByMargin(0.4), ByProduct(0.3)], ids=repr)
@pytest.mark.parametrize(
    "name", ["routing", "superdiff", "mixture", "product", "own factors", "soft-routing"]
)
def test_a_recorded_step_is_the_plain_one(name: str, rule: RevealRule) -> None:
    asked = request(name, 2, 40) | {"reveal": rule, "temperature": 1.0}
    plain = sample(**asked)
    for key in ("x_t", "condition", "items"):
        asked[key] = asked[key].cuda()
    asked["experts"] = [Moved(expert) for expert in asked["experts"]]
    found = Engine(8, cuda_graph=True).sample(**asked)
    names = ("x_0", "particles", "nominal_passes", "executed_passes")
    assert all(torch.equal(getattr(found, key).cpu(), getattr(plain, key)) for key in names)
    assert torch.allclose(found.log_density.cpu(), plain.log_density, atol=1e-12)
    if name not in ("own factors", "soft-routing"):  # whose labels are copied to the GPU in every step
        assert found.how == "kernel"
    again = Engine(8).sample(**asked)
    assert not differences(again, found) or torch.allclose(again.log_density, found.log_density, atol=1e-12)


def test_the_doubt_kernel_on_the_gpu_itself() -> None:
    for values in (2, 10, 31, 128):
        index = torch.arange(5 * 7 * 13 * values, device="cuda").view(5, 7, 13, values)
        given = torch.log_softmax(uniform(5, index).float() * 40.0, -1)
        found = doubt_kernel.log_doubt(given)
        assert found is not None
        assert (found - log_doubt(given)).abs().max() < 2e-13
