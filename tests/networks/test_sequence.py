"""The sequence transformer against its equations, and what it refuses."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.networks.network import Network
from factordiff.networks.sequence import SequenceConfig, SequenceTransformer
from factordiff.networks.store import build, load_expert, network_for, read_config, save_expert
from factordiff.networks.transformer import SLOWEST_IN_LINE
from factordiff.streams import Purpose, integers
from tests.networks.small_networks import condition, stir

SMALL = {"values": 5, "length": 9, "width": 12, "blocks": 2, "heads": 3}


def small() -> Network:
    network = build("transformer", SMALL)
    stir(network)
    return network


def tokens(rows: int = 3, cells: int = 9) -> Tensor:
    return integers(6, 0, Purpose.CORRUPT, torch.arange(rows)[:, None], torch.arange(cells))


def normed(x: Tensor) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()


def by_the_equations(network: Network, row: Tensor) -> Tensor:
    """One row's logits in float64, token by token and head by head, with rotations as complex numbers."""
    weights = {name: weight.double() for name, weight in network.named_weights().items()}
    size, pairs = 12 // 3, 2
    omega = [SLOWEST_IN_LINE ** (pair / (pairs - 1)) for pair in range(pairs)]
    h = torch.stack([weights["embed"][token] for token in row.tolist()])
    for block in range(2):
        query, key, value = (normed(h) @ weights[f"blocks.{block}.qkv"].T).split(12, -1)
        attended = torch.zeros_like(h)
        for head in range(3):
            part = slice(head * size, (head + 1) * size)
            for i in range(len(row)):
                scores = []
                for j in range(len(row)):
                    score = 0.0
                    for pair in range(pairs):
                        a = complex(*query[i, part][[pair, pair + pairs]].tolist())
                        b = complex(*key[j, part][[pair, pair + pairs]].tolist())
                        turn = complex(math.cos(omega[pair] * (i - j)), math.sin(omega[pair] * (i - j)))
                        score += (a * turn * b.conjugate()).real
                    scores.append(score / math.sqrt(size))
                share = torch.tensor(scores, dtype=torch.float64).softmax(0)
                attended[i, part] = share @ value[:, part]
        h = h + attended @ weights[f"blocks.{block}.out"].T
        hidden = torch.nn.functional.gelu(normed(h) @ weights[f"blocks.{block}.up"].T)
        h = h + hidden @ weights[f"blocks.{block}.down"].T
    return normed(h) @ weights["head.weight"].T + weights["head.bias"]


def test_it_is_its_equations() -> None:
    network = small()
    x_t = tokens()
    found = network.logits(network.weights(), x_t, network.encode(None))
    for row in range(3):
        expected = by_the_equations(network, x_t[row])
        assert torch.allclose(found[row].double().detach(), expected, atol=1e-4), row


def test_shorter_sequences_are_asked_about_and_longer_ones_refused() -> None:
    network = small().freeze()
    short = tokens(cells=4)
    expected = by_the_equations(network, short[1]).log_softmax(-1)
    masked = short[1] == 5
    assert masked.any()
    found = network.log_probs(short, None)[1]
    assert torch.allclose(found[masked].double(), expected[masked], atol=1e-4)
    assert torch.equal(found[~masked].argmax(-1), short[1][~masked])  # a revealed cell copies itself
    with pytest.raises(InvalidInput, match="x_t: expected 1 to 9 cells, got 10"):
        network.log_probs(tokens(cells=10), None)


def test_it_starts_undecided() -> None:
    network = build("transformer", SMALL)
    said = network.log_probs(torch.full((1, 9), 5), None)
    assert torch.allclose(said, torch.full_like(said, -math.log(5)))


def test_a_folder_brings_it_back(tmp_path: Path) -> None:
    network = small()
    save_expert(network, tmp_path, {"objective": "full"})
    again = load_expert(tmp_path)
    assert read_config(tmp_path)["backbone"] == "transformer"
    assert torch.equal(again.log_probs(tokens(), None), network.freeze().log_probs(tokens(), None))
    assert "up to 9 cells, frozen, float32" in repr(again)


def test_the_size_for_bytes() -> None:
    network = build("transformer", {"values": 96, "length": 256})
    assert network.layout.count == 1_204_448 <= 2_000_000
    assert "1,204,448" in (SequenceConfig.__doc__ or "")


def test_it_takes_the_sizes_of_the_data() -> None:
    assert network_for("transformer", {"width": 24}, 7, 30) == {"values": 7, "length": 30, "width": 24}
    with pytest.raises(
        InvalidInput,
        match=r"30 cells of 7 values, this trans-ir is made for 100 of 10; .* --backbone transformer",
    ):
        network_for("trans-ir", {}, 7, 30)


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="condition: a sequence transformer takes none, got Condition"):
        small().encode(condition(2))
    with pytest.raises(InvalidInput, match="blocks: expected a whole number from 1 to 512, got 0"):
        SequenceTransformer(SequenceConfig(blocks=0))
    with pytest.raises(InvalidInput, match="width: expected an even number of channels for each of 5 heads"):
        SequenceConfig(width=25, heads=5)
    with pytest.raises(InvalidInput, match="cycles: SequenceTransformer has no refinement cycles"):
        small().with_cycles(1, 1)
