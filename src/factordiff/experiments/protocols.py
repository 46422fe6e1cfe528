"""Two protocols, never mixed: as the paper has it, where nothing is fitted, and all fitted with equal budgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from factordiff.experiments.pairs import BEYOND, BUDGET, PAST_ENDS, TUNING, ExpertGroup
from factordiff.experiments.tuning import fitted_outcomes, readings
from factordiff.report.outcomes import Outcomes, RecordFolder

PER_SAMPLE = {"geometric-mean": "Average (PoE)", "superdiff": "Density (SuperDiff)"}
PARTICLES = {"fkc": "FKC", "rne": "RNE"}
PRINTED = {**PER_SAMPLE, **PARTICLES}  # the per-sample methods of the paper
# The same methods, with numbers of their own; the paper's average is a product with exponents 1/M.
FITTED = {
    "product": "product, exponents",
    "mixture": "mixture, weights",
    "superdiff": "SuperDiff, temperature and bias",
    "fkc": "FKC, exponents and resampling",
    "rne": "RNE, exponents, proposal and resampling",
}
Find = Callable[[RecordFolder, ExpertGroup, str], Outcomes | None]


@dataclass(frozen=True)
class Protocol:
    """How methods are set: routing, and the rivals that give each expert one number for the whole sample."""

    name: str
    words: str
    rivals: Mapping[str, str]  # by method, as they are called
    find: Find

    def routed(self, archive: RecordFolder, group: ExpertGroup) -> Outcomes | None:
        """Routing per pixel."""
        return self.find(archive, group, "routing")

    def per_sample(self, archive: RecordFolder, group: ExpertGroup) -> dict[str, Outcomes]:
        """The rivals that have records, by the name in the table."""
        found = {label: self.find(archive, group, method) for method, label in self.rivals.items()}
        return {label: one for label, one in found.items() if one is not None}


def printed_outcomes(archive: RecordFolder, group: ExpertGroup, method: str) -> Outcomes | None:
    """A method as the paper has it; the paper does not say how particles are read, so they get their better reading."""
    heard = readings(archive, group.row(method, BEYOND if method in PARTICLES else None))
    return max(heard.values(), key=lambda one: float(one.exact.mean()), default=None)


AS_PRINTED = Protocol(
    "as the paper has it",
    "Nothing is fitted here: routing at the temperatures of the paper's Table 6 (the paper chose those), every expert "
    "with the same weight elsewhere, exponents 1/M for FKC and RNE. The paper does not say which particle it returns: "
    "each of the two counts with its better reading.",
    PRINTED,
    printed_outcomes,
)
ALL_FITTED = Protocol(
    "all fitted",
    f"Every method gets its own numbers by the same search: {BUDGET} settings, each tried on the same {TUNING} "
    "validation queries (5 of each task), of which the best is run on test once. A number at the end of its grid makes "
    f"the grid longer, and where the best is still the last that was tried of some number, up to {PAST_ENDS} more are "
    "tried past that end, and nowhere else; if it then still is the last, the table says so. Two more for each expert "
    "but the first move its number by a thousandth, which decides between experts that are equally sure.",
    FITTED,
    lambda archive, group, method: fitted_outcomes(archive, group, method, BEYOND),
)
PROTOCOLS = (AS_PRINTED, ALL_FITTED)
