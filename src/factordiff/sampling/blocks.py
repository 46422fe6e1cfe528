"""Semi-autoregressive decoding: blocks from left to right, each filled in a few steps, as language models do it.

The settings of LLaDA and its relatives have names here: `block_length` is `length`, `steps` (theirs are of all blocks
together) are those of one block, `remasking="low_confidence"` or `"random"` is `order`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.confidence import entropy, error_probability
from factordiff.errors import InvalidInput
from factordiff.sampling.reveal import Posterior, RevealRule, Summary, surest
from factordiff.sampling.window import Window
from factordiff.schema.values import Whole
from factordiff.state import SamplerState
from factordiff.streams import Purpose
from factordiff.types import CellLogProbs, Cells

Order = Literal["low-confidence", "random", "margin", "entropy"]
ORDERS = get_args(Order)


@dataclass(frozen=True)
class ByBlock(RevealRule):
    r"""Blocks of `length` cells from the row's first masked one on; a block is filled in `steps` steps before the next.

    A block with N masked cells reveals $\lfloor N / T \rfloor$ of them at each of its T steps, and one more at each of
    the first $N \bmod T$. `order` says which: the likeliest value most probable (`low-confidence`, since the others
    stay masked), the largest `margin`, the least `entropy`, or drawn at `random`.

    `end` is the value that ends a text: a row that has revealed it, and everything before it, reveals all the rest in
    one step (an expert says `end` there: `MaskedLanguageModel(end=...)`). With `end_last`, cells whose likeliest value
    it is come last in their block, lest a text ends before it is written.
    """

    length: int = 32
    steps: int = 32
    order: Order = "low-confidence"
    end: int | None = None
    end_last: bool = False

    def __post_init__(self) -> None:
        for name in ("length", "steps"):
            Whole(1).read(getattr(self, name), name)
        if self.order not in ORDERS:
            raise InvalidInput(f"order: expected one of {', '.join(ORDERS)}, got {self.order!r}")
        if self.end is not None and (
            isinstance(self.end, bool) or not isinstance(self.end, int) or self.end < 0
        ):
            raise InvalidInput(f"end: expected the value that ends a text, got {self.end!r}")
        if self.end_last and self.end is None:
            raise InvalidInput("end_last: expected the value that ends a text as `end`, got none")

    @property
    def reads(self) -> tuple[Summary, ...]:
        """What its order compares."""
        by_order: dict[str, tuple[Summary, ...]] = {
            "low-confidence": (error_probability,),
            "entropy": (entropy,),
        }
        return by_order.get(self.order, ()) + ((likeliest,) if self.end_last else ())

    def blocks(self, state: SamplerState) -> Int[Tensor, "batch cell"]:
        """The number of each cell's block; cells before the first masked one (a prompt) have negative ones."""
        cell = torch.arange(state.x_t.shape[1], device=state.x_t.device)
        first = state.start.to(torch.uint8).argmax(-1, keepdim=True)
        return torch.div(cell - first, self.length, rounding_mode="floor")

    def ended(self, state: SamplerState) -> Cells:
        """One column: whether a row has revealed the end of its text, if texts have one, and all before it."""
        revealed = (~state.masked).to(torch.uint8).cumprod(-1).bool()
        return (revealed & state.start & (state.x_t == self.end)).any(-1, keepdim=True)

    def candidates(self, state: SamplerState) -> Cells:
        """The masked cells of the first block that has any; of a text that has ended, all."""
        _, inside = self.now(state)
        return state.masked & (inside if self.end is None else inside | self.ended(state))

    def now(self, state: SamplerState) -> tuple[Int[Tensor, "batch 1"], Cells]:
        """The number of each row's first block with masked cells, and the cells inside it."""
        block = self.blocks(state)
        number = torch.where(state.masked, block, state.x_t.shape[1]).amin(-1, keepdim=True)
        return number, block == number

    def window(self, cells: int) -> Window | None:
        """The cells of the block, unless a text can end: then any cell may be revealed."""
        width = min(self.length, cells)
        most = -(-width // self.steps)
        return Window(width, most, self.cells_now) if self.end is None else None

    def cells_now(self, state: SamplerState) -> Int[Tensor, "batch width"]:
        """The cells of each row's first block with masked ones; if the row ends inside it, also some before it."""
        cells = state.x_t.shape[1]
        width = min(self.length, cells)
        begun, first = (part.to(torch.uint8).argmax(-1, keepdim=True) for part in (state.start, state.masked))
        begin = (first - (first - begun) % self.length).clamp(0, cells - width)
        return begin + torch.arange(width, device=begin.device)

    def shares(self, inside: Cells, state: SamplerState) -> tuple[Tensor, Tensor, Tensor]:
        """Of each row's block: how many cells are revealed, how many a step takes, how many steps take one more."""
        count = (state.start & inside).sum(-1)
        done = count - (state.masked & inside).sum(-1)
        return done, torch.div(count, self.steps, rounding_mode="floor"), count % self.steps

    def due(self, state: SamplerState) -> Int[Tensor, " batch"]:
        """The step of the next reveal, all blocks counted."""
        number, inside = self.now(state)
        done, even, more = self.shares(inside, state)
        # Steps that take one more come first: the later of both counts is the step inside the block.
        early = torch.div(done, even + 1, rounding_mode="floor")
        late = torch.div(done - more, even.clamp(min=1), rounding_mode="floor")
        step = torch.maximum(early, late)
        return torch.maximum(state.clock, number.squeeze(-1) * self.steps + step)

    def quota(self, state: SamplerState) -> Int[Tensor, " batch"]:
        """How many cells of its block a row reveals in this step."""
        done, even, more = self.shares(self.now(state)[1], state)
        return even + (done < more * (even + 1))

    def at_most(self, candidates: Cells, state: SamplerState) -> int:
        """The quotas together; of a text that has ended, all that is left."""
        quota = self.quota(state)
        if self.end is None:
            return int(quota.sum())
        return int(torch.where(self.ended(state).squeeze(-1), candidates.sum(-1), quota).sum())

    def choose(self, posterior: Posterior, candidates: Cells, state: SamplerState) -> Cells:
        """The step's number of cells, in the order."""
        if self.order == "low-confidence":
            key: Float[Tensor, "batch cell"] = posterior.of(error_probability)
        elif self.order == "entropy":
            key = -1.0 / (1.0 + posterior.of(entropy))  # rises with it, and stays below 0
        elif self.order == "random":
            key = state.draws.cells(Purpose.REVEAL, state.clock, state.x_t.shape[1])
        else:
            key = posterior.log_doubt
        if self.end is not None and self.end_last:
            key = torch.where(posterior.of(likeliest) == self.end, 1.0, key)
        chosen = surest(key, candidates, self.quota(state))
        return chosen if self.end is None else torch.where(self.ended(state), candidates, chosen)


def likeliest(log_probs: CellLogProbs) -> Float[Tensor, "batch cell"]:
    """The value of highest probability, as a number."""
    return log_probs.argmax(-1).double()
