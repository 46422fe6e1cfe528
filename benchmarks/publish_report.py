"""Put the report of a full run into docs/results, in place of the one that is there.

python benchmarks/publish_report.py runs/final

From the records alone: README.md, report.html, the pictures, and all records in one file, packed as small as it goes
(minutes). A run that is not whole, or whose experts are not the shipped ones, is refused; so are records that take too
much room, alone or with all other tracked files. Measurements beside the report (`bench-*`, `passes-*`) stay.
Afterwards `pytest tests/test_published.py tests/report/test_coverage.py -m "slow or not slow"` says which pages quote
figures that are no longer those of the records.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from factordiff.cli.reproduction import RECORDS
from factordiff.experiments.catalogue import PAGE, README, document, write_report
from factordiff.report.tarball import TARBALL, pack, unpack

RESULTS = Path(__file__).parents[1] / "docs" / "results"
PICTURES, UNFINISHED = "pictures", "unfinished"
LARGEST = 6_000_000  # bytes of all records
TRACKED = 54 * 2**20  # bytes of all tracked files: above, they no longer travel whole to a machine with a GPU


def publish(run: Path, results: Path) -> None:
    """Make everything beside, then put it in place."""
    made = document(run / RECORDS)
    if made.warning:
        raise SystemExit(f"{run}: {made.warning} Nothing was published.")
    with tempfile.TemporaryDirectory(dir=results.parent) as name:
        new = Path(name)
        write_report(made, new)
        pack(run / RECORDS, new / TARBALL, smallest=True)
        size = (new / TARBALL).stat().st_size
        if size > LARGEST:
            raise SystemExit(
                f"{run}: its records take {size:,} bytes, expected at most {LARGEST:,}. Nothing was published."
            )
        tracked = tracked_after(results, new)
        if tracked > TRACKED:
            raise SystemExit(
                f"{results}: with this report all tracked files take {tracked:,} bytes, expected at most {TRACKED:,}. "
                "Nothing was published."
            )
        unpack(new / TARBALL, new / RECORDS)  # what is shipped can be read
        shutil.rmtree(results / PICTURES, ignore_errors=True)
        shutil.rmtree(results / RECORDS, ignore_errors=True)  # unpacked from the former file
        shutil.rmtree(results / UNFINISHED, ignore_errors=True)  # what this run kept on its way
        (new / PICTURES).rename(results / PICTURES)
        for file in (README, PAGE, TARBALL):
            (new / file).replace(results / file)
    print(f"{results}: {README}, {PAGE}, {PICTURES}/, {TARBALL} ({size / 1e6:.2f} MB)")


def tracked_after(results: Path, new: Path) -> int:
    """Bytes of all tracked files with the new report in place of the former; 0 outside of a clone."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--full-name", ":/"], cwd=results, capture_output=True, check=False
    )
    if listed.returncode:
        return 0
    top = subprocess.check_output(["git", "rev-parse", "--show-toplevel"], cwd=results, text=True).strip()
    names = [Path(os.fsdecode(name)) for name in listed.stdout.split(b"\0") if name]
    replaced = [results.resolve() / name for name in (README, PAGE, TARBALL, PICTURES, UNFINISHED)]
    stay = [path for name in names if not any((path := Path(top) / name).is_relative_to(r) for r in replaced)]
    come = [path for path in new.rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in (*stay, *come) if path.is_file())


def main(arguments: Sequence[str] | None = None) -> None:
    """Publish a run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="the folder of a full run (`reproduce --out`)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args(arguments)
    publish(asked.run, asked.results)


if __name__ == "__main__":
    main()
