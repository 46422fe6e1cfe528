"""A chorus says what its networks say one by one, and the sampler cannot tell the difference."""

from __future__ import annotations

import pytest
import torch

from factordiff.composition.composition import Composition
from factordiff.composition.correctors import feynman_kac
from factordiff.composition.mixture import Mixture
from factordiff.composition.routing import Routing
from factordiff.composition.superdiff import SuperDiff
from factordiff.errors import InvalidInput
from factordiff.experts.chorus import Chorus, together
from factordiff.experts.expert import Expert, voices
from factordiff.experts.refinement import Network
from factordiff.sampling.sampler import sample
from tests.experts.networks import CONDITIONINGS, condition, partly_masked, small


def frozen(backbone: str, conditioning: str = "latents", seed: int = 0) -> Network:
    return small(backbone, conditioning, seed, head="default").freeze()


@pytest.mark.parametrize("conditioning", CONDITIONINGS)
def test_it_says_what_each_network_says(conditioning: str) -> None:
    networks = [frozen("trans-ir", conditioning, seed) for seed in range(3)]
    chorus, told, x_t = Chorus(networks), condition(4), partly_masked(4)
    said = chorus.log_probs(x_t, chorus.encode(told))
    alone = [network.log_probs(x_t, network.encode(told)) for network in networks]
    assert said.shape == (4, 3, 16, 10)
    assert not torch.allclose(alone[0], alone[1], atol=1e-2)
    for voice, expected in enumerate(alone):
        assert torch.allclose(said[:, voice].exp(), expected.exp(), atol=1e-5)


@pytest.mark.parametrize(
    ("composition", "particles"),
    [(Routing(), 1), (Mixture(), 1), (SuperDiff(), 1), (feynman_kac(), 4)],
    ids=["routing", "mixture", "superdiff", "fkc"],
)
@pytest.mark.parametrize("bucket", [None, 8])
def test_the_sampler_cannot_tell_the_difference(
    composition: Composition, particles: int, bucket: int | None
) -> None:
    conv, *pair = frozen("conv-ir"), frozen("trans-ir", seed=1), frozen("trans-ir", seed=2)
    x_t, told = torch.full((6, 16), 10), condition(6)
    experts: list[Expert] = [conv, *pair]
    settings = {"particles": particles, "temperature": float(particles > 1), "bucket": bucket}
    apart = sample(experts, composition, x_t, told, **settings)  # type: ignore[arg-type]
    joined = sample(together(experts), composition, x_t, told, **settings)  # type: ignore[arg-type]
    assert torch.equal(joined.particles, apart.particles)
    assert torch.equal(joined.x_0, apart.x_0)
    assert torch.allclose(joined.log_density, apart.log_density, atol=1e-3)
    assert joined.nominal_passes.tolist() == apart.nominal_passes.tolist()
    assert joined.executed_passes.tolist() == apart.executed_passes.tolist()


def test_neighbours_of_one_architecture_come_together() -> None:
    conv, first, second, paper = (
        frozen("conv-ir"),
        frozen("trans-ir", seed=1),
        frozen("trans-ir", seed=2),
        frozen("trans-ir", "paper"),
    )
    grouped = together([conv, first, second, paper])
    assert [voices(one) for one in grouped] == [1, 2, 1]
    assert (grouped[0], grouped[2]) == (conv, paper)
    assert [voices(one) for one in together([first, conv, second])] == [1, 1, 1]  # the order stays
    fewer = second.with_cycles(1, 1)
    assert [voices(one) for one in together([first, fewer])] == [1, 1]


def test_what_does_not_sing_together_is_refused() -> None:
    with pytest.raises(InvalidInput, match="expected frozen networks of one architecture"):
        Chorus([frozen("trans-ir"), frozen("trans-ir", "paper")])
    with pytest.raises(InvalidInput, match="expected frozen networks of one architecture"):
        Chorus([frozen("trans-ir"), small("trans-ir")])  # weights that may still change
    with pytest.raises(InvalidInput, match="those of a ConvIR cannot be asked in one pass"):
        Chorus([frozen("conv-ir"), frozen("conv-ir", seed=1)])
    assert [voices(one) for one in together([frozen("conv-ir"), frozen("conv-ir", seed=1)])] == [1, 1]
    with pytest.raises(InvalidInput, match="at least one"):
        Chorus([])
