"""Devices and machines: which device, which share of the batch, and who may write."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

Thing = TypeVar("Thing")


def rows_of(batch: int, rank: int, world: int) -> range:
    """The rows of the global batch that one machine computes; the shares differ by one row at most."""
    return range(rank * batch // world, (rank + 1) * batch // world)


@dataclass(frozen=True)
class Machines:
    """One process among all that train together."""

    rank: int = 0
    world: int = 1

    @property
    def writes(self) -> bool:
        """Only the first process writes files and reports."""
        return self.rank == 0

    def agree(self, flag: bool, device: torch.device) -> bool:
        """True on every machine if it is true on any."""
        if self.world == 1:
            return flag
        shared = torch.tensor(int(flag), device=device)
        dist.all_reduce(shared, dist.ReduceOp.MAX)
        return bool(shared)

    def share(self, tensor: Tensor) -> None:
        """Overwrite a tensor with the first machine's."""
        if self.world > 1:
            dist.broadcast(tensor, 0)

    def from_first(self, thing: Thing) -> Thing:
        """The first machine's version of a small thing."""
        if self.world == 1:
            return thing
        things = [thing]
        dist.broadcast_object_list(things, 0)
        return things[0]


def join(device: torch.device) -> Machines:
    """Join the processes that torchrun started (gloo on CPU, NCCL on GPU); alone without torchrun."""
    if "WORLD_SIZE" not in os.environ or int(os.environ["WORLD_SIZE"]) == 1:
        return Machines()
    if not dist.is_initialized():
        if device.type == "cuda":
            torch.cuda.set_device(device)
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return Machines(dist.get_rank(), dist.get_world_size())


def leave() -> None:
    """Part from the other processes."""
    if dist.is_initialized():
        dist.destroy_process_group()
