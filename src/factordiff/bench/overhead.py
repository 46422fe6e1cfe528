"""What a step costs beside its forward passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torch import Tensor

from factordiff.arc.grid import CELLS, SIDE
from factordiff.bench.baselines import Bench, blank, median, timed
from factordiff.bench.measurement import Measurement
from factordiff.composition.composition import Composition
from factordiff.composition.evidence import DEFAULT_FACTORS, Evidence
from factordiff.composition.factor_names import window
from factordiff.composition.learned import Learned
from factordiff.composition.router import Router, RouterConfig
from factordiff.composition.routing import Routing
from factordiff.composition.single import Single
from factordiff.engine.batch_sizes import BatchSizes
from factordiff.engine.checked import in_words
from factordiff.engine.engine import Engine
from factordiff.engine.fast_network import FastNetwork
from factordiff.experts.expert import Expert
from factordiff.sampling.reveal import ByConfidence

STEPS = 20, 50  # of the two runs whose difference is a step's cost


def overhead(bench: Bench, engines: Sequence[FastNetwork]) -> Iterator[Measurement]:
    """Composition, reveal and bookkeeping of a step over the forward passes alone, at the full batch.

    A step costs what a longer run takes more than a shorter one: what is done once for a run is not a step's. Of
    evidence and of a router it is their own cost: what a step takes more than with one expert that is believed.
    """
    part = bench.first(bench.batch)
    condition = part.queries.condition()
    x_t = blank(part)

    def encode() -> list[Any]:
        return [engine.encode(condition) for engine in engines]

    encoded = encode()

    def forward() -> list[Tensor]:
        told = zip(engines, encoded, strict=True)
        return [engine.log_probs(x_t, one) for engine, one in told]

    said: list[Expert] = [
        _Remembered(engine, log_probs) for engine, log_probs in zip(engines, forward(), strict=True)
    ]
    runner = Engine(BatchSizes(len(x_t)), cuda_graph=part.device.type == "cuda")

    def step_of(experts: Sequence[Expert], told: Any, composition: Composition) -> float:
        def run(steps: int) -> float:
            rule = ByConfidence(steps)
            return timed(part.device, lambda: runner.sample(experts, composition, x_t, told, reveal=rule))[1]

        short, long = STEPS
        return median(part, lambda: (run(long) - run(short)) / (long - short))

    alone = median(part, lambda: timed(part.device, forward)[1])
    loop = step_of(said, None, Routing())
    details: dict[str, Any] = {
        "forward_ms": 1e3 * alone,
        "routing_and_reveal_ms": 1e3 * loop,
        "encode_ms": 1e3 * median(part, lambda: timed(part.device, encode)[1]),
        "rows": len(x_t),
        "how": how(engines),
    }
    if part.device.type == "cuda":  # where Python and the GPU work side by side
        details["step_with_its_passes_ms"] = 1e3 * step_of(engines, condition, Routing())
    yield Measurement("routing + reveal", 100 * loop / alone, "% of the passes", "< 5", "2", details)
    believed = step_of(said, None, Single())
    layout, values = (SIDE, SIDE), engines[0].vocabulary.size
    for what, composition, must in (
        ("path evidence", Evidence(kernel=window(DEFAULT_FACTORS, CELLS, layout)), "< 2"),
        ("a learned router", Learned(Router.new(RouterConfig(len(engines), values, layout=layout))), "< 10"),
    ):
        own = step_of(said, None, composition) - believed
        yield Measurement(
            what, 100 * max(own, 0.0) / alone, "% of the passes", must, "", {"own_ms": 1e3 * own}
        )


def how(engines: Sequence[FastNetwork]) -> str:
    """How the engines run their passes, and why not better."""
    return "; ".join(in_words(engine.how, engine.failure) for engine in engines)


class _Remembered:
    """An expert that costs nothing: what is left of a step is the loop's own."""

    def __init__(self, expert: Expert, log_probs: Tensor) -> None:
        self.vocabulary, self._said = expert.vocabulary, log_probs

    def encode(self, condition: Any) -> Any:
        return None

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        return self._said[: len(x_t)]
