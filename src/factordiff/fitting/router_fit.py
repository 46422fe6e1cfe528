r"""A router fitted by the likelihood of what is composed; the experts stay frozen, nobody says who owns a cell.

$\mathcal{L} = -E_{t, x_t} \frac{1}{t} \sum_{v\ \mathrm{masked}} \log r_\theta(x_{0,v} \mid x_t)$, per cell, with
$r_\theta$ the mixture or the product that the router weights. Deterministic by its seed, on one kind of machine.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import safetensors.torch
import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from torch import Tensor

from factordiff.composition.learned import combined, exponents
from factordiff.composition.router import Head, Router, RouterConfig, RouterOutput, route_by
from factordiff.composition.router_features import LEAST_LOG, features
from factordiff.files import write_whole
from factordiff.fitting.predictions import Predictions
from factordiff.networks.parameters import Layout
from factordiff.streams import Purpose, integers
from factordiff.types import ExpertLogProbs, Tokens

BETAS, EPSILON, WEIGHT_DECAY = (0.9, 0.99), 1e-8, 1e-2
LEAST_SINGLE = -100.0  # single precision has no probability below e^-103
FORM = "1"  # of a checkpoint


@dataclass(frozen=True)
class FitSettings:
    """How long and how fast."""

    steps: int = 600
    batch: int = 64  # rows of a step
    rate: float = 5e-3  # the learning rate, which falls to 0 along a cosine
    check_every: int = 50
    save_every: int = 100
    seed: int = 0


@dataclass(frozen=True)
class Fitted:
    """A router as it was best on the held-out rows, and how that went."""

    router: Router
    loss: float  # per asked cell's weight, held out
    curve: tuple[tuple[int, float], ...]  # step and held-out loss


def fit_router(
    fitted: Predictions | Sequence[Predictions],
    held: Predictions | Sequence[Predictions],
    config: RouterConfig,
    settings: FitSettings | None = None,
    *,
    start: Router | None = None,
    checkpoint: Path | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> Fitted:
    """Fit on some rows, keep what is best on others; with a `checkpoint` it goes on where it was interrupted.

    Rows of different lengths are given one `Predictions` for each length. It begins untrained, or with `start`, and
    what it begins with is kept where nothing after it is better.
    """
    how = settings or FitSettings()
    here, there = _AllReady(fitted, config), _AllReady(held, config)
    layout, device = Layout(config.slots()), here.device
    at = _begin((layout.initial(how.seed) if start is None else start.vector).to(device))
    if checkpoint is not None:
        at = _resumed(checkpoint, at)
    if at.step == 0:
        at = replace(at, loss=float(there.loss(layout, at.vector)), curve=())
        at = replace(at, curve=((0, at.loss),))
    while at.step < how.steps:
        draws = torch.arange(how.batch, device=device)
        rows = integers(len(here), how.seed, Purpose.FIT, at.step, draws)
        vector = at.vector.clone().requires_grad_(True)
        loss = here.loss(layout, vector, rows)
        (slope,) = torch.autograd.grad(loss, vector)
        rate = how.rate * 0.5 * (1 + math.cos(math.pi * at.step / how.steps))
        at = _adam(at, slope, rate)
        if at.step % how.check_every == 0 or at.step == how.steps:
            found = float(there.loss(layout, at.vector))
            at = replace(at, curve=(*at.curve, (at.step, found)))
            if found < at.loss:
                at = replace(at, loss=found, best=at.vector.clone())
        if checkpoint is not None and (at.step % how.save_every == 0 or at.step == how.steps):
            _save(checkpoint, at)
        if on_step is not None:
            on_step(at.step, how.steps)
    return Fitted(Router(config, at.best.detach()), at.loss, at.curve)


@torch.no_grad()
def held_out_loss(predictions: Predictions | Sequence[Predictions], router: Router) -> float:
    """The loss of a router on rows."""
    ready = _AllReady(predictions, router.config)
    return float(ready.loss(Layout(router.config.slots()), router.vector.to(ready.device)))


class _AllReady:
    """Rows of one length or several: a row is always seen without anything behind its end."""

    def __init__(self, predictions: Predictions | Sequence[Predictions], config: RouterConfig) -> None:
        each = [predictions] if isinstance(predictions, Predictions) else list(predictions)
        self.each = [_Ready(one, config) for one in each]
        self.starts = torch.tensor([0, *(len(one) for one in each)]).cumsum(0).tolist()
        self.device = each[0].x_t.device

    def __len__(self) -> int:
        return int(self.starts[-1])

    def loss(self, layout: Layout, vector: Tensor, rows: Tensor | None = None) -> Float[Tensor, ""]:
        """The mean loss of some rows, or of all."""
        parts = []
        for ready, first, end in zip(self.each, self.starts, self.starts[1:], strict=False):
            here = None if rows is None else rows[(rows >= first) & (rows < end)] - first
            if here is None or len(here):
                parts.append(ready.loss(layout, vector, here))
        return torch.stack(parts).sum() / (len(self) if rows is None else len(rows))


class _Ready:
    """Rows of one length with their features worked out, once for all steps."""

    def __init__(self, predictions: Predictions, config: RouterConfig) -> None:
        self.predictions, self.config = predictions, config
        # A mixture has no less than its likeliest expert. A product has all that an expert takes away: as far as
        # that is finite an exponent can undo it, and what some expert has ruled out nothing can.
        product = config.head == "product"
        self.log_probs = predictions.log_probs.clamp(min=LEAST_SINGLE if product else LEAST_LOG)
        self.vetoed = (predictions.of_truth == -torch.inf).any(0) if product else None
        pieces = torch.arange(len(predictions), device=predictions.x_t.device).split(256)
        self.features = torch.cat(
            [
                features(
                    predictions.log_probs[:, rows], predictions.state(rows), config.layout, config.evidence
                )
                for rows in pieces
            ],
            1,
        )

    def loss(self, layout: Layout, vector: Tensor, rows: Tensor | None = None) -> Float[Tensor, ""]:
        """The loss of some rows, or of all, piece by piece, added up."""
        if rows is not None:
            return self._sum(layout, vector, rows)
        pieces = torch.arange(len(self.predictions), device=vector.device).split(256)
        as_used = self.config.head == "product" or self.config.complement
        with torch.no_grad():
            return torch.stack([self._sum(layout, vector, piece, as_used) for piece in pieces]).sum()

    def _sum(self, layout: Layout, vector: Tensor, rows: Tensor, as_used: bool = False) -> Tensor:
        predictions, seen = self.predictions, self.features[:, rows]
        heard, likelihood = (
            (predictions.log_probs, log_composed) if as_used else (self.log_probs, log_likelihood)
        )
        log_probs, x_t = heard[:, rows], predictions.x_t[rows]
        routed = route_by(self.config, layout.unpack(vector), seen, log_probs, x_t, x_t == predictions.mask)
        said = likelihood(log_probs, routed, predictions.x_0[rows], self.config.head)
        if self.vetoed is not None and not as_used:
            said = torch.where(self.vetoed[rows], LEAST_LOG, said)
        each = torch.where(predictions.asked[rows], -said, 0.0).sum(-1) / predictions.rate[rows]
        return each.sum() / predictions.x_t.shape[1]


def log_likelihood(
    log_probs: ExpertLogProbs, routed: RouterOutput, x_0: Tokens, head: Head
) -> Float[Tensor, "batch cell"]:
    """What a router's composition gives to the right values: `learned.combined` in a form with a slope."""
    truth = x_0.unsqueeze(-1)
    if head == "mixture":
        log_weights = torch.log_softmax(routed.logits, 0)
        if routed.complement is None:
            index = truth.expand(len(log_probs), *truth.shape)
            return (log_weights + log_probs.gather(-1, index).squeeze(-1)).logsumexp(0)
        log_r = (log_weights.unsqueeze(-1) + log_probs).logsumexp(0)
    else:
        log_r = (exponents(routed.logits).unsqueeze(-1) * log_probs).sum(0)
    if routed.complement is not None:
        log_r = log_r + routed.complement
    return torch.log_softmax(log_r, -1).gather(-1, truth).squeeze(-1)


