"""Do these experts need weights per cell? Right values at hidden cells of half-shown right answers, method by method.

Everything is teacher-forced and per cell: nobody decodes. The scalars are the best there are on these very cells, which
flatters them; the router, and the owners by place, are fitted on other items than those they are measured on. The small
router does not see where a cell lies, so that owners by place say what one that does see it could do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.composition.confidence import log_doubt
from factordiff.composition.evidence import DEFAULT_FACTORS, Evidence
from factordiff.composition.factor_names import window
from factordiff.composition.learned import Learned
from factordiff.composition.router import RouterConfig
from factordiff.fitting.bounds import Best, best_numbers, best_temperatures, doubts_at, leading, leads
from factordiff.fitting.predictions import Predictions
from factordiff.fitting.router_fit import FitSettings, fit_router

SURE = 0.9  # a margin above it is sure
FINEST = -50.0  # logarithms of probabilities below e^-50 are all the same
EVIDENCE_TEMPERATURES = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 200.0, 1000.0, 1e6)  # the last: the mixture
QUICK = FitSettings(steps=240, batch=64, check_every=40, rate=1e-2)
NEEDED = 0.1  # of the errors that the best number leaves, a router must take away so many to be advised
BOUNDS = ("told", "oracle")
PLACE = "by place"
NO_NUMBER = ("learned", PLACE, "evidence", *BOUNDS)  # what is no number per expert, nor their confidence

Right = Bool[Tensor, "row cell"]


@dataclass(frozen=True)
class Finding:
    """How one way of combining does: the share of hidden cells right, in all, by mask rate; whole rows right."""

    name: str
    cells: float
    rows: float
    by_rate: tuple[float, ...]
    setting: str = ""

    def __repr__(self) -> str:
        return f"Finding({self.name}: {100 * self.cells:.2f} % of cells, {100 * self.rows:.1f} % of rows)"


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What single numbers, confidence, evidence and a small router do, and how much a choice per cell could."""

    names: tuple[str, ...]
    rates: tuple[float, ...]
    findings: tuple[Finding, ...]
    wrongly_sure: Float[Tensor, "expert cell"]  # the share of a cell's hidden occasions
    gains: Mapping[
        str, tuple[float, float]
    ]  # per hidden cell, over the best without a router; standard errors
    items: int
    layout: tuple[int, int] | None

    def __getitem__(self, name: str) -> Finding:
        return next(one for one in self.findings if one.name == name)

    def __repr__(self) -> str:
        return f"Diagnosis({' + '.join(self.names)}, {self.items} items: {self.advice})"

    @property
    def best_without(self) -> Finding:
        """The best number per expert, or confidence."""
        return _best_without(self.findings)

    @property
    def gain(self) -> float:
        """Learned less the best without a router, per hidden cell."""
        return self.gains["learned"][0]

    @property
    def error(self) -> float:
        """The gain's standard error over items."""
        return self.gains["learned"][1]

    @property
    def needs_router(self) -> bool:
        """Whether a small router takes away enough of the errors, by more than chance."""
        return self._gains_by("learned")

    def _gains_by(self, name: str) -> bool:
        gain, error = self.gains[name]
        return gain > max(2 * error, NEEDED * (1 - self.best_without.cells))

    @property
    def advice(self) -> str:
        """One sentence."""
        best, learned, oracle = self.best_without, self["learned"], self["oracle"]
        said = (
            f"The best without a router ({best.name}) gets {100 * best.cells:.1f} % of hidden cells right, "
            f"a small router {100 * learned.cells:.1f} %, a perfect choice per cell {100 * oracle.cells:.1f} %"
        )
        place, evidence = self[PLACE], self["evidence"]
        beyond = place.cells - learned.cells
        if self._gains_by(PLACE) and beyond > max(2 * self.error, NEEDED * (1 - learned.cells)):
            return (
                f"{said}, an owner for each place {100 * place.cells:.1f} %: you need a router that sees "
                "where a cell lies (factordiff fit --kind neighbourhood)."
            )
        if self.needs_router:
            return f"{said}: you need a router (factordiff fit --method learned)."
        if self._gains_by("evidence"):
            return f"{said}, evidence {100 * evidence.cells:.1f} %: try evidence (factordiff fit --method evidence)."
        if oracle.cells - best.cells < 0.005:
            return f"{said}: there is nothing to choose; use {best.name}."
        return f"{said}: you do not need a router; use {best.name}."


