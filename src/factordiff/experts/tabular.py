"""An exact expert from a joint table over a tiny world: the oracle of tests and docs."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.tensors import Numbers, as_tensor, is_whole
from factordiff.types import CellLogProbs, Tokens
from factordiff.vocabulary import Vocabulary

LARGEST_TABLE = 50_000_000


class TabularExpert:
    r"""The conditionals of one joint distribution: $p_i(v \mid x) = p(x_U, x_i = v) / p(x_U)$.

    `joint` has one axis of length `size` per cell, or a leading axis more: one joint per condition, chosen by
    an integer per item. Everything is looked up, nothing is summed at call time, so the answers are
    bit-identical at any batch size. Where $p(x_U) = 0$ the conditionals are undefined; they are uniform here.

    >>> import torch
    >>> coin = TabularExpert(torch.tensor([[0.5, 0.0], [0.0, 0.5]]))  # two cells, always equal
    >>> mask = coin.vocabulary.mask
    >>> coin.log_probs(torch.tensor([[1, mask]]), None).exp()[0, 1]
    tensor([0., 1.], dtype=torch.float64)
    """

    def __init__(self, joint: Float[Tensor, ...] | Numbers, conditions: bool = False) -> None:
        joint = as_tensor("joint", joint)
        tables = joint.double() if conditions else joint.double().unsqueeze(0)
        sizes = set(tables.shape[1:])
        if len(sizes) != 1:
            raise InvalidInput(
                "joint: expected one axis of the same length per cell"
                f"{' after the axis of conditions' if conditions else ''}, got shape {tuple(joint.shape)}"
            )
        if not torch.isfinite(tables).all() or (tables < 0).any():
            raise InvalidInput("joint: expected probabilities, got a negative or non-finite entry")
        totals = tables.flatten(1).sum(1)
        if not torch.allclose(totals, torch.ones_like(totals), atol=1e-9):
            raise InvalidInput(f"joint: expected probabilities that sum to 1, got a sum of {totals.tolist()}")
        self.vocabulary = Vocabulary(sizes.pop())
        self.cells = tables.dim() - 1
        if tables.shape[0] * (self.vocabulary.size + 1) ** self.cells > LARGEST_TABLE:
            raise InvalidInput(
                f"joint: {self.cells} cells of {self.vocabulary.size} values make a table of more than "
                f"{LARGEST_TABLE} partial states; use a smaller world"
            )
        # Index `size` along an axis means "masked": the sum over that cell's values. One table then holds
        # p(x_U) for every partial state.
        for axis in range(1, self.cells + 1):
            tables = torch.cat([tables, tables.sum(axis, keepdim=True)], dim=axis)
        self._marginals = tables.flatten()
        base = self.vocabulary.size + 1
        self._strides = torch.tensor([base**power for power in reversed(range(self.cells))])
        self._table_size = base**self.cells

    def __repr__(self) -> str:
        tables = self._marginals.numel() // self._table_size
        return f"TabularExpert(cells={self.cells}, values={self.vocabulary.size}, conditions={tables})"

    def encode(self, condition: Int[Tensor, " item"] | Numbers | None) -> Int[Tensor, " item"] | None:
        """Which joint each item uses; None stands for the only one."""
        tables = self._marginals.numel() // self._table_size
        if condition is None:
            if tables > 1:
                raise InvalidInput(f"condition: expected one of {tables} joints for every item, got None")
            return None
        which = as_tensor("condition", condition)
        if which.numel() and (which.dim() != 1 or not is_whole(which)):
            raise InvalidInput(
                f"condition: expected a whole number for every item, got {which.dtype} of shape {tuple(which.shape)}"
            )
        if which.numel() and not 0 <= int(which.min()) <= int(which.max()) < tables:
            raise InvalidInput(
                f"condition: expected whole numbers in 0 .. {tables - 1}, got {int(which.min())} .. {int(which.max())}"
            )
        return which.to(torch.int64)

    def _index(self, x_t: Tokens, encoded: Int[Tensor, " batch"] | None) -> Int[Tensor, " batch"]:
        if x_t.shape[1] != self.cells:
            raise InvalidInput(f"x_t: expected {self.cells} cells, got {x_t.shape[1]}")
        index = (x_t * self._strides).sum(-1)
        return index if encoded is None else index + encoded * self._table_size

    def log_density(
        self, x_t: Tokens, encoded: Int[Tensor, " batch"] | None = None
    ) -> Float[Tensor, " batch"]:
        r"""The exact $\log p(x_U)$ of what each row has revealed."""
        return self._marginals[self._index(x_t, encoded)].log()

    def log_probs(self, x_t: Tokens, encoded: Int[Tensor, " batch"] | None = None) -> CellLogProbs:
        """The exact conditionals; at a revealed cell, a point mass on its value."""
        size = self.vocabulary.size
        here = self._index(x_t, encoded)
        values = torch.arange(size)
        moved = here[:, None, None] + (values - x_t.unsqueeze(-1)) * self._strides[None, :, None]
        evidence = self._marginals[here][:, None, None]
        conditional = torch.where(evidence > 0, self._marginals[moved] / evidence, 1.0 / size)
        revealed = (x_t != size).unsqueeze(-1)
        return torch.where(revealed, (values == x_t.unsqueeze(-1)).double(), conditional).log()
