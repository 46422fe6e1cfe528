r"""What the experts think of given cells: evidence that no path of the sampler brings.

Given cells were not drawn, so nobody asked about them: `SamplerState.log_density` is 0 there, and SuperDiff or
`composition.evidence.Evidence` draw from the mixture of the experts' conditionals. With the evidence of these
functions, passed as `Evidence(evidence=...)`, they draw from the conditional of the mixture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.emission import log_prob_at
from factordiff.experts.expert import Expert
from factordiff.experts.forward import Forward
from factordiff.sampling.request import check_draws, check_tokens, common_vocabulary
from factordiff.schema.values import Whole
from factordiff.state import SamplerState
from factordiff.streams import Purpose, uniform
from factordiff.tensors import Numbers, as_tensor
from factordiff.types import Cells

# (expert, item, cell), 0 at masked cells; and how many passes each item took, to be added to `executed_passes`.
Scores = tuple[Float[Tensor, "expert item cell"], Int[Tensor, " item"]]


def chain_rule_evidence(
    experts: Sequence[Expert],
    x_t: Int[Tensor, "item cell"] | Numbers,
    condition: Any = None,
    *,
    parts: int | None = None,
    seed: int = 0,
    items: Int[Tensor, " item"] | Numbers | None = None,
) -> Scores:
    r"""$e_{m,v} = \log p_m(x_v \mid x_u,\ u < v \text{ given})$ of every given cell v, from all masked on.

    They add up to $\log p_m(x_{\text{given}})$, exactly if the expert is the conditionals of a joint: one pass per
    expert and given cell, in the order of the cells. With `parts` the given cells are dealt into so many parts and
    each is scored in one pass, given the parts before it; what the cells of a part say about each other is left
    out, and as many parts as given cells is exact again. `items` are the ids that this belongs to, as for `sample`.
    """
    x_t, items = as_tensor("x_t", x_t), None if items is None else as_tensor("items", items)
    given = x_t != _checked_mask(experts, x_t)
    place = given.cumsum(-1) - 1 if parts is None else dealt(given, "parts", parts, seed, items)
    count = given.shape[1] if parts is None else parts
    rounds = ((given & (place >= k), given & (place == k)) for k in range(count))
    return _scored(experts, x_t, condition, rounds)


def fold_evidence(
    experts: Sequence[Expert],
    x_t: Int[Tensor, "item cell"] | Numbers,
    condition: Any = None,
    *,
    folds: int = 4,
    seed: int = 0,
    items: Int[Tensor, " item"] | Numbers | None = None,
) -> Scores:
    r"""$e_{m,v} = \log p_m(x_v \mid x_{\text{given}} \setminus \text{fold}(v))$: given cells hidden fold by fold.

    A pseudo-likelihood, one pass per expert and fold. Each cell is scored with nearly everything visible, as
    networks like it, but cells that depend on each other are counted as if each had said something new: more folds
    do not make it exact, which more `parts` of the chain rule do at the same cost. `items` as for `sample`.
    """
    x_t, items = as_tensor("x_t", x_t), None if items is None else as_tensor("items", items)
    given = x_t != _checked_mask(experts, x_t)
    fold = dealt(given, "folds", folds, seed, items)
    hidden = (given & (fold == k) for k in range(folds))
    return _scored(experts, x_t, condition, ((cells, cells) for cells in hidden))


def dealt(
    given: Cells, name: str, parts: int, seed: int, items: Int[Tensor, " item"] | None
) -> Int[Tensor, "item cell"]:
    """The part of every given cell: dealt out in an order that belongs to item and cell, in equal numbers."""
    Whole(1).read(parts, name)
    check_draws(seed, items, len(given))
    ids = torch.arange(len(given), device=given.device) if items is None else items
    cell = torch.arange(given.shape[1], device=given.device)
    numbers = uniform(seed, Purpose.FOLD, ids[:, None], cell)
    order = torch.where(given, numbers, 2.0).argsort(dim=-1, stable=True)
    return order.argsort(dim=-1) % parts


def _checked_mask(experts: Sequence[Expert], x_t: Tensor) -> int:
    vocabulary = common_vocabulary(experts)
    check_tokens(x_t, experts)
    return vocabulary.mask


@torch.no_grad()
def _scored(
    experts: Sequence[Expert],
    x_t: Int[Tensor, "item cell"],
    condition: Any,
    rounds: Iterable[tuple[Cells, Cells]],
) -> Scores:
    """The log-probability of each round's second cells while its first are hidden."""
    state = SamplerState.begin(x_t, experts[0].vocabulary.mask, len(experts))
    evidence, passes = state.log_density, torch.zeros_like(state.item)
    forward = Forward(experts, condition, len(x_t))
    for hidden, scored in rounds:
        if not scored.any():
            continue
        asked = replace(state, x_t=torch.where(hidden, state.mask, x_t))
        log_probs, spent = forward.whole(asked, scored)
        evidence = torch.where(scored, log_prob_at(log_probs, x_t), evidence)
        passes = passes + spent
    forward.errors.check()
    return evidence, passes
