"""Fitted rows: routers find owners, numbers are searched alike, and nobody learns from what is asked in the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from factordiff import Queries, compare
from factordiff.errors import InvalidInput
from factordiff.sampling.adaptive import ByProduct
from factordiff.toy.painting import IndependentCells
from factordiff.worlds import fitting, router_fitting, sides
from factordiff.worlds.catalogue import compare_world, world
from factordiff.worlds.compare import FITTED, METHODS, prepared_setting
from factordiff.worlds.fitting import evidence_choices
from factordiff.worlds.metric import CELLS, NATS
from factordiff.worlds.router_fitting import heard_queries
from tests.fitting.worlds import halves

LEARNED = "fitted:learned[steps=60;head=mixture]"


def asked(items: int, seed: int) -> tuple[dict[str, Any], Queries]:
    """Two experts that each own half of a line and are wrongly sure of the other, and queries about it."""
    experts, data = halves(items, seed=seed)
    x_t = torch.full_like(data.answers, 3)
    names = tuple(f"{seed}-{number // 2}" for number in range(items))
    return {"left": experts[0], "right": experts[1]}, Queries(
        x_t, data.answers, names, data.condition, data.owner
    )


def test_a_fitted_router_finds_the_owners() -> None:
    experts, data = asked(16, 1)
    rows = f"fitted:mixture,fitted:product,fitted:routing,{LEARNED},told,oracle"
    table = compare(experts, rows, data, "cells", validation=asked(32, 2)[1], layout=(2, 4), budget=8)
    assert table[LEARNED].value(table.main) > 0.99
    assert table["told"].value(table.main) == 1.0
    assert table.base is not None
    assert table.base.value(table.main) < 0.75
    assert table.share(table[LEARNED]) == pytest.approx(1.0, abs=0.05)
    assert table[LEARNED].gain(table.base, table.main).low > 0
    about = table.about["fits"][LEARNED]
    assert (about["fitted on"], about["chosen on"]) == (24, 8)
    assert about["router"]["head"] == "mixture"
    assert f"{about['router']['parameters']:,} parameters" in table[LEARNED].note
    assert {table.about["fits"][row]["runs"] for row in ("fitted:mixture", "fitted:product")} == {8 + 2}


def test_nobody_learns_from_what_is_asked_in_the_end() -> None:
    experts, data = asked(16, 1)
    validation = asked(32, 2)[1]
    seen: list[torch.Tensor] = []
    with pytest.MonkeyPatch.context() as patch:
        predict, value_of = router_fitting.predict, fitting.value_of
        patch.setattr(
            router_fitting,
            "predict",
            lambda them, some, **named: seen.append(some.answers) or predict(them, some, **named),
        )
        patch.setattr(
            fitting,
            "value_of",
            lambda answering, some, at: seen.append(some.x_0) or value_of(answering, some, at),
        )
        compare(
            experts,
            f"fitted:mixture,fitted:evidence,{LEARNED}",
            data,
            "cells",
            validation=validation,
            layout=(2, 4),
            budget=2,
        )
    rows = {tuple(row) for part in seen for row in part.tolist()}
    assert rows == {tuple(row) for row in validation.x_0.tolist()}
    assert not {tuple(row) for row in data.x_0.tolist()} <= rows  # they can be told apart


def test_what_is_alike_is_on_one_side() -> None:
    x = torch.zeros(40, 4, dtype=torch.int64)
    clusters = tuple(f"c{number % 13}" for number in range(40))
    fit, choose = sides.sides(Queries(x, x, clusters))
    assert len(fit) + len(choose) == 40
    assert 10 <= len(choose) <= 13
    assert not {clusters[place] for place in fit} & {clusters[place] for place in choose}
    # Made of two sources each: what shares one with those that choose fits nothing.
    made_of = torch.stack([torch.arange(40), (torch.arange(40) * 7 + 1) % 40], 1)
    fit, choose = sides.sides(Queries(x, x, ("one",) * 40, made_of=made_of))
    assert not set(made_of[fit].flatten().tolist()) & set(made_of[choose].flatten().tolist())
    assert len(fit) + len(choose) < 40
    with pytest.raises(InvalidInput, match="expected queries to fit on and others, not alike, to choose by"):
        sides.sides(Queries(x, x, ("one",) * 40))


def test_what_is_given_is_never_hidden() -> None:
    experts, data = asked(12, 3)
    x_t = data.x_t.clone()
    x_t[:, ::3] = data.x_0[:, ::3]
    data = Queries(x_t, data.x_0, data.clusters, data.condition)
    fit, choose = sides.sides(data)
    decoded = prepared_setting(experts, CELLS, validation=data, reveal="fast", batch=5)
    heard = heard_queries(data, fit, choose, decoded, "")
    assert not any((one.asked & (one.x_0 == 0)).any() for one in heard)
    assert not any(one.asked[:, ::3].any() for one in heard)
    assert {round(float(rate), 2) for one in heard for rate in one.rate} == {1.0, 0.75, 0.5, 0.25}
    assert sum(len(one) for one in heard) == 4 * 12
    # In one pass a router is fitted at the queries' own masks, and each query counts alike.
    alike = prepared_setting(experts, NATS, validation=data, reveal="fast", batch=5)
    (one,) = heard_queries(data, fit, choose, alike, "")
    assert torch.equal(one.x_t, data.x_t[one.item])
    assert torch.equal(one.asked, one.x_t == 3)
    assert (one.rate == 5 / 8).all()


class Stopped(Exception):
    pass


@pytest.mark.parametrize("after", [2, 30, 66])  # asking the experts, fitting, answering
def test_an_interrupted_row_goes_on_to_the_same_records(after: int, tmp_path: Path) -> None:
    experts, data = asked(8, 1)
    settings: dict[str, Any] = {"validation": asked(16, 2)[1], "batch": 4, "layout": (2, 4), "budget": 3}
    rows = f"{LEARNED},fitted:mixture"
    whole = compare(experts, rows, data, "cells", out=tmp_path / "whole", **settings)
    calls: list[str] = []

    def stop(row: str, done: int, total: int) -> None:
        calls.append(row)
        if len(calls) == after:
            raise Stopped

    with pytest.raises(Stopped):
        compare(experts, rows, data, "cells", out=tmp_path / "cut", on_progress=stop, **settings)
    again = compare(experts, rows, data, "cells", out=tmp_path / "cut", **settings)
    assert again.text() == whole.text()
    assert again.about == whole.about
    heard: list[str] = []
    once_more = compare(
        experts,
        rows,
        data,
        "cells",
        out=tmp_path / "cut",
        on_progress=lambda row, *_: heard.append(row),
        **settings,
    )
    assert once_more.text() == whole.text()
    assert not [row for row in heard if row.startswith("fitting")]
    assert not list((tmp_path / "cut").glob("*.fitting"))
    assert (tmp_path / "cut" / "fitted-learned-steps=60-head=mixture.router" / "config.json").is_file()


def coins(first: float) -> IndependentCells:
    return IndependentCells(torch.tensor([[first, 1 - first]] * 12, dtype=torch.float64).log())


def test_evidence_from_given_cells_tells_whose_item_it_is() -> None:
    """Each item is all zeros or all ones; half of it is given, which says which expert knows it."""
    x_0 = (torch.arange(16) % 2)[:, None].expand(-1, 12).clone()
    x_t = x_0.clone()
    x_t[:, ::2] = 2
    data, validation = (
        Queries(x_t[some], x_0[some], tuple(map(str, range(8)))) for some in (slice(8), slice(8, 16))
    )
    table = compare(
        {"zeros": coins(0.9), "ones": coins(0.1)},
        "fitted:mixture,fitted:evidence",
        data,
        "nats",
        validation=validation,
    )
    assert table["fitted:mixture"].value(table.main) == pytest.approx(0.693, abs=1e-3)
    assert table["fitted:evidence"].value(table.main) == pytest.approx(
        -torch.tensor(0.9).log().item(), abs=1e-3
    )
    assert table["fitted:evidence"].passes == 2 + 2 * 4  # four folds of what is given, two experts
    assert table.about["fits"]["fitted:evidence"]["options"]["given_evidence"] == "folds"


def test_a_row_may_keep_what_it_fixes() -> None:
    experts, data = asked(4, 1)
    row = "fitted:evidence[factors=row]"
    table = compare(experts, row, data, "cells", validation=asked(4, 2)[1], layout=(2, 4), budget=2)
    assert "factors" not in table.about["fits"][row]["options"]
    assert table.about["fits"][row]["options"]["reveal"] in ("fast", "confidence:16")
    fast = prepared_setting(experts, CELLS, reveal=ByProduct(0.9))
    assert evidence_choices(fast, data)["reveal"] == ("product:0.9", "confidence:16")
    with pytest.raises(InvalidInput, match="fits weights itself; leave it out, or name mixture alone"):
        compare(experts, "fitted:mixture[weights=1,2]", data, validation=data)


def test_what_is_fitted_is_there_by_default_where_there_is_validation() -> None:
    for name in ("arc-col+occ", "arc-four", "arc-mosaic"):
        assert set(FITTED) <= set(world(name).methods)
    assert {"fitted:learned", "fitted:evidence", "fitted:product"} <= set(world("antibody").methods)
    assert "fitted:demonstrations" in world("arc-mosaic").entries()
    experts, data = asked(4, 1)
    labels = {row.label for row in compare({"one": experts["left"], "two": experts["right"]}, data=data).rows}
    assert labels == {"one", "two", *METHODS} - {"alone"}


@pytest.mark.parametrize(
    ("name", "row"), [("toy-owners", "fitted:evidence"), ("toy-cells", "fitted:mixture")]
)
def test_a_search_finds_the_exact_method_of_a_toy(name: str, row: str) -> None:
    table = compare_world(world(name), row)
    assert table[row].value(table.main) < 1e-12


@pytest.mark.slow
def test_a_router_finds_the_owners_of_a_toy() -> None:
    rows = "fitted:mixture,fitted:product,fitted:learned[kind=neighbourhood],told"
    table = compare_world(world("toy-halves-sure"), rows)
    found = {row.label: row.value(table.main) for row in table.rows}
    assert (
        found["fitted:learned[kind=neighbourhood]"]
        < 0.1
        < min(found["fitted:mixture"], found["fitted:product"])
    )
