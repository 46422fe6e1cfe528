r"""The best that one number per expert can do, cell by cell, and what a choice per cell could.

A product with exponents $\beta$ takes the right value at a cell if $\sum_m \beta_m d_m(v) > 0$ for every wrong v, with
$d_m(v) = \log p_m(\text{truth}) - \log p_m(v)$; a mixture if the same holds of probabilities. Along one number with the
others fixed each cell is right in one interval, so the best place is found exactly, in one sort.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from factordiff.composition.confidence import log_doubt
from factordiff.composition.routing import tempered_log_doubts

LARGEST = 1e6  # no number is moved further
ROUNDS = 8  # of coordinate ascent, which stops before if nothing improves
TEMPERATURES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)

Leads = Float[Tensor, "expert cell wrong"]  # by how much the truth leads each wrong value, for each expert
CellsHeard = Float[Tensor, "expert cell value"]


@dataclass(frozen=True)
class Best:
    """Numbers per expert, and the share of cells that they get right."""

    numbers: tuple[float, ...]
    right: float


def leads(said: CellsHeard, truth: Int[Tensor, " cell"]) -> Leads:
    """The truth's value less each wrong one's, in whatever the experts' values are: logarithms or probabilities."""
    values = said.shape[-1]
    wrong = (truth[:, None] + torch.arange(1, values, device=truth.device)) % values
    index = wrong.expand(len(said), -1, -1)
    at_truth = said.gather(-1, truth[None, :, None].expand(len(said), -1, 1))
    return at_truth - said.gather(-1, index)


def leading(lead: Leads, numbers: Float[Tensor, " expert"]) -> Bool[Tensor, " cell"]:
    """The cells at which the truth leads all wrong values."""
    return ((numbers[:, None, None] * lead).sum(0) > 0).all(-1)


def share_right(lead: Leads, numbers: Float[Tensor, " expert"]) -> float:
    """The share of such cells."""
    return float(leading(lead, numbers).double().mean())


def best_along(lead: Leads, numbers: Float[Tensor, " expert"], expert: int) -> Best:
    """The best number of one expert with the others' fixed, exactly: every threshold of every cell is looked at."""
    others = numbers.clone()
    others[expert] = 0.0
    own, rest = lead[expert], (others[:, None, None] * lead).sum(0)
    threshold = -rest / own
    nothing = torch.zeros_like(own)
    low = torch.where(own > 0, threshold, nothing).clamp(min=0.0).amax(-1)
    high = torch.where(own < 0, threshold, torch.inf).amin(-1)
    possible = ((own != 0) | (rest > 0)).all(-1) & (low < high) & (high > 0)
    low, high = low[possible], high[possible].clamp(max=LARGEST)
    inside = low < high
    low, high = low[inside], high[inside]
    if not len(low):
        return Best(tuple(numbers.tolist()), share_right(lead, numbers))
    # Between two neighbouring thresholds the same cells are right: the ends, once sorted, count who is in.
    ends = torch.cat([low, high])
    change = torch.cat([torch.ones_like(low), -torch.ones_like(high)])
    order = torch.argsort(ends + 0.0, stable=True)
    ends, change = ends[order], change[order]
    count = change.cumsum(0)
    wide = torch.cat([ends[1:] > ends[:-1], ends.new_zeros(1, dtype=torch.bool)])
    place = int(torch.where(wide, count, -1.0).argmax())
    found = numbers.clone()
    found[expert] = (ends[place] + ends[place + 1]) / 2
    best, now = share_right(lead, found), share_right(lead, numbers)
    return Best(tuple(found.tolist()), best) if best > now else Best(tuple(numbers.tolist()), now)


def best_numbers(lead: Leads) -> Best:
    """The best numbers for all experts: exact for two; for more a lower bound, by ascent from several starts."""
    experts = len(lead)
    ones = torch.ones(experts, dtype=lead.dtype, device=lead.device)
    if experts == 2:
        found = best_along(lead, ones, 0)
        alone = [share_right(lead, ones * (torch.arange(2, device=ones.device) == m)) for m in range(2)]
        choices = [found, Best((1.0, 0.0), alone[0]), Best((0.0, 1.0), alone[1])]
        return max(choices, key=lambda one: one.right)
    best = Best(tuple(ones.tolist()), share_right(lead, ones))
    number = torch.arange(experts, device=ones.device)
    loud = [torch.where(number == m, 1.0, 0.05).to(ones) for m in range(experts)]
    for start in (ones, *loud):
        numbers, reached = start, share_right(lead, start)
        for _ in range(ROUNDS):
            before = reached
            for expert in range(experts):
                found = best_along(lead, numbers, expert)
                numbers = torch.tensor(found.numbers, dtype=lead.dtype, device=lead.device)
                reached = found.right
            if reached <= before:
                break
        if reached > best.right:
            best = Best(tuple(numbers.tolist()), reached)
    return best


def doubts_at(said: Float[Tensor, "cell value"], temperature: float) -> Float[Tensor, " cell"]:
    """An expert's log-doubts at a temperature; at 1 what it says is left as it is, so that ties stay ties."""
    if temperature == 1.0:
        return log_doubt(said[None])[0]
    return tempered_log_doubts(said[None, None], (temperature,))[0, 0]


def best_temperatures(log_probs: CellsHeard, right: Tensor) -> Best:
    """Routing by confidence at its best temperatures of a grid, one expert after the other, the first left at 1.

    `right` says whether each expert's first choice is right.
    """
    experts = len(log_probs)
    each = {(m, t): doubts_at(log_probs[m], t) for m in range(1, experts) for t in TEMPERATURES}
    each[0, 1.0] = doubts_at(log_probs[0], 1.0)

    def share(temperatures: list[float]) -> float:
        z = torch.stack([each[m, t] for m, t in enumerate(temperatures)]).argmin(0)
        return float(right.gather(0, z[None]).double().mean())

    numbers = [1.0] * experts
    best = share(numbers)
    for _ in range(ROUNDS if experts > 2 else 1):
        before = best
        for expert in range(1, experts):
            for temperature in TEMPERATURES:
                trial = [*numbers[:expert], temperature, *numbers[expert + 1 :]]
                found = share(trial)
                if found > best:
                    numbers, best = trial, found
        if best == before:
            break
    return Best(tuple(numbers), best)
