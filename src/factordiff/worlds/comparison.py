"""The table of a comparison: every row with intervals, what it costs, and how far it goes towards the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from factordiff.errors import InvalidInput
from factordiff.report.document import NOTHING, Table, markdown_table
from factordiff.report.page import html_table
from factordiff.report.record import Record
from factordiff.report.statistics import ROUNDS, Estimate, mean, not_certain
from factordiff.worlds.methods import ALONE, BOUND, ORACLE, SCALAR, UNION
from factordiff.worlds.metric import Measure
from factordiff.worlds.rendering import latex_table, text_table

MANY = 1_500  # clusters from which on fewer rounds are drawn: memory is rounds times clusters
FEWER_ROUNDS = 2_000
SURE = 0.02  # a gap to the oracle below this says nothing about shares of it, in the unit of the figure


@dataclass(frozen=True, eq=False)
class Row:
    """A method or bound with the sums and sizes of every figure, query by query."""

    label: str
    family: str
    sums: dict[str, np.ndarray]
    sizes: dict[str, np.ndarray]
    clusters: np.ndarray
    passes: float  # executed, per query
    note: str = ""

    def value(self, measure: Measure) -> float:
        """The figure."""
        return float(self.sums[measure.name].sum() / max(self.sizes[measure.name].sum(), 1e-12))

    def estimate(self, measure: Measure) -> Estimate:
        """The figure with its interval over clusters."""
        sizes = self.sizes[measure.name]
        found = _interval(self.sums[measure.name], sizes, self.clusters)
        return not_certain(found, len(np.unique(self.clusters[sizes > 0]))) if measure.unit == "%" else found

    def gain(self, other: Row, measure: Measure) -> Estimate:
        """The row minus another, on the same queries, with its interval."""
        sums = self.sums[measure.name] - other.sums[measure.name]
        return _interval(sums, self.sizes[measure.name], self.clusters)


def _interval(sums: np.ndarray, sizes: np.ndarray, clusters: np.ndarray) -> Estimate:
    some = np.isin(clusters, clusters[sizes > 0])  # a cluster without any such cell says nothing
    sums, sizes, clusters = sums[some], sizes[some], clusters[some]
    if not sizes.sum():
        return Estimate(float("nan"), float("nan"), float("nan"))
    rounds = FEWER_ROUNDS if len(np.unique(clusters)) > MANY else ROUNDS
    nothing = (float("-inf"), float("inf"))  # one cluster alone says nothing of others
    return mean(sums, clusters, nothing, rounds=rounds, sizes=sizes)


def row_of(label: str, family: str, records: Sequence[Record], names: Sequence[str], note: str = "") -> Row:
    """The row of these records."""
    pairs = [record.measures or {} for record in records]
    return Row(
        label,
        family,
        {name: np.array([pair[name][0] for pair in pairs]) for name in names},
        {name: np.array([pair[name][1] for pair in pairs]) for name in names},
        np.array([record.task for record in records]),
        float(np.mean([record.executed for record in records])),
        note,
    )


def union(rows: Sequence[Row], measure: Measure) -> Row:
    """For every query the expert alone that does best on it, by the main figure."""
    alone = [row for row in rows if row.family == ALONE]
    if not alone:
        raise InvalidInput("methods: 'union' is of the experts alone; ask for 'alone' too")
    sizes = np.maximum(alone[0].sizes[measure.name], 1e-12)
    best = np.argmax([measure.sign * row.sums[measure.name] / sizes for row in alone], axis=0)

    def picked(values: list[np.ndarray]) -> np.ndarray:
        return np.take_along_axis(np.stack(values), best[None], axis=0)[0]

    names = list(alone[0].sums)
    return Row(
        UNION,
        BOUND,
        {name: picked([row.sums[name] for row in alone]) for name in names},
        {name: picked([row.sizes[name] for row in alone]) for name in names},
        alone[0].clusters,
        sum(row.passes for row in alone),
        "the best expert alone of each query",
    )


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods and bounds on the same queries. Printed it is text; `markdown`, `latex`, and HTML in a notebook."""

    title: str
    measures: tuple[Measure, ...]
    rows: tuple[Row, ...]
    exact: bool = False  # enumerated: there is nothing to be unsure of
    about: dict[str, Any] = field(default_factory=dict)  # what was fitted; of a world also data and weights

    def __getitem__(self, label: str) -> Row:
        for row in self.rows:
            if row.label == label:
                return row
        raise InvalidInput(f"row: expected one of {', '.join(row.label for row in self.rows)}, got {label!r}")

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Comparison({self.title}: {len(self.rows)} rows, {len(self.rows[0].clusters)} queries)"

    @property
    def main(self) -> Measure:
        """The figure that rows are held against each other by."""
        return self.measures[0]

    @property
    def columns(self) -> tuple[Measure, ...]:
        """The figures that the table shows."""
        return tuple(measure for measure in self.measures if not measure.aside)

    @property
    def base(self) -> Row | None:
        """The best row with one number per expert, fitted ones before unfitted ones."""
        scalars = [row for row in self.rows if row.family == SCALAR]
        scalars = [row for row in scalars if row.label.startswith("fitted:")] or scalars
        return self._best(scalars)

    @property
    def top(self) -> Row | None:
        """The row that shares are of: a generalist, the oracle, or being told, the first that there is."""
        return self._first("generalist", ORACLE, "told")

    def _first(self, *labels: str) -> Row | None:
        return next((row for label in labels for row in self.rows if row.label == label), None)

    def _best(self, rows: Sequence[Row]) -> Row | None:
        return max(rows, key=lambda row: self.main.sign * row.value(self.main)) if rows else None

    def share(self, row: Row, end: Row | None = None) -> float | None:
        """How far a row is on the way from the best fitted number per expert to the `end`, if there is a way.

        It ends at the top unless another row is given.
        """
        base, top = self.base, end or self.top
        if base is None or top is None:
            return None
        way = self.main.sign * (top.value(self.main) - base.value(self.main))
        if way < SURE:
            return None
        return self.main.sign * (row.value(self.main) - base.value(self.main)) / way

    def table(self) -> Table:
        """Headings and rows of text."""
        headings = ["", "method", *(_heading(measure, self.exact) for measure in self.columns)]
        base = self.base
        headings += ["minus best scalar", "of the way", "passes"]
        lines: list[tuple[str, ...] | None] = []
        family = ""
        for row in self.rows:
            if family and row.family != family:
                lines.append(None)
            cells = [self._figure(row, measure) for measure in self.columns]
            share = self.share(row)
            lines.append(
                (
                    "" if row.family == family else row.family,
                    row.label if not row.note else f"{row.label} ({row.note})",
                    *cells,
                    NOTHING if base is None or row is base else self._gain(row, base, self.main),
                    NOTHING if share is None else f"{round(100 * share) + 0} %",
                    f"{row.passes:,.1f}",
                )
            )
            family = row.family
        return Table(tuple(headings), tuple(lines), self.caption())

    def against(self, label: str) -> Table:
        """Every row minus one of them, on the same queries: each figure with its interval over clusters."""
        base = self[label]
        lines = [
            (row.label, *(self._gain(row, base, measure) for measure in self.columns))
            for row in self.rows
            if row is not base
        ]
        headings = ("minus " + label, *(_heading(measure, self.exact) for measure in self.columns))
        return Table(headings, tuple(lines), f"{self.title}. Paired differences to `{label}`.")

    def differences(self, label: str) -> dict[str, dict[str, list[float | None]]]:
        """What `against` shows as plain numbers: row by row, each figure's difference and its two ends."""
        base = self[label]
        gains = {
            row.label: {one.name: row.gain(base, one) for one in self.columns}
            for row in self.rows
            if row is not base
        }
        return {
            name: {figure: _finite(gain.value, gain.low, gain.high) for figure, gain in of_row.items()}
            for name, of_row in gains.items()
        }

    def figures(self) -> dict[str, Any]:
        """The rows as plain numbers, for other programs and for the picture of all worlds.

        `intervals` has the two ends of every figure's that the table shows, `minus_best_scalar` the paired difference
        with its two. Where the way of `share` ends at a generalist, `share_to_oracle` is of the way that all
        worlds have.
        """
        base, main, oracle = self.base, self.main, self._first(ORACLE)

        def row_figures(row: Row) -> dict[str, Any]:
            found: dict[str, Any] = {"family": row.family, "note": row.note, "passes": row.passes}
            found |= {"share": self.share(row), **{one.name: row.value(one) for one in self.measures}}
            if oracle not in (None, self.top):
                found["share_to_oracle"] = self.share(row, oracle)
            if not self.exact:
                estimates = {one.name: row.estimate(one) for one in self.columns}
                found["intervals"] = {name: _finite(one.low, one.high) for name, one in estimates.items()}
                if base is not None and row is not base:
                    gain = row.gain(base, main)
                    found["minus_best_scalar"] = _finite(gain.value, gain.low, gain.high)
            return found

        return {row.label: row_figures(row) for row in self.rows}

    def caption(self) -> str:
        """What the table is of."""
        count, clusters = len(self.rows[0].clusters), len(np.unique(self.rows[0].clusters))
        base, top = self.base, self.top
        if self.exact:
            said = "Every outcome enumerated"
        else:
            said = f"{count:,} queries in {clusters:,} clusters, 95 % intervals over clusters"
        way = ""
        if base is not None and top is not None:
            way = f" The way is from `{base.label}` to `{top.label}`."
        return f"{self.title}. {said}; passes executed per query.{way}"

    def _figure(self, row: Row, measure: Measure) -> str:
        if self.exact:
            return measure.shown(row.value(measure))
        estimate = row.estimate(measure)
        if np.isnan(estimate.value):
            return NOTHING
        return (
            f"{measure.shown(estimate.value)} [{measure.shown(estimate.low)}, {measure.shown(estimate.high)}]"
        )

    def _gain(self, row: Row, base: Row, measure: Measure) -> str:
        if self.exact:
            return measure.shown(row.value(measure) - base.value(measure), sign=True)
        gain = row.gain(base, measure)
        if np.isnan(gain.value):
            return NOTHING
        shown = [measure.shown(number, sign=True) for number in (gain.value, gain.low, gain.high)]
        return f"{shown[0]} [{shown[1]}, {shown[2]}]"

    def text(self) -> str:
        """For a terminal."""
        return text_table(self.table())

    def __str__(self) -> str:
        return self.text()

    def markdown(self) -> str:
        """For a page."""
        return markdown_table(self.table())

    def latex(self) -> str:
        """For a paper, with booktabs' rules."""
        return latex_table(self.table())

    def _repr_html_(self) -> str:
        return html_table(self.table())


def _finite(*numbers: float) -> list[float | None]:
    """The numbers as JSON can say them: None for an end that a single cluster leaves open."""
    return [number if np.isfinite(number) else None for number in numbers]


def _heading(measure: Measure, exact: bool) -> str:
    unit = f", {measure.unit}" if measure.unit != measure.name else ""
    return f"{measure.name}{unit}{'' if exact else ' [95 %]'}"
