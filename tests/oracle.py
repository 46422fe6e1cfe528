"""Slow, obviously right twins of the core's functions: plain loops, written from the formulas.

Nothing here imports the library. Distributions are lists of probabilities; an expert axis comes first. The toy
world and the laws of whole samplers are in `tests/enumeration.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import product as tuples

import numpy as np

Probs = Sequence[float]
DIGITS = 400  # margins of 1 - e^-900 are still told apart

# ---- confidence ----------------------------------------------------------------------------------------------


def exact_margin(log_p: Sequence[float], temperature: float = 1.0) -> Decimal:
    """p1 - p2 of softmax(log_p / T) with many digits, so that nothing saturates."""
    return _margin(tuple(map(float, log_p)), temperature)


@cache
def _margin(log_p: tuple[float, ...], temperature: float) -> Decimal:
    with localcontext() as context:
        context.prec = DIGITS
        weights = [_exp(value, temperature) for value in log_p]
        first, second = [*sorted(weights, reverse=True), Decimal(0)][:2]
        return (first - second) / sum(weights)


def _exp(log: float, temperature: float) -> Decimal:
    return Decimal(0) if log == -math.inf else (Decimal(log) / Decimal(temperature)).exp()


def exact_log_doubt(log_p: Sequence[float], temperature: float = 1.0) -> float:
    """log(1 - margin)."""
    with localcontext() as context:
        context.prec = DIGITS
        doubt = 1 - exact_margin(log_p, temperature)
        return -math.inf if doubt <= 0 else float(doubt.ln())


def factor_confidence(margins: Sequence[Decimal], how: str) -> Decimal:
    """One confidence for a factor from the margins of its masked members."""
    with localcontext() as context:
        context.prec = DIGITS
        if how == "mean":
            return sum(margins) / len(margins)
        if how == "min":
            return min(margins)
        return sum((margin + Decimal("1e-12")).ln() for margin in margins)


def route(
    log_p: np.ndarray, labels: Sequence[int], hidden: Sequence[bool], temperatures: Probs, how: str = "mean"
) -> list[int | None]:
    """The expert of every masked cell of one row (else None), `log_p[expert, cell, value]`; ties to the lowest."""
    z: list[int | None] = [None] * len(labels)
    for label in set(labels):
        members = [cell for cell, other in enumerate(labels) if other == label and hidden[cell]]
        if not members:
            continue
        confidences = [
            factor_confidence([exact_margin(said[cell], T) for cell in members], how)
            for said, T in zip(log_p, temperatures, strict=True)
        ]
        for cell in members:
            z[cell] = confidences.index(max(confidences))
    return z


def soft_weights(
    log_p: np.ndarray, labels: Sequence[int], hidden: Sequence[bool], temperatures: Probs, softness: float
) -> list[list[float] | None]:
    """alpha_m of every masked cell of one row: softmax over experts of the factor's mean margin over lambda."""
    alpha: list[list[float] | None] = [None] * len(labels)
    for cell, label in enumerate(labels):
        if hidden[cell]:
            members = [other for other in range(len(labels)) if labels[other] == label and hidden[other]]
            weights = []
            for said, T in zip(log_p, temperatures, strict=True):
                mean = factor_confidence([exact_margin(said[other], T) for other in members], "mean")
                weights.append((mean / Decimal(softness)).exp())
            alpha[cell] = [float(weight / sum(weights)) for weight in weights]
    return alpha


# ---- compositions of one cell's distributions, p[expert][value] ------------------------------------------------


def mixture(p: Sequence[Probs], omega: Probs) -> list[float]:
    return [sum(w * said[v] for w, said in zip(omega, p, strict=True)) for v in range(len(p[0]))]


def product(p: Sequence[Probs], beta: Probs) -> tuple[list[float], float]:
    """(r, S): r = prod p^beta / S; uniform where S = 0."""
    raw = [math.prod(said[v] ** b for b, said in zip(beta, p, strict=True)) for v in range(len(p[0]))]
    S = sum(raw)
    return ([value / S for value in raw] if S > 0 else [1 / len(raw)] * len(raw)), S


def superdiff_kappa(ell: Probs, temperature: float, bias: Probs, omega: Probs) -> list[float]:
    """softmax_m(T (ell_m + b_m) + log omega_m); the prior at T = 0, and where every expert has ruled the state out."""
    if temperature == 0:
        return [w / sum(omega) for w in omega]
    scores = [
        temperature * (e + b) + math.log(w) if e > -math.inf and w > 0 else -math.inf
        for e, b, w in zip(ell, bias, omega, strict=True)
    ]
    top = max(scores)
    if top == -math.inf:
        return [w / sum(omega) for w in omega]
    weights = [math.exp(score - top) for score in scores]
    return [weight / sum(weights) for weight in weights]


def kl(p: Probs, q: Probs) -> float:
    return math.fsum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def and_linear(p: np.ndarray, ell: Probs) -> float:
    """The first expert's kappa for `p[expert, cell, value]` over the masked cells."""
    forward = math.fsum(kl(a, b) for a, b in zip(p[0], p[1], strict=True))
    backward = math.fsum(kl(b, a) for a, b in zip(p[0], p[1], strict=True))
    if forward + backward < 1e-12:
        return 0.5
    return min(1.0, max(0.0, (backward - (ell[0] - ell[1])) / (forward + backward)))


