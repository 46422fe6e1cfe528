"""A trained expert's figures, read from records, and its card: what it learned from, what it reaches, where it fails.

Beside the weights lie `figures.json` (every figure, per task, with the outcome of every query) and `README.md` (the
card, in the place where hubs look for it). Both are made from records alone, so no figure is typed by hand.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from factordiff.arc.splits import TEST, TRAIN, VALIDATION
from factordiff.errors import DataError, InvalidInput
from factordiff.files import write_whole
from factordiff.networks.store import read_config, weight_hash
from factordiff.report.code_version import short
from factordiff.report.outcomes import read_outcomes
from factordiff.report.records import RecordFile, read_records
from factordiff.schema.bound import Bound
from factordiff.schema.fields import Fields, read_fields
from factordiff.schema.json_file import read_object
from factordiff.schema.objects import Listed, Maybe, Named
from factordiff.schema.values import Real, String, Whole

FIGURES, CARD = "figures.json", "README.md"
POOR = 0.9  # a task below this is named as a known failure
MOST_FIGURES = 1_000  # of a file
MOST_QUERIES = 10_000_000


@dataclass(frozen=True)
class Bits(Bound):
    """Bytes in hexadecimal, a bit for each query."""

    expected = "bytes in hexadecimal"

    def read(self, value: Any, name: str) -> str:
        """The text."""
        if not isinstance(value, str) or len(value) > MOST_QUERIES // 4:
            self.refuse(value, name)
        try:
            bytes.fromhex(value)
        except ValueError:
            self.refuse(value, name)
        return value


Text = Annotated[str, String()]
Share = Annotated[float, Real(0.0, 1.0)]
Queries = Annotated[int, Whole(1, MOST_QUERIES)]


@dataclass(frozen=True)
class Figure:
    """How an expert did on one list of queries; `outcomes` has one bit per query, in the order of the list."""

    split: Text
    question: Text
    queries: Queries
    exact: Share
    low: Share
    high: Share
    pixel: Share
    device: Text
    dtype: Text
    steps: Annotated[int, Whole()]
    commit: Text
    seconds: Annotated[float, Real(0.0)]
    tasks: Annotated[dict[str, float], Named(Real(0.0, 1.0))]
    outcomes: Annotated[str, Bits()]
    reveal: Text = ""  # the reveal rule; empty: `steps` steps in the order of confidence
    cropped: Annotated[float | None, Maybe(Real(0.0, 1.0))] = None  # right once cut to the right grid

    def right(self) -> np.ndarray:
        """Whether each query was answered exactly."""
        bits = np.unpackbits(np.frombuffer(bytes.fromhex(self.outcomes), np.uint8))
        return bits[: self.queries].astype(bool)


@dataclass(frozen=True)
class Agreement:
    """How many answers of two runs of the same weights are equal, cell by cell."""

    one: Text
    other: Text
    split: Text
    queries: Queries
    equal: Share
    question: Text = "full"


@dataclass(frozen=True)
class Figures:
    """All figures of one set of weights."""

    weights: Text
    data: Text
    measured: Annotated[tuple[Figure, ...], Listed(Fields(Figure), MOST_FIGURES)]
    agreements: Annotated[tuple[Agreement, ...], Listed(Fields(Agreement), MOST_FIGURES)]

    def find(self, split: str, question: str = "full") -> Figure | None:
        """The figure on that list, if it was measured."""
        found = [one for one in self.measured if (one.split, one.question) == (split, question)]
        return found[0] if found else None


def measure_figures(folder: Path, files: Iterable[Path]) -> Figures:
    """Figures of the expert in a folder from files of its records.

    Of several runs on the same list the longest is the figure, and all are compared with each other answer by answer.
    """
    weights = weight_hash(folder)
    by_list: dict[tuple[str, str], list[RecordFile]] = {}
    data = ""
    for path in files:
        file = read_records(path)
        if list(file.about("weights").values()) != [weights]:
            raise DataError(
                f"{path}: these records are not of the weights in {folder} alone; evaluate that expert and use its file"
            )
        if data not in ("", file.about("data")):
            raise DataError(f"{path}: these records are of another data set than the files before it")
        data = file.about("data")
        how = file.about("method", "split"), file.about("method", "question")
        by_list.setdefault(how, []).append(file)
    measured, agreements = [], []
    for _, runs in sorted(by_list.items()):
        longest_first = sorted(runs, key=lambda file: -len(file.done))
        measured.append(_figure(longest_first[0]))
        agreements += [_agreement(*two) for two in combinations(longest_first, 2)]
    return Figures(weights, data, tuple(measured), tuple(agreements))


def _figure(file: RecordFile) -> Figure:
    found = read_outcomes(file)
    if found is None:
        raise DataError(f"{file.path}: it has no record yet; finish the evaluation")
    if not np.array_equal(found.query, np.arange(len(found))):
        raise DataError(f"{file.path}: queries are missing in between; finish the evaluation")
    estimate = found.accuracy
    return Figure(
        file.about("method", "split"),
        file.about("method", "question"),
        len(found),
        estimate.value,
        estimate.low,
        estimate.high,
        found.pixel(),
        ", ".join(file.devices),
        file.about("settings", "dtype"),
        file.about("settings", "steps"),
        ", ".join(file.commits),
        round(file.seconds, 1),
        found.per_task(),
        np.packbits(found.exact).tobytes().hex(),
        file.about("settings").get("reveal") or "",
        None if found.cropped is None else float(found.cropped.mean()),
    )


def _agreement(one: RecordFile, other: RecordFile) -> Agreement:
    # Older records have more digits of the same hash.
    mine = {record.query: record.answer[-8:] for record in one.records}
    theirs = {record.query: record.answer[-8:] for record in other.records}
    shared = sorted(mine.keys() & theirs.keys())
    if not shared:
        raise DataError(f"{other.path}: no query in common with {one.path}")
    for file, hashes in ((one, mine), (other, theirs)):
        if not all(hashes[query] for query in shared):
            raise DataError(f"{file.path}: a report's records, which do not tell answers apart; use `eval`'s")
    name, other_name = map(_where, (one, other))
    equal = sum(mine[query] == theirs[query] for query in shared) / len(shared)
    split, question = (one.about("method", key) for key in ("split", "question"))
    return Agreement(name, other_name, split, len(shared), equal, question)


def _where(file: RecordFile) -> str:
    """What computed a file's answers: device, type, and whether it was compiled."""
    compiled = " compiled" if file.about("settings").get("compiled") else ""
    return f"{', '.join(file.devices)} {file.about('settings', 'dtype')}{compiled}"


