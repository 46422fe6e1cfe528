"""An expert that is asked the same by every row of a table, and thinks once."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch import Tensor

from factordiff.experts.expert import Expert, take, tensors_of
from factordiff.types import CellLogProbs, Tokens


class CachedExpert:
    """The same expert; what it said about each item is kept on the CPU and said again, in whatever company."""

    def __init__(self, expert: Expert) -> None:
        self.expert, self.vocabulary = expert, expert.vocabulary
        self.said: dict[bytes, Tensor] = {}

    def encode(self, condition: Any) -> Any:
        """As the expert does."""
        return self.expert.encode(condition)

    def log_probs(self, x_t: Tokens, encoded: Any) -> CellLogProbs:
        """What it says, or said."""
        keys = _keys([x_t, *tensors_of(encoded)])
        new = {key: row for row, key in enumerate(keys) if key not in self.said}
        if new:
            rows = torch.tensor(list(new.values()), device=x_t.device)
            said = self.expert.log_probs(x_t[rows], take(encoded, rows)).cpu()
            self.said |= {key: one.clone() for key, one in zip(new, said, strict=True)}
        return torch.stack([self.said[key] for key in keys]).to(x_t.device)

    def __repr__(self) -> str:
        return f"CachedExpert({self.expert!r})"


def _keys(parts: list[Tensor]) -> list[bytes]:
    """A name for each row of what an expert is asked."""
    rows = [part.cpu().reshape(len(part), -1).contiguous().view(torch.uint8).numpy() for part in parts]
    shapes = " ".join(f"{tuple(part.shape[1:])} {part.dtype}" for part in parts).encode()
    return [
        hashlib.sha256(shapes + b"".join(of_part[row].tobytes() for of_part in rows)).digest()
        for row in range(len(parts[0]))
    ]
