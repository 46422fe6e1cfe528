"""Small networks, conditions and grids for the tests of both backbones."""

from __future__ import annotations

import torch
from torch import Tensor

from factordiff.experts.condition import Condition
from factordiff.networks.network import Network
from factordiff.networks.store import build
from factordiff.streams import Purpose, integers, uniform

BACKBONES = ("trans-ir", "conv-ir")
CONDITIONINGS = ("latents", "paper", "literal")  # the last: the paper's, and the rest of its network too
SMALL = {"layout": [4, 4], "width": 32, "context": 24, "encoder": 8}


def small(backbone: str, conditioning: str = "latents", seed: int = 0, **fields: object) -> Network:
    """A small network whose every weight matters: nothing is zero any more."""
    literal = {"conditioning": "paper", "literal": True}
    settings = {
        **SMALL,
        **(literal if conditioning == "literal" else {"conditioning": conditioning}),
        **fields,
    }
    network = build(backbone, settings, seed)
    stir(network, seed)
    return network


def stir(network: Network, seed: int = 0, size: float = 0.3) -> None:
    """Move every weight a little, the zero-initialised ones too."""
    index = torch.arange(network.layout.size)
    with torch.no_grad():
        network.vector += size * (uniform(seed, Purpose.INIT, 999, index, dtype=torch.float32) - 0.5)


def condition(items: int, frames: int = 3, cells: int = 16, seed: int = 0) -> Condition:
    item, cell = torch.arange(items)[:, None, None], torch.arange(cells)
    grids = integers(10, seed, Purpose.QUERY, item, torch.arange(2 * frames + 1)[None, :, None], cell)
    present = torch.ones(items, frames, dtype=torch.bool)
    return Condition(grids[:, 0], grids[:, 1 : frames + 1], grids[:, frames + 1 :], present)


def partly_masked(items: int, cells: int = 16, seed: int = 0) -> Tensor:
    return integers(11, seed, Purpose.CORRUPT, torch.arange(items)[:, None], torch.arange(cells)[None, :])