def write_card(folder: Path, figures: Figures, training: Sequence[str]) -> None:
    """Write both files; `training` are lines about how the weights came to be."""
    write_whole(folder / FIGURES, (json.dumps(asdict(figures), indent=1) + "\n").encode())
    write_whole(folder / CARD, card(folder, figures, training).encode())


def read_figures(folder: Path) -> Figures | None:
    """The figures beside an expert's weights; None if there are none."""
    path = folder / FIGURES
    if not path.is_file():
        return None
    try:
        figures = read_fields(Figures, read_object(path))
    except (OSError, InvalidInput) as error:
        raise DataError(f"{path}: {error}; make it anew from records (`factordiff card`)") from error
    for one in figures.measured:
        if len(one.outcomes) != 2 * ((one.queries + 7) // 8):
            raise DataError(
                f"{path}: its outcomes are not of {one.queries:,} queries; make it anew from records"
            )
    return figures


def card(folder: Path, figures: Figures, training: Sequence[str]) -> str:
    """The card as Markdown."""
    config = read_config(folder)
    about = config["about"]
    lines = [
        "---",
        "license: apache-2.0",
        "library_name: factordiff",
        "tags: [discrete-diffusion, arc-agi, masked-diffusion]",
        "---",
        f"# {folder.name}",
        "",
        f"A {config['backbone']} denoiser with the {about.get('objective', 'full')} objective, "
        f'{config["parameters"]:,} parameters, for 10x10 ARC grids: `factordiff.load_expert("{folder.name}")`.',
        "",
        "## Training",
        "",
        *(f"- {line}" for line in training),
        f"- data set {figures.data}, train split only",
        f"- chosen where the paper is silent: {len(TRAIN)}/{len(VALIDATION)}/{len(TEST)} instances of each task to "
        "train on, to choose by and to test; the demonstrations of test queries are training pairs",
        f"- weights {figures.weights}",
        "",
        "## Figures",
        "",
        "The likeliest values, by the reveal rule named (a number: so many steps in the order of confidence);",
        "intervals over tasks: tasks are drawn again and keep their queries. *Exact*: the whole canvas, padding too;",
        "*cut to shape*: the right grid alone.",
        "",
        "| split | question | queries | exact % [95 %] | cut to shape % | pixel % | reveal | device | commit |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for one in figures.measured:
        exact, low, high, pixel = (100 * number for number in (one.exact, one.low, one.high, one.pixel))
        cut = "" if one.cropped is None else f"{100 * one.cropped:.2f}"
        commits = ", ".join(map(short, one.commit.split(", ")))
        lines.append(
            f"| {one.split} | {one.question} | {one.queries:,} | {exact:.2f} [{low:.2f}, {high:.2f}] | {cut} "
            f"| {pixel:.2f} | {one.reveal or one.steps} | {one.device}, {one.dtype} | {commits} |"
        )
    if figures.agreements:
        lines += ["", "The same weights elsewhere, whole answers compared:", ""]
        lines += [
            f"- {one.one} and {one.other}: {100 * one.equal:.2f} % of {one.queries:,} {one.split} answers equal "
            f"({one.question} question)"
            for one in figures.agreements
        ]
    learned = frozenset(about.get("settings", {}).get("tasks") or ())
    return "\n".join([*lines, *_by_task(figures, about.get("objective", "full"), learned)]) + "\n"


def _by_task(figures: Figures, objective: str, learned: Collection[str]) -> list[str]:
    """The tasks that go badly, by the question the expert was trained for: on test, else validation, else elsewhere.

    Of an expert that `learned` some tasks alone only these are named, beside how it does on all others.
    """
    if not figures.measured:
        return []
    by = {"test": 2, "validation": 1}  # published tasks have one query or two
    judged = max(figures.measured, key=lambda one: (one.question == objective, by.get(one.split, 0)))
    own = {task: share for task, share in judged.tasks.items() if not learned or task in learned}
    others = [share for task, share in judged.tasks.items() if task not in own]
    apart = []
    if others:
        right, elsewhere = 100 * np.mean(list(own.values())), 100 * np.mean(others)
        apart = [
            "",
            f"It was trained on {len(own)} of these tasks: {right:.2f} % of their queries are right, and "
            f"{elsewhere:.2f} % of those of the {len(others)} others.",
        ]
    poor = sorted((share, task) for task, share in own.items() if share < POOR)
    told = ", ".join(f"{task} ({100 * share:.0f} %)" for share, task in poor) or "none"
    return [
        *apart,
        "",
        "## Known failures",
        "",
        f"Tasks below {100 * POOR:.0f} % on {judged.split}, {judged.question} question "
        f"({len(own) - len(poor)} of {len(own)} are above): {told}.",
        "",
        f"All tasks and the outcome of every query: `{FIGURES}`.",
    ]
