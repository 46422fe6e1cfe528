"""A step at a large vocabulary: cells are composed a chunk at a time, and only numbers of each are kept.

What a reveal rule reads is worked out for all cells that may be revealed; those that are chosen are composed once more
(unless all were one chunk), each in a row of its own, and go through the same `draw_tokens` and `commit` as rows of a
small vocabulary do. Nothing here waits for the device, if the rule said how many cells it would choose `at_most`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.composition import Composed, Composition
from factordiff.composition.confidence import log_doubt
from factordiff.composition.proposal import Proposal
from factordiff.experts.cell_outputs import CellOutputs
from factordiff.experts.forward import sum_error
from factordiff.state import SamplerState
from factordiff.types import Cells, ExpertLogProbs

Known = dict[Callable[..., Any], Float[Tensor, "batch cell"]]
UNASKED: dict[str, float | int] = {
    "log_z": torch.nan,
    "routing": -1,
    "log_doubt": torch.nan,
    "weights": torch.nan,
}


def compose_in_chunks(
    said: CellOutputs, composition: Composition, state: SamplerState, reads: Sequence[Callable[..., Any]]
) -> tuple[ExpertLogProbs | CellOutputs, Composed, Known, Composed | None]:
    """What was said, composed, and what the rule `reads` in place of the distributions, which are not kept.

    But for those that are one chunk together: they are the last thing that is returned, a row for each cell. A
    composition that needs all cells at once gets them, and all is kept.
    """
    if not composition.by_cell:
        log_probs = noted(said, said.whole(), state.masked)
        return log_probs, composition(log_probs, state), {}, None
    kept: dict[Any, list[Tensor]] = {}
    composed = None
    buffer = said.buffer()  # one for all chunks: nothing but numbers of each is kept
    for places in said.chunks():
        composed = composition(said.at(places, buffer), in_rows(state, said.row[places], said.cell[places]))
        doubt = log_doubt(composed.log_probs) if composed.log_doubt is None else composed.log_doubt
        found: dict[Any, Tensor | None] = {name: getattr(composed, name) for name in UNASKED}
        found["log_doubt"] = doubt
        found.update((read, read(composed.log_probs)) for read in reads)
        for name, part in found.items():
            if part is not None:
                kept.setdefault(name, []).append(part.squeeze(-1))
    if not kept:  # nobody was asked about anything
        kept = {"log_doubt": [said.row.double()]}
    wide: dict[Any, Tensor] = {
        name: _in_places(parts, said, UNASKED.get(name, 0)) for name, parts in kept.items()
    }
    known = {name: wide.pop(name) for name in reads if name in wide}
    nothing = torch.empty(*said.shape, 0, dtype=said.dtype, device=said.row.device)
    return said, Composed(nothing, **wide), known, composed if len(said.row) <= said.together else None


def fill_in_chunks(
    proposal: Proposal, composition: Composition, filled: Callable[[Proposal], SamplerState]
) -> SamplerState:
    """The state with its chosen cells `filled`: composed in chunks, each cell in a row of its own."""
    said, wide = proposal.log_probs, proposal.state
    x_t, log_density, log_w = wide.x_t.clone(), wide.log_density.clone(), wide.log_w
    for places in said.chunks(among=proposal.cells, at_most=proposal.at_most):
        row, cell = said.row[places], said.cell[places]
        state, cells = in_rows(wide, row, cell), proposal.cells[row, cell, None]
        log_probs = noted(said, said.at(places), state.masked)
        kept, doubt = proposal.kept, proposal.log_doubt[row, cell, None]
        composed = composition(log_probs, state) if kept is None else kept.rows(places)
        part = filled(Proposal(state, cells, log_probs, proposal.passes[row], composed, doubt, cells))
        x_t[row, cell] = part.x_t.squeeze(-1)
        # A cell that fills the chunk up was not chosen: its density stays.
        density = torch.where(cells, part.log_density, log_density[:, row, cell, None])
        log_density[:, row, cell] = density.squeeze(-1)
        log_w = log_w.index_add(0, row, part.log_w)
    doubts = wide.log_doubt
    if doubts is not None:
        doubts = torch.where(proposal.cells, proposal.log_doubt, doubts)
    return replace(wide, x_t=x_t, log_density=log_density, log_w=log_w, log_doubt=doubts)


def in_rows(state: SamplerState, row: Int[Tensor, " some"], cell: Int[Tensor, " some"]) -> SamplerState:
    """Some cells, each in a row of its own that weighs nothing yet; its density is that of the row it comes from."""
    draws = replace(state.draws[row], cell=cell[:, None])
    return replace(
        state,
        x_t=state.x_t[row, cell, None],
        log_density=state.log_density_of_rows[:, row, None],
        log_w=state.log_w.new_zeros(len(row)),
        clock=state.clock[row],
        item=state.item[row],
        draws=draws,
        start=state.start[row, cell, None],
        particles=1,
        log_doubt=None,
        repairs=None,
    )


def noted(said: CellOutputs, log_probs: ExpertLogProbs, masked: Cells) -> ExpertLogProbs:
    """The same, once it was seen whether they are distributions."""
    said.errors.note(sum_error(log_probs, masked))
    return log_probs


def _in_places(parts: list[Tensor], said: CellOutputs, unasked: float | int) -> Tensor:
    """A number of each asked cell, in its place; at the others the number that stands for nothing."""
    found = parts[0] if len(parts) == 1 else torch.cat(parts, -1)
    wide = torch.full((*found.shape[:-1], *said.shape), unasked, dtype=found.dtype, device=found.device)
    wide[..., said.row, said.cell] = found
    return wide
