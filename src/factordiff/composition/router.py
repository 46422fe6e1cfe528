r"""Routers: small networks that say how much each frozen expert counts at each cell.

$\alpha_{m,v} = \mathrm{softmax}_m\, g_\theta(\text{features of } m \text{ at } v)$. Two kinds. `shared` is the same
function for every expert: experts may be exchanged, and be any number. `neighbourhood` sees what lies around a cell by
convolutions, for a fixed number of experts. Their last layer begins at zero, so that before training all experts
count alike.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.router_features import Features, feature_names, features
from factordiff.errors import InvalidInput
from factordiff.networks.parameters import Layout, Slot, Weights
from factordiff.schema.fields import check_fields
from factordiff.schema.objects import Maybe, Two
from factordiff.schema.values import Choice, Flag, Whole
from factordiff.state import SamplerState
from factordiff.types import Cells, ExpertCells, ExpertLogProbs, Tokens

Kind = Literal["shared", "neighbourhood"]
Head = Literal["mixture", "product"]
FEW_VALUES = 32  # up to so many, a router looks at each value's probability too
PROFILE = 4  # numbers that the shared kind makes of them
HIDDEN = 16  # of the shared kind
CHANNELS, BLOCKS = 64, 3  # of the neighbourhood kind
DILATIONS = (1, 2, 4)  # of its blocks in a line, where three cells are little


@dataclass(frozen=True)
class RouterConfig:
    """What a router is, apart from its weights.

    `layout` is the height and width of the cells (None: a line, of any length). `evidence` adds how well an expert
    predicted what is visible; `bias` a number per expert and `complement` a logit per value, which corrects what is
    composed and so is no composition alone.
    """

    experts: Annotated[int, Whole(2, 1_000)]
    values: Annotated[int, Whole(1, 1_000_000)]
    kind: Annotated[Kind, Choice(get_args(Kind))] = "shared"
    head: Annotated[Head, Choice(get_args(Head))] = "mixture"
    layout: Annotated[tuple[int, int] | None, Maybe(Two(Whole(1)))] = None
    evidence: Annotated[bool, Flag()] = False
    bias: Annotated[bool, Flag()] = False
    complement: Annotated[bool, Flag()] = False

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def by_place(self) -> bool:
        """Whether it knows its experts by their place, so that there are as many as it has, in that order."""
        return self.kind == "neighbourhood" or self.bias

    @property
    def profile(self) -> int:
        """How many numbers the shared kind makes of the values' probabilities."""
        return PROFILE if self.values <= FEW_VALUES else 0

    @property
    def inputs(self) -> int:
        """How many numbers the first layer sees at a cell."""
        each = len(feature_names(self.evidence))
        if self.kind == "shared":
            return 2 * (each + self.profile)
        seen = self.values if self.values <= FEW_VALUES else 0
        return self.experts * (each + seen) + 1 + seen

    def slots(self) -> dict[str, Slot]:
        """Its weights by name."""
        width = HIDDEN if self.kind == "shared" else CHANNELS
        slots = {"in": Slot((width, self.inputs), self.inputs**-0.5), "in_bias": Slot((width,))}
        if self.kind == "shared":
            if self.profile:
                slots["profile"] = Slot((self.profile, self.values), 0.5)
            slots |= {"hidden": Slot((width, width), width**-0.5), "hidden_bias": Slot((width,))}
            slots |= {"out": Slot((1, width)), "out_bias": Slot((1,))}
        else:
            high = 1 if self.layout is None or self.layout[0] == 1 else 3
            for block in range(BLOCKS):
                std = 0.5 * (3 * high * width) ** -0.5
                slots |= {
                    f"block{block}": Slot((width, width, high, 3), std),
                    f"block{block}_bias": Slot((width,)),
                }
            slots |= {"out": Slot((self.experts, width)), "out_bias": Slot((self.experts,))}
        if self.bias:
            slots["bias"] = Slot((self.experts,))
        if self.complement:
            slots |= {"complement": Slot((self.values, width)), "complement_bias": Slot((self.values,))}
        return slots


class RouterOutput(NamedTuple):
    """What a router says: a logit per expert and cell, and what is added to the composed logits, if anything."""

    logits: ExpertCells
    complement: Float[Tensor, "batch cell value"] | None


