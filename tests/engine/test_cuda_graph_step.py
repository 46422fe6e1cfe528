"""Steps of a full bucket in one piece: the same numbers, the same passes; a recording that is wrong is given up."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff.composition.routing import Routing
from factordiff.engine import cuda_graph_step
from factordiff.engine.cuda_graph_step import CudaGraphStep
from factordiff.engine.engine import Engine
from factordiff.errors import InvalidInput
from factordiff.sampling.adaptive import ByEntropy, ByMargin, ByProduct, Repaired
from factordiff.sampling.blocks import ByBlock
from factordiff.sampling.reveal import Ancestral, ByConfidence, RevealRule
from factordiff.state import SamplerState
from factordiff.types import LARGE
from tests.engine.test_engine import CASES, differences, request
from tests.ledger import Ledger, waits
from tests.text.tables import Noise

RULES: list[RevealRule] = [ByConfidence(6), ByConfidence(3), ByMargin(0.4), ByEntropy(0.5), ByProduct(0.3)]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the steps that were taken in one piece."""
    sizes: list[int] = []
    plain = CudaGraphStep.step

    def counted(house: CudaGraphStep, state: SamplerState) -> SamplerState:
        sizes.append(len(state))
        return plain(house, state)

    monkeypatch.setattr(CudaGraphStep, "step", counted)
    return sizes


UNTARGETED = [case for case in CASES if case[0] not in ("fkc", "rne")]


@pytest.mark.parametrize("rules", [1, pytest.param(len(RULES), marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "experts"), UNTARGETED)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_cuda_graph_step_steps_as_its_parts_do(
    name: str, experts: int, temperature: float, rules: int, taken: list[int]
) -> None:
    first = 2 * UNTARGETED.index((name, experts)) + int(temperature)  # every rule has its turn
    for rule in (RULES[(first + more) % len(RULES)] for more in range(rules)):
        asked = request(name, experts, 20 * rules) | {"reveal": rule, "temperature": temperature}
        plain, whole = Engine(8).sample(**asked), Engine(8, cuda_graph=True).sample(**asked)
        assert not differences(plain, whole)
        assert torch.equal(plain.executed_passes, whole.executed_passes)
        assert plain.padded_passes == whole.padded_passes
    assert set(taken) == {8}


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize("values", [5, LARGE + 5])
@pytest.mark.parametrize("rule", [*RULES, ByBlock(3, 2), ByBlock(3, 2, end=1)], ids=repr)
def test_nothing_is_looked_at_while_a_step_is_recorded(
    values: int, rule: RevealRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, plain = Ledger(), CudaGraphStep._plain

    def watched(house: CudaGraphStep, *given: Tensor) -> cuda_graph_step.Stepped:
        with ledger:
            return plain(house, *given)

    monkeypatch.setattr(CudaGraphStep, "_plain", watched)
    experts = [Noise(seed, values) for seed in (1, 2)]
    Engine(2, cuda_graph=True).sample(experts, Routing(), torch.full((6, 7), values), reveal=rule)
    assert ledger.entries
    assert waits(ledger.entries) == []


@pytest.mark.parametrize(
    ("batch", "other"),
    [
        (8, {"particles": 3, "temperature": 1.0}),
        (8, {"reveal": Ancestral(6), "temperature": 1.0}),
        (8, {"reveal": Repaired(ByMargin(0.4), 0.9)}),
        (None, {}),
        (40, {"trace": True}),
    ],
)
def test_what_is_not_one_piece_is_left_alone(
    batch: int | None, other: dict[str, Any], taken: list[int]
) -> None:
    asked = request("routing", 2, 40) | other
    whole = Engine(batch, cuda_graph=True).sample(**asked)
    assert not taken
    assert not differences(Engine(batch).sample(**asked), whole)


def test_a_target_is_left_alone(taken: list[int]) -> None:
    asked = request("fkc", 2, 40) | {"temperature": 1.0}
    assert not differences(Engine(8).sample(**asked), Engine(8, cuda_graph=True).sample(**asked))
    assert not taken


def test_bad_distributions_are_refused_in_a_cuda_graph_step_too(taken: list[int]) -> None:
    asked = request("routing", 2, 40) | {"reveal": ByConfidence(6)}

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
        Engine(8, cuda_graph=True).sample(**asked | {"experts": [Tired(), asked["experts"][1]]})
    assert taken


class Spoiled:
    """A recorder whose first recordings give what they are told to, and later ones the truth."""

    def __init__(self, *spoils: Any) -> None:
        self.spoils = list(spoils)

    def __call__(self, function: Any, *given: Any) -> Any:
        spoil = self.spoils.pop(0) if self.spoils else lambda stepped: stepped
        return lambda *given: spoil(function(*given))


def refused(stepped: cuda_graph_step.Stepped) -> cuda_graph_step.Stepped:
    raise RuntimeError("operation not permitted when stream is capturing")


def emptied(stepped: cuda_graph_step.Stepped) -> cuda_graph_step.Stepped:
    return stepped._replace(x_t=stepped.x_t * 0)


def late(stepped: cuda_graph_step.Stepped) -> cuda_graph_step.Stepped:
    return stepped._replace(clock=stepped.clock + 1)


def careless(stepped: cuda_graph_step.Stepped) -> cuda_graph_step.Stepped:
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
    houses: list[CudaGraphStep] = []
    step = CudaGraphStep.step

    def as_on_a_gpu(house: CudaGraphStep, state: SamplerState) -> SamplerState:
        if house._advance is None:
            houses.append(house)
            house._advance = house._fastest(house.given(state))
        return step(house, state)

    monkeypatch.setattr(CudaGraphStep, "step", as_on_a_gpu)
    monkeypatch.setattr(cuda_graph_step, "CudaGraph", Spoiled(*spoils))
    asked = request("routing", 2, 40) | {"reveal": ByConfidence(6)}
    fused = Engine(8, cuda_graph=True).sample(**asked)
    assert not differences(Engine(8).sample(**asked), fused)
    assert taken
    assert houses[-1].how == how
    assert fused.how == (f"{how} (fell back: {houses[-1].failure})" if failures else how)
    assert Engine(8).sample(**asked).how == ""
    said = houses[-1].failure or ""
    assert [start in said for start in failures] == [True] * len(failures), said
    assert said.count("step, ") == len(failures)


def test_a_mistake_of_the_caller_is_not_the_recordings(
    monkeypatch: pytest.MonkeyPatch, taken: list[int]
) -> None:
    def mistaken(stepped: cuda_graph_step.Stepped) -> cuda_graph_step.Stepped:
        raise InvalidInput("temperatures: expected one per expert")

    monkeypatch.setattr(cuda_graph_step, "CudaGraph", Spoiled(mistaken))
    step = CudaGraphStep.step

    def as_on_a_gpu(house: CudaGraphStep, state: SamplerState) -> SamplerState:
        house._advance = house._fastest(house.given(state))
        return step(house, state)

    monkeypatch.setattr(CudaGraphStep, "step", as_on_a_gpu)
    with pytest.raises(InvalidInput, match="temperatures"):
        Engine(8, cuda_graph=True).sample(**request("routing", 2, 40) | {"reveal": ByConfidence(6)})
