"""The toy world and the laws of samplers on it, by brute force: every state, every path, every subset.

Nothing here imports the library. A state is a tuple of values in which the number of values stands for MASK; a
law is an array with one axis per cell.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain, combinations
from itertools import product as tuples

import numpy as np

from tests import oracle

State = tuple[int, ...]
Said = list[list[list[float]]]  # p[expert][cell][value] at one state
Compose = Callable[[Said, State, list[float]], list[list[float]]]  # (p, x, ell) -> r[cell][value]

# ---- the toy world -------------------------------------------------------------------------------------------


def joint(seed: int, cells: int = 4, values: int = 3) -> np.ndarray:
    """The recipe: 98 % Dirichlet(.25) and 2 % uniform, states in lexicographic order."""
    states = values**cells
    table = 0.98 * np.random.default_rng(seed).dirichlet(np.full(states, 0.25)) + 0.02 / states
    return table.reshape((values,) * cells)


def clean_states(cells: int, values: int) -> list[State]:
    return list(tuples(range(values), repeat=cells))


def partial_states(cells: int, values: int) -> list[State]:
    return list(tuples(range(values + 1), repeat=cells))


def masked(x: State, values: int) -> list[int]:
    return [cell for cell, value in enumerate(x) if value == values]


def agrees(x: State, clean: State, values: int) -> bool:
    return all(here in (values, there) for here, there in zip(x, clean, strict=True))


def marginal(table: np.ndarray, x: State) -> float:
    """p(x_U): the sum of the joint over every clean state that agrees with what is revealed."""
    values = table.shape[0]
    return math.fsum(np.ravel(table[tuple(slice(None) if value == values else value for value in x)]))


def put(x: State, cell: int, value: int) -> State:
    return (*x[:cell], value, *x[cell + 1 :])


def conditional(table: np.ndarray, x: State, cell: int) -> list[float]:
    """p(x_cell = v | x_U); a point mass where revealed, uniform where p(x_U) = 0."""
    values = table.shape[0]
    if x[cell] != values:
        return [float(value == x[cell]) for value in range(values)]
    evidence = marginal(table, x)
    if evidence == 0:
        return [1 / values] * values
    return [marginal(table, put(x, cell, value)) / evidence for value in range(values)]


def entropy(table: np.ndarray) -> float:
    return -math.fsum(p * math.log(p) for p in table.flatten() if p > 0)


def tv(one: np.ndarray, other: np.ndarray) -> float:
    return math.fsum(abs(a - b) for a, b in zip(np.ravel(one), np.ravel(other), strict=True)) / 2


# ---- what exact experts say ------------------------------------------------------------------------------------


class World:
    """Exact experts from joints; what they say at a state is summed once and remembered."""

    def __init__(self, *tables: np.ndarray) -> None:
        self.tables = tables
        self.cells, self.values = tables[0].ndim, tables[0].shape[0]
        self.empty: State = (self.values,) * self.cells
        self.said: Callable[[State], Said] = lru_cache(maxsize=None)(self._said)

    def _said(self, x: State) -> Said:
        return [[conditional(table, x, cell) for cell in range(self.cells)] for table in self.tables]

    def table(self, law: dict[State, float]) -> np.ndarray:
        out = np.zeros((self.values,) * self.cells)
        for x, mass in law.items():
            out[x] += mass
        return out


# ---- ready-made compositions of whole rows -----------------------------------------------------------------------


def single(expert: int = 0) -> Compose:
    return lambda p, x, ell: p[expert]


def mixed(omega: Sequence[float]) -> Compose:
    return lambda p, x, ell: [oracle.mixture(said, omega) for said in zip(*p, strict=True)]


def multiplied(beta: Sequence[float]) -> Compose:
    return lambda p, x, ell: [oracle.product(said, beta)[0] for said in zip(*p, strict=True)]


def superdiff(omega: Sequence[float]) -> Compose:
    def compose(p: Said, x: State, ell: list[float]) -> list[list[float]]:
        kappa = oracle.superdiff_kappa(ell, 1.0, [0.0] * len(ell), omega)
        return [oracle.mixture(said, kappa) for said in zip(*p, strict=True)]

    return compose


def routed(temperatures: Sequence[float], labels: Sequence[int] | None = None, how: str = "mean") -> Compose:
    def compose(p: Said, x: State, ell: list[float]) -> list[list[float]]:
        values = len(p[0][0])
        log_p = np.array([[[math.log(a) if a > 0 else -math.inf for a in r] for r in said] for said in p])
        hidden = [value == values for value in x]
        z = oracle.route(log_p, labels or list(range(len(x))), hidden, temperatures, how)
        return [p[z[cell] or 0][cell] for cell in range(len(x))]

    return compose


# ---- laws ------------------------------------------------------------------------------------------------------


def confidence_law(
    world: World,
    compose: Compose,
    steps: int | None = None,
    tau: float = 1.0,
    beta: Sequence[float] | None = None,
    kappa: Callable[[list[float]], list[float]] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """(law, mass times weight) of the confidence order, by recursion over the partial states of each path.

    Cells are revealed by the margin of the composed distribution, `quota` of them at step j. `beta` weights each
    path by prod p^beta / r; `kappa(ell)` draws one expert for the whole step instead of mixing each cell.
    """
    law: dict[State, float] = defaultdict(float)
    weighted: dict[State, float] = defaultdict(float)
    T = steps or world.cells

    def visit(x: State, j: int, mass: float, weight: float, ell: list[float]) -> None:
        hidden = masked(x, world.values)
        if not hidden:
            law[x] += mass
            weighted[x] += mass * weight
            return
        p = world.said(x)
        r = compose(p, x, ell)
        count = oracle.quota(world.cells, T, j)
        # the margin of what is composed, before any temperature; ties to the lowest cell
        doubt = [-float(np.diff(np.sort(row)[-2:])[0]) for row in r]
        chosen = oracle.surest(doubt, [cell in hidden for cell in range(world.cells)], count)
        drawn = [tempered(row, tau) for row in r]
        speakers = [[tempered(row, tau) for row in said] for said in p]
        for filling in tuples(range(world.values), repeat=len(chosen)):
            here = list(zip(chosen, filling, strict=True))
            if kappa is None:
                chance = math.prod(drawn[c][v] for c, v in here)
            else:
                chance = sum(
                    k * math.prod(said[c][v] for c, v in here)
                    for k, said in zip(kappa(ell), speakers, strict=True)
                )
            if chance == 0:
                continue
            spoken = [math.prod(said[c][v] for c, v in here) for said in p]
            gain = 1.0
            if beta is not None:
                gain = math.prod(s**b for s, b in zip(spoken, beta, strict=True)) / chance
            after = x
            for c, v in here:
                after = put(after, c, v)
            grown = [e + (math.log(s) if s > 0 else -math.inf) for e, s in zip(ell, spoken, strict=True)]
            visit(after, j + 1, mass * chance, weight * gain, grown)

    visit(world.empty, 0, 1.0, 1.0, [0.0] * len(world.tables))
    return world.table(law), world.table(weighted)


def tempered(r: Sequence[float], tau: float) -> list[float]:
    """r^(1/tau), renormalised."""
    raised = [chance ** (1 / tau) for chance in r]
    return [chance / sum(raised) for chance in raised]


def ancestral_law(world: World, kernel: Compose, T: int) -> np.ndarray:
    """Every subset of the masked cells may be revealed in a step, each cell with probability 1/(T-j).

    `kernel` need not be normalised: with prod p^beta in place of r this is the weighted law.
    """
    moves: dict[State, list[tuple[State, int, int, float]]] = {}
    for x in partial_states(world.cells, world.values):
        hidden = masked(x, world.values)
        r = kernel(world.said(x), x, [0.0] * len(world.tables))
        moves[x] = []
        for subset in chain.from_iterable(combinations(hidden, n) for n in range(len(hidden) + 1)):
            for filling in tuples(range(world.values), repeat=len(subset)):
                after, chance = x, 1.0
                for c, v in zip(subset, filling, strict=True):
                    after, chance = put(after, c, v), chance * r[c][v]
                moves[x].append((after, len(subset), len(hidden) - len(subset), chance))
    mass: dict[State, float] = {world.empty: 1.0}
    for j in range(T):
        rho = 1 / (T - j)
        after_step: dict[State, float] = defaultdict(float)
        for x, here in mass.items():
            for after, opened, kept, chance in moves[x]:
                after_step[after] += here * rho**opened * (1 - rho) ** kept * chance
        mass = after_step
    return world.table({x: here for x, here in mass.items() if here > 0})


def candidate_order_law(world: World) -> np.ndarray:
    """What not to do: draw a value for every masked cell, then reveal the one whose value is likeliest."""
    mass: dict[State, float] = {world.empty: 1.0}
    for _ in range(world.cells):
        after_step: dict[State, float] = defaultdict(float)
        for x, here in mass.items():
            hidden, p = masked(x, world.values), world.said(x)[0]
            for filling in tuples(range(world.values), repeat=len(hidden)):
                chances = [p[c][v] for c, v in zip(hidden, filling, strict=True)]
                best = max(range(len(hidden)), key=lambda k: (chances[k], -k))
                after_step[put(x, hidden[best], filling[best])] += here * math.prod(chances)
        mass = after_step
    return world.table(mass)
