"""The engine is the network run in another way: the same numbers, eager where nothing else can be had."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff.composition.routing import Routing
from factordiff.errors import InvalidInput, Unavailable
from factordiff.experts.condition import Condition
from factordiff.experts.expert import Expert, rebuilt, tensors_of
from factordiff.experts.store import build
from factordiff.sampling.adaptive import ByMargin
from factordiff.sampling.engine import Engine
from factordiff.sampling.sampler import sample
from factordiff.sampling.savings import Bucket
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
        engine = Engine(network)
        assert isinstance(engine, Expert)
        assert engine.how == "eager"  # no GPU is asked for here
        encoded = engine.encode(told)
        assert torch.equal(engine.log_probs(x_t, encoded), network.log_probs(x_t, network.encode(told)))


def test_buckets_change_the_answers_of_networks_at_most_by_rounding() -> None:
    """Matrix products may round differently in another batch shape; 40 grids of 9 cells do not notice."""
    engines = [Engine(network) for network in networks()]
    x_t = torch.full((40, 9), 10)
    plain = sample(engines, Routing(), x_t, condition(40), reveal=ByMargin(0.15))
    bucketed = sample(engines, Routing(), x_t, condition(40), reveal=ByMargin(0.15), bucket=16)
    same = (plain.x_0 == bucketed.x_0).all(-1)
    assert int(same.sum()) >= 39
    assert plain.executed_passes[same].tolist() == bucketed.executed_passes[same].tolist()
    assert bucketed.executed_over_needed >= 1.0


def test_what_cannot_be_compiled_is_run_eagerly_and_says_so() -> None:
    (network, _), told, x_t = networks(), condition(2), torch.full((2, 9), 10)
    expected = network.log_probs(x_t, network.encode(told))

    def refuse(*given: Any) -> Any:
        raise RuntimeError("no compiler here")

    network.compile_parts = lambda: None
    for broken in ("read", "embed"):
        engine = Engine(network, compile=True)
        engine.network.parts = network.parts._replace(**{broken: refuse})
        assert engine.how == "compiled"
        assert torch.equal(engine.log_probs(x_t, engine.encode(told)), expected)
        assert engine.how == "eager"
        assert engine.failure == "RuntimeError: no compiler here"


def test_bad_arguments_are_not_taken_for_a_broken_compiler() -> None:
    (network, _) = networks()
    network.compile_parts = lambda: None
    engine = Engine(network, compile=True)
    with pytest.raises(InvalidInput, match="condition: expected 9 cells"):
        engine.encode(
            Condition(
                torch.zeros(1, 4, dtype=torch.int64),
                torch.zeros(1, 1, 4, dtype=torch.int64),
                torch.zeros(1, 1, 4, dtype=torch.int64),
                torch.ones(1, 1, dtype=torch.bool),
            )
        )
    assert engine.how == "compiled"


def test_graphs_need_a_gpu() -> None:
    with pytest.raises(Unavailable, match="graphs: expected a network on a CUDA device"):
        Engine(networks()[0], graphs=True)


def test_tensors_are_taken_out_and_put_back() -> None:
    nested = (torch.zeros(2), {"a": torch.ones(3), "b": None}, (torch.arange(4),))
    found = tensors_of(nested)
    assert [len(tensor) for tensor in found] == [2, 3, 4]
    again = rebuilt(nested, iter([tensor + 1 for tensor in found]))
    assert again[1]["b"] is None
    assert again[1]["a"].tolist() == [2, 2, 2]
    assert again[2][0].tolist() == [1, 2, 3, 4]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_graphs_replay_the_same_numbers() -> None:
    (network, _) = networks()
    network = network.to("cuda").freeze()
    told, x_t = condition(8).to("cuda"), torch.full((8, 9), 10, device="cuda")
    engine = Engine(network, compile=False)
    assert engine.how == "graphs"
    for rows in (8, 4, 8):
        part = told[slice(rows)]
        expected = network.log_probs(x_t[:rows], network.encode(part))
        assert torch.allclose(engine.log_probs(x_t[:rows], engine.encode(part)), expected, atol=1e-5)
    drawn = sample([engine], Routing(), x_t, told, bucket=Bucket(8, (4, 8)))
    assert engine.failure is None
    assert int(drawn.x_0.max()) < 10