@dataclass(frozen=True, eq=False)
class Router:
    """A configuration and its weights, with the hashes of the experts it was fitted to (None: not known)."""

    config: RouterConfig
    vector: Float[Tensor, " parameter"]
    fitted_to: tuple[tuple[str, str | None], ...] = ()  # name and hash of each expert
    about: dict[str, Any] = field(default_factory=dict)
    folder: Path | None = None  # where it was loaded from
    _moved: dict[torch.device, Weights] = field(default_factory=dict, repr=False)

    @classmethod
    def new(cls, config: RouterConfig, seed: int = 0) -> Router:
        """An untrained one: every expert counts alike."""
        return cls(config, Layout(config.slots()).initial(seed))

    @property
    def parameters(self) -> int:
        """How many there are."""
        return Layout(self.config.slots()).count

    def __repr__(self) -> str:
        config = self.config
        fitted = f", fitted to {' + '.join(name for name, _ in self.fitted_to)}" if self.fitted_to else ""
        return f"Router({config.kind}, {config.head} head, {self.parameters:,} parameters{fitted})"

    def weights(self, device: torch.device) -> Weights:
        """The weights by name on a device; they travel once."""
        if device not in self._moved:
            self._moved[device] = Layout(self.config.slots()).unpack(self.vector.to(device))
        return self._moved[device]

    def __call__(self, log_probs: ExpertLogProbs, state: SamplerState) -> RouterOutput:
        """How much each expert counts at each cell, as logits."""
        self._check(log_probs, state)
        seen = features(log_probs, state, self.config.layout, self.config.evidence)
        return route_by(self.config, self.weights(log_probs.device), seen, log_probs, state.x_t, state.masked)

    def _check(self, log_probs: ExpertLogProbs, state: SamplerState) -> None:
        config, (experts, _, cells, values) = self.config, log_probs.shape
        if values != config.values:
            raise InvalidInput(f"router: it was made for {config.values} values, got {values}")
        if experts != config.experts and config.by_place:
            what = "a router of the neighbourhood kind" if config.kind == "neighbourhood" else "its bias"
            raise InvalidInput(f"router: {what} is for {config.experts} experts, got {experts}")
        if config.layout is not None and config.layout[0] * config.layout[1] != cells:
            height, width = config.layout
            raise InvalidInput(f"router: it was made for {height} x {width} cells, got {cells}")

    def as_json(self) -> dict[str, Any]:
        """The configuration as JSON takes it."""
        return asdict(self.config)


def route_by(
    config: RouterConfig,
    weights: Weights,
    seen: Features,
    log_probs: ExpertLogProbs,
    x_t: Tokens,
    masked: Cells,
) -> RouterOutput:
    """A router's network: a pure function of its weights."""
    hidden, logits = (_shared if config.kind == "shared" else _neighbourhood)(
        config, weights, seen, log_probs, x_t, masked
    )
    if config.bias:
        logits = logits + weights["bias"][:, None, None]
    complement = None
    if config.complement:
        complement = F.linear(hidden, weights["complement"], weights["complement_bias"])
    return RouterOutput(logits, complement)


Layers = tuple[Float[Tensor, "batch cell width"], ExpertCells]


def _shared(
    config: RouterConfig, weights: Weights, seen: Features, log_probs: Tensor, x_t: Tensor, masked: Tensor
) -> Layers:
    """Each expert's own numbers beside the mean of the others': two hidden layers, one logit."""
    if config.profile:
        seen = torch.cat([seen, F.linear(log_probs.float().exp(), weights["profile"])], -1)
    others = (seen.sum(0) - seen) / max(len(seen) - 1, 1)
    hidden = F.gelu(F.linear(torch.cat([seen, others], -1), weights["in"], weights["in_bias"]))
    hidden = F.gelu(F.linear(hidden, weights["hidden"], weights["hidden_bias"]))
    return hidden.mean(0), F.linear(hidden, weights["out"], weights["out_bias"]).squeeze(-1)


def _neighbourhood(
    config: RouterConfig, weights: Weights, seen: Features, log_probs: Tensor, x_t: Tensor, masked: Tensor
) -> Layers:
    """All experts' numbers and the state as channels of a picture; residual convolutions; a logit per expert."""
    parts = [seen]
    if config.values <= FEW_VALUES:
        parts.append(log_probs.float().exp())
    # What is said of revealed cells means nothing.
    said = torch.cat(parts, -1).permute(1, 2, 0, 3).flatten(2) * masked[..., None]
    state = [masked[..., None].float()]
    if config.values <= FEW_VALUES:
        state.append(F.one_hot(x_t, config.values + 1)[..., :-1].float())
    hidden = F.linear(torch.cat([said, *state], -1), weights["in"], weights["in_bias"])
    batch, cells, width = hidden.shape
    line = config.layout is None
    height, across = (1, cells) if config.layout is None else config.layout
    plane = hidden.transpose(1, 2).reshape(batch, width, height, across)
    for block in range(BLOCKS):
        kernel, far = weights[f"block{block}"], DILATIONS[block] if line else 1
        padding = (kernel.shape[2] // 2, far)
        plane = plane + F.conv2d(
            F.gelu(plane), kernel, weights[f"block{block}_bias"], padding=padding, dilation=(1, far)
        )
    hidden = F.gelu(plane.flatten(2).transpose(1, 2))
    return hidden, F.linear(hidden, weights["out"], weights["out_bias"]).permute(2, 0, 1)
