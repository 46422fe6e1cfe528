"""Trans-IR: its size, its block against the appendix, padded heads, and a start that learns."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from factordiff.errors import InvalidInput
from factordiff.networks import attention, conditioning
from factordiff.networks.attention import rotate
from factordiff.networks.store import build
from factordiff.networks.trans_ir import TransIR
from factordiff.networks.transformer import Block, fold, plain_block, rotations, transformer_blocks
from factordiff.streams import Purpose, uniform
from tests.networks.small_networks import condition, partly_masked, small


@pytest.mark.parametrize("kind", ["latents", "paper"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("patch", [1, 2])
@pytest.mark.parametrize("field", [False, True])
def test_about_a_million_parameters(kind: str, positions: str, patch: int, field: bool) -> None:
    network = build(
        "trans-ir",
        {
            "conditioning": kind,
            "positions": positions,
            "pair_patch": patch,
            "field": field,
        },
    )
    assert 900_000 <= network.layout.count <= 1_100_000
    config = network.config
    assert (config.width, config.blocks, config.heads, config.head_size, config.expansion) == (
        144,
        2,
        4,
        36,
        4,
    )
    assert config.context == 144


def test_the_block_is_the_appendixs() -> None:
    """Against the formulas written head by head, cell by cell, in float64."""
    cells, d, heads = 5, 12, 3
    size = d // heads
    draw = lambda key, *shape: (  # noqa: E731
        uniform(0, Purpose.INIT, key, torch.arange(math.prod(shape))).reshape(shape) - 0.5
    )
    x, modulation = draw(1, 1, cells, d), draw(2, 1, 6, d)
    qkv, out, up, down = (
        draw(3, 3, heads, size, d),
        draw(4, d, heads, size),
        draw(5, 4 * d, d),
        draw(6, d, 4 * d),
    )
    extra = draw(7, 1, heads, 2, size), draw(8, 1, heads, 2, size)
    block = Block(qkv.flatten(0, 2), out.flatten(1), up, down)
    blocks = [block, Block(*(-part for part in block[:4]))]
    modulations = torch.stack([modulation, 2.0 * modulation], 1)
    found = transformer_blocks(x, blocks, modulations, [extra, None], heads, size**-0.5)
    alone = transformer_blocks(x, blocks[:1], modulations[:, :1], [None], heads, size**-0.5)
    assert torch.allclose(alone, plain_block(x, fold(block, modulation[0]), heads, size**-0.5), atol=1e-12)

    def norm(h: torch.Tensor) -> torch.Tensor:
        return (h - h.mean(-1, keepdim=True)) / (h.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()

    h = x[0]
    for number, sign in enumerate((1, -1)):
        gamma_1, beta_1, alpha_1, gamma_2, beta_2, alpha_2 = modulations[0, number]
        normed = (1 + gamma_1) * norm(h) + beta_1
        attended = torch.zeros(cells, d, dtype=torch.float64)
        for head in range(heads):
            q, k, v = (sign * normed @ qkv[part, head].T for part in range(3))
            if number == 0:
                k, v = torch.cat([k, extra[0][0, head]]), torch.cat([v, extra[1][0, head]])
            attended += (q @ k.T / math.sqrt(size)).softmax(-1) @ v @ (sign * out[:, head]).T
        h = h + alpha_1 * attended
        up_, down_ = sign * up, sign * down
        h = h + alpha_2 * (F.gelu(((1 + gamma_2) * norm(h) + beta_2) @ up_.T) @ down_.T)
    assert torch.allclose(found[0], h, atol=1e-12)


def test_padded_heads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    network = small("trans-ir", width=36, heads=4, rotary=False)  # heads of 9, stored as 16
    told, x_t = condition(3), partly_masked(3)
    padded = network.log_probs(x_t, network.encode(told))
    assert network.weights()["blocks.0.qkv"].shape == (3 * 4 * 16, 36)
    monkeypatch.setattr(attention, "padded_head", lambda size: size)
    assert network.weights()["blocks.0.qkv"].shape == (3 * 36, 36)
    plain = network.log_probs(x_t, network.encode(told))
    assert torch.allclose(padded.exp(), plain.exp(), atol=1e-5)


def test_the_input_is_the_joined_embedding() -> None:
    """The input is W [E(x_t) || E(c)] + PE, here with the product that the tables save."""
    network = small("trans-ir", field=False)
    parts, told, x_t = network.named_weights(), condition(2), partly_masked(2)
    weights = network.weights()
    h = network.embed(weights, x_t, network.encode(told))
    joined = torch.cat([parts["embed.x_t"][x_t], parts["embed.query"][told.query]], -1)
    w = torch.cat([parts["embed.join"][0], parts["embed.join"][1]], -1)
    expected = joined @ w.T + conditioning.sinusoidal_positions(4, 4, 32)
    assert torch.allclose(h, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["latents", "paper"])
def test_it_starts_uniform_and_still_learns(kind: str) -> None:
    """Head and gates are zero at the start, yet after a few steps of any descent every weight has a gradient."""
    network = build(
        "trans-ir", {"layout": [4, 4], "width": 32, "context": 24, "encoder": 8, "conditioning": kind}
    )
    told, target = condition(8), condition(8, seed=1).query
    x_t = torch.full((8, 16), 10)
    start = network.log_probs(x_t, network.encode(told))
    assert torch.equal(start, start[:1, :1, :1].expand_as(start))
    for _ in range(6):
        loss = F.nll_loss(network.log_probs(x_t, network.encode(told)).flatten(0, 1), target.flatten())
        (gradient,) = torch.autograd.grad(loss, [network.vector])
        with torch.no_grad():
            network.vector -= 0.02 * gradient.sign()
    for name, part in network.layout.unpack(gradient).items():
        assert part.abs().max() > 0, name


def test_learned_positions_have_no_shape_of_the_data() -> None:
    network = small("trans-ir", positions="learned")
    assert network.layout.slots["positions.row"].shape == (32, 32)
    told, x_t = condition(2), torch.full((2, 16), 10)
    log_probs = network.log_probs(x_t, network.encode(told))
    assert not torch.allclose(log_probs[:, 0], log_probs[:, 1])


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"width": 30, "heads": 4}, "width"),
        ({"positions": "none"}, "positions"),
        ({"pair_patch": 0}, "pair_patch"),
    ],
)
def test_impossible_settings_are_refused(fields: dict[str, object], name: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        build("trans-ir", fields)


def test_default_head_is_random() -> None:
    assert float(TransIR().named_weights()["head.weight"].abs().max()) == 0.0
    assert float(build("trans-ir", {"head": "default"}).named_weights()["head.weight"].std()) > 0.01


def test_rotary_attention_sees_offsets_only() -> None:
    """The score of two cells is the same wherever they lie, and changes with the offset between them."""
    height = width = 5
    table = rotations(height, width, 8).double()
    q, k = (uniform(0, Purpose.INIT, key, torch.arange(8)).expand(1, 1, 25, 8) for key in (1, 2))
    scores = (rotate(q, table)[0, 0] @ rotate(k, table)[0, 0].T).view(5, 5, 5, 5)
    assert torch.allclose(scores[0, 0, 1, 2], scores[2, 1, 3, 3], atol=1e-6)
    assert torch.allclose(scores[4, 4, 2, 4], scores[3, 0, 1, 0], atol=1e-6)
    assert not torch.allclose(scores[0, 0, 1, 2], scores[0, 0, 2, 1], atol=1e-3)
    assert torch.allclose(rotate(q, table).norm(dim=-1), q.norm(dim=-1))


def test_rotary_positions_do_not_touch_the_padding() -> None:
    x = torch.cat([torch.ones(1, 1, 25, 8), torch.zeros(1, 1, 25, 3)], -1)
    turned = rotate(x, rotations(5, 5, 8))
    assert (turned[..., 8:] == 0).all()
    assert torch.equal(turned[..., :8], rotate(x[..., :8], rotations(5, 5, 8)))


def test_rotary_needs_heads_of_four_channels() -> None:
    with pytest.raises(InvalidInput, match="rotary"):
        build("trans-ir", {"width": 36, "heads": 6, "rotary": True})
