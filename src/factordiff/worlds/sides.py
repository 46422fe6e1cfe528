"""Validation queries that fit, and others that choose between what was fitted: nothing alike is on both sides."""

from __future__ import annotations

import hashlib
from collections import Counter

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.worlds.queries import Queries

CHOOSING = 0.25  # of the queries

Fit = Int[Tensor, " fit"]
Choose = Int[Tensor, " choose"]


def sides(queries: Queries) -> tuple[Fit, Choose]:
    """The places of the queries that fit, and of those that choose: about a quarter, always the same ones.

    Queries that are made of the same, or are of one cluster where nobody says what they are made of, are on one side.
    What shares something with both sides fits nothing.
    """
    names = [f"cluster {name}" for name in queries.clusters]
    made_of = [[name] for name in names]
    if queries.made_of is not None:
        made_of = [[str(one) for one in row] for row in queries.made_of.tolist()]
    first = [of_query[0] for of_query in made_of]
    groups = sorted(set(first), key=lambda name: hashlib.sha256(name.encode()).digest())
    sizes, choosing = Counter(first), set[str]()
    count = 0
    for group in groups[:-1]:  # one is left to fit on
        if count >= CHOOSING * len(queries):
            break
        choosing.add(group)
        count += sizes[group]
    choose = [place for place, group in enumerate(first) if group in choosing]
    kept_apart = {name for place in choose for name in made_of[place]}
    fit = [place for place, of_query in enumerate(made_of) if kept_apart.isdisjoint(of_query)]
    if not fit or not choose:
        raise InvalidInput(
            f"validation: expected queries to fit on and others, not alike, to choose by, got {len(queries)} in "
            f"{len(groups)} groups; give more, or of more clusters"
        )
    return torch.tensor(fit), torch.tensor(choose)
