"""Each backbone and objective learns one small batch by heart."""

from __future__ import annotations

import pytest
import torch

from factordiff.training.validation import one_shot
from tests.training.runs import trainer
from tests.training.synthetic import Flips

JUDGED_BY = {"full": "pixel", "occupancy": "occupancy", "color": "given_foreground"}


class OneBatch(Flips):
    """The same batch at every step, which is also the validation set."""

    def draw(self, seed, step, items, purpose=None):  # type: ignore[no-untyped-def]
        return super().draw(0, torch.zeros((), dtype=torch.int64), items)

    def validation(self, items: int):  # type: ignore[no-untyped-def]
        return self.draw(0, 0, torch.arange(items))


@pytest.mark.parametrize(
    ("backbone", "objective"),
    [
        ("trans-ir", "full"),
        ("conv-ir", "occupancy"),
        ("trans-ir", "color"),
        pytest.param("conv-ir", "full", marks=pytest.mark.slow),
        pytest.param("trans-ir", "occupancy", marks=pytest.mark.slow),
        pytest.param("conv-ir", "color", marks=pytest.mark.slow),
    ],
)
def test_a_small_batch_by_heart(backbone: str, objective: str) -> None:
    side, steps = 4, 160
    network: dict[str, object] = {
        "layout": [side, side],
        "width": 32,
        "context": 24,
        "encoder": 8,
        "cycles": [1, 1],
    }
    # Sinusoids of wavelength 8 and more tell neighbours apart too slowly for a test.
    network |= {} if backbone == "conv-ir" else {"positions": "learned"}
    run = trainer(
        source=OneBatch(side),
        backbone=backbone,
        objective=objective,
        network=network,
        batch=8,
        max_steps=steps,
        warmup=10,
        decay_from=steps // 2,
        lr=1e-2,
        lr_rest=1e-2,
        ema=0.9,
        check_every=1000,
        log_every=1000,
    )
    for _ in range(steps):
        run.step()
    with torch.no_grad():
        run.expert.vector.copy_(run.step.ema)
    found = one_shot(run.expert, *OneBatch(side).validation(8))
    assert found[JUDGED_BY[objective]] > 0.99
    if objective == "occupancy":  # a zero head keeps the undecided values level
        assert found["largest_share_at_foreground"] == pytest.approx(1 / 9, abs=1e-4)
