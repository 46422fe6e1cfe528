"""`reproduce all` in several processes on one GPU, in pieces: all write into one folder of records.

python benchmarks/reproduce_apart.py --out runs/final --processes 4 --minutes 7.5 --carried runs/carried \
    --back "$OUT" -- --device cuda --batch 3300

A machine that is lent for minutes is bare in the end. So what an earlier call packed (`--carried`) is unpacked first,
and what there is afterwards is packed into a few files (`--back`), of which the next call can go on; interrupted, the
same command goes on. Rows of the same experts and method are one unit: its search on validation, its rows on test and
its published tasks need no other unit's records. A process takes a unit that nobody has, of experts that it has
compiled already where it can. When no unit is left, one process alone makes the maps and curves and measures the
times of Table 7, which others beside it would spoil. What follows `--` goes to `reproduce`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from factordiff.cli.reproduction import RECORDS, ReproduceRequest, runner_for
from factordiff.experiments.catalogue import EXPERIMENTS, chosen
from factordiff.experiments.experiment import Experiment
from factordiff.experiments.pairs import BEYOND, BUDGET, TUNING
from factordiff.experiments.runner import Runner
from factordiff.experiments.tuning import fitted_as
from factordiff.locks import Lock
from factordiff.report.run_spec import RunSpec
from factordiff.report.tarball import pack, packable, unpack

PIECES, LARGEST = 7, 16_000_000  # files that come back beside the log, and the bytes of each
PIECE = "records-{}.tar.xz"
ALONE = (
    "single-experts",
    "overlap",
    "temperatures",
    "routing-figures",
    "compute",
)  # which make more than rows
STOPPED = 3  # exit status of a process that left something undone
WAIT = 0.5  # seconds between two looks


@dataclass(frozen=True)
class Unit:
    """All rows of the same experts and method, the experiments that have them, and their row-passes."""

    experts: tuple[str, ...]
    method: str
    experiments: tuple[str, ...]
    cost: int

    @property
    def name(self) -> str:
        """What `only` calls it."""
        return f"{'+'.join(self.experts)}.{self.method}"


def units(runner: Runner, experiments: Mapping[str, Experiment] = EXPERIMENTS) -> list[Unit]:
    """What these experiments have, the dearest first."""
    cost: dict[tuple[tuple[str, ...], str], int] = defaultdict(int)
    where: dict[tuple[tuple[str, ...], str], list[str]] = defaultdict(list)

    def add(row: RunSpec, queries: int, experiment: str) -> None:
        cost[row.experts, row.method] += queries * runner.settings.passes(row)
        if experiment not in where[row.experts, row.method]:
            where[row.experts, row.method].append(experiment)

    for name, experiment in experiments.items():
        if name == "compute":
            continue
        for row in runner.planned(experiment.rows()):
            add(row, min(row.queries or sys.maxsize, len(runner.queries(row.split))), name)
        searched = (
            fitted_as(group, method, {}, TUNING, "validation") for group, method in experiment.trials()
        )
        for row in runner.planned(searched):
            add(row, BUDGET * TUNING + BEYOND, name)
    published = {row.experts for row in experiments["official"].rows()} if "official" in experiments else ()
    for (experts, _), names in where.items():
        if experts in published and "official" not in names:
            names.append("official")  # with what its search chose
    found = [Unit(*unit, tuple(where[unit]), cost[unit]) for unit in cost]
    return sorted(found, key=lambda unit: (-unit.cost, unit.name))


def claim(left: list[Unit], known: set[str], claims: Path, place: int) -> Unit | None:
    """Take a unit that nobody has: of experts that are known here, else of few others and the dearest.

    The first ones are of different experts in every process (`place`), so that each compiles its own.
    """
    ordered = sorted(left, key=lambda unit: (len(set(unit.experts) - known), -unit.cost, unit.name))
    if not known:
        first = {
            unit.experts: unit for unit in reversed(left) if len(unit.experts) > 1
        }  # the dearest of each
        ordered = sorted(first.values(), key=lambda unit: -unit.cost)[place:] + ordered
    for unit in ordered:
        left[:] = [one for one in left if one != unit]
        try:
            (claims / unit.name).touch(exist_ok=False)
        except FileExistsError:
            continue
        return unit
    return None


def work(request: ReproduceRequest, claims: Path, place: int) -> bool:
    """Run units until none is left, or the time is over; whether something was left undone."""
    experiments = named(request.name)
    runner = runner_for(request, list(experiments.values()))
    runner.findings = False
    left, known = units(runner, experiments), set[str]()
    while not runner.late() and (unit := claim(left, known, claims, place)) is not None:
        begun, runner.only = time.monotonic(), unit.name
        for name in unit.experiments:
            EXPERIMENTS[name].run(runner)
        known |= set(unit.experts)
        print(f"{time.monotonic() - begun:7.1f} s  {unit.name}{' (not all)' * runner.stopped}", flush=True)
    return runner.stopped


def finish(request: ReproduceRequest) -> bool:
    """What needs the others' rows, or the machine for itself."""
    experiments = [one for name, one in named(request.name).items() if name in ALONE]
    runner = runner_for(request, experiments)
    for one in experiments:
        begun = time.monotonic()
        one.run(runner)
        print(f"{time.monotonic() - begun:7.1f} s  {one.name}{' (not all)' * runner.stopped}", flush=True)
    return runner.stopped


