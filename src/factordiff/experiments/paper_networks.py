"""The paper's networks, trained as long as we could: its equations to the letter, in a block of their own.

Claim: those of Tables 1 and 2; our own experts are other networks, so this is the closer repetition.
Cost: 6,000 queries x (each expert alone + 3 pairs x 5 methods), nothing fitted.
Expected: below the paper's figures where training was shorter.
"""

from __future__ import annotations

import numpy as np

from factordiff.experiments.composition import PAPER as PRINTED_FIGURES
from factordiff.experiments.composition import printed_rows
from factordiff.experiments.experiment import Experiment, paper, percent, running
from factordiff.experiments.pairs import (
    BEYOND,
    CAPTION,
    EARLY,
    FULL_FULL,
    PAPER,
    PAPER_PAIRS,
    SINGLES,
    ExpertGroup,
    single,
)
from factordiff.experiments.protocols import AS_PRINTED, PRINTED
from factordiff.experiments.single_experts import PAPER as ALONE
from factordiff.experts.registry import shipped_experts
from factordiff.report.document import NOTHING, Section, Table
from factordiff.report.outcomes import RecordFolder, aligned
from factordiff.report.run_spec import RunSpec

TITLE = "The paper's networks, trained as long as we could"


def experts() -> list[str]:
    """The four experts of the tables, and whatever else is shipped under such a name (snapshots)."""
    known = [f"{PAPER}{name}" for name in SINGLES]
    return known + [name for name in shipped_experts() if name.startswith(PAPER) and name not in known]


def rows() -> list[RunSpec]:
    """All of them alone, and the three pairs as printed; what is not shipped is not run."""
    plan = [single(expert, BEYOND) for expert in experts()]
    return plan + [row for pair in PAPER_PAIRS for row in printed_rows(pair, BEYOND)]


def report(archive: RecordFolder) -> Section:
    """Tables 1 and 2 once more; a sentence where no such weights are shipped."""
    alone = {name: archive.outcomes(single(name, BEYOND)) for name in experts()}
    if all(found is None for found in alone.values()):
        text = (
            f"Not in this report: no weights of the paper's own networks (`{PAPER}*`) are shipped, or they are not run "
            "yet. `factordiff train paper` trains them; the tables above are of our own networks, which differ "
            "([the paper map](../paper-map.md) says how).",
        )
        return Section(TITLE, text)
    lines = []
    for name, found in alone.items():
        theirs = ALONE.get(name.removeprefix(PAPER), (None, None))[1]
        pixel = NOTHING if found is None else f"{100 * found.pixel():.1f}"
        lines.append((name, paper(theirs), percent(found, BEYOND), pixel))
    tables = [Table(("expert", "exact %, paper", "here", "pixel %, here"), tuple(lines), CAPTION)]
    composed = []
    for method, label in {**PRINTED, "routing": "**per pixel**"}.items():
        cells = []
        for pair, theirs in zip(PAPER_PAIRS, PRINTED_FIGURES[method], strict=True):
            cells += [paper(theirs), percent(AS_PRINTED.find(archive, pair, method), BEYOND)]
        composed.append((label, *cells))
    headings = ("method", *(f"{pair.name}{side}" for pair in PAPER_PAIRS for side in (", paper", ", here")))
    tables.append(Table(headings, tuple(composed), "As the paper has it, nothing fitted."))
    siblings = [line for pair in (PAPER_PAIRS[0], EARLY, FULL_FULL) if (line := alike(archive, pair))]
    if siblings:
        words = "How alike two full experts err: phi is the correlation of their errors, 0 if they err independently."
        tables.append(
            Table(("pair", "exact %, each", "at least one right, %", "phi"), tuple(siblings), words)
        )
    return Section(TITLE, (), tuple(tables))


def alike(archive: RecordFolder, pair: ExpertGroup) -> tuple[str, ...] | None:
    """How often one of two experts is right, and how their errors are correlated."""
    found = [archive.outcomes(single(name, BEYOND)) for name in pair.experts]
    if None in found:
        return None
    one, other = aligned(*(outcomes for outcomes in found if outcomes is not None))
    alone = " and ".join(f"{100 * side.exact.mean():.1f}" for side in (one, other))
    varied = one.exact.std() > 0 and other.exact.std() > 0
    phi = f"{np.corrcoef(one.exact, other.exact)[0, 1]:.2f}" if varied else NOTHING
    return (" + ".join(pair.experts), alone, f"{100 * (one.exact | other.exact).mean():.1f}", phi)


EXPERIMENT = Experiment("paper-networks", rows, running(rows), report)
