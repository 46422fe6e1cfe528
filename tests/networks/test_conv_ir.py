"""Conv-IR: its size, its block against the appendix, masked cells, odd canvases, and a start that learns."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from factordiff.errors import InvalidInput
from factordiff.networks.conditioning import one_hot
from factordiff.networks.convnet import attend, convolved, halved
from factordiff.networks.store import build
from factordiff.training.settings import PRESETS
from tests.networks.small_networks import SMALL, condition, partly_masked, small


@pytest.mark.parametrize("fields", [{}, {"field": False}, PRESETS["paper"].network])
def test_about_a_million_parameters(fields: dict[str, object]) -> None:
    network = build("conv-ir", fields)
    assert 900_000 <= network.layout.count <= 1_100_000
    assert (network.config.width, network.config.groups, network.config.context) == (128, 8, 256)


@pytest.mark.parametrize(("kind", "side"), [("paper", 3), ("latents", 1)])
def test_the_block_is_the_appendixs(kind: str, side: int) -> None:
    network = small("conv-ir", kind)
    w = network.named_weights()
    x = (one_hot(partly_masked(2, 32 * 16).view(2, 32, 4, 4), 1, torch.float32)[..., 0] - 0.5).double()
    w = {name: part.double() for name, part in w.items()}
    assert w["blocks.0.second"].shape == (32, 32, side, side)
    injection = torch.arange(64, dtype=torch.float64).view(2, 32) / 64
    h_1 = F.conv2d(
        F.silu(F.group_norm(x, 8, w["blocks.0.gain_1"], w["blocks.0.shift_1"])),
        w["blocks.0.first"],
        padding=1,
    )
    h_2 = h_1 + injection[:, :, None, None]
    normed = F.group_norm(h_2, 8, w["blocks.0.gain_2"], w["blocks.0.shift_2"])
    expected = F.conv2d(F.silu(normed), w["blocks.0.second"], padding=side // 2)
    assert torch.allclose(convolved(x, w, "blocks.0", injection, 8), expected, atol=1e-12)
    scaled = F.conv2d(
        F.silu(normed * (1 + 3 * injection[:, :, None, None])), w["blocks.0.second"], padding=side // 2
    )
    assert torch.allclose(convolved(x, w, "blocks.0", injection, 8, 3 * injection), scaled, atol=1e-12)


def test_an_application_is_two_looks_and_two_blocks() -> None:
    """The U with latents, put together by hand from its parts."""
    network = small("conv-ir")
    told = network.encode(condition(2))
    w = network.weights()
    state = network.embed(w, partly_masked(2), told)
    assert told.keys is not None
    assert told.values is not None

    def look(x: torch.Tensor, block: int) -> torch.Tensor:
        part = told.modulation[:, block]
        extra = told.keys[:, block], told.values[:, block]
        gate = part[:, 2].unsqueeze(1)
        return attend(x, w, f"blocks.{block}", gate, part[:, :2], extra, w["rotation"], 4, 8**-0.5)

    def convolve(x: torch.Tensor, block: int) -> torch.Tensor:
        _, _, _, scale, injection, gate = told.modulation[:, block].unbind(1)
        return x + gate[:, :, None, None] * convolved(x, w, f"blocks.{block}", injection, 8, scale)

    above = look(convolve(look(state, 0), 0), 1)
    below = convolve(halved(above), 1)
    below = torch.einsum("oc,bchw->bohw", w["up"], below).repeat_interleave(2, 2).repeat_interleave(2, 3)
    assert torch.allclose(network.apply_once(w, state, told), above + below, atol=1e-5)


def test_a_masked_cell_is_the_zero_vector() -> None:
    grid = torch.tensor([[0, 9, 10]])
    assert one_hot(grid, 10, torch.float32).sum(-1).tolist() == [[1.0, 1.0, 0.0]]
    network = small("conv-ir", "paper")
    encoded = network.encode(condition(1))
    h = network.embed(network.weights(), torch.full((1, 16), 10), encoded)
    assert torch.allclose(h, encoded.cells)


@pytest.mark.parametrize("layout", [[4, 4], [5, 4], [3, 7], [1, 1]])
def test_any_canvas(layout: list[int]) -> None:
    network = small("conv-ir", layout=layout)
    cells = layout[0] * layout[1]
    x_t = torch.full((2, cells), 10)
    assert network.log_probs(x_t, network.encode(condition(2, cells=cells))).shape == (2, cells, 10)


def test_cells_far_apart_meet_below() -> None:
    """One application reaches beyond its own convolutions at full resolution: the U does its work."""
    network = small("conv-ir", "paper", layout=[10, 10])
    encoded = network.encode(condition(1, cells=100))
    weights = network.weights()
    state = torch.zeros(1, 32, 10, 10, requires_grad=True)
    network.apply_once(weights, state, encoded)[0, :, 0, 0].sum().backward()
    assert state.grad is not None
    reached = state.grad[0].abs().amax(0) > 0
    assert bool(reached[5, 5])


def test_attention_among_cells_is_the_formula() -> None:
    """Cell by cell, head by head: every other cell and the extra keys are read, near or far."""
    network = small("conv-ir", layout=[3, 4])
    weights = {name: part.double() for name, part in network.weights().items()}
    planes = partly_masked(2, 32 * 12).view(2, 32, 3, 4).double() / 10
    gate = partly_masked(2, 32, seed=4).view(2, 1, 32).double() / 10
    gamma_beta = partly_masked(2, 64, seed=1).view(2, 2, 32).double() / 10
    keys, values = (partly_masked(2, 4 * 5 * 8, seed=n).view(2, 4, 5, 8).double() / 10 for n in (2, 3))
    found = attend(
        planes, weights, "blocks.1", gate, gamma_beta, (keys, values), weights["rotation"], 4, 8**-0.5
    )
    cosine, sine = weights["rotation"]
    for item in range(2):
        tokens = planes[item].flatten(1).T
        normed = F.layer_norm(tokens, (32,)) * (1 + gamma_beta[item, 0]) + gamma_beta[item, 1]
        q, k, v = (normed @ weights["blocks.1.qkv"].T).view(12, 3, 4, 8).unbind(1)
        for cell in range(12):
            read = []
            for head in range(4):
                turned = [x[:, head] * cosine + x[:, head].roll(4, -1) * sine for x in (q, k)]
                seen = torch.cat([turned[1], keys[item, head]])
                share = torch.softmax(seen @ turned[0][cell] / 8**0.5, 0)
                read.append(share @ torch.cat([v[:, head], values[item, head]]))
            told = gate[item, 0] * (weights["blocks.1.out"] @ torch.cat(read))
            assert torch.allclose(found[item, :, cell // 4, cell % 4], tokens[cell] + told)


@pytest.mark.parametrize("kind", ["latents", "paper"])
def test_it_starts_uniform_and_still_learns(kind: str) -> None:
    network = build("conv-ir", {**SMALL, "conditioning": kind})
    told, target = condition(8), condition(8, seed=1).query
    x_t = torch.full((8, 16), 10)
    start = network.log_probs(x_t, network.encode(told))
    assert torch.equal(start, start[:1, :1, :1].expand_as(start))
    x_t = partly_masked(8)
    for _ in range(6):
        log_probs = torch.log_softmax(network.logits(network.weights(), x_t, network.encode(told)), -1)
        loss = F.nll_loss(log_probs.flatten(0, 1), target.flatten())
        (gradient,) = torch.autograd.grad(loss, [network.vector])
        with torch.no_grad():
            network.vector -= 0.02 * gradient.sign()
    for name, part in network.layout.unpack(gradient).items():
        assert part.abs().max() > 0, name


@pytest.mark.parametrize(("fields", "name"), [({"width": 30}, "width"), ({"heads": 64}, "heads")])
def test_impossible_settings_are_refused(fields: dict[str, object], name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        build("conv-ir", fields)


@pytest.mark.parametrize(("height", "width"), [(4, 6), (3, 6), (4, 5), (3, 5), (1, 1)])
def test_halving_averages_the_cells_that_are_there(height: int, width: int) -> None:
    planes = torch.arange(2.0 * 3 * height * width).view(2, 3, height, width)
    found = halved(planes)
    assert found.shape == (2, 3, (height + 1) // 2, (width + 1) // 2)
    for i in range(found.shape[2]):
        for j in range(found.shape[3]):
            square = planes[:, :, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
            assert torch.allclose(found[:, :, i, j], square.mean((-2, -1)))