def log_composed(
    log_probs: ExpertLogProbs, routed: RouterOutput, x_0: Tokens, head: Head
) -> Float[Tensor, "batch cell"]:
    """What `learned.combined` itself gives to the right values: one expert's zero is a veto, which has no slope."""
    composed = combined(log_probs, routed, head).log_probs
    return composed.gather(-1, x_0.unsqueeze(-1)).squeeze(-1).clamp(min=LEAST_LOG)


@dataclass(frozen=True)
class _At:
    """Where a fit is."""

    step: int
    vector: Tensor
    first: Tensor  # Adam's moments
    second: Tensor
    best: Tensor
    loss: float
    curve: tuple[tuple[int, float], ...]


def _begin(vector: Tensor) -> _At:
    nothing = torch.zeros_like(vector)
    return _At(0, vector, nothing, nothing, vector.clone(), math.inf, ())


@torch.no_grad()
def _adam(at: _At, slope: Tensor, rate: float) -> _At:
    """One step of AdamW."""
    step = at.step + 1
    slope = slope / slope.norm().clamp(min=1.0)
    first = torch.lerp(slope, at.first, BETAS[0])
    second = torch.lerp(slope.square(), at.second, BETAS[1])
    scale = (second / (1 - BETAS[1] ** step)).sqrt() + EPSILON
    vector = at.vector * (1 - rate * WEIGHT_DECAY) - rate * (first / (1 - BETAS[0] ** step)) / scale
    return replace(at, step=step, vector=vector, first=first, second=second)


def _save(file: Path, at: _At) -> None:
    tensors = {name: getattr(at, name).cpu().contiguous() for name in ("vector", "first", "second", "best")}
    about = {"form": FORM, "step": str(at.step), "loss": repr(at.loss), "curve": json.dumps(at.curve)}
    write_whole(file, safetensors.torch.save(tensors, about))


def _resumed(file: Path, begun: _At) -> _At:
    """Where an interrupted fit was; from the start where there is none, or a damaged one."""
    try:
        with safe_open(file, "pt") as found:
            about = found.metadata()
            tensors = {name: found.get_tensor(name).to(begun.vector.device) for name in found.keys()}  # noqa: SIM118
        if about.get("form") != FORM or tensors["vector"].shape != begun.vector.shape:
            return begun
        curve = tuple((int(step), float(loss)) for step, loss in json.loads(about["curve"]))
        return _At(int(about["step"]), **tensors, loss=float(about["loss"]), curve=curve)
    except (OSError, SafetensorError, KeyError, ValueError, TypeError):
        return begun
