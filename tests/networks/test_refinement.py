"""The loop against the paper's, and what every network owes: SUBS, one encoding, frozen weights."""

from __future__ import annotations

import math

import pytest
import torch

from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert, take
from factordiff.networks.refinement import Cycles, refine
from factordiff.networks.store import build
from tests.networks.small_networks import BACKBONES, CONDITIONINGS, condition, partly_masked, small

both = pytest.mark.parametrize("backbone", BACKBONES)
all_kinds = pytest.mark.parametrize(
    ("backbone", "conditioning"), [(b, c) for b in BACKBONES for c in CONDITIONINGS]
)


def test_the_loop_is_the_papers() -> None:
    calls: list[float] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        calls.append(float(x))
        return 2.0 * x

    h = torch.tensor([3.0])
    z_high = refine(f, h, torch.tensor([5.0]), torch.tensor([7.0]), Cycles(2, 2))
    low, high, expected = 7.0, 5.0, []
    for _ in range(2):
        for _ in range(2):
            expected.append(low + high + 3.0)
            low = 2.0 * expected[-1]
        expected.append(high + low)
        high = 2.0 * expected[-1]
    assert calls == expected
    assert float(z_high) == high


@all_kinds
def test_subs(backbone: str, conditioning: str) -> None:
    network = small(backbone, conditioning)
    x_t = partly_masked(5)
    log_probs = network.log_probs(x_t, network.encode(condition(5)))
    masked = x_t == 10
    assert 0 < masked.sum() < masked.numel()
    assert log_probs.shape == (5, 16, 10)  # MASK has no entry, so it is never predicted
    assert torch.allclose(log_probs[masked].exp().sum(-1), torch.ones(int(masked.sum())), atol=1e-5)
    assert (log_probs[~masked].argmax(-1) == x_t[~masked]).all()
    assert (log_probs[~masked].amax(-1) == 0.0).all()
    assert (log_probs[~masked] == -math.inf).sum() == 9 * int((~masked).sum())


@all_kinds
def test_encoding_once_is_encoding_every_pass(backbone: str, conditioning: str) -> None:
    network = small(backbone, conditioning)
    told = condition(6)
    encoded = network.encode(told)
    for seed in range(3):
        x_t = partly_masked(6, seed=seed)
        assert torch.equal(network.log_probs(x_t, encoded), network.log_probs(x_t, network.encode(told)))
    rows = torch.tensor([4, 1, 1])
    x_t = partly_masked(6)[rows]
    one_by_one = network.log_probs(x_t, network.encode(told[rows]))
    assert torch.allclose(network.log_probs(x_t, take(encoded, rows)), one_by_one, atol=1e-5)


@all_kinds
def test_an_item_does_not_see_its_batch(backbone: str, conditioning: str) -> None:
    network = small(backbone, conditioning)
    told, x_t = condition(4), partly_masked(4)
    together = network.log_probs(x_t, network.encode(told))
    for row in range(4):
        alone = network.log_probs(x_t[row : row + 1], network.encode(told[row : row + 1]))
        assert torch.allclose(together[row : row + 1], alone, atol=1e-5)


@both
def test_other_cycles_share_the_weights(backbone: str) -> None:
    network = small(backbone)
    told, x_t = condition(2), partly_masked(2)
    more = network.with_cycles(3, 1)
    assert network.cycles == (2, 2)
    assert more.cycles == (3, 1)
    assert more.vector is network.vector
    encoded = network.encode(told)
    assert not torch.allclose(more.log_probs(x_t, encoded), network.log_probs(x_t, encoded))
    same = build(backbone, {**_fields(network), "cycles": [3, 1]})
    with torch.no_grad():
        same.vector.copy_(network.vector)
    assert torch.equal(more.log_probs(x_t, encoded), same.log_probs(x_t, encoded))
    with pytest.raises(InvalidInput, match="cycles"):
        network.with_cycles(0, 1)


@both
def test_freezing_changes_nothing_but_the_gradient(backbone: str) -> None:
    network = small(backbone)
    told, x_t = condition(2), partly_masked(2)
    before = network.log_probs(x_t, network.encode(told))
    frozen = network.freeze()
    after = frozen.log_probs(x_t, frozen.encode(told))
    assert before.requires_grad
    assert not after.requires_grad
    assert torch.equal(before, after)
    assert isinstance(frozen, Expert)


@both
def test_bfloat16_is_near_float32(backbone: str) -> None:
    network = small(backbone)
    told, x_t = condition(8), torch.full((8, 16), 10)
    exact = network.log_probs(x_t, network.encode(told)).exp()
    rough = network.freeze(torch.bfloat16)
    found = rough.log_probs(x_t, rough.encode(told))
    assert found.dtype == torch.float32
    assert (found.exp() - exact).norm() / exact.norm() < 2e-2


@both
def test_another_canvas_is_refused(backbone: str) -> None:
    with pytest.raises(InvalidInput, match="expected 16 cells"):
        small(backbone).encode(condition(2, cells=25))
    network = small(backbone)
    with pytest.raises(InvalidInput, match=r"x_t: expected 16 cells .* got 25"):
        network.log_probs(torch.full((2, 25), 10), network.encode(condition(2)))


@both
@pytest.mark.usefixtures("untyped")
def test_no_condition_is_a_sentence(backbone: str) -> None:
    with pytest.raises(InvalidInput, match=r"condition: expected a Condition .* got NoneType"):
        small(backbone).encode(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value"),
    [("conditioning", "none"), ("head", "big"), ("cycles", [0, 1]), ("width", 0)],
)
def test_impossible_configurations_are_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=field):
        build("trans-ir", {field: value})


def _fields(network: object) -> dict[str, object]:
    return {key: list(v) if isinstance(v, tuple) else v for key, v in vars(network.config).items()}  # type: ignore[attr-defined]
