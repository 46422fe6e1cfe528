"""What `factordiff compare` does once its arguments are read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console

from factordiff.cli.bands import Banded
from factordiff.cli.progress import stage_bars
from factordiff.errors import DataError, InvalidInput, Unavailable
from factordiff.files import check_folder, read_regular, write_whole
from factordiff.worlds.catalogue import compare_world, world
from factordiff.worlds.chart import bars, shares
from factordiff.worlds.methods import ALONE, BOUND
from factordiff.worlds.world import World

TEXTS, TABLE, PICTURE = ("table.md", "table.tex"), "table.json", "table.png"
SHARES = "shares.png"


def chosen_world(name: str, settings: dict[str, Any]) -> World:
    """The world; settings that it does not take are refused."""
    try:
        return world(name, **settings)
    except TypeError as error:
        options = {name: f"--{name}" for name in settings} | {"folders": "--expert"}
        given = ", ".join(options[key] for key in settings)
        raise InvalidInput(f"{given}: the world {name!r} does not take it") from error


def compare_and_show(
    console: Console,
    one: World,
    read: Iterable[Path],
    against: str,
    split: str,
    out: Path,
    asked: dict[str, Any],
) -> None:
    """Run with a progress bar, print the table, and write it, with a picture, beside the records.

    `asked` is what else `compare_world` takes; what is written may be none of the files that are `read`.
    """
    folder = out / one.name / split
    check_folder("--out", folder, (*TEXTS, TABLE, PICTURE), read)
    with stage_bars(console, f"{one.name}: experts and queries") as on_progress:
        table = compare_world(one, split=split, out=out, on_progress=on_progress, **asked)
    console.print(Banded(table.table()))
    if against:
        console.print(Banded(table.against(against), names=1))
    for name, text in zip(TEXTS, (table.markdown(), table.latex()), strict=True):
        write_whole(folder / name, f"{text}\n".encode())
    saved = {"caption": table.caption(), "about": table.about, "rows": table.figures()}
    if against:
        saved["against"] = {against: table.differences(against)}
    write_whole(folder / TABLE, (json.dumps(saved, indent=1, allow_nan=False) + "\n").encode())
    write_whole(folder / PICTURE, bars(table))
    console.print(f"wrote {folder}/table.md, .tex, .json and .png, and the records", highlight=False)


def draw_shares(folder: Path, console: Console) -> None:
    """One picture of all worlds that were compared into a folder, as far as they have a way to the oracle."""
    found: dict[str, dict[str, float]] = {}
    tables = sorted(folder.glob(f"*/*/{TABLE}"))
    check_folder("--shares", folder, [SHARES], tables)
    for path in tables:  # `test` comes after `held` and takes its place
        try:
            rows = json.loads(read_regular(path))["rows"]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path}: not a table of `factordiff compare` ({error!r}); compare again"
            ) from None
        ways = {label: row.get("share_to_oracle", row["share"]) for label, row in rows.items()}
        of_methods = {
            label: way
            for label, way in ways.items()
            if way is not None and rows[label]["family"] not in (ALONE, BOUND)
        }
        if of_methods:
            found[path.parent.parent.name] = of_methods
    if not found:
        raise Unavailable(
            f"shares: no table in {folder} has a way to an oracle; run `factordiff compare WORLD` first"
        )
    methods = list(dict.fromkeys(label for of_methods in found.values() for label in of_methods))
    write_whole(folder / SHARES, shares(found, methods))
    console.print(f"wrote {folder / SHARES}: {', '.join(found)}", highlight=False)
