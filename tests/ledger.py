"""A list of the operations that torch dispatches, and of those that would make a CPU wait for a GPU.

The same operations are dispatched for tensors of a CPU, so no GPU is needed to count them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# What reads a number from the device, or makes a shape of its numbers.
WAITS = (
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "equal",
    "unique",
    "_unique2",
    "repeat_interleave",
)
NO_KERNEL = (
    "alias", "as_strided", "detach", "empty", "expand", "new_empty", "permute", "scalar_tensor", "select", "slice",
    "split", "squeeze", "t", "transpose", "unbind", "unsqueeze", "view",
)  # fmt: skip


@dataclass
class Ledger(TorchDispatchMode):
    """The operations in turn; a pass is one entry."""

    entries: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = operation._schema.name.removeprefix("aten::")
        masks = args[1] if name in ("index", "index_put", "index_put_", "_index_put_impl_") else ()
        if name in WAITS or any(mask is not None and mask.dtype == torch.bool for mask in masks):
            self.entries.append(f"wait: {name}")
        elif name not in NO_KERNEL:
            self.entries.append(name)
        return operation(*args, **(kwargs or {}))

    def sides(self) -> tuple[list[str], list[str]]:
        """Before the first pass, and after the last."""
        passes = [place for place, entry in enumerate(self.entries) if entry == "pass"]
        return self.entries[: passes[0]], self.entries[passes[-1] + 1 :]


def waits(entries: list[str]) -> list[str]:
    """The entries that wait for the device."""
    return [entry for entry in entries if entry.startswith("wait")]