def and_objective(p: np.ndarray, ell: Probs, kappa: Probs) -> float:
    """J(kappa) = sum_i log sum_v prod_m p^kappa + sum_m kappa_m ell_m."""
    return sum(math.log(product(p[:, cell], kappa)[1]) for cell in range(p.shape[1])) + float(
        np.dot(kappa, ell)
    )


def and_geometric(p: np.ndarray, ell: Probs, rounds: int = 12) -> np.ndarray:
    """The minimum of J over the simplex by a grid that shrinks around its best point."""
    experts = len(p)
    best, width = np.full(experts, 1 / experts), 1.0
    for _ in range(rounds):
        offsets = tuples(np.linspace(-width, width, 9), repeat=experts - 1)
        points = [best] + [
            np.append(best[:-1] + offset, 1 - (best[:-1] + offset).sum()) for offset in offsets
        ]
        inside = [point for point in points if point.min() >= 0]
        best = min(inside, key=lambda point: and_objective(p, ell, point))
        width /= 3
    return best


def expected_increment(r: np.ndarray, p: np.ndarray) -> float:
    """D_m = sum_i E_{r_i}[log p_{m,i}]."""
    return math.fsum(a * math.log(b) for a, b in zip(r.ravel(), p.ravel(), strict=True) if a > 0)


def views(occupancy: Probs, color: Probs) -> list[float]:
    """Background from the first, foreground split as in the second."""
    foreground, colored = sum(occupancy[1:]), sum(color[1:])
    split = [c / colored if colored > 0 else 1 / len(color[1:]) for c in color[1:]]
    return [occupancy[0], *[foreground * share for share in split]]


# ---- factors, reveals, particles, votes ------------------------------------------------------------------------


def components(grid: Sequence[Sequence[int]]) -> list[int]:
    """Flood fill over 4 neighbours of equal value; components numbered in reading order."""
    height, width = len(grid), len(grid[0])
    label: dict[tuple[int, int], int] = {}
    found = 0
    for start in tuples(range(height), range(width)):
        if start in label:
            continue
        stack = [start]
        while stack:
            y, x = stack.pop()
            if (y, x) in label:
                continue
            label[y, x] = found
            for near in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                inside = 0 <= near[0] < height and 0 <= near[1] < width
                if inside and grid[near[0]][near[1]] == grid[y][x]:
                    stack.append(near)
        found += 1
    return [label[y, x] for y in range(height) for x in range(width)]


def quota(cells: int, steps: int, j: int) -> int:
    """n_j = floor(N (j+1) / T) - floor(N j / T)."""
    return cells * (j + 1) // steps - cells * j // steps


def surest(doubt: Sequence[float], among: Sequence[bool], count: int) -> list[int]:
    """The `count` least doubtful cells, lowest index first among equals."""
    return sorted(sorted((c for c in range(len(doubt)) if among[c]), key=lambda c: (doubt[c], c))[:count])


def systematic(weights: Probs, u: float) -> list[int]:
    """The particle in whose stretch (k + u) / P falls, in exact arithmetic."""
    total = sum(Fraction(weight) for weight in weights)
    ancestors = []
    for k in range(len(weights)):
        position = (k + Fraction(u)) / len(weights) * total
        reached = Fraction(0)
        for particle, weight in enumerate(weights):
            reached += Fraction(weight)
            if position < reached:
                ancestors.append(particle)
                break
    return ancestors


def vote(runs: Sequence[Sequence[int]]) -> list[int]:
    """Cell by cell the most frequent value; ties to the earliest run among the tied."""
    answer = []
    for votes in zip(*runs, strict=True):
        most = max(votes.count(value) for value in votes)
        answer.append(next(value for value in votes if votes.count(value) == most))
    return answer


def hash_words(*words: int) -> int:
    """SplitMix64's finaliser chained over the words, in whole numbers modulo 2^64."""
    full = (1 << 64) - 1
    bits = 0
    for word in words:
        bits = ((bits ^ (word & full)) + 0x9E3779B97F4A7C15) & full
        bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & full
        bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & full
        bits ^= bits >> 31
    return bits


# ---- the diffusion ---------------------------------------------------------------------------------------------


def cell_loss(name: str, log_p: Sequence[float], x_0: int) -> float:
    foreground = x_0 > 0
    if name == "full":
        return -log_p[x_0]
    if name == "occupancy":
        return -(math.log(math.fsum(map(math.exp, log_p[1:]))) if foreground else log_p[0])
    return -log_p[x_0] if foreground else 0.0


def loss(name: str, log_p: np.ndarray, x_0: np.ndarray, x_t: np.ndarray, t: Probs) -> float:
    """The weight 1/t, masked cells only, divided by batch x cells."""
    total = 0.0
    for row, cell in np.ndindex(*x_0.shape):
        if x_t[row, cell] == log_p.shape[-1]:
            total += cell_loss(name, log_p[row, cell].tolist(), int(x_0[row, cell])) / t[row]
    return total / x_0.size


def reverse(p: Probs, x: int, t: float, s: float) -> list[float]:
    """The law of a cell at s given its value at t, MASK last."""
    mask = len(p)
    if x != mask:
        return [float(value == x) for value in range(mask + 1)]
    reveal = (t - s) / t
    return [*[reveal * chance for chance in p], s / t]


def forward(x_s: int, x_t: int, s: float, t: float, mask: int) -> float:
    """The chance that a cell's value at s becomes its value at t > s: stay with alpha_t / alpha_s, else MASK."""
    if x_s == mask:
        return float(x_t == mask)
    stay = (1 - t) / (1 - s)
    return stay if x_t == x_s else (1 - stay if x_t == mask else 0.0)
