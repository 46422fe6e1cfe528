"""What a world asks: cells to fill, the truth, which queries belong together, and whose cells they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from factordiff.engine.expert_batch import part_of
from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert
from factordiff.sampling.request import check_condition, check_tokens, common_vocabulary
from factordiff.tensors import as_tensor

NOBODY = -1  # the owner of a cell that no expert owns


@dataclass(frozen=True, eq=False)
class Queries:
    """Items with hidden cells, and what is right there; a mask in `x_t` is a hidden cell.

    `clusters` are what intervals are over: queries of one cluster (a task, a clone) are alike. `owners` is the expert
    that each cell belongs to, where the world knows it. `parts` are sets of cells to be measured on their own.
    `lengths` are for items of different lengths: what lies behind an item's end is not looked at. `made_of` are numbers
    of what each query was made of, for those who set some apart: two that share one are alike (None: clusters are).
    """

    x_t: Int[Tensor, "query cell"]
    x_0: Int[Tensor, "query cell"]
    clusters: tuple[str, ...]
    condition: Any = None
    owners: Int[Tensor, "query cell"] | None = None
    parts: Mapping[str, Bool[Tensor, "query cell"]] = field(default_factory=dict)
    lengths: Int[Tensor, " query"] | None = None
    made_of: Int[Tensor, "query source"] | None = None

    def __post_init__(self) -> None:
        for name in ("x_0", "owners"):
            one = getattr(self, name)
            if one is not None and one.shape != self.x_t.shape:
                raise InvalidInput(
                    f"{name}: expected the shape of x_t, {tuple(self.x_t.shape)}, got {tuple(one.shape)}"
                )
        if len(self.clusters) != len(self.x_t):
            raise InvalidInput(f"clusters: expected {len(self.x_t)}, one per query, got {len(self.clusters)}")

    def __len__(self) -> int:
        return len(self.x_t)

    def __repr__(self) -> str:
        clusters = len(set(self.clusters))
        owned = "" if self.owners is None else ", owners known"
        return f"Queries({len(self)} of {self.x_t.shape[1]} cells in {clusters} clusters{owned})"

    def __getitem__(self, rows: slice | Tensor) -> Queries:
        index = torch.arange(len(self))[rows]
        return Queries(
            self.x_t[index],
            self.x_0[index],
            tuple(self.clusters[row] for row in index.tolist()),
            part_of(self.condition, index),
            None if self.owners is None else self.owners[index],
            {name: part[index] for name, part in self.parts.items()},
            None if self.lengths is None else self.lengths[index],
            None if self.made_of is None else self.made_of[index],
        )

    def sha256(self) -> str:
        """A name for the queries and their truth."""
        parts = (self.x_t, self.x_0)
        return hashlib.sha256(b"".join(part.numpy().tobytes() for part in parts)).hexdigest()

    def check(self, experts: Sequence[Expert]) -> None:
        """Refuse what these experts cannot be asked about: tokens that are none, or truth that is itself hidden."""
        vocabulary = common_vocabulary(experts)
        check_tokens(self.x_t, experts)
        check_condition(self.condition, len(self))
        hidden = self.hidden(vocabulary.mask)
        if self.lengths is not None:  # what lies behind an item's end is not looked at
            hidden = hidden & (torch.arange(hidden.shape[1]) < self.lengths[:, None])
        if len(self) and not hidden.any():
            raise InvalidInput(f"x_t: expected hidden cells, which hold {vocabulary.mask}, got none")
        truth = self.x_0[hidden]
        if len(truth) and not 0 <= truth.min() <= truth.max() < vocabulary.size:
            raise InvalidInput(
                f"x_0: expected what is right at each hidden cell, 0 .. {vocabulary.size - 1}, got "
                f"{truth.min().item()} .. {truth.max().item()}; data are (x_t, x_0): what is asked, then what is right"
            )

    def hidden(self, mask: int) -> Bool[Tensor, "query cell"]:
        """The cells that are asked for."""
        return self.x_t == mask

    def batches(self, size: int, done: set[int]) -> Iterator[Int[Tensor, " query"]]:
        """The places of queries without a record, in batches of items of one length; the cuts do not depend on them."""
        lengths = torch.zeros(len(self)) if self.lengths is None else self.lengths
        for length in lengths.unique().tolist():
            alike = (lengths == length).nonzero().flatten().tolist()
            for first in range(0, len(alike), size):
                left = [place for place in alike[first : first + size] if place not in done]
                if left:
                    yield torch.tensor(left)

    def cut(self) -> Queries:
        """Items of one length without what lies behind their end."""
        if self.lengths is None or not len(self):
            return self
        end = int(self.lengths[0])
        if bool((self.lengths != end).any()):
            raise InvalidInput("lengths: expected items of one length in a batch")

        return replace(
            self,
            x_t=self.x_t[:, :end],
            x_0=self.x_0[:, :end],
            owners=None if self.owners is None else self.owners[:, :end],
            parts={name: part[:, :end] for name, part in self.parts.items()},
            lengths=None,
        )


def as_queries(data: Queries | Sequence[Any]) -> Queries:
    """Queries from what a person has: (x_t, x_0), (x_t, x_0, condition) or queries; each item its own cluster."""
    if isinstance(data, Queries):
        return data
    if not isinstance(data, tuple | list) or len(data) not in (2, 3):
        raise InvalidInput(
            "data: expected Queries, or a tuple (x_t, x_0) or (x_t, x_0, condition) of tokens with masks, the right "
            f"tokens and what experts are told, got {type(data).__name__}"
        )
    x_t, x_0 = as_tensor("x_t", data[0]), as_tensor("x_0", data[1])
    condition = data[2] if len(data) == 3 else None
    return Queries(x_t, x_0, tuple(map(str, range(len(x_t)))), condition)
