"""One weight per expert by likelihood: what a router must not fall behind, and where one may begin instead."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from factordiff.composition.router import Router, RouterConfig
from factordiff.composition.router_features import LEAST_LOG
from factordiff.fitting.predictions import Predictions
from factordiff.networks.parameters import Layout

ROUNDS = 200  # of expectation and maximisation, each of which can only raise the likelihood
LEAST = 1e-6  # of a weight: a router takes its logarithm


def mixture_weights(predictions: Predictions) -> Float[Tensor, " expert"]:
    """The weights of the global mixture that is likeliest on these rows, in the loss that routers are fitted by."""
    said = predictions.of_truth[:, predictions.asked].double().clamp(min=LEAST_LOG)
    counts = (1 / predictions.rate)[:, None].expand_as(predictions.asked)[predictions.asked].double()
    weights = torch.full((len(said),), 1 / len(said), dtype=torch.float64, device=said.device)
    for _ in range(ROUNDS):
        share = torch.softmax(weights.log()[:, None] + said, 0)
        weights = (share @ counts / counts.sum()).clamp(min=LEAST)
    return weights / weights.sum()


def mixture_router(config: RouterConfig, weights: Float[Tensor, " expert"], seed: int = 0) -> Router:
    """A router that is this mixture before any step of its fit: untrained, with the weights as its bias."""
    begun = replace(config, head="mixture", bias=True)
    layout = Layout(begun.slots())
    named = {**layout.unpack(layout.initial(seed)), "bias": weights.log().float().cpu()}
    return Router(begun, layout.pack(named))