def diagnose(
    predictions: Predictions,
    names: Sequence[str],
    *,
    layout: tuple[int, int] | None = None,
    owner: Tensor | None = None,
    seed: int = 0,
    on_part: Callable[[int, int], None] | None = None,
) -> Diagnosis:
    """The diagnosis of what the experts said; `owner` is the expert that knows each cell of each item, if known."""
    experts, asked, x_0 = len(predictions.log_probs), predictions.asked, predictions.x_0
    said, truth = predictions.log_probs[:, asked].double(), x_0[asked]
    first = said.argmax(-1)
    right = first == truth
    found: dict[str, tuple[Tensor, str]] = {}
    parts = 6

    def done(part: int) -> None:
        if on_part is not None:
            on_part(part, parts)

    for number, name in enumerate(names):
        found[name] = (right[number], "")
    log_lead = leads(said.clamp(min=FINEST), truth)
    lead = leads(said.exp(), truth)
    even = torch.ones(experts, dtype=lead.dtype, device=lead.device)
    found["product"] = (leading(log_lead, even), "")
    found["best product"] = _at_best(log_lead, best_numbers(log_lead))
    done(1)
    found["mixture"] = (leading(lead, even), "")
    found["best mixture"] = _at_best(lead, best_numbers(lead))
    done(2)
    doubts = log_doubt(said)
    found["confidence"] = (_chosen(right, doubts.argmin(0)), "T 1")
    tempered = best_temperatures(said, right)
    doubts_then = torch.stack([doubts_at(*one) for one in zip(said, tempered.numbers, strict=True)])
    found["best confidence"] = (_chosen(right, doubts_then.argmin(0)), f"T {_spelled(tempered.numbers)}")
    done(3)
    found["evidence"] = _evidence(predictions, layout)
    done(4)
    found["learned"] = (_cross_fitted(predictions, layout, seed), "")
    found[PLACE] = (_by_place(predictions, right), "")
    done(5)
    if owner is not None:
        told = owner[predictions.item][asked]
        found["told"] = (_chosen(right, told), "")
    found["oracle"] = (right.any(0), "")
    hiding = predictions.rate[
        asked.any(-1)
    ]  # few cells may all be shown at a rate: no share of them is right
    rates = tuple(sorted(set(hiding.tolist()), reverse=True))
    findings = tuple(_finding(name, cells, predictions, rates, how) for name, (cells, how) in found.items())
    best = found[_best_without(findings).name][0]
    gains = {name: _paired(found[name][0], best, predictions) for name in NO_NUMBER if name in found}
    done(6)
    return Diagnosis(
        tuple(names), rates, findings, _wrongly_sure(predictions, first, doubts), gains,
        len(predictions.item.unique()), layout,
    )  # fmt: skip


def _best_without(findings: Sequence[Finding]) -> Finding:
    return max((one for one in findings if one.name not in NO_NUMBER), key=lambda one: one.cells)


def _at_best(lead: Tensor, best: Best) -> tuple[Tensor, str]:
    numbers = torch.tensor(best.numbers, dtype=lead.dtype, device=lead.device)
    shown = [number / max(best.numbers) for number in best.numbers]
    return leading(lead, numbers), _spelled(shown)


def _chosen(right: Tensor, z: Tensor) -> Tensor:
    return right.gather(0, z[None])[0]


def _evidence(predictions: Predictions, layout: tuple[int, int] | None) -> tuple[Tensor, str]:
    """Evidence routing with its default factors at the best of a few temperatures."""
    kernel = window(DEFAULT_FACTORS, predictions.x_t.shape[1], layout)
    tried = {
        temperature: _right(predictions, Evidence(kernel=kernel, temperature=temperature))
        for temperature in EVIDENCE_TEMPERATURES
    }
    best = max(tried, key=lambda temperature: float(tried[temperature].double().mean()))
    return tried[best], f"{DEFAULT_FACTORS}, T {best:g}"