def named(names: str) -> dict[str, Experiment]:
    """Experiments by their names, joined by commas, in their usual order."""
    asked = [one.name for name in names.split(",") for one in chosen(name)]
    return {name: one for name, one in EXPERIMENTS.items() if name in asked}


def carried_in(carried: Path, records: Path) -> None:
    """Unpack what an earlier call packed, all pieces at once; records that are there already are newer."""
    pieces = sorted(carried.glob(PIECE.format("*")))
    if records.exists() and pieces:
        print(f"{records} is there already and goes on; what {carried} holds stays packed", flush=True)
    if records.exists() or not pieces:
        return
    with tempfile.TemporaryDirectory(dir=records.parent) as name:
        parts = [Path(name) / piece.name for piece in pieces]
        copies = [
            Path(name) / f"{piece.name}.packed" for piece in pieces
        ]  # what was carried may be read-only
        for piece, copy in zip(pieces, copies, strict=True):
            shutil.copyfile(piece, copy)
        with ProcessPoolExecutor() as pool:
            list(pool.map(unpack, copies, parts))
        whole = Path(name) / RECORDS
        check_pieces_of_one_call(parts, carried)
        for part in parts:
            shutil.copytree(part, whole, dirs_exist_ok=True, copy_function=shutil.move)
        whole.rename(records)


def check_pieces_of_one_call(parts: Sequence[Path], carried: Path) -> None:
    """Refuse what several calls packed: the same rows twice, of which the older might be taken."""
    seen: dict[Path, str] = {}
    for part in parts:
        for file in packable(part):
            other = seen.setdefault(file.relative_to(part), part.name)
            if other != part.name:
                raise SystemExit(
                    f"{carried}: {file.name} is in {other} and in {part.name}, expected the files of one call; leave "
                    "those of the last call alone and take the others away"
                )


def carried_out(records: Path, back: Path) -> None:
    """Pack all records into a few files of about the same size, all at once."""
    files = packable(records)
    shares: list[list[Path]] = [[]]
    left = sum(path.stat().st_size for path in files)
    room = left / PIECES
    for path in files:  # neighbours are alike, and stay together
        if sum(one.stat().st_size for one in shares[-1]) >= room and len(shares) < PIECES:
            shares.append([])
        shares[-1].append(path)
    back.mkdir(parents=True, exist_ok=True)
    for former in back.glob(PIECE.format("*")):
        former.unlink()
    targets = [back / PIECE.format(number) for number in range(1, len(shares) + 1)]
    with ProcessPoolExecutor() as pool:
        list(pool.map(pack, [records] * len(shares), targets, shares))
    for target in targets:
        print(f"{target.stat().st_size / 1e6:6.2f} MB  {target.name}", flush=True)
        if target.stat().st_size > LARGEST:
            raise SystemExit(
                f"{target}: more than {LARGEST:,} bytes, which may not come back; use more pieces"
            )


