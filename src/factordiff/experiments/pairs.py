"""The experts and pairs of the paper, in tie order, and the rows that several experiments share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from factordiff.report.run_spec import RunSpec

EVERYTHING = 24_000  # queries of the test list: 200 for each of 120 tasks
BEYOND = 6_000  # what is beyond the paper, and the particle methods: the first quarter of the list
TUNING = 1_200  # validation queries that temperatures are chosen by
TUNING_PARTICLES = 600  # and settings of particle methods

SINGLES = {
    "conv-full": "Conv-IR, full",
    "trans-full": "Trans-IR, full",
    "trans-color": "Trans-IR, color",
    "trans-occ": "Trans-IR, occupancy",
}
TEMPERATURES = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
# How much the first expert's say counts beside the second's, the same at every cell.
RATIOS = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0, 20.0, 50.0)


@dataclass(frozen=True)
class ExpertPair:
    """Two experts in tie order, with the routing temperatures of the paper's table."""

    name: str
    experts: tuple[str, str]
    temperatures: tuple[float, float] = (1.0, 1.0)

    @property
    def has_occupancy(self) -> bool:
        """Whether the view factorisation applies."""
        return any("occ" in name for name in self.experts)

    def row(
        self, method: str, queries: int | None = None, split: str = "test", factors: str = "pixel"
    ) -> RunSpec:
        """The row of a method that composes the pair; routing gets the paper's temperatures."""
        tempered = self.temperatures if method in ("routing", "soft-routing") else None
        return RunSpec(self.experts, method, split, factors, tempered, queries=queries)

    def tempered(self, temperature: float, queries: int | None = None, split: str = "validation") -> RunSpec:
        """Per-pixel routing with this temperature for the second expert, 1 for the first."""
        return RunSpec(self.experts, "routing", split, temperatures=(1.0, temperature), queries=queries)

    def weighted(
        self, method: str, ratio: float, queries: int | None = None, split: str = "validation"
    ) -> RunSpec:
        """A product or a mixture in which the first expert's say is `ratio` times the second's; the larger is 1."""
        numbers = None if ratio == 1 else (min(1.0, ratio), min(1.0, 1 / ratio))
        row = self.row(method, queries, split)
        return replace(row, weights=numbers) if method == "mixture" else replace(row, beta=numbers)

    def fitted(
        self, method: str, number: float, queries: int | None = None, split: str = "validation"
    ) -> RunSpec:
        """A method with the one number that is fitted: a temperature of routing, a ratio of the others."""
        if method == "routing":
            return self.tempered(number, queries, split)
        return self.weighted(method, number, queries, split)


FULL_FULL = ExpertPair("Full+Full", ("trans-full", "conv-full"))
OCC_FULL = ExpertPair("Occ+Full", ("trans-occ", "trans-full"))
COL_OCC = ExpertPair("Col+Occ", ("trans-color", "trans-occ"), (1.0, 0.25))
PAIRS = (FULL_FULL, OCC_FULL, COL_OCC)
EARLY = ExpertPair("early Full+Full", ("trans-full-early", "conv-full-early"))
DEFAULT_HEAD = ExpertPair("Col+Occ, default head", ("trans-color", "trans-occ-default-head"), (1.0, 0.25))


def single(expert: str, queries: int | None = None, split: str = "test") -> RunSpec:
    """The row of an expert alone."""
    return RunSpec((expert,), "single", split, queries=queries)