def _cross_fitted(predictions: Predictions, layout: tuple[int, int] | None, seed: int) -> Tensor:
    """A small scorer fitted on every other item, and measured on the rest; then the other way round."""
    config = RouterConfig(len(predictions.log_probs), predictions.mask, layout=layout)
    right = torch.zeros_like(predictions.asked)
    settings = FitSettings(**{**vars(QUICK), "seed": seed})
    for rows, others in _halves(predictions):
        here = predictions.rows(rows)
        router = fit_router(here, here, config, settings).router  # the other side chooses nothing
        right[others] = _grid_of_right(predictions.rows(others), Learned(router))
    return right[predictions.asked]


def _by_place(predictions: Predictions, right: Tensor) -> Tensor:
    """Each cell by the expert that is right there most often on every other item; then the other way round."""
    grids = torch.zeros(len(right), *predictions.asked.shape, dtype=torch.bool, device=right.device)
    grids[:, predictions.asked] = right
    chosen = torch.zeros_like(predictions.asked)
    for rows, others in _halves(predictions):
        owner = grids[:, rows].sum(1).argmax(0)  # of equals the first
        chosen[others] = grids[:, others].gather(0, owner.expand(1, len(others), -1))[0]
    return chosen[predictions.asked]


def _halves(predictions: Predictions) -> Iterator[tuple[Tensor, Tensor]]:
    """The rows of every other item and the rest, and the other way round."""
    side = (torch.searchsorted(predictions.item.unique(), predictions.item) % 2).bool()
    for fitted in (side, ~side):
        yield fitted.nonzero().squeeze(-1), (~fitted).nonzero().squeeze(-1)


def _grid_of_right(predictions: Predictions, composition: Composition) -> Right:
    pieces = []
    for rows in torch.arange(len(predictions), device=predictions.x_t.device).split(256):
        composed = composition(predictions.log_probs[:, rows], predictions.state(rows))
        pieces.append(composed.log_probs.argmax(-1) == predictions.x_0[rows])
    return torch.cat(pieces)


def _right(predictions: Predictions, composition: Composition) -> Tensor:
    return _grid_of_right(predictions, composition)[predictions.asked]


def _finding(name: str, right: Tensor, predictions: Predictions, rates: Sequence[float], how: str) -> Finding:
    grid = torch.ones_like(predictions.asked)
    grid[predictions.asked] = right
    of_rate = predictions.rate[:, None].expand_as(predictions.asked)[predictions.asked]
    some = predictions.asked.any(-1)
    by_rate = tuple(float(right[of_rate == rate].double().mean()) for rate in rates)
    return Finding(
        name, float(right.double().mean()), float(grid.all(-1)[some].double().mean()), by_rate, how
    )


def _paired(one: Tensor, other: Tensor, predictions: Predictions) -> tuple[float, float]:
    """The difference of two shares of cells, and its standard error over items."""
    owner = predictions.item[:, None].expand_as(predictions.asked)[predictions.asked]
    _, place = owner.unique(return_inverse=True)
    items = int(place.max()) + 1
    gained = torch.zeros(items, dtype=torch.float64, device=one.device)
    gained.index_add_(0, place, one.double() - other.double())
    cells = torch.bincount(place, minlength=items).double()
    mean = gained.sum() / cells.sum()
    residual = gained - mean * cells
    return float(mean), float(math.sqrt(items / max(items - 1, 1)) * residual.norm() / cells.sum())


def _wrongly_sure(predictions: Predictions, first: Tensor, doubts: Tensor) -> Float[Tensor, "expert cell"]:
    """How often each expert is wrong with a margin above SURE, of all times that a cell was hidden."""
    wrong = (first != predictions.x_0[predictions.asked]) & (doubts < math.log(1 - SURE))
    times = predictions.asked.double().sum(0).clamp(min=1.0)
    each = []
    for one in wrong:
        grid = torch.zeros_like(predictions.asked, dtype=torch.float64)
        grid[predictions.asked] = one.double()
        each.append(grid.sum(0) / times)
    return torch.stack(each)


def _spelled(numbers: Sequence[float]) -> str:
    return "/".join(f"{number:.3g}" for number in numbers)
