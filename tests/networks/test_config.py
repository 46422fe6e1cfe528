"""A configuration says what is wrong with it, and a backbone's own must say how demonstrations are read."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from factordiff.errors import InvalidInput
from factordiff.networks.config import NetworkConfig, RefinementConfig
from factordiff.networks.store import BACKBONES, configure

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
        ({"slots": 0}, "slots: expected a whole number from 1 to 64, got 0"),
        ({"cycles": (2, 0)}, "cycles: expected a whole number from 1 to 64, got 0"),
        ({"cycles": (1_000_000, 1_000_000)}, "cycles: expected a whole number from 1 to 64, got 1000000"),
        ({"cycles": 2}, "cycles: expected a list of two, each a whole number from 1 to 64, got 2"),
        ({"layout": (1_000, 1_000)}, "layout: expected at most 16,384 cells, got 1,000,000"),
        ({"width": True}, "width: expected a whole number from 1 to 16,384, got True"),
        ({"field": 1}, "field: expected true or false, got 1"),
    ],
)
def test_a_wrong_field_is_named(backbone: str, field: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        configure(backbone, field)
