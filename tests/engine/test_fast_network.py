"""The engine is the network run in another way: the same numbers, eager where nothing else can be had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff.composition.routing import Routing
from factordiff.engine.batch_sizes import BatchSizes
from factordiff.engine.engine import Engine
from factordiff.engine.fast_network import FastNetwork
from factordiff.errors import InvalidInput, Unavailable
from factordiff.experts.condition import Condition
from factordiff.experts.expert import Expert, rebuilt, tensors_of
from factordiff.networks.store import build
from factordiff.sampling.adaptive import ByMargin
from factordiff.sampling.sampler import sample
from factordiff.streams import Purpose, integers

TINY = {"layout": [3, 3], "width": 16, "context": 16, "latents": 2, "encoder": 8, "head": "default"}


def networks() -> list[Any]:
    trans = build("trans-ir", {**TINY, "heads": 2}, seed=1)
    conv = build("conv-ir", {**TINY, "groups": 2, "heads": 2}, seed=2)
    return [trans.freeze(), conv.freeze()]


def condition(items: int) -> Condition:
    def grids(*shape: int) -> Tensor:
        cells = torch.arange(items * 9 * (shape[0] if shape else 1)).view(items, *shape, 9)
        return integers(10, 0, Purpose.QUERY, len(shape), cells)

    return Condition(grids(), grids(3), grids(3).flip(-1), torch.ones(items, 3, dtype=torch.bool))


def test_an_engine_is_its_network() -> None:
    told, x_t = condition(5), torch.full((5, 9), 10)
    for network in networks():
        engine = FastNetwork(network)
        assert isinstance(engine, Expert)
        assert engine.how == "eager"  # no GPU is asked for here
        encoded = engine.encode(told)
        assert torch.equal(engine.log_probs(x_t, encoded), network.log_probs(x_t, network.encode(told)))


def test_batches_change_the_answers_of_networks_at_most_by_rounding() -> None:
    """Matrix products may round differently in another batch shape; 40 grids of 9 cells do not notice."""
    engines = [FastNetwork(network) for network in networks()]
    x_t = torch.full((40, 9), 10)
    plain = sample(engines, Routing(), x_t, condition(40), reveal=ByMargin(0.15))
    batched = Engine(16).sample(engines, Routing(), x_t, condition(40), reveal=ByMargin(0.15))
    same = (plain.x_0 == batched.x_0).all(-1)
    assert int(same.sum()) >= 39
    assert plain.executed_passes[same].tolist() == batched.executed_passes[same].tolist()
    assert batched.executed_over_needed >= 1.0


def engine_with(network: Any, part: str, spoil: Callable[..., Any]) -> FastNetwork:
    """An engine whose compiler spoils one part."""

    class Spoiled(type(network)):  # type: ignore[misc]
        def compile_parts(self, **options: Any) -> None:
            self.parts = self.parts._replace(**{part: spoil(getattr(self.parts, part))})

    network.__class__ = Spoiled
    return FastNetwork(network, compile=True)


@pytest.mark.parametrize("part", ["read", "embed", "apply_once", "readout"])
@pytest.mark.parametrize("kind", [0, 1])
def test_a_part_that_cannot_be_compiled_is_run_as_it_is_and_the_engine_says_so(part: str, kind: int) -> None:
    network, told, x_t = networks()[kind], condition(2), torch.full((2, 9), 10)
    expected = network.log_probs(x_t, network.encode(told))

    def refuse(plain: Any) -> Any:
        def act(*given: Any) -> Any:
            raise RuntimeError("no compiler here")

        return act

    engine = engine_with(network, part, refuse)
    assert engine.how == "compiled"
    assert torch.equal(engine.log_probs(x_t, engine.encode(told)), expected)
    assert engine.failure == f"{part}, compiled: RuntimeError: no compiler here"
    assert engine.how == "compiled"  # the other parts are


def test_what_a_compiler_spoils_now_and_then_is_never_compiled() -> None:
    network, told, x_t = networks()[0], condition(2), torch.full((2, 9), 10)
    expected = network.log_probs(x_t, network.encode(told))
    engine = engine_with(network, "encode_with", lambda plain: lambda *given: pytest.fail("was compiled"))
    assert torch.equal(engine.log_probs(x_t, engine.encode(told)), expected)
    assert engine.failure is None


@pytest.mark.parametrize("part", ["read", "apply_once", "readout"])
def test_garbage_from_a_compiled_part_never_reaches_the_loop(part: str) -> None:
    network, told, x_t = networks()[0], condition(2), torch.full((2, 9), 10)
    expected = network.log_probs(x_t, network.encode(told))
    engine = engine_with(network, part, lambda plain: lambda *given: plain(*given) * float("nan"))
    assert torch.equal(engine.log_probs(x_t, engine.encode(told)), expected)
    assert engine.failure is not None
    assert engine.failure.startswith(f"{part}, compiled: the faster result is not finite")


def test_bad_arguments_are_not_taken_for_a_broken_compiler() -> None:
    engine = engine_with(networks()[0], "read", lambda plain: plain)
    with pytest.raises(InvalidInput, match="condition: expected 9 cells"):
        engine.encode(
            Condition(
                torch.zeros(1, 4, dtype=torch.int64),
                torch.zeros(1, 1, 4, dtype=torch.int64),
                torch.zeros(1, 1, 4, dtype=torch.int64),
                torch.ones(1, 1, dtype=torch.bool),
            )
        )
    assert engine.failure is None


def test_graphs_need_a_gpu() -> None:
    with pytest.raises(Unavailable, match="graphs: expected a network on a CUDA device"):
        FastNetwork(networks()[0], graphs=True)


def test_tensors_are_taken_out_and_put_back() -> None:
    nested = (torch.zeros(2), {"a": torch.ones(3), "b": None}, (torch.arange(4),))
    found = tensors_of(nested)
    assert [len(tensor) for tensor in found] == [2, 3, 4]
    again = rebuilt(nested, iter([tensor + 1 for tensor in found]))
    assert again[1]["b"] is None
    assert again[1]["a"].tolist() == [2, 2, 2]
    assert again[2][0].tolist() == [1, 2, 3, 4]


@pytest.mark.gpu
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", [0, 1])
def test_graphs_replay_the_same_numbers(compiled: bool, kind: int) -> None:
    network = networks()[kind].to("cuda").freeze()
    told, x_t = condition(8).to("cuda"), torch.full((8, 9), 10, device="cuda")
    engine = FastNetwork(network, compile=compiled)
    assert engine.how == ("compiled + graphs" if compiled else "graphs")  # nothing was given up
    for rows in (8, 4, 8):
        part = told[slice(rows)]
        expected = network.log_probs(x_t[:rows], network.encode(part))
        assert torch.allclose(engine.log_probs(x_t[:rows], engine.encode(part)), expected, atol=1e-4)
    drawn = Engine(BatchSizes(8, (4, 8))).sample([engine], Routing(), x_t, told)
    assert engine.failure is None
    assert int(drawn.x_0.max()) < 10
