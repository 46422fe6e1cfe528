"""An expert from a lookup table: two people who each remember half of a telephone number.

python examples/lookup_table.py
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from factordiff import Vocabulary, compose

NUMBER = [4, 7, 1, 1, 9, 0, 2, 6]


class Memory:
    """Knows some digits by heart, is unsure of the others. Three things make an expert: these three."""

    vocabulary = Vocabulary(10)

    def __init__(self, remembered: list[int], sure: float = 0.99) -> None:
        # One row per cell, one column per value; each row sums to one.
        self.table = torch.full((len(NUMBER), 10), 0.1)
        for cell in remembered:
            self.table[cell] = (1 - sure) / 9
            self.table[cell, NUMBER[cell]] = sure

    def encode(self, condition: Any) -> None:
        """There is nothing to read before the first pass."""

    def log_probs(self, x_t: Tensor, encoded: None) -> Tensor:
        """The table, once for every row of the batch."""
        return self.table.log().expand(len(x_t), -1, -1)


def main() -> dict[str, int]:
    """How many digits are right, alone and together."""
    team = compose({"first half": Memory([0, 1, 2, 3]), "second half": Memory([4, 5, 6, 7])})
    blank = torch.full((1, len(NUMBER)), Memory.vocabulary.mask)
    teams = {"first half": team.alone(0), "second half": team.alone(1), "together": team}
    return {name: int((one.sample(blank).x_0 == torch.tensor(NUMBER)).sum()) for name, one in teams.items()}


if __name__ == "__main__":
    torch.set_num_threads(1)  # tiny tensors: more threads only get in each other's way
    for name, right in main().items():
        print(f"{name}: {right} of {len(NUMBER)} digits right")
