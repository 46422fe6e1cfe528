"""Steps of a full bucket in one piece: the same numbers, the same passes; a recording that is wrong is given up."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.sampling import full_house
from factordiff.sampling.adaptive import ByEntropy, ByMargin, ByProduct, Repaired
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
    """The sizes of the steps that were taken in one piece."""
    sizes: list[int] = []
    plain = FullHouse.step

    def counted(house: FullHouse, population: Population) -> Population:
        sizes.append(len(population))
        return plain(house, population)

    monkeypatch.setattr(FullHouse, "step", counted)
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


class Spoiled:
    """A recorder whose first recordings give what they are told to, and later ones the truth."""

    def __init__(self, *spoils: Any) -> None:
        self.spoils = list(spoils)

    def __call__(self, function: Any, *given: Any) -> Any:
        spoil = self.spoils.pop(0) if self.spoils else lambda stepped: stepped
        return lambda *given: spoil(function(*given))


def refused(stepped: full_house.Stepped) -> full_house.Stepped:
    raise RuntimeError("operation not permitted when stream is capturing")


def emptied(stepped: full_house.Stepped) -> full_house.Stepped:
    return stepped._replace(x_t=stepped.x_t * 0)


def late(stepped: full_house.Stepped) -> full_house.Stepped:
    return stepped._replace(step=stepped.step + 1)


def careless(stepped: full_house.Stepped) -> full_house.Stepped:
    return stepped._replace(error=stepped.error + 1)


@pytest.mark.parametrize(
    ("spoils", "how", "failures"),
    [
        ([], "kernel", []),
        ([refused], "recorded", ["step, kernel: RuntimeError: operation not permitted"]),
        ([emptied], "recorded", ["step, kernel: the faster result is 1 away"]),
        ([careless], "recorded", ["step, kernel: the faster result is 1.7 away"]),
        (
            [late, refused],
            "plain",
            ["step, kernel: the faster result is", "step, recorded: RuntimeError: operation"],
        ),
    ],
)
def test_a_faster_form_that_fails_or_differs_is_given_up(
    spoils: list[Any], how: str, failures: list[str], monkeypatch: pytest.MonkeyPatch, taken: list[int]
) -> None:
    houses: list[FullHouse] = []
    step = FullHouse.step

    def as_on_a_gpu(house: FullHouse, population: Population) -> Population:
        if house._advance is None:
            houses.append(house)
            house._advance = house._fastest(house.given(population))
        return step(house, population)

    monkeypatch.setattr(FullHouse, "step", as_on_a_gpu)
    monkeypatch.setattr(full_house, "Recorded", Spoiled(*spoils))
    asked = request("routing", 2, 40) | {"bucket": 8, "reveal": ByConfidence(6)}
    fused = sample(**asked, fuse=True)
    assert not differences(sample(**asked), fused)
    assert taken
    assert houses[-1].how == how
    assert fused.fused == (f"{how} (fell back: {houses[-1].failure})" if failures else how)
    assert sample(**asked).fused == ""
    said = houses[-1].failure or ""
    assert [start in said for start in failures] == [True] * len(failures), said
    assert said.count("step, ") == len(failures)


def test_a_mistake_of_the_caller_is_not_the_recordings(
    monkeypatch: pytest.MonkeyPatch, taken: list[int]
) -> None:
    def mistaken(stepped: full_house.Stepped) -> full_house.Stepped:
        raise InvalidInput("temperatures: expected one per expert")

    monkeypatch.setattr(full_house, "Recorded", Spoiled(mistaken))
    step = FullHouse.step

    def as_on_a_gpu(house: FullHouse, population: Population) -> Population:
        house._advance = house._fastest(house.given(population))
        return step(house, population)

    monkeypatch.setattr(FullHouse, "step", as_on_a_gpu)
    with pytest.raises(InvalidInput, match="temperatures"):
        sample(**request("routing", 2, 40) | {"bucket": 8, "reveal": ByConfidence(6)}, fuse=True)
