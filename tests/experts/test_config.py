"""A configuration says what is wrong with it, and a backbone's own must say how demonstrations are read."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from factordiff.errors import InvalidInput
from factordiff.experts.config import NetworkConfig, RefinementConfig
from factordiff.experts.store import BACKBONES

REFINED = [name for name, (_, config) in BACKBONES.items() if issubclass(config, RefinementConfig)]


def test_what_both_backbones_share_is_no_configuration_yet() -> None:
    with pytest.raises(TypeError, match="abstract"):
        NetworkConfig()  # type: ignore[abstract]

    @dataclasses.dataclass(frozen=True)
    class Half(RefinementConfig):
        blocks: int = 1

    with pytest.raises(TypeError, match="pair_layout"):
        Half()  # type: ignore[abstract]


@pytest.mark.parametrize("backbone", BACKBONES)
def test_a_backbones_configuration_is_fixed_and_compares_by_value(backbone: str) -> None:
    kind = BACKBONES[backbone][1]
    config = kind()
    assert config == kind()
    assert len({config, kind()}) == 1
    assert config.cells >= 1
    if isinstance(config, RefinementConfig):
        assert config.head_size * config.heads == config.width
        assert min(config.pair_layout) >= 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.width = 1  # type: ignore[misc]


@pytest.mark.parametrize("backbone", REFINED)
@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"conditioning": "poem"}, "conditioning: expected one of latents, paper, got 'poem'"),
        ({"width": 30, "heads": 4}, "width: expected a multiple of heads=4, got 30"),
        ({"slots": 0}, "slots: expected at least 1, got 0"),
        ({"cycles": (2, 0)}, "cycles: expected two whole numbers"),
    ],
)
def test_a_wrong_field_is_named(backbone: str, field: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        BACKBONES[backbone][1](**field)
