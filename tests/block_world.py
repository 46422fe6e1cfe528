"""Worlds in which every factor belongs to some expert, and the law of evidence routing on any world, by brute force.

Nothing here imports the library. Labels are a factor's number for each cell.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import product as tuples

import numpy as np

from tests import oracle
from tests.enumeration import State, World, clean_states, joint, masked, put, tempered

Labels = tuple[int, ...]
Choose = Callable[[int, State, list[list[float]]], list[int]]  # (step, x, r) -> the cells revealed
Cells = list[list[float]]  # e[expert][cell]


def members(labels: Labels, factor: int) -> list[int]:
    return [cell for cell, label in enumerate(labels) if label == factor]


def beside(blocks: Sequence[np.ndarray], labels: Labels) -> np.ndarray:
    """The joint in which the factors are independent, each with its own table."""
    values = blocks[0].shape[0]
    out = np.ones((values,) * len(labels))
    for x in clean_states(len(labels), values):
        for factor, block in enumerate(blocks):
            out[x] *= block[tuple(x[cell] for cell in members(labels, factor))]
    return out


class BlockWorld:
    """Experts whose laws are products over the factors; the truth gives each factor to one of them, independently."""

    def __init__(self, labels: Labels, omega: Sequence[float], seed: int = 20) -> None:
        factors, experts = range(max(labels) + 1), range(len(omega))
        self.labels, self.omega = labels, list(omega)
        self.blocks = [
            [joint(seed + 10 * m + f, cells=len(members(labels, f))) for f in factors] for m in experts
        ]
        self.tables = [beside(blocks, labels) for blocks in self.blocks]
        self.world = World(*self.tables)

    def mixed(self, law_of_block: Callable[[np.ndarray], np.ndarray] = lambda block: block) -> np.ndarray:
        """The product over the factors of the mixture of the experts' laws of each."""
        factors = range(len(self.blocks[0]))
        each = [
            sum(w * law_of_block(blocks[f]) for w, blocks in zip(self.omega, self.blocks, strict=True))
            for f in factors
        ]
        return beside([np.asarray(block) for block in each], self.labels)


def kappa(ell: Sequence[float], omega: Sequence[float], T: float, bias: Sequence[float]) -> list[float]:
    """The weights w exp(ell / T + b), normalised; the prior weights where everybody has ruled it out."""
    if all(e == -math.inf or w == 0 for e, w in zip(ell, omega, strict=True)):
        return [w / sum(omega) for w in omega]
    score = [e / T + b for e, b in zip(ell, bias, strict=True)]
    top = max(s for s, w in zip(score, omega, strict=True) if w > 0)
    raised = [w * math.exp(s - top) if w > 0 else 0.0 for s, w in zip(score, omega, strict=True)]
    return [one / sum(raised) for one in raised]


def surest_first(world: World, steps: int, hidden_at_start: int | None = None) -> Choose:
    """The confidence order: the largest margins of r first, ties to the lowest cell."""
    count = world.cells if hidden_at_start is None else hidden_at_start

    def choose(j: int, x: State, r: list[list[float]]) -> list[int]:
        doubt = [-float(np.diff(np.sort(row)[-2:])[0]) for row in r]
        hidden = [value == world.values for value in x]
        return oracle.surest(doubt, hidden, oracle.quota(count, steps, j))

    return choose


def in_turn(groups: Sequence[Sequence[int]]) -> Choose:
    """One group of cells after the other, whatever is said."""
    return lambda j, x, r: [cell for cell in groups[j] if x[cell] == len(r[0])]


def evidence_law(
    world: World,
    labels: Labels,
    omega: Sequence[float],
    choose: Choose,
    *,
    T: float = 1.0,
    bias: Sequence[float] | None = None,
    tau: float = 1.0,
    given: Cells | None = None,
    start: State | None = None,
    owners: Sequence[int] | None = None,
) -> np.ndarray:
    """The law of evidence routing by recursion over every path.

    In each step an expert is drawn for each factor by its weight, and speaks for the cells of it that are revealed.
    With `owners` factor f is always spoken for by owners[f]; the order is still that of the weights.
    """
    law: dict[State, float] = defaultdict(float)
    experts, factors = range(len(world.tables)), range(max(labels) + 1)
    bias = bias or [0.0] * len(experts)

    def visit(x: State, j: int, mass: float, e: Cells) -> None:
        if not masked(x, world.values):
            law[x] += mass
            return
        p = world.said(x)
        weights = []
        for factor in factors:
            ell = [sum(e[m][cell] for cell in members(labels, factor)) for m in experts]
            weights.append(kappa(ell, omega, T, bias))
        r = [oracle.mixture([p[m][c] for m in experts], weights[labels[c]]) for c in range(world.cells)]
        chosen = choose(j, x, r)
        if not chosen:
            return visit(x, j + 1, mass, e)
        for filling in tuples(range(world.values), repeat=len(chosen)):
            here = dict(zip(chosen, filling, strict=True))
            chance = 1.0
            for factor in {labels[cell] for cell in chosen}:
                spoken = [
                    math.prod(tempered(p[m][c], tau)[v] for c, v in here.items() if labels[c] == factor)
                    for m in experts
                ]
                drawn = weights[factor] if owners is None else [float(m == owners[factor]) for m in experts]
                chance *= sum(k * s for k, s in zip(drawn, spoken, strict=True))
            if chance == 0:
                continue
            after, grown = x, [list(row) for row in e]
            for c, v in here.items():
                after = put(after, c, v)
                for m in experts:
                    grown[m][c] += math.log(p[m][c][v]) if p[m][c][v] > 0 else -math.inf
            visit(after, j + 1, mass * chance, grown)
        return None

    nothing = [[0.0] * world.cells for _ in experts]
    visit(start or world.empty, 0, 1.0, given or nothing)
    return world.table(law)
