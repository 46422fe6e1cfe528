"""Rows of states taken out and put together: for loops in which items come and go, and paths that branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.state import SamplerState
from factordiff.streams import Draws

PER_ROW = ("x_t", "log_w", "clock", "item", "start", "log_doubt", "repairs")


def some_rows(state: SamplerState, rows: Int[Tensor, " some"]) -> SamplerState:
    """Some of the rows."""
    parts = {name: getattr(state, name) for name in PER_ROW}
    some: dict[str, Any] = {name: None if part is None else part[rows] for name, part in parts.items()}
    return replace(state, log_density=state.log_density[:, rows], draws=state.draws[rows], **some)


def joined_rows(states: Sequence[SamplerState]) -> SamplerState:
    """The rows of several states, one state after the other."""
    parts = {name: [getattr(state, name) for state in states] for name in PER_ROW}
    joined: dict[str, Any] = {
        name: None if part[0] is None else torch.cat(part) for name, part in parts.items()
    }
    ids, particle = zip(*((state.draws.item, state.draws.particle) for state in states), strict=True)
    draws = Draws(states[0].draws.seed, torch.cat(ids), torch.cat(particle))
    log_density = torch.cat([state.log_density for state in states], 1)
    return replace(states[0], log_density=log_density, draws=draws, **joined)
