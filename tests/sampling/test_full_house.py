"""Steps of a full bucket in one piece: the same numbers, the same passes; a recording that is wrong is given up."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff.sampling import full_house
from factordiff.sampling.adaptive import ByEntropy, ByMargin, ByProduct, Repaired
from factordiff.sampling.decision import decide
from factordiff.sampling.first_pass import FirstPass
from factordiff.sampling.full_house import FullHouse
from factordiff.sampling.population import Population
from factordiff.sampling.reveal import Ancestral, ByConfidence, RevealRule
from factordiff.sampling.sampler import sample
from factordiff.sampling.savings import Savings
from tests.sampling.test_savings import CASES, differences, request

RULES: list[RevealRule] = [ByConfidence(6), ByConfidence(3), ByMargin(0.4), ByEntropy(0.5), ByProduct(0.3)]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the steps that were taken in one piece; nothing is compiled, which would take its time."""
    sizes: list[int] = []
    plain = FullHouse.step

    def counted(house: FullHouse, population: Population) -> Population:
        sizes.append(len(population))
        return plain(house, population)

    monkeypatch.setattr(FullHouse, "step", counted)
    monkeypatch.setattr("factordiff.sampling.run.Fused", lambda: decide)
    return sizes


@pytest.mark.parametrize(("name", "experts"), [case for case in CASES if case[0] not in ("fkc", "rne")])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_full_house_steps_as_its_parts_do(
    name: str, experts: int, temperature: float, taken: list[int]
) -> None:
    for rule in RULES[: 1 if name == "superdiff-and" else None]:  # solves for its exponents: slow
        asked = request(name, experts, 40) | {"reveal": rule, "temperature": temperature, "bucket": 8}
        plain, whole = sample(**asked), sample(**asked, fuse=True)
        assert not differences(plain, whole)
        assert torch.equal(plain.executed_passes, whole.executed_passes)
        assert plain.padded_passes == whole.padded_passes
    assert set(taken) == {8}


@pytest.mark.parametrize(
    "other",
    [
        {"particles": 3, "temperature": 1.0},
        {"reveal": Ancestral(6), "temperature": 1.0},
        {"reveal": Repaired(ByMargin(0.4), 0.9)},
        {"savings": Savings.none()},
        {"bucket": None},
        {"trace": True, "bucket": 40},
        {"first_pass": FirstPass()},
    ],
)
def test_what_is_not_one_piece_is_left_alone(other: dict[str, Any], taken: list[int]) -> None:
    asked = request("routing", 2, 40) | {"bucket": 8} | other
    whole = sample(**asked, fuse=True)
    assert not taken
    assert not differences(sample(**asked), whole)


def test_several_voices_in_one_pass_are_told_apart(taken: list[int]) -> None:
    """Experts with different numbers of voices, as a chorus beside a soloist."""
    asked = request("routing", 3, 40) | {"bucket": 8, "reveal": ByMargin(0.4)}
    first, second, third = asked["experts"]

    class Duet:
        vocabulary, voices = first.vocabulary, 2

        def encode(self, condition: Any) -> Any:
            return second.encode(condition), third.encode(condition)

        def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
            return torch.stack([second.log_probs(x_t, encoded[0]), third.log_probs(x_t, encoded[1])], 1)

    alone = sample(**asked)
    together = sample(**asked | {"experts": [first, Duet()]}, fuse=True)
    assert not differences(alone, together)
    assert torch.equal(alone.executed_passes, together.executed_passes)
    assert set(taken) == {8}


def test_a_target_is_left_alone(taken: list[int]) -> None:
    asked = request("fkc", 2, 40) | {"bucket": 8, "temperature": 1.0}
    assert not differences(sample(**asked), sample(**asked, fuse=True))
    assert not taken


def test_bad_distributions_are_refused_in_a_full_house_too(taken: list[int]) -> None:
    asked = request("routing", 2, 40) | {"bucket": 8, "reveal": ByConfidence(6)}

    class Tired:
        """Adds up to one for a while."""

        vocabulary = asked["experts"][0].vocabulary
        calls = 0

        def encode(self, condition: Any) -> Any:
            return asked["experts"][0].encode(condition)

        def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
            self.calls += 1
            return asked["experts"][0].log_probs(x_t, encoded) + (0.1 if self.calls > 3 else 0.0)

    with pytest.raises(ValueError, match="sum"):
        sample(**asked | {"experts": [Tired(), asked["experts"][1]]}, fuse=True)
    assert taken


class Broken:
    """A recorder that gives what it is told to."""

    def __init__(self, spoil: Any) -> None:
        self.spoil = spoil

    def __call__(self, function: Any, *given: Any) -> Any:
        return lambda *given: self.spoil(function(*given))


def refused(stepped: full_house.Stepped) -> full_house.Stepped:
    raise RuntimeError("operation not permitted when stream is capturing")


@pytest.mark.parametrize(
    ("spoil", "failure"),
    [
        (refused, "step: RuntimeError: operation not permitted"),
        (lambda stepped: stepped._replace(x_t=stepped.x_t * 0), "step: the faster result is 1 away"),
        (lambda stepped: stepped._replace(step=stepped.step + 1), "step: the faster result is"),
        (lambda stepped: stepped, None),
    ],
)
def test_a_recording_that_fails_or_differs_is_given_up(
    spoil: Any, failure: str | None, monkeypatch: pytest.MonkeyPatch, taken: list[int]
) -> None:
    made: list[FullHouse] = []
    plain = FullHouse.__init__

    def kept(house: FullHouse, run: Any) -> None:
        plain(house, run)
        made.append(house)

    def recorded_everywhere(house: FullHouse, population: Population) -> Population:
        if house._advance is None:
            spoken = house._run.panel.ask_all(population.x_t.squeeze(1))
            given = (population.x_t, population.log_density, population.step, population.place, *spoken)
            house._advance = house._recorded(given)
        return step(house, population)

    step = FullHouse.step
    monkeypatch.setattr(FullHouse, "__init__", kept)
    monkeypatch.setattr(FullHouse, "step", recorded_everywhere)
    monkeypatch.setattr(full_house, "Recorded", Broken(spoil))
    asked = request("routing", 2, 40) | {"bucket": 8, "reveal": ByConfidence(6)}
    assert not differences(sample(**asked), sample(**asked, fuse=True))
    assert taken
    found = made[-1].failure
    assert found is None if failure is None else found is not None and found.startswith(failure)
