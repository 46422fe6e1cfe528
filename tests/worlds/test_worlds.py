"""Every world keeps the protocol; the enumerated ones say exactly which method is exact where."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from factordiff.errors import InvalidInput, Unavailable
from factordiff.experts.expert import Expert
from factordiff.experts.registry import SHIPPED
from factordiff.networks.store import read_config, weight_hash
from factordiff.text.build import RECORDED
from factordiff.worlds.arc_pairs import TEAMS, ArcPair
from factordiff.worlds.catalogue import ARC, TOYS, WORLDS, compare_world, world
from factordiff.worlds.methods import entries
from factordiff.worlds.metric import Filled
from factordiff.worlds.world import checked_limit

PAGE = Path(__file__).parents[2] / "docs" / "worlds.md"
README = Path(__file__).parents[2] / "README.md"
EXACT_IN = {
    "toy-either": {"superdiff"},
    "toy-both": {"fkc[beta=1,1]", "rne[beta=1,1]"},
    "toy-halves": {"product", "fkc[beta=1,1]", "rne[beta=1,1]", "routing", "routing[factors=row]", "told"},
    "toy-halves-sure": {"told"},
    "toy-owners": {"evidence-by-half"},
    "toy-cells": {"mixture"},
    "toy-views": {"views"},
}


def unfitted(name: str) -> str:
    """The rows of a world that need no validation; the fitted ones have tests of their own."""
    return ",".join(method for method in world(name).methods if not method.startswith("fitted:"))


@pytest.mark.parametrize("name", TOYS)
def test_which_methods_are_exact(name: str) -> None:
    table = compare_world(world(name), unfitted(name))
    exact = {row.label for row in table.rows if row.value(table.main) < 1e-12}
    assert exact == EXACT_IN[name]
    assert "Every outcome enumerated" in table.text()


def test_the_worlds_of_the_catalogue_are_worlds() -> None:
    assert set(ARC) == set(TEAMS)
    for name in WORLDS:
        one = world(name)
        assert one.name == name
        assert len(one.tests) > 20
        assert one.data()
        names = [f"expert {number}" for number in range(2)]
        own = one.entries()
        for method in one.methods:
            assert method in own or entries([method], names, True)
    with pytest.raises(Unavailable, match=r"world: expected one of sudoku, .*, got 'soduku'"):
        world("soduku")


def test_a_limit_is_checked() -> None:
    assert checked_limit("test", None, {"test": 5}) == 5
    assert checked_limit("test", 9, {"test": 5}) == 5
    with pytest.raises(InvalidInput, match="limit: expected at least 1, got 0"):
        checked_limit("test", 0, {"test": 5})
    with pytest.raises(InvalidInput, match="split: expected one of test, got 'train'"):
        checked_limit("train", None, {"test": 5})


def test_arc_queries_are_those_of_the_fixed_list() -> None:
    queries = ArcPair("arc-col+occ").queries("validation", 5)
    from factordiff.arc.dataset import Dataset

    listed = Dataset.load().evaluation("validation", 5)
    assert (queries.x_0 == listed.x_0).all()
    assert queries.clusters == tuple(listed.task_ids)
    assert (queries[torch.tensor([3])].condition.query == listed.condition().query[3]).all()


def test_an_answer_that_is_wrong_in_the_padding_is_right_once_it_is_cut() -> None:
    """The first query's last cell is padding, the second's first cell is not; the third answer is right."""
    for name, main, each in (("arc-col+occ", "exact", 1), ("arc-mosaic", "quarters", 4)):
        queries = world(name).queries("validation", 3)
        grid = queries.parts["grid"]
        assert (queries.x_0[~grid] == 0).all()
        x_0 = queries.x_0.clone()
        for row, cell in ((0, int((~grid[0]).nonzero()[-1])), (1, 0)):
            assert bool(grid[row, cell]) == bool(row)
            x_0[row, cell] = (x_0[row, cell] + 1) % 10
        found = world(name).metric.score(Filled(queries, torch.ones_like(grid), x_0))
        assert found[main][0].tolist() == [each - 1, each - 1, each]
        assert found["cut to shape"][0].tolist() == [each, each - 1, each]
        assert found["cut to shape"][1].tolist() == [each] * 3


def test_arc_experts_may_be_other_folders() -> None:
    with pytest.raises(InvalidInput, match="this world has no 'conv-full'; expected trans-color, trans-occ"):
        ArcPair("arc-col+occ", {"conv-full": "x"}).experts()
    found = ArcPair("arc-col+occ", {"trans-occ": "trans-occ-default-head"}).experts()
    assert list(found.experts) == ["trans-color", "trans-occ"]
    assert found.objectives == ["color", "occupancy"]
    assert all(isinstance(expert, Expert) for expert in found.experts.values())
    assert found.weights["trans-occ"] != ArcPair("arc-col+occ").experts().weights["trans-occ"]


def test_the_page_has_the_distances() -> None:
    page = PAGE.read_text()
    heading, *rows = re.findall(
        r"^\| (.*) \|$", page.split("<!-- toys -->")[1].split("<!-- /toys -->")[0], re.MULTILINE
    )
    names = heading.split(" | ")[1:]
    assert [row.split(" | ")[0].strip("`") for row in rows] == list(TOYS)
    for row in rows:
        name, *shown = (cell.strip() for cell in row.split(" | "))
        table = compare_world(world(name.strip("`")), unfitted(name.strip("`")))
        found = {one.label: one.value(table.main) for one in table.rows}
        for label, cell in zip(names, shown, strict=True):
            if label not in found:
                assert cell == ""
                continue
            exact = found[label] < 1e-12
            assert cell == ("**0.000**" if exact else f"{found[label]:.3f}")


def test_the_page_knows_every_world() -> None:
    page = PAGE.read_text()
    for name in WORLDS:
        assert f"`{name}`" in page


HELD_TABLES = re.findall(r"<!-- held ([^:]+): (.+?) -->\n(.*?)\n<!-- /held -->", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize(("name", "measures", "table"), HELD_TABLES, ids=[one[0] for one in HELD_TABLES])
def test_the_page_has_what_was_measured(name: str, measures: str, table: str) -> None:
    measured = json.loads((PAGE.parent / "worlds" / name / "held" / "table.json").read_text())["rows"]
    _, _, *rows = table.split("\n")
    assert len(rows) == len(measured)
    for row, (label, figures) in zip(rows, measured.items(), strict=True):
        method, *cells = row.strip("| ").split(" | ")
        assert method.split(" (")[0] == f"`{label}`"
        shown = [
            f"{100 * figures[one]:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
            for one, (low, high) in ((one, figures["intervals"][one]) for one in measures.split())
        ]
        gain = "—"
        if "minus_best_scalar" in figures:
            value, low, high = figures["minus_best_scalar"]
            gain = f"{100 * value:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
        assert cells == [*shown, gain, f"{figures['passes']:.1f}"]


def test_the_page_has_the_bits_that_were_measured() -> None:
    measured = json.loads((PAGE.parent / "worlds" / "code-prose" / "test" / "table.json").read_text())["rows"]
    _, _, *rows = PAGE.read_text().split("<!-- bits code-prose -->\n")[1].split("\n<!-- /bits")[0].split("\n")
    for row, (label, figures) in zip(rows, measured.items(), strict=True):
        method, *cells = row.removeprefix("| ").removesuffix(" |").split(" | ")
        assert method.split(" (")[0] == f"`{label}`"
        for cell, one in zip(cells, ("bits", "bits prose", "bits code"), strict=False):
            low, high = figures["intervals"][one]
            assert cell == f"{figures[one]:.3f} [{low:.3f}, {high:.3f}]"
        assert cells[3].split(" ")[0] == f"{100 * figures['right']:.1f}"
        if "minus_best_scalar" in figures:
            value, low, high = figures["minus_best_scalar"]
            assert cells[4] == f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"
        assert cells[5] == f"{round(100 * figures['share_to_oracle'])} %"


def test_the_page_has_the_nats_that_were_measured() -> None:
    measured = json.loads((PAGE.parent / "worlds" / "antibody" / "test" / "table.json").read_text())["rows"]
    heading, _, *rows = (
        PAGE.read_text().split("<!-- nats antibody -->\n")[1].split("\n<!-- /nats")[0].split("\n")
    )
    columns = [cell.strip() for cell in heading.split("|")[2:-3]]
    for row, (label, figures) in zip(rows, measured.items(), strict=True):
        method, *cells = row.strip("| ").split(" | ")
        assert method.split(" (")[0] == f"`{label}`"
        for cell, one in zip(cells, columns, strict=False):
            low, high = figures["intervals"][one]
            assert cell == f"{figures[one]:.3f} [{low:.3f}, {high:.3f}]"
        if "minus_best_scalar" in figures:
            value, low, high = figures["minus_best_scalar"]
            assert cells[-2] == f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"


GLANCE = {  # the columns of the table over all worlds, and the rows that they show
    "surest": ("fitted:routing", "routing"),
    "number per expert": ("fitted:mixture", "fitted:product"),
    "evidence": ("demonstrations", "fitted:evidence"),
    "learned": ("fitted:learned",),
    "told": ("told", "views"),
    "oracle": ("oracle",),
}
SAVED = sorted((PAGE.parent / "worlds").glob("*/*/table.json"))


@pytest.mark.parametrize("path", SAVED, ids=[path.parent.parent.name for path in SAVED])
def test_the_glance_over_all_worlds_is_of_their_tables(path: Path) -> None:
    name, saved = path.parent.parent.name, json.loads(path.read_text())
    heading, _, *rows = PAGE.read_text().split("<!-- glance -->\n")[1].split("\n<!-- /glance")[0].split("\n")
    columns = [cell.strip() for cell in heading.split("|")[1:-1]]
    (row,) = [one for one in rows if one.startswith(f"| `{name}` |")]
    cells = dict(zip(columns, (cell.strip() for cell in row.split("|")[1:-1]), strict=True))
    main = saved["about"]["measures"][0]
    assert cells["figure"].split(",")[0] == main
    sign, scale, digits = (-1, 1, 3) if main in ("bits", "nats") else (1, 100, 1)
    for column, labels in GLANCE.items():
        there = [label for label in labels if label in saved["rows"]]
        chosen = there[:1]
        if column == "number per expert":
            chosen = sorted(there, key=lambda label: -sign * saved["rows"][label][main])[:1]
            named = re.findall(r"[a-z-]+", cells[column])
            assert not chosen or chosen[0].removeprefix("fitted:") in named
        shown = re.findall(r"[0-9.]+", cells[column])[:1]
        assert shown == [f"{scale * saved['rows'][label][main]:.{digits}f}" for label in chosen], column


@pytest.mark.parametrize("name", [*(one[0] for one in HELD_TABLES), "code-prose"])
def test_the_tables_are_of_the_experts_that_are_shipped(name: str) -> None:
    split = "test" if name == "code-prose" else "held"
    about = json.loads((PAGE.parent / "worlds" / name / split / "table.json").read_text())["about"]
    data = RECORDED if name == "code-prose" else world(name).data()  # the corpus itself is built, not shipped
    assert about["data"] == data
    for expert, weights in about["weights"].items():
        stored_from = read_config(SHIPPED / expert)["about"].get("stored_from")  # rounded alike on the GPU
        assert weights.split(", ")[0] in (weight_hash(SHIPPED / expert), stored_from)


EARNED = {  # the README's columns: confidence, the best number per expert, earned, told
    "arc-col+occ-default-head": ("fitted:routing", "fitted:mixture", "fitted:learned", "views"),
    "arc-col+occ": ("fitted:routing", "fitted:mixture", "fitted:learned", "views"),
    "arc-four": ("fitted:routing", "fitted:mixture", "fitted:learned", ""),
    "arc-mosaic": ("fitted:routing", "fitted:mixture", "demonstrations", "told"),
}


@pytest.mark.parametrize("name", EARNED)
def test_the_readme_has_what_was_measured(name: str) -> None:
    saved = json.loads((PAGE.parent / "worlds" / name / "held" / "table.json").read_text())["rows"]
    scalars = {
        label: row
        for label, row in saved.items()
        if row["family"] == "one number per expert" and label.startswith("fitted:")
    }
    main = "quarters" if name == "arc-mosaic" else "exact"
    (row,) = re.findall(rf"^\| `{re.escape(name)}`(?:: [^|]*)? \|(.*)\|$", README.read_text(), re.MULTILINE)
    for cell, label in zip(row.split("|"), EARNED[name], strict=True):
        shown = re.findall(r"[0-9.]+", cell)[:1]
        assert shown == ([f"{100 * saved[label][main]:.1f}"] if label else [])
    if scalars:
        assert EARNED[name][1] == max(scalars, key=lambda label: scalars[label][main])
