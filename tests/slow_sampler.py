"""The sampler once more, one item, one particle, one cell at a time, with its own arithmetic for the uniforms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests import oracle
from tests.enumeration import Compose, State, World, masked, put, tempered

TOKEN, REVEAL, EXPERT, RESAMPLE, SELECT = 1, 2, 3, 4, 5


def uniform(*key: int) -> float:
    return (oracle.hash_words(*key) >> 11) / 2**53


def pick(p: Sequence[float], u: float) -> int:
    """The value whose stretch of the cumulative distribution holds u."""
    reached = 0.0
    for value, chance in enumerate(p):
        reached += chance
        if u * sum(p) < reached and chance > 0:
            return value
    return max(value for value, chance in enumerate(p) if chance > 0)


@dataclass
class Particle:
    x: State
    ell: list[float]
    log_w: float = 0.0


@dataclass
class Outcome:
    x_0: State = ()
    particles: list[Particle] = field(default_factory=list)
    nominal: int = 0
    executed: int = 0
    resampled: int = 0


def slow_sample(
    world: World,
    compose: Compose,
    x: State,
    *,
    item: int,
    seed: int,
    rule: str,
    steps: int,
    tau: float = 0.0,
    count: int = 1,
    beta: Sequence[float] | None = None,
    resampling: float = 0.5,
    kappa: Callable[[list[float]], list[float]] | None = None,
) -> Outcome:
    experts, cells = len(world.tables), world.cells
    start = len(masked(x, world.values))
    particles = [Particle(x, [0.0] * experts) for _ in range(count)]
    out = Outcome()
    step = 0
    while any(masked(particle.x, world.values) for particle in particles):
        asked = 0
        for index, particle in enumerate(particles):
            hidden = masked(particle.x, world.values)
            if rule == "ancestral":
                chance = 1 / max(steps - step, 1)
                chosen = [c for c in hidden if uniform(seed, REVEAL, item, index, step, c) < chance]
            else:
                chosen = hidden[: oracle.quota(start, steps, step)]  # how many; which ones is not yet known
            if not chosen:
                continue
            asked += 1
            p = world.said(particle.x)
            r = compose(p, particle.x, particle.ell)
            if rule == "confidence":
                top = [[0.0, *sorted(row)][-2:] for row in r]
                doubt = [second - first for second, first in top]
                chosen = oracle.surest(doubt, [c in hidden for c in range(cells)], len(chosen))
            speaker = None
            if kappa is not None and tau > 0:
                speaker = pick(kappa(particle.ell), uniform(seed, EXPERT, item, index, step))
            for cell in chosen:
                row = r[cell] if speaker is None else p[speaker][cell]
                if tau == 0:
                    value = row.index(max(row))
                else:
                    value = pick(tempered(row, tau), uniform(seed, TOKEN, item, index, step, cell))
                    if beta is not None:
                        particle.log_w -= math.log(tempered(row, tau)[value])
                particle.x = put(particle.x, cell, value)
                for expert in range(experts):
                    said = p[expert][cell][value]
                    log_said = math.log(said) if said > 0 else -math.inf
                    particle.ell[expert] += log_said
                    if beta is not None and beta[expert] > 0:
                        particle.log_w += beta[expert] * log_said
        if asked:
            out.nominal += experts * count
            out.executed += experts * asked
            if beta is not None:
                particles = _resampled(particles, uniform(seed, RESAMPLE, item, 0, step), out, resampling)
        step += 1
    weights = _weights(particles)
    out.x_0 = particles[pick(weights, uniform(seed, SELECT, item, 0, 0))].x
    out.particles = particles
    return out


def _weights(particles: list[Particle]) -> list[float]:
    top = max(particle.log_w for particle in particles)
    if top == -math.inf:
        return [1 / len(particles)] * len(particles)
    raised = [math.exp(particle.log_w - top) for particle in particles]
    return [weight / sum(raised) for weight in raised]


def _resampled(particles: list[Particle], u: float, out: Outcome, share: float) -> list[Particle]:
    weights = _weights(particles)
    if 1 / sum(weight * weight for weight in weights) >= share * len(particles) * (1 - 1e-9):
        return particles
    out.resampled += 1
    ancestors = oracle.systematic(weights, u)
    return [Particle(particles[a].x, list(particles[a].ell)) for a in ancestors]
