"""The experts and groups of experts that are compared, in tie order, and the rows that several experiments share."""

from __future__ import annotations

from dataclasses import dataclass

from factordiff.experts.registry import shipped_experts
from factordiff.report.run_spec import RunSpec

EVERYTHING = 24_000  # queries of the test list: 200 for each of 120 tasks
BEYOND = 6_000  # what is beyond the paper, and the particle methods: the first quarter of the list
CAPTION = f"Exact %, 95 % interval over tasks, the first {BEYOND:,} test queries."
TUNING = 600  # validation queries by which numbers are chosen, the same for every method: 5 of each task
BUDGET = 16  # settings that every method may try on them
PAST_ENDS = BUDGET // 2  # further ones, only past the end of what was tried of a number that is best there

SINGLES = {
    "conv-full": "Conv-IR, full",
    "trans-full": "Trans-IR, full",
    "trans-color": "Trans-IR, color",
    "trans-occ": "Trans-IR, occupancy",
}
RELATIVE = "trans-occ-relative"  # an occupancy expert that began with the weights of trans-full
PAPER = "paper-"  # how the names of the paper's own networks begin


@dataclass(frozen=True)
class ExpertGroup:
    """Experts in tie order, with the routing temperatures of the paper's table, where it has them."""

    name: str
    experts: tuple[str, ...]
    temperatures: tuple[float, ...] = ()

    @property
    def has_occupancy(self) -> bool:
        """Whether the view factorisation applies: one of two experts knows occupancy."""
        return len(self.experts) == 2 and any("occ" in name for name in self.experts)

    @property
    def printed(self) -> tuple[float, ...]:
        """The routing temperatures as they are printed: 1 unless said."""
        return self.temperatures or (1.0,) * len(self.experts)

    def row(
        self, method: str, queries: int | None = None, split: str = "test", factors: str = "pixel"
    ) -> RunSpec:
        """The row of a method that composes the group; routing gets the paper's temperatures."""
        tempered = self.printed if method in ("routing", "soft-routing") else None
        return RunSpec(self.experts, method, split, factors, tempered, queries=queries)

    def tempered(self, temperature: float, queries: int | None = None, split: str = "validation") -> RunSpec:
        """Per-pixel routing with this temperature for the last expert, 1 for the others."""
        numbers = (*(1.0,) * (len(self.experts) - 1), temperature)
        return RunSpec(self.experts, "routing", split, temperatures=numbers, queries=queries)


FULL_FULL = ExpertGroup("Full+Full", ("trans-full", "conv-full"))
OCC_FULL = ExpertGroup("Occ+Full", ("trans-occ", "trans-full"))
COL_OCC = ExpertGroup("Col+Occ", ("trans-color", "trans-occ"), (1.0, 0.25))
PAIRS = (FULL_FULL, OCC_FULL, COL_OCC)
EARLY = ExpertGroup("early Full+Full", ("trans-full-early", "conv-full-early"))
DEFAULT_HEAD = ExpertGroup("Col+Occ, default head", ("trans-color", "trans-occ-default-head"), (1.0, 0.25))
FOUR = ExpertGroup("four experts", ("trans-full", "conv-full", "trans-color", "trans-occ"))
OCC_RELATIVE = ExpertGroup("Occ+Full, relatives", (RELATIVE, "trans-full"))
COL_RELATIVE = ExpertGroup("Col+Occ, relative", ("trans-color", RELATIVE), (1.0, 0.25))
# The same pairs of the paper's own networks.
PAPER_PAIRS = tuple(
    ExpertGroup(pair.name, tuple(f"{PAPER}{name}" for name in pair.experts), pair.temperatures)
    for pair in PAIRS
)


def single(expert: str, queries: int | None = None, split: str = "test") -> RunSpec:
    """The row of an expert alone."""
    return RunSpec((expert,), "single", split, queries=queries)


def optional(expert: str) -> bool:
    """Whether a report is whole without this expert: it has a block of its own where it is shipped."""
    return expert == RELATIVE or expert.startswith(PAPER)


def expected(row: RunSpec) -> bool:
    """Whether a report must have this row: all of its experts are shipped, or nobody may leave them out."""
    shipped = shipped_experts()
    return all(name in shipped or not optional(name) for name in row.experts)