def parsed(arguments: Sequence[str]) -> tuple[argparse.Namespace, argparse.Namespace]:
    """What this script is asked, and what is passed on to `reproduce`."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--experiments", default="all", help="names of `reproduce`, joined by commas")
    parser.add_argument("--processes", type=int, default=4, help="0: only unpack and pack")
    parser.add_argument("--minutes", type=float, default=0, help="begin no batch after this time; 0: no end")
    parser.add_argument("--grace", type=float, default=1.0, help="minutes that the last batches may take")
    parser.add_argument("--carried", type=Path, help="folder of what an earlier call packed")
    parser.add_argument("--back", type=Path, help="folder for what this call packs, and its log")
    parser.add_argument("--work", help=argparse.SUPPRESS)  # PLACE:CLAIMS of a process, or `alone`
    parser.add_argument("--until", type=float, default=0, help=argparse.SUPPRESS)
    more = argparse.ArgumentParser(prog="reproduce")
    for name, kind, usual in (
        ("limit", int, None),
        ("device", str, "auto"),
        ("batch", int, 0),
        ("seed", int, 0),
        ("steps", int, 128),
        ("particles", int, 8),
        ("dtype", str, "auto"),
    ):
        more.add_argument(f"--{name}", type=kind, default=usual)
    more.add_argument("--expert", action="append", dest="experts")
    more.add_argument("--compile", action=argparse.BooleanOptionalAction, default=None)
    return parser.parse_args(arguments[:cut]), more.parse_args(arguments[cut + 1 :])


def one_process(asked: argparse.Namespace, more: argparse.Namespace) -> int:
    """A process of its own: units, or in the end what is left."""
    minutes = max((asked.until - time.time()) / 60, 1e-9) if asked.until else 0.0
    request = ReproduceRequest(
        name=asked.experiments, out=asked.out, only="", part="1/1", minutes=minutes, **vars(more)
    )
    if asked.work == "alone":
        return STOPPED if finish(request) else 0
    place, _, claims = asked.work.partition(":")
    return STOPPED if work(request, Path(claims), int(place)) else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Unpack, run the processes, then what needs the machine alone, and pack."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    asked, more = parsed(given)
    if asked.work:
        return one_process(asked, more)
    asked.out.mkdir(parents=True, exist_ok=True)
    until = time.time() + 60 * asked.minutes if asked.minutes else 0.0
    with Lock.of_folder(asked.out), tempfile.TemporaryDirectory() as name:
        if asked.carried is not None:
            carried_in(asked.carried, asked.out / RECORDS)
        logs = [Path(name) / f"log-{place}" for place in range(asked.processes)]
        (claims := Path(name) / "claims").mkdir()
        ends = together(
            [f"{place}:{claims}" for place in range(asked.processes)], logs, given, until, asked.grace
        )
        if not any(ends) and asked.processes:
            logs.append(Path(name) / "log-alone")
            ends = together(["alone"], logs[-1:], given, until, asked.grace)
        told = "".join(f"{log.name}:\n{log.read_text()}\n" for log in logs)
        print(told, end="", flush=True)
        if asked.back is not None:
            asked.back.mkdir(parents=True, exist_ok=True)
            (asked.back / "log.txt").write_text(told)
            if any((asked.out / RECORDS).rglob("*.gz")):
                carried_out(asked.out / RECORDS, asked.back)
    failed = any(end not in (0, STOPPED) for end in ends)
    done = "everything is run" if ends else "nothing was run"
    print("FAILED: see the logs above" if failed else "not all is run yet" if any(ends) else done, flush=True)
    return 1 if failed else 0


def together(
    works: Sequence[str], logs: Sequence[Path], given: list[str], until: float, grace: float
) -> list[int]:
    """The exit statuses of processes side by side; one that does not end in time is ended."""
    cores = str(max(1, (os.cpu_count() or 1) // max(1, len(works))))
    threads = {"OMP_NUM_THREADS": cores, "TORCHINDUCTOR_COMPILE_THREADS": cores}
    running = []
    for work_, log in zip(works, logs, strict=True):
        words = [
            sys.executable,
            str(Path(__file__).resolve()),
            "--work",
            work_,
            "--until",
            str(until),
            *given,
        ]
        with log.open("w") as file:
            running.append(subprocess.Popen(words, stdout=file, stderr=file, env={**os.environ, **threads}))
    try:
        while any(process.poll() is None for process in running):
            time.sleep(WAIT)
            if until and time.time() > until + 60 * grace:
                break
    finally:
        late = [process for process in running if process.poll() is None]
        for process in late:
            process.kill()  # records survive it, and the batch is run again
    return [STOPPED if process in late else process.wait() for process in running]


if __name__ == "__main__":
    raise SystemExit(main())
