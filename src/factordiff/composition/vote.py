"""Majority voting over finished samples, cell by cell or as wholes."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.method import declare
from factordiff.composition.options import PARTICLES
from factordiff.composition.single import Single
from factordiff.errors import InvalidInput
from factordiff.tensors import Numbers, as_tensor

RUNS = replace(PARTICLES, name="runs", help="Runs of each expert.", default=3, argument="particles")


@declare("vote", RUNS, fewest=1, drawn=True, selection="vote", paths="alone")
def each_alone() -> Single:
    """A vote over drawn answers of every expert, cell by cell: each runs alone, and all runs are counted."""
    return Single()


def majority_vote(samples: Int[Tensor, "run item cell"] | Numbers, values: int) -> Int[Tensor, "item cell"]:
    """The most frequent value of each cell; among tied values, the one that the earliest run gave.

    To vote across experts, concatenate their runs. The answer may be a grid that no run produced.

    Paper: Table "majority voting".
    """
    samples = as_tensor("samples", samples)
    if samples.dim() != 3 or samples.dtype != torch.int64:
        raise InvalidInput(
            f"samples: expected int64 tokens of shape (run, item, cell), got {samples.dtype} of shape "
            f"{tuple(samples.shape)}"
        )
    if samples.shape[0] == 0:
        raise InvalidInput("samples: expected at least one run to vote, got none")
    if samples.numel() and not 0 <= int(samples.min()) <= int(samples.max()) < values:
        raise InvalidInput(
            f"samples: expected values 0 .. {values - 1} (finished samples), "
            f"got {int(samples.min())} .. {int(samples.max())}"
        )
    votes = torch.nn.functional.one_hot(samples, values).sum(0)
    support = votes.gather(-1, samples.permute(1, 2, 0))  # how many runs agree with each run
    return samples.gather(0, support.argmax(-1).unsqueeze(0)).squeeze(0)


def most_frequent(
    samples: Int[Tensor, "item run cell"], log_likelihood: Float[Tensor, "item run"]
) -> Int[Tensor, " item"]:
    """The run of each item whose whole answer most runs gave; among ties the likeliest, then the earliest."""
    same = (samples[:, :, None] == samples[:, None]).all(-1)
    votes = same.sum(-1)
    ahead = votes == votes.amax(-1, keepdim=True)
    likely = torch.where(ahead, log_likelihood.nan_to_num(nan=-torch.inf, neginf=-torch.inf), -torch.inf)
    best = ahead & (likely == likely.amax(-1, keepdim=True))
    return best.to(torch.uint8).argmax(-1)
