"""A team that looks like one model: other people's samplers drive it unchanged."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from factordiff.composition.chunks import in_rows
from factordiff.errors import InvalidInput
from factordiff.experts.asked_cells import AskedCells
from factordiff.experts.cell_outputs import CellOutput, CellOutputs
from factordiff.experts.masked_lm import MaskedLanguageModel
from factordiff.state import SamplerState
from factordiff.tensors import is_whole
from factordiff.types import CellLogProbs, Tokens

if TYPE_CHECKING:
    from factordiff.team.team import Team


# The logit of what is never emitted: its probability is 0 exactly, and samplers that subtract logits (guidance without
# a classifier) or multiply them by probabilities (entropy) get numbers, which they would not from -inf.
NEVER = -1e9


class ModelOutput(NamedTuple):
    """What `forward` returns, as masked language models do."""

    # Composed log-probabilities; `NEVER` for what is never emitted.
    logits: Float[Tensor, "batch position token"]


class TeamModel(nn.Module):
    """`model(input_ids, attention_mask=None, position_ids=None).logits`: the composed distribution of every position.

    In the models' own ids, the mask inside the vocabulary. A revealed position gets what the models say about it,
    composed likewise: samplers may edit it. It holds no state: methods that carry some from step to step are refused.
    `shifted`: for samplers that shift logits by themselves, as Dream's does, those at a position speak of the next one.
    """

    def __init__(self, team: Team, shifted: bool = False) -> None:
        super().__init__()
        self.shifted = shifted
        experts = [expert for expert in team.experts if isinstance(expert, MaskedLanguageModel)]
        if len(experts) < len(team):
            other = next(one for one in team.members if not isinstance(one.expert, MaskedLanguageModel))
            raise InvalidInput(
                f"as_model: expected masked language models, got {other.name}, a {type(other.expert).__name__}"
            )
        first = experts[0]
        for expert, name in zip(experts, team.names, strict=True):
            if (expert.tokens, expert.mask_token) != (first.tokens, first.mask_token):
                raise InvalidInput(
                    f"as_model: expected models with the same ids for values and mask, but those of {name} are not "
                    f"those of {team.names[0]}"
                )
        # Whatever its factors are, which a text's length may decide: they do not change what it remembers.
        options = {name: value for name, value in team.options.items() if name != "factors"}
        how = replace(team, options=options).method_for(cells=1)
        _check_stateless(how.composition, how.particles, how.selection, team.method_name)
        self.team, self._experts = team, experts
        # Not as submodules: the models stay where they are, and so does who owns their weights.
        size = max(_vocab_size(expert) for expert in experts)
        self.mask_token_id = first.mask_token
        self.config = SimpleNamespace(
            vocab_size=size, mask_token_id=first.mask_token, model_type="factordiff", is_encoder_decoder=False
        )

    def __repr__(self) -> str:
        return f"TeamModel({self.team!r})"

    @property
    def device(self) -> torch.device:
        """Where the models are."""
        return self.team.device

    @property
    def dtype(self) -> torch.dtype:
        """Of the logits."""
        return torch.float32

    @torch.no_grad()
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | str | None = None,
        position_ids: Int[Tensor, "batch position"] | None = None,
        **others: Any,
    ) -> ModelOutput:
        """The composed log-probabilities of every token at every position."""
        unknown = [
            name
            for name, value in others.items()
            if name not in ("return_dict", "use_cache")
            and value is not None
            and value is not False
            and not (
                name == "token_type_ids" and not value.any()
            )  # zeros: what a model takes them for anyway
        ]
        if unknown:
            raise InvalidInput(
                f"{unknown[0]}: a team as a model takes input_ids, attention_mask and position_ids alone"
            )
        self._check_ids(input_ids)
        if isinstance(attention_mask, str):
            if attention_mask != "full":  # which is how Dream's sampler says that there is no padding
                raise InvalidInput(
                    f"attention_mask: expected a tensor, None or 'full', got {attention_mask!r}"
                )
            attention_mask = None
        if (
            attention_mask is not None
            and attention_mask.dim() == 2
            and attention_mask.shape != input_ids.shape
        ):
            raise InvalidInput(
                f"attention_mask: expected the shape of the input_ids, {tuple(input_ids.shape)}, got "
                f"{tuple(attention_mask.shape)}"
            )
        inputs = {"input_ids": input_ids.to(self.device)}
        for name, given in (("attention_mask", attention_mask), ("position_ids", position_ids)):
            if given is not None:
                inputs[name] = given.to(self.device)
        each = [expert.everywhere(inputs) for expert in self._experts]
        for name, said in zip(self.team.names, each, strict=True):
            if said.isnan().any():
                raise InvalidInput(f"model: the logits of {name} contain NaN; it cannot be composed")
        composed = self.composed(each, inputs["input_ids"])
        first = self._experts[0]
        logits = composed.clamp_(min=NEVER)
        if composed.shape[-1] != self.config.vocab_size or first.tokens != tuple(range(composed.shape[-1])):
            logits = composed.new_full((*input_ids.shape, self.config.vocab_size), NEVER)
            logits[..., torch.tensor(first.tokens, device=logits.device)] = composed
        return ModelOutput(torch.cat([logits[:, 1:], logits[:, -1:]], 1) if self.shifted else logits)

    def _check_ids(self, input_ids: Tensor) -> None:
        """Refuse anything but (batch, position) of the models' ids."""
        size = self.config.vocab_size
        if input_ids.dim() != 2 or not is_whole(input_ids):
            raise InvalidInput(
                f"input_ids: expected whole ids of shape (batch, position), got {input_ids.dtype} of shape "
                f"{tuple(input_ids.shape)}"
            )
        if input_ids.numel() and not 0 <= int(input_ids.min()) <= int(input_ids.max()) < size:
            raise InvalidInput(
                f"input_ids: expected ids 0 .. {size - 1}, got {int(input_ids.min())} .. {int(input_ids.max())}"
            )

    def composed(self, each: list[CellLogProbs], input_ids: Int[Tensor, "batch position"]) -> CellLogProbs:
        """What the models say, composed at every position, a chunk at a time."""
        values, experts = each[0].shape[-1], len(each)
        hidden = input_ids == self.mask_token_id
        composition = self.team.method_for(input_ids.shape[1]).composition
        # Revealed positions are composed as if all were hidden; the hidden ones as they are in a loop of ours.
        blank = SamplerState.begin(torch.full_like(input_ids, values), values, experts)
        if not composition.by_cell:
            log_probs = torch.stack(each)
            there = composition(
                log_probs, SamplerState.begin(self.values_of(input_ids), values, experts)
            ).log_probs
            return torch.where(hidden.unsqueeze(-1), there, composition(log_probs, blank).log_probs)
        asked = CellOutputs(AskedCells.of(torch.ones_like(hidden)), values, None)
        for one in each:
            asked.append(CellOutput(one.flatten(0, 1), None))
        out = torch.empty_like(each[0], dtype=asked.dtype)
        for places in asked.chunks():
            row, cell = asked.row[places], asked.cell[places]
            out[row, cell] = composition(asked.at(places), in_rows(blank, row, cell)).log_probs.squeeze(1)
        return out

    def values_of(self, input_ids: Int[Tensor, "batch position"]) -> Tokens:
        """The cells that these ids are; ids that are no value, such as those around a text, count as the first one."""
        first = self._experts[0]
        table = torch.zeros(self.config.vocab_size, dtype=torch.int64)
        table[list(first.tokens)] = torch.arange(len(first.tokens))
        table[self.mask_token_id] = len(first.tokens)
        return table.to(input_ids.device)[input_ids]


def _check_stateless(composition: Any, particles: int, selection: str, name: str) -> None:
    if composition.remembers or particles > 1 or selection == "vote":
        raise InvalidInput(
            f"as_model: {name!r} carries what a text's path has brought from step to step, and a model that is called "
            "has no path; use routing, soft-routing, mixture, product or geometric-mean"
        )


def _vocab_size(expert: MaskedLanguageModel) -> int:
    told = getattr(getattr(expert.model, "config", None), "vocab_size", 0)
    return max(int(told), expert.mask_token + 1, max(expert.tokens) + 1)
