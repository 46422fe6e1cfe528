"""The networks of `factordiff train paper` against the paper's equations, and what they leave out."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from factordiff.errors import InvalidInput
from factordiff.experts.condition import Condition
from factordiff.networks.conv_config import ConvIRConfig
from factordiff.networks.network import Network
from factordiff.networks.store import build
from factordiff.training.settings import PRESETS
from tests.networks import paper_reference as reference
from tests.networks.small_networks import BACKBONES, SMALL, condition, partly_masked, stir

PAPER = PRESETS["paper"].network
both = pytest.mark.parametrize("backbone", BACKBONES)


def at_random(backbone: str, seed: int = 0, **fields: object) -> Network:
    """The paper's network with every weight at random, those too that start at zero or one."""
    network = build(backbone, {**PAPER, **fields}, seed)
    stir(network, seed)
    return network


def one_to_three(cells: int) -> Condition:
    """Six items with one, two and three demonstrations; where one is missing lies rubbish."""
    told = condition(6, frames=3, cells=cells)
    return replace(told, present=torch.arange(3) < torch.tensor([1, 2, 3, 3, 2, 1])[:, None])


def by_the_equations(network: Network, x_t: torch.Tensor, told: Condition) -> torch.Tensor:
    """What the reference says about every item."""
    weights = {name: weight.double() for name, weight in network.named_weights().items()}
    config, rows = network.config, []
    for item in range(len(told)):
        there = told.present[item].nonzero().flatten().tolist()
        pairs = [(told.context_inputs[item, n], told.context_outputs[item, n]) for n in there]
        given = (weights, x_t[item], told.query[item], pairs, config.layout)
        sizes = {"slots": config.slots, "cycles": tuple(network.cycles)}
        if isinstance(config, ConvIRConfig):
            rows.append(reference.conv_ir(*given, groups=config.groups, **sizes))
        else:
            rows.append(reference.trans_ir(*given, blocks=2, heads=config.heads, **sizes))
    return torch.stack(rows)


@both
@pytest.mark.parametrize(
    "fields",
    [
        {**SMALL},
        {**SMALL, "layout": [5, 3], "cycles": [1, 3]},
        {**SMALL, "layout": [1, 7], "cycles": [3, 1], "slots": 2},
    ],
)
def test_a_small_one_is_the_papers(backbone: str, fields: dict[str, object]) -> None:
    network = at_random(backbone, **fields)
    told, x_t = one_to_three(network.config.cells), partly_masked(6, network.config.cells)
    x_t[3] = reference.MASK
    found, expected = network.log_probs(x_t, network.encode(told)), by_the_equations(network, x_t, told)
    masked = x_t == reference.MASK
    assert 0 < masked.sum() < masked.numel()
    assert torch.equal(found[~masked].double(), expected[~masked])
    assert (found[masked] - expected[masked]).abs().max() < 1e-5


@both
def test_the_one_that_is_trained_is_the_papers(backbone: str) -> None:
    """The real sizes, 10x10 cells, one item of one and one of three demonstrations."""
    network = at_random(backbone)
    told, x_t = one_to_three(100)[torch.tensor([0, 2])], partly_masked(2, 100)
    found, expected = network.log_probs(x_t, network.encode(told)), by_the_equations(network, x_t, told)
    masked = x_t == reference.MASK
    assert (found[masked] - expected[masked]).abs().max() < 1e-5


@both
def test_every_weight_matters(backbone: str) -> None:
    """A weight without effect could be anything in both of two networks that agree."""
    network = at_random(backbone, **SMALL)
    told, x_t = one_to_three(16), partly_masked(6)
    masked = x_t == reference.MASK
    before = network.log_probs(x_t, network.encode(told)).detach()[masked]
    for name, start in network.layout.offsets.items():
        size = network.layout.slots[name].size
        kept = network.vector.detach()[start : start + size].clone()
        with torch.no_grad():
            network.vector[start : start + size] += torch.linspace(-0.1, 0.1, size)
            changed = network.log_probs(x_t, network.encode(told))[masked]
            network.vector[start : start + size] = kept
        assert (changed - before).abs().max() > 1e-3, name


def test_it_has_the_papers_sizes_and_nothing_of_ours() -> None:
    trans, conv = (build(backbone, PAPER) for backbone in BACKBONES)
    assert (trans.config.width, trans.config.context, trans.config.heads, trans.config.head_size) == (
        144,
        144,
        4,
        36,
    )
    assert (conv.config.width, conv.config.context, conv.config.groups) == (128, 256, 8)  # type: ignore[attr-defined]
    assert (trans.layout.count, conv.layout.count) == (1_080_378, 1_025_930)
    assert not trans.config.rotary  # type: ignore[attr-defined]
    assert "rotation" not in trans.weights()
    for network in (trans, conv):
        assert not network.config.sees_sizes
        names = set(network.layout.slots)
        assert not [name for name in names if name.startswith(("latents", "pair_modulation"))]
    assert not [name for name in conv.layout.slots if name.endswith("qkv")], "Conv-IR attends to nothing"
    kernels = [slot.shape for slot in conv.layout.slots.values() if len(slot.shape) == 4]
    assert {shape[2:] for shape in kernels} == {(3, 3)}
    assert "up" not in conv.layout.slots


@both
def test_it_starts_uniform_with_closed_gates_and_open_norms(backbone: str) -> None:
    network = build(backbone, PAPER)
    told, x_t = one_to_three(100), torch.full((6, 100), reference.MASK)
    start = network.log_probs(x_t, network.encode(told))
    assert torch.allclose(start, torch.full_like(start, -math.log(10)))
    if backbone == "trans-ir":
        gamma_1, beta_1, alpha_1, gamma_2, beta_2, alpha_2 = network.encode(told).modulation.unbind(2)
        for ones in (gamma_1, gamma_2):
            assert torch.equal(ones, torch.ones_like(ones))
        for zeros in (beta_1, alpha_1, beta_2, alpha_2):
            assert not zeros.any()


@both
def test_from_its_start_every_weight_learns(backbone: str) -> None:
    """Head, gates and second convolutions are zero at first; after a few steps of any descent all have gradients."""
    network = build(backbone, {**PAPER, **SMALL})
    told, x_t, target = one_to_three(16), partly_masked(6), condition(6, seed=1).query
    for _ in range(6):
        log_probs = torch.log_softmax(network.logits(network.weights(), x_t, network.encode(told)), -1)
        loss = F.nll_loss(log_probs.flatten(0, 1), target.flatten())
        (gradient,) = torch.autograd.grad(loss, [network.vector])
        with torch.no_grad():
            network.vector -= 0.02 * gradient.sign()
    for name, part in network.layout.unpack(gradient).items():
        assert part.abs().max() > 0, name


@both
@pytest.mark.usefixtures("untyped")
def test_literal_goes_with_the_papers_conditioning_only(backbone: str) -> None:
    with pytest.raises(InvalidInput, match="literal: expected conditioning paper with it, got 'latents'"):
        build(backbone, {"literal": True})
    with pytest.raises(InvalidInput, match="literal: expected true or false, got 1"):
        build(backbone, {"conditioning": "paper", "literal": 1})


def test_rotary_positions_are_not_the_papers() -> None:
    with pytest.raises(InvalidInput, match="rotary: the paper has no rotary positions"):
        build("trans-ir", {**PAPER, "rotary": True})
    assert build("trans-ir", {"conditioning": "paper"}).config.rotary is True  # type: ignore[attr-defined]
    assert build("trans-ir").config.rotary is True  # type: ignore[attr-defined]
