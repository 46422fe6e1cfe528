r"""Which expert understands this item: each is scored on the item's own demonstrations, one hidden at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.emission import log_prob_at
from factordiff.errors import InvalidInput
from factordiff.experts.expert import Demonstrated, Expert
from factordiff.experts.forward import Forward
from factordiff.sampling.request import check_tokens, common_vocabulary
from factordiff.state import SamplerState
from factordiff.streams import Purpose, uniform

RATES = (1.0, 0.5)


@torch.no_grad()
def demonstration_evidence(
    experts: Sequence[Expert],
    condition: Any,
    *,
    rates: Sequence[float] = RATES,
    seed: int = 0,
    items: Int[Tensor, " item"] | None = None,
) -> tuple[Float[Tensor, "expert item"], Int[Tensor, " item"]]:
    r"""The log-likelihood that each expert gives to the item's demonstrations, added up, and the passes it took.

    A demonstration is hidden and the others are shown; its answer is scored in one pass per mask rate t, as
    $\frac1t \sum_{v\ \mathrm{hidden}} \log p_m(x_v \mid x_t)$, averaged over the rates. No answer to the item
    itself is used. Items with one demonstration or none have 0. The condition must offer `leave_one_out`.
    """
    if not isinstance(condition, Demonstrated):
        raise InvalidInput(
            f"condition: expected one with demonstrations (leave_one_out), got {type(condition).__name__}; "
            "leave demonstration evidence out"
        )
    if not rates or not all(0 < rate <= 1 for rate in rates):
        raise InvalidInput(f"rates: expected shares of hidden cells, above 0 up to 1, got {list(rates)}")
    mask = common_vocabulary(experts).mask
    scores: Tensor | None = None
    passes: Tensor | None = None
    for number, (told, answers, present) in enumerate(condition.leave_one_out()):
        check_tokens(answers, experts)
        state = SamplerState.begin(answers, mask, len(experts))
        forward = Forward(experts, told, len(answers))
        ids = torch.arange(len(answers), device=answers.device) if items is None else items
        cell = torch.arange(answers.shape[1], device=answers.device)
        numbers = uniform(seed, Purpose.FOLD, ids[:, None], number, cell)
        scores = state.log_density.new_zeros(len(experts), len(answers)) if scores is None else scores
        passes = torch.zeros_like(ids) if passes is None else passes
        for rate in rates:
            hidden = (numbers < rate) & present[:, None]
            log_probs, spent = forward.whole(replace(state, x_t=torch.where(hidden, mask, answers)), hidden)
            said = torch.where(hidden, log_prob_at(log_probs, answers), 0.0).sum(-1)
            scores, passes = scores + said / (rate * len(rates)), passes + spent
        forward.errors.check()
    if scores is None or passes is None:
        items_ = len(condition) if items is None else len(items)  # type: ignore[arg-type]
        return torch.zeros(len(experts), items_, dtype=torch.float64), torch.zeros(items_, dtype=torch.int64)
    return scores, passes
