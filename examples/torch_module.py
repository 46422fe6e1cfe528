"""A torch module as an expert: two small networks, each trained on one half of a picture, paint both.

The pictures are 6x6: the upper half repeats the color of its top left cell, the lower half has stripes in that of its
bottom right. Each network saw its own half right and noise in the other.

python examples/torch_module.py
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from factordiff import Team, Vocabulary, compose, substitute

SIDE, COLORS, MASK = 6, 4, 4
CELLS = SIDE * SIDE
HALF = CELLS // 2
CUES = (0, CELLS - 1)  # the cells that tell the two colors


def pictures(count: int, generator: torch.Generator, noisy: str = "") -> Tensor:
    """Pictures of the world; one half may be noise."""
    upper, lower = torch.randint(COLORS, (2, count, 1), generator=generator)
    stripes = torch.arange(HALF).flip(0)[None, :] // SIDE % 2
    halves = {"upper": upper.expand(-1, HALF), "lower": (lower + stripes) % COLORS}
    if noisy:
        halves[noisy] = torch.randint(COLORS, (count, HALF), generator=generator)
    return torch.cat([halves["upper"], halves["lower"]], dim=1)


class Denoiser(nn.Module):
    """Any module that turns partly masked cells into a distribution per cell is an expert."""

    vocabulary = Vocabulary(COLORS)

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(CELLS * (COLORS + 1), 128), nn.ReLU(), nn.Linear(128, CELLS * COLORS)
        )

    def forward(self, x_t: Tensor) -> Tensor:
        """Logits of every color at every cell."""
        seen = nn.functional.one_hot(x_t, COLORS + 1).float().flatten(1)
        return self.layers(seen).view(-1, CELLS, COLORS)

    def encode(self, condition: Any) -> None:
        """Nothing to read: the condition is in the given cells."""

    def log_probs(self, x_t: Tensor, encoded: None) -> Tensor:
        """Normalised, and revealed cells copied (SUBS)."""
        return substitute(self(x_t), x_t, self.vocabulary)


def trained(noisy: str, seed: int, steps: int = 600) -> Denoiser:
    """A network that learned from pictures whose one half is noise: masked denoising, nothing else."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Denoiser()
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(steps):
        x_0 = pictures(128, generator, noisy)
        hidden = torch.rand(x_0.shape, generator=generator) < torch.rand(len(x_0), 1, generator=generator)
        x_t = torch.where(hidden, MASK, x_0)
        loss = nn.functional.cross_entropy(network(x_t)[hidden], x_0[hidden])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network.eval()


def exact(team: Team, count: int = 200) -> float:
    """The share of pictures that are right in every cell, given the two cells that tell the colors."""
    truth = pictures(count, torch.Generator().manual_seed(9))
    asked = torch.full_like(truth, MASK)
    asked[:, CUES] = truth[:, CUES]
    return float((team.sample(asked, reveal="fast").x_0 == truth).all(-1).double().mean())


def main() -> dict[str, float]:
    """Train both and measure each alone and together."""
    team = compose({"upper": trained("lower", 1), "lower": trained("upper", 2)})
    return {"upper": exact(team.alone(0)), "lower": exact(team.alone(1)), "together": exact(team)}


if __name__ == "__main__":
    torch.set_num_threads(1)  # tiny tensors: more threads only get in each other's way
    for name, share in main().items():
        print(f"{name}: {100 * share:.1f} % of the pictures right")
