"""What the engine saves: both sides of every ratio measured in one run, on the same queries and experts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.bench.baselines import Bench, blank, fast, noted, straightforward, timed
from factordiff.bench.divergence import Divergence, Trajectory, divergences
from factordiff.bench.measurement import Measurement
from factordiff.bench.overhead import overhead
from factordiff.bench.quality import Quality
from factordiff.composition.correctors import feynman_kac
from factordiff.composition.routing import Routing
from factordiff.engine.batch_sizes import BatchSizes
from factordiff.engine.engine import Engine
from factordiff.engine.fast_network import FastNetwork
from factordiff.sampling.reveal import ByConfidence
from factordiff.sampling.samples import Samples

PARTICLES = 8


def measure(bench: Bench, on_part: Callable[[str], None] = lambda part: None) -> Iterator[Measurement]:
    """Every line of the table that this machine can give; `on_part` is told what comes next."""
    engines = [FastNetwork(network) for network in bench.networks]
    on_part("warming up")
    warm_up(bench, engines)
    fast(bench, engines)

    on_part("routing and reveal against the forward passes")
    yield from overhead(bench, engines)
    on_part("one query at a time")
    yield one_query(bench)
    on_part("adaptive passes")
    runs = [timed(bench.device, lambda: fast(bench, engines)) for _ in range(bench.repeats)]
    quick, _, memory = runs[-1]
    seconds = [seconds for _, seconds, _ in runs]
    yield Measurement("rows executed / needed", quick.executed_over_needed, "x", "<= 1.15", "1.05")
    on_part(f"the straightforward {bench.steps}-step loop")
    part = bench.first(bench.slow)
    slow, slow_seconds, _ = timed(bench.device, lambda: straightforward(part))
    yield wall(bench, quick, seconds, slow.x_0, slow_seconds)
    answers = slow.x_0
    if len(answers) < len(bench.queries):
        on_part(f"the {bench.steps}-step loop without its idle steps, all queries")
        answers = fast(bench, engines, ByConfidence(bench.steps)).x_0
    yield passes(bench, quick, answers)
    if len(part.queries) < len(bench.queries):
        on_part("the savings alone")
        more = bench.first(2 * bench.slow)
        saved, plain = (noted(more, engines, saving=saving) for saving in (True, False))
        smallest = min(bench.sizes.sizes, default=1)
        found = divergences(plain, saved, (engines, engines), more.queries.condition(), bench.sizes, smallest)
        yield equal("same answers with the savings alone", found, len(more.queries), ">= 99.9")
        first = Trajectory(saved.x_0[: len(slow.x_0)], saved.step[: len(slow.x_0)])
        found = divergences(slow, first, (bench.networks, engines), part.queries.condition(), bench.sizes)
        yield equal("same answers, other kernels too", found, len(part.queries), "")
    if bench.device.type == "cuda":
        yield flat_memory(bench, engines, memory)
    if bench.fkc:
        on_part("Feynman-Kac particles")
        yield particles(bench)


@torch.no_grad()
def warm_up(bench: Bench, engines: Sequence[FastNetwork]) -> None:
    """One pass of every engine at every size it will see: compiled and recorded before anything is timed."""
    for size in bench.sizes.sizes or (min(bench.batch, len(bench.queries)),):
        query = torch.arange(size, device=bench.device) % len(bench.queries)
        condition, x_t = bench.queries.condition(query), blank(bench)[query]
        for engine in engines:
            engine.log_probs(x_t, engine.encode(condition))


def passes(bench: Bench, quick: Samples, answers: Int[Tensor, "item cell"]) -> Measurement:
    """How many times fewer passes than 128 of every expert, and what it does to the answers."""
    spent = float(quick.executed_passes.double().mean())
    truth = bench.queries.x_0
    ours, paper = ((x_0 == truth).all(-1).cpu().numpy() for x_0 in (quick.x_0, answers))
    quality = Quality.of(ours, paper, bench.queries.task_indices.cpu().numpy())
    details = {
        "passes_per_grid": spent,
        "passes_of_the_loop": len(bench.networks) * bench.steps,
        "exact": quality.exact,
        "exact_of_the_loop": quality.exact_of_the_loop,
        "difference_points": 100 * (quality.exact - quality.exact_of_the_loop),
        "mcnemar_p": quality.mcnemar_p,
        "largest_drop_of_a_task_points": 100 * quality.largest_drop,
        "equal_quality": quality.equal,
        "queries": len(ours),
    }
    return Measurement(
        "fewer passes per grid", len(bench.networks) * bench.steps / spent, "x", ">= 8", "40", details
    )


def equal(what: str, found: Divergence, queries: int, must: str) -> Measurement:
    """How many answers are the same in another batch shape, or by other kernels; the others must be near-ties."""
    details = {
        "differing": len(found.items),
        "traced_to_a_near_tie": int(found.near_ties.sum()),
        "largest_gap_nats": float(found.gap.max()) if len(found.gap) else 0.0,
        "rounding_there_nats": float(found.rounding[found.gap.argmax()]) if len(found.gap) else 0.0,
        "queries": queries,
    }
    return Measurement(what, 100 * (1 - len(found.items) / queries), "%", must, "", details)


def wall(
    bench: Bench,
    quick: Samples,
    seconds: Sequence[float],
    answers: Int[Tensor, "some cell"],
    slow_seconds: float,
) -> Measurement:
    """Time per grid of the straightforward eager loop over ours, the median of several runs."""
    ours, theirs = float(np.median(seconds)) / len(bench.queries), slow_seconds / len(answers)
    same = float((answers == quick.x_0[: len(answers)]).all(-1).double().mean())
    details = {
        "ms_per_grid": 1e3 * ours,
        "ms_per_grid_straightforward": 1e3 * theirs,
        "grids_per_second": 1 / ours,
        "seconds_fastest_and_slowest": [min(seconds), max(seconds)],
        "full_steps": quick.how or "plain",
        "same_answers": same,
        "queries": len(bench.queries),
        "queries_straightforward": len(answers),
    }
    gpu = bench.device.type == "cuda"
    return Measurement(
        "faster per grid", theirs / ours, "x", ">= 20" if gpu else "", "60" if gpu else "", details
    )


def one_query(bench: Bench) -> Measurement:
    """One query, warm: the straightforward loop over ours, which depends on the query and so is a median."""
    start = blank(bench)

    def answer(query: int) -> Samples:
        only = slice(query, query + 1)
        return Engine().sample(
            bench.networks, Routing(), start[only], bench.queries.condition(only), reveal=bench.rule
        )

    answer(0)
    queries = range(min(len(start), 2 * bench.repeats + 1))
    times = [timed(bench.device, lambda query=query: answer(query))[1] for query in queries]  # type: ignore[misc]
    part = bench.first(1)
    single = replace(part, batch=1)
    theirs, ours = timed(bench.device, lambda: straightforward(single))[1], float(np.median(times))
    details = {
        "seconds": ours,
        "slowest_seconds": max(times),
        "seconds_straightforward": theirs,
        "queries": len(queries),
    }
    return Measurement("faster for one query", theirs / ours, "x", ">= 8", "", details)


def particles(bench: Bench) -> Measurement:
    """Feynman-Kac correctors: nominal over executed passes, and whether the samples are the same."""
    part = bench.first(bench.fkc)
    count = max(bench.batch, PARTICLES)

    def drawn(share: bool, queries: Bench) -> Samples:
        return Engine(BatchSizes(count), share).sample(
            queries.networks,
            feynman_kac(),
            blank(queries),
            queries.queries.condition(),
            temperature=1.0,
            particles=PARTICLES,
            selection="highest-target",
        )

    ours = drawn(True, part)
    check = part.first(min(bench.fkc, 16))
    naive = drawn(False, check)
    same = (naive.particles == ours.particles[: len(naive.particles)]).all(-1).double().mean()
    nominal, executed = int(ours.nominal_passes.sum()), int(ours.executed_passes.sum())
    details = {
        "nominal": nominal,
        "executed": executed,
        "same_particles": float(same),
        "queries": len(ours.x_0),
    }
    return Measurement(
        f"fewer passes, FKC with {PARTICLES} particles", nominal / executed, "x", ">= 1.6", "", details
    )


def flat_memory(bench: Bench, engines: Sequence[FastNetwork], peak: int) -> Measurement:
    """Peak memory with all queries over that with a quarter of them."""
    fewer = bench.first(max(len(bench.queries) // 4, min(len(bench.queries), 2 * bench.batch)))
    _, _, small = timed(bench.device, lambda: fast(fewer, engines))
    details = {"peak_gib": peak / 2**30, "peak_gib_fewer": small / 2**30, "fewer": len(fewer.queries)}
    return Measurement("memory, all queries / fewer", peak / max(small, 1), "x", "flat", "", details)
