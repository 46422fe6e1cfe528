"""Validation against counting by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from factordiff.diffusion.objectives import diffusion_loss, full
from factordiff.diffusion.process import corrupt, noise
from factordiff.networks.store import build
from factordiff.training import validation
from factordiff.training.validation import decoded, one_shot, validation_loss
from factordiff.vocabulary import Vocabulary
from tests.networks.small_networks import stir
from tests.training.runs import NETWORK
from tests.training.synthetic import Flips


def made() -> tuple[Any, Any, torch.Tensor]:
    network = build("trans-ir", NETWORK)
    stir(network, size=1.0)
    return network, *Flips(side=3).validation(11)


def test_one_shot_by_hand() -> None:
    network, condition, x_0 = made()
    p = network.log_probs(torch.full_like(x_0, 10), network.encode(condition)).exp()
    right = p.argmax(-1) == x_0
    foreground = x_0 > 0
    share = p[..., 1:].amax(-1) / p[..., 1:].sum(-1)
    found = one_shot(network, condition, x_0)
    assert found == pytest.approx(
        {
            "pixel": right.float().mean().item(),
            "exact": right.all(-1).float().mean().item(),
            "occupancy": ((p[..., 0] < 0.5) == foreground).float().mean().item(),
            "given_foreground": right[foreground].float().mean().item(),
            "largest_share_at_foreground": share[foreground].mean().item(),
        },
        rel=1e-5,
    )


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    network, condition, x_0 = made()
    whole = one_shot(network, condition, x_0), validation_loss(network, condition, x_0, "full")
    monkeypatch.setattr(validation, "CELLS", 4 * 9)
    parts = one_shot(network, condition, x_0), validation_loss(network, condition, x_0, "full")
    assert parts[0] == pytest.approx(whole[0], rel=1e-5)
    assert parts[1] == pytest.approx(whole[1], rel=1e-5)


def test_the_loss_is_the_objective_at_fixed_noise() -> None:
    network, condition, x_0 = made()
    t, uniforms = noise(0, 0, torch.arange(11), 11, 9)
    x_t = corrupt(x_0, t, uniforms, Vocabulary(10))
    log_probs = network.logits(network.weights(), x_t, network.encode(condition)).log_softmax(-1)
    expected = float(diffusion_loss(full, log_probs, x_0, x_t, t).detach())
    assert validation_loss(network, condition, x_0, "full") == pytest.approx(expected, rel=1e-5)


def test_decoded_counts_whole_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    network, condition, x_0 = made()
    drawn = x_0.clone()
    drawn[0, 0] = (drawn[0, 0] + 1) % 10
    drawn[3, 1:3] = (drawn[3, 1:3] + 1) % 10
    monkeypatch.setattr(validation, "sample", lambda *_, **__: type("Samples", (), {"x_0": drawn}))
    found = decoded(network, condition, x_0)
    assert found == {"decoded_pixel": pytest.approx(1 - 3 / 99), "decoded_exact": pytest.approx(9 / 11)}
