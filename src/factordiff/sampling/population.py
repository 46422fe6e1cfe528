"""The rows in flight: everything the loop carries from step to step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

ItemCells = Bool[Tensor, "item particle cell"]


@dataclass(frozen=True)
class Committed:
    """How each cell was revealed: what a repair must know to take it back."""

    log_doubt: Float[Tensor, "item particle cell"]
    log_said: Float[Tensor, "expert item particle cell"]
    repairs: Int[Tensor, "item particle"]  # how many are left


@dataclass(frozen=True)
class Population:
    """One row per particle of every item in flight."""

    x_t: Int[Tensor, "item particle cell"]
    log_density: Float[Tensor, "expert item particle"]
    log_w: Float[Tensor, "item particle"]
    step: Int[Tensor, " item"]  # each item's own clock
    place: Int[Tensor, " item"]  # which item of the request it is
    committed: Committed | None = None  # only for rules that repair

    @classmethod
    def begin(
        cls,
        x_t: Int[Tensor, "item cell"],
        place: Int[Tensor, " item"],
        experts: int,
        particles: int,
        repairs: int = 0,
    ) -> Population:
        """Every particle at the start, unweighted."""
        (items, cells), device = x_t.shape, x_t.device

        def zeros(*shape: int) -> Float[Tensor, ...]:
            return torch.zeros(shape, dtype=torch.float64, device=device)

        committed = None
        if repairs:
            committed = Committed(
                torch.full_like(zeros(items, particles, cells), -torch.inf),  # given cells are certain
                zeros(experts, items, particles, cells),
                torch.full((items, particles), repairs, device=device),
            )
        return cls(
            x_t[:, None].repeat(1, particles, 1),
            zeros(experts, items, particles),
            zeros(items, particles),
            torch.zeros(items, dtype=torch.int64, device=device),
            place,
            committed,
        )

    def __len__(self) -> int:
        return len(self.place)

    def of(self, items: Int[Tensor, " some"]) -> Population:
        """Some of the items, by their position in flight."""
        c = self.committed
        return Population(
            self.x_t[items],
            self.log_density[:, items],
            self.log_w[items],
            self.step[items],
            self.place[items],
            None if c is None else Committed(c.log_doubt[items], c.log_said[:, items], c.repairs[items]),
        )

    def joined(self, others: Population) -> Population:
        """These items and then the others."""
        mine, theirs = self.committed, others.committed
        return Population(
            torch.cat([self.x_t, others.x_t]),
            torch.cat([self.log_density, others.log_density], 1),
            torch.cat([self.log_w, others.log_w]),
            torch.cat([self.step, others.step]),
            torch.cat([self.place, others.place]),
            None
            if mine is None or theirs is None
            else Committed(
                torch.cat([mine.log_doubt, theirs.log_doubt]),
                torch.cat([mine.log_said, theirs.log_said], 1),
                torch.cat([mine.repairs, theirs.repairs]),
            ),
        )

    def put(self, landed: Population) -> None:
        """Write the rows of items that have landed to their places."""
        self.x_t[landed.place] = landed.x_t
        self.log_density[:, landed.place] = landed.log_density
        self.log_w[landed.place] = landed.log_w
        self.step[landed.place] = landed.step

    def remember(
        self,
        rows: Int[Tensor, " batch"],
        cells: Bool[Tensor, "batch cell"],
        log_doubt: Float[Tensor, "batch cell"],
        log_said: Float[Tensor, "expert batch cell"],
    ) -> Population:
        """Note how these cells of these rows were committed, if anybody will want to know."""
        if self.committed is None:
            return self
        doubts, said = self.committed.log_doubt.flatten(0, 1), self.committed.log_said.flatten(1, 2)
        doubts = doubts.index_put((rows,), torch.where(cells, log_doubt, doubts[rows]))
        said = said.index_copy(1, rows, torch.where(cells, log_said, said[:, rows]))
        return replace(
            self,
            committed=replace(
                self.committed,
                log_doubt=doubts.view_as(self.committed.log_doubt),
                log_said=said.view_as(self.committed.log_said),
            ),
        )

    def masked_again(self, cells: ItemCells, mask: int) -> Population:
        """Take back what these cells said and how sure they were; each row that loses any has a repair fewer."""
        assert self.committed is not None
        c = self.committed
        said = torch.where(cells, 0.0, c.log_said)
        return replace(
            self,
            x_t=torch.where(cells, mask, self.x_t),
            log_density=said.sum(-1),
            committed=Committed(
                torch.where(cells, -torch.inf, c.log_doubt), said, c.repairs - cells.any(-1).to(torch.int64)
            ),
        )
