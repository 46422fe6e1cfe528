"""The toy world as the library sees it, and a few shorthands for comparing it with the oracle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.diffusion.process import reverse_posterior
from factordiff.experts.tabular import TabularExpert
from factordiff.state import SamplerState
from factordiff.toy.law import exact_law
from tests.enumeration import World, joint, partial_states

P_1, P_2, P_3 = joint(1), joint(2), joint(3)
WORLD = World(P_1, P_2)
EXPERTS = [TabularExpert(torch.from_numpy(P_1)), TabularExpert(torch.from_numpy(P_2))]
MASK = 3
CELLS = 4
STATES = torch.tensor(partial_states(CELLS, MASK))
ROUNDING = 1e-12


def empty(items: int, cells: int = CELLS, mask: int = MASK) -> Tensor:
    return torch.full((items, cells), mask)


def normalised(table: np.ndarray) -> np.ndarray:
    return table / table.sum()


def state(x_t: Tensor, mask: int, log_density: Tensor) -> SamplerState:
    """A state on its way; what its rows have as log-densities lies in the first cell."""
    begun = SamplerState.begin(x_t, mask, len(log_density))
    cells = torch.zeros_like(begun.log_density)
    cells[:, :, 0] = log_density
    return replace(begun, log_density=cells)


def law_of(composition: Composition, **options: Any) -> np.ndarray:
    """The exact law of the two experts under a composition."""
    return exact_law(EXPERTS, composition, CELLS, **options).distribution().numpy()


def reverse_chain(log_p: Tensor, T: int) -> np.ndarray:
    """The law after T reverse steps from all masked, `log_p` given at every partial state."""
    mass = (STATES == MASK).all(-1).double()
    time = torch.ones(len(STATES), dtype=torch.float64)
    for j in range(T):
        cell = reverse_posterior(log_p, STATES, time * (1 - j / T), time * (1 - (j + 1) / T))
        move = torch.stack([cell[:, i, STATES[:, i]] for i in range(CELLS)]).prod(0)
        mass = mass @ move
    return mass.view([MASK + 1] * CELLS)[:MASK, :MASK, :MASK, :MASK].numpy()


def counts(x_0: Tensor, values: int = MASK, weights: Tensor | None = None) -> np.ndarray:
    """How often each clean state occurs (or its summed weight), one axis per cell."""
    cells = x_0.shape[1]
    index = np.ravel_multi_index(x_0.T.numpy(), (values,) * cells)
    flat = np.bincount(index, minlength=values**cells, weights=None if weights is None else weights.numpy())
    return flat.reshape((values,) * cells)


def assert_drawn_from(x_0: Tensor, law: np.ndarray, sigmas: float = 5.0) -> None:
    """Pearson's statistic of independent samples against an exact law, within `sigmas` of its mean.

    States with fewer than 5 expected draws are pooled, so that the statistic is nearly chi-squared.
    """
    seen, expected = counts(x_0, law.shape[0]).ravel(), len(x_0) * law.ravel()
    assert seen[expected == 0].sum() == 0, "an impossible state was drawn"
    rare = expected < 5
    seen = np.append(seen[~rare], seen[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    kept = expected > 0
    statistic = float(((seen[kept] - expected[kept]) ** 2 / expected[kept]).sum())
    freedom = int(kept.sum()) - 1
    limit = freedom + sigmas * math.sqrt(2 * freedom)
    assert statistic < limit, f"chi-squared {statistic:.1f} with {freedom} degrees of freedom"


# ---- what hypothesis draws -------------------------------------------------------------------------------------

seeds = st.integers(0, 2**32 - 1)


def log_probs(
    seed: int, *shape: int, forbid: float = 0.0, sharp: float = 2.0, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Random normalised log-probabilities; `forbid` is the chance that a value has probability zero."""
    random = np.random.default_rng(seed)
    logits = sharp * random.standard_normal(shape)
    forbidden = random.random(shape) < forbid
    # at least one value of each distribution stays possible
    forbidden[np.arange(shape[-1]) == random.integers(shape[-1], size=(*shape[:-1], 1))] = False
    return torch.log_softmax(torch.from_numpy(np.where(forbidden, -np.inf, logits)), dim=-1).to(dtype)


def states(seed: int, rows: int, cells: int, values: int, hidden: float = 0.6) -> Tensor:
    """Random partial states; `hidden` 0 and 1 give none and all masked."""
    random = np.random.default_rng(seed + 1)
    clean = random.integers(values, size=(rows, cells))
    return torch.from_numpy(np.where(random.random((rows, cells)) < hidden, values, clean))


def close(
    one: Tensor | np.ndarray | Sequence[float], other: np.ndarray | Sequence[float], atol: float = 1e-12
) -> bool:
    return bool(np.allclose(np.asarray(one), np.asarray(other), rtol=1e-12, atol=atol))


@dataclass(frozen=True)
class Drawn:
    """Random experts at random partial states: everything a composition looks at."""

    log_p: Tensor  # expert, row, cell, value
    x_t: Tensor
    ell: Tensor

    @property
    def state(self) -> SamplerState:
        return state(self.x_t, self.log_p.shape[-1], self.ell)

    @property
    def p(self) -> np.ndarray:
        return self.log_p.exp().numpy()

    @property
    def hidden(self) -> list[tuple[int, int]]:
        """The (row, cell) pairs that are masked: elsewhere nothing is asked."""
        return [tuple(pair) for pair in (self.x_t == self.log_p.shape[-1]).nonzero().tolist()]


@st.composite
def drawn(
    draw: st.DrawFn, experts: tuple[int, int] = (1, 4), values: tuple[int, int] = (1, 5), forbid: bool = True
) -> Drawn:
    """Shapes from one expert, row, cell and value upwards; no, some or all cells masked; values forbidden or not."""
    seed = draw(seeds)
    shape = [
        draw(st.integers(*experts)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 5)),
        draw(st.integers(*values)),
    ]
    chance = draw(st.sampled_from([0.0, 0.3, 0.7])) if forbid else 0.0
    dtype = torch.float64
    log_p = log_probs(seed, *shape, forbid=chance, sharp=draw(st.sampled_from([0.5, 3.0, 30.0])), dtype=dtype)
    x_t = states(seed, shape[1], shape[2], shape[3], hidden=draw(st.sampled_from([0.0, 0.6, 1.0])))
    ell = -5 * np.random.default_rng(seed + 2).random((shape[0], shape[1]))
    if forbid and draw(st.booleans()):
        ell[0] = -np.inf
    return Drawn(log_p, x_t, torch.from_numpy(ell))
