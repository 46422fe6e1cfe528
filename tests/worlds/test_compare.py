"""A comparison: bounds against slow versions, records that continue, and a table that says what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from factordiff import Mixture, Queries, SamplerState, Team, compare, compose
from factordiff.errors import DataError, FactorDiffError, InvalidInput, Unavailable
from factordiff.toy.painting import IndependentCells
from factordiff.worlds import running
from factordiff.worlds.bounds import Oracle, TrueOwner
from factordiff.worlds.methods import entries, split_methods, tried
from factordiff.worlds.metric import EXACT, as_metric
from factordiff.worlds.queries import as_queries
from factordiff.worlds.setting import Setting

CELLS, VALUES, ITEMS = 4, 3, 6


def sure(values: list[int], chance: list[float]) -> IndependentCells:
    """An expert that always says these values, each with its chance."""
    p = torch.tensor(chance, dtype=torch.float64)[:, None]
    table = ((1 - p) / (VALUES - 1)).repeat(1, VALUES)
    return IndependentCells(table.scatter(1, torch.tensor(values)[:, None], p).log())


def experts() -> dict[str, IndependentCells]:
    """The truth is 0 1 2 0. Each is right about two cells; the second is surer of the third cell, wrongly."""
    return {
        "left": sure([0, 1, 2, 1], [0.9, 0.8, 0.6, 0.5]),
        "right": sure([1, 0, 1, 0], [0.6, 0.7, 0.7, 0.9]),
    }


def queries(items: int = ITEMS) -> Queries:
    x_0 = torch.tensor([[0, 1, 2, 0]]).repeat(items, 1)
    owners = torch.tensor([[0, 0, 0, 1]]).repeat(items, 1)
    return Queries(
        torch.full_like(x_0, VALUES), x_0, tuple(f"c{i // 2}" for i in range(items)), owners=owners
    )


def test_each_row_is_what_a_hand_computes() -> None:
    table = compare(experts(), "alone,mixture,routing,told,oracle,union,answer-fitted", queries(), "cells")
    share = {row.label: row.value(table.main) for row in table.rows}
    # left is right about 0, 1, 2; right about 3 only. Routing asks the surer one: left 0, 1; right 2 (wrong), 3.
    assert share["left"] == 0.75
    assert share["right"] == 0.25
    assert share["routing"] == 0.75
    assert share["told"] == share["oracle"] == 1.0
    assert share["union"] == 0.75
    # Cell 2, with w for left: the truth has .6 w + .15, its rival .2 w + .7; cell 3: .25 w + .9 and .5 w + .05. All is
    # right where 1.375 < w < 3.4: not for the plain mixture, but for w = 2, which is tried.
    assert share["mixture"] == 0.75
    assert share["answer-fitted"] == 1.0
    assert table["routing"].passes < table["answer-fitted"].passes


def test_fitted_numbers_come_from_validation_and_are_said() -> None:
    table = compare(
        experts(),
        "mixture,fitted:mixture,fitted:product,fitted:routing,oracle",
        queries(),
        "exact",
        validation=queries(2),
    )
    assert table["mixture"].value(table.main) == 0.0
    assert table["fitted:mixture"].value(table.main) == 1.0
    numbers = table.about["fits"]["fitted:mixture"]["options"]["weights"]
    assert numbers[0] == 1.0
    assert numbers[1] < 1.0
    assert table.about["fits"]["fitted:mixture"]["queries"] == 2
    assert f"{numbers[1]:.3g}" in table["fitted:mixture"].note
    assert table.base is not None
    assert table.base.label.startswith("fitted:")
    with pytest.raises(InvalidInput, match="is fitted on validation queries, and there are none"):
        compare(experts(), "fitted:mixture", queries())


def test_the_share_of_the_way_is_from_the_best_scalar_to_the_oracle() -> None:
    table = compare(experts(), "mixture,routing,told,oracle", queries(), "cells")
    assert table.share(table["mixture"]) == 0.0
    assert table.share(table["oracle"]) == 1.0
    assert table.share(table["routing"]) == 0.0  # three of four, as the mixture


def test_nats_are_of_one_pass_and_experts_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    plain = IndependentCells.log_probs
    monkeypatch.setattr(IndependentCells, "log_probs", lambda *args: asked.append(1) or plain(*args))
    table = compare(experts(), "alone,mixture,product,routing,oracle", queries(), "nats")
    expected = -np.log([0.9, 0.8, 0.6, 0.25]).mean()
    assert table["left"].value(table.main) == pytest.approx(expected)
    mixed = -np.log([(0.9 + 0.2) / 2, (0.8 + 0.15) / 2, (0.6 + 0.15) / 2, (0.25 + 0.9) / 2]).mean()
    assert table["mixture"].value(table.main) == pytest.approx(mixed)
    best = -np.log([0.9, 0.8, 0.6, 0.9]).mean()
    assert table["oracle"].value(table.main) == pytest.approx(best)
    assert len(asked) == 2  # one batch, two experts, five rows
    for method in ("vote", "hex", "tie"):
        with pytest.raises(
            InvalidInput, match=f"'{method}' chooses .* in one pass there are only distributions"
        ):
            compare(experts(), method, queries(), "nats")


def test_an_interval_is_over_clusters() -> None:
    x_0 = torch.tensor([[0, 1, 2, 0]]).repeat(20, 1)
    x_0[10:] = 1  # the second cluster's truth is another one
    data = Queries(torch.full_like(x_0, VALUES), x_0, ("a",) * 10 + ("b",) * 10)
    table = compare({"only": sure([0, 1, 2, 0], [0.9] * 4)}, "alone", data)
    found = table["only"].estimate(table.main)
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)


def test_all_right_or_none_is_not_certain() -> None:
    """As in the report: four clusters without a right answer would be seen now and then where 60 % have one."""
    x_0 = torch.tensor([[0, 1, 2, 0]]).repeat(8, 1)
    data = Queries(torch.full_like(x_0, VALUES), x_0, tuple("aabbccdd"))
    experts = {"right": sure([0, 1, 2, 0], [0.9] * 4), "wrong": sure([1, 0, 0, 1], [0.9] * 4)}
    table = compare(experts, "alone", data)
    most = 1 - 0.025**0.25
    for label, ends in (("right", (1 - most, 1.0)), ("wrong", (0.0, most))):
        found = table[label].estimate(table.main)
        assert (found.low, found.high) == pytest.approx(ends)
    gain = table["right"].gain(table["wrong"], table.main)
    assert (gain.low, gain.high) == (1.0, 1.0)


def test_a_metric_of_ones_own() -> None:
    def first(answers: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        return (answers[:, 0] == truth[:, 0]).double()

    table = compare(experts(), "alone", queries(), first)
    assert table.main.name == "first"
    assert table["left"].value(table.main) == 1.0
    with pytest.raises(InvalidInput, match="one number for each of 6 queries, got shape"):
        compare(experts(), "alone", queries(), lambda answers, truth: answers == truth)


def test_methods_of_ones_own() -> None:
    def learned(setting: Setting) -> object:
        assert setting.validation is not None
        return setting.team("mixture", weights=(1.0, 0.5))

    mine = {"half": learned, "plain": Mixture(), "told them": {"method": "mixture", "weights": [1, 0.5]}}
    table = compare(experts(), mine, queries(), validation=queries(2))
    assert {row.label: row.value(table.main) for row in table.rows} == {
        "told them": 1.0,
        "half": 1.0,
        "plain": 0.0,
    }
    team = compose(experts(), "mixture", weights=[1, 0.5])
    assert compare(experts(), {"team": team}, queries())["team"].value(EXACT.main) == 1.0


def test_records_continue_where_they_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[int] = []
    plain = running.records_of

    def watched(prepared: object, all_queries: Queries, index: torch.Tensor, setting: Setting) -> list:
        if len(answered) >= 4:
            raise KeyboardInterrupt
        answered.extend(index.tolist())
        return plain(prepared, all_queries, index, setting)

    monkeypatch.setattr(running, "records_of", watched)
    settings = {"out": tmp_path, "batch": 2, "validation": queries(2)}
    with pytest.raises(KeyboardInterrupt):
        compare(experts(), "fitted:mixture", queries(), **settings)
    assert answered == [0, 1, 2, 3]
    monkeypatch.setattr(running, "records_of", plain)
    heard: list[tuple[str, int, int]] = []
    first = compare(
        experts(), "fitted:mixture", queries(), on_progress=lambda *said: heard.append(said), **settings
    )
    # What was fitted before is not fitted again.
    assert heard == [("fitted:mixture", 4, 6), ("fitted:mixture", 6, 6)]
    again = compare(experts(), "fitted:mixture", queries(), **settings)
    assert again.text() == first.text()
    assert again.about == first.about
    with pytest.raises(DataError, match="these records are of another run: seed is 0 in the file and 1 now"):
        compare(experts(), "fitted:mixture", queries(), seed=1, **settings)


def test_records_under_a_name_of_ones_own_are_of_their_options(tmp_path: Path) -> None:
    """Whoever changes what a name means is told so, and does not get the figures of before."""

    def run(weights: list[float]) -> float:
        mine: Any = {"mine": {"method": "mixture", "weights": weights}}
        return compare(experts(), mine, queries(), out=tmp_path)["mine"].value(EXACT.main)

    assert run([1, 0.5]) == run([1, 0.5]) == 1.0
    with pytest.raises(DataError, match=r"row is 'mine: mixture\[weights=\[1, 0.5\]\]' in the file"):
        run([1, 1])
    named = compare(experts(), {"a": "mixture", "b": "mixture[weights=1,0.5]"}, queries())
    assert {row.label: row.value(EXACT.main) for row in named.rows} == {"a": 0.0, "b": 1.0}
    with pytest.raises(InvalidInput, match=r"'oracle' keeps its name, .* got {'best': 'oracle'}"):
        compare(experts(), {"best": "oracle"}, queries())


def test_the_table_in_every_form() -> None:
    table = compare(experts(), "alone,mixture,routing[temperatures=1,0.5],oracle", queries(), "cells")
    assert repr(table) == "Comparison(Comparison: 5 rows, 6 queries)"
    assert "6 queries in 3 clusters" in table.text()
    for text in (str(table), table.markdown(), table._repr_html_()):
        assert "routing[temperatures=1,0.5]" in text
        assert "75.0 [75.0, 75.0]" in text
    assert r"\toprule" in table.latex()
    assert r"75.0 [75.0, 75.0] &" in table.latex()
    assert "cells, \\%" in table.latex()
    with pytest.raises(InvalidInput, match="row: expected one of left, right, mixture"):
        table["lefft"]
    differences = table.against("mixture")
    assert differences.headings == ("minus mixture", "cells, % [95 %]", "exact, % [95 %]")
    assert ("right", "-50.0 [-50.0, -50.0]", "+0.0 [+0.0, +0.0]") in differences.rows
    assert len(differences.rows) == len(table) - 1


def test_a_name_is_spelled_out_in_every_form() -> None:
    """What means something to Markdown, LaTeX or HTML is a letter of a name like any other."""
    table = compare(experts(), {"a|b <i> 5%_$&#": "mixture"}, queries(), "cells")
    assert "a|b <i> 5%_$&#" in table.text()
    assert r"| a\|b <i> 5%_$&# |" in table.markdown()
    assert r"& a\textbar{}b \textless{}i\textgreater{} 5\%\_\$\&\# &" in table.latex()
    assert "a|b &lt;i&gt; 5%_$&amp;#<" in table._repr_html_()


def test_bounds_against_slow_versions() -> None:
    generator = torch.Generator().manual_seed(0)
    log_probs = torch.randn(3, 40, CELLS, VALUES, generator=generator).double().log_softmax(-1)
    x_0 = torch.randint(VALUES, (40, CELLS), generator=generator)
    # The first choice of the first expert is right; the second gives the truth more, and another value still more.
    x_0[0, 0] = 0
    log_probs[:, 0, 0] = torch.tensor(
        [[0.4, 0.3, 0.3], [0.45, 0.5, 0.05], [0.1, 0.8, 0.1]], dtype=torch.float64
    ).log()
    owners = torch.randint(-1, 3, (40, CELLS), generator=generator)
    at = SamplerState.begin(torch.full((40, CELLS), VALUES), VALUES, 3)
    for by in ("choice", "probability"):
        z = Oracle(x_0, by)(log_probs, at).routing
        told = TrueOwner(owners)(log_probs, at).log_probs
        assert z is not None
        for row in range(40):
            for cell in range(CELLS):
                truth = int(x_0[row, cell])
                said = [float(log_probs[m, row, cell, truth]) for m in range(3)]
                right = [m for m in range(3) if int(log_probs[m, row, cell].argmax()) == truth]
                among = right if by == "choice" and right else range(3)
                assert int(z[row, cell]) == max(among, key=lambda m: said[m])
                owner = int(owners[row, cell])
                each = log_probs[:, row, cell].exp()
                expected = each.mean(0) if owner < 0 else each[owner]
                torch.testing.assert_close(told[row, cell].exp(), expected)


def test_the_names_of_rows() -> None:
    assert split_methods("a, b[c=1,2;d=3],e") == ["a", "b[c=1,2;d=3]", "e"]
    found = entries("alone,product[beta=1,0.5;reveal=margin:0.9]", ("x", "y"), False)
    assert [entry.label for entry in found] == ["x", "y", "product[beta=1,0.5;reveal=margin:0.9]"]
    assert len(tried(4)) == 15
    assert len(tried(27)) == 28


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("told", "'told' needs the owner of each cell"),
        ("nonsense", "methods: expected alone, told, .* got 'nonsense'"),
        ("fitted:vote", "expected fitted: and one of learned, routing, product, mixture, superdiff"),
        ("fitted:learned[kind=tall]", r"kind=shared\|neighbourhood, .* got kind=tall"),
        ("fitted:learned[head=three]", "head: expected one of mixture, product, both, got 'three'"),
        ("fitted:evidence[factors=cloud]", "factors: expected one of pixel"),
        ("mixture[weights]", r"expected mixture\[option=value;option=value\]"),
        ("mixture[beta=1,1]", "beta: the method 'mixture' does not take it"),
        ("mixture[reveal=nonsense]", "reveal: expected fast, exact"),
        ("mixture,mixture", "'mixture' is there twice"),
        ("union", "'union' is of the experts alone"),
        ("learned", "'learned' has no router, .* ask for 'fitted:learned'"),
        ("", "methods: expected at least one, got none"),
    ],
)
def test_rows_that_mean_nothing_are_refused(asked: str, sentence: str) -> None:
    data = (torch.full((1, CELLS), VALUES), torch.tensor([[0, 1, 2, 0]]))
    with pytest.raises(FactorDiffError, match=sentence):
        compare(experts(), asked, data)


def test_data_that_is_none_is_refused(untyped: None) -> None:
    x = torch.zeros(2, 4, dtype=torch.int64)
    with pytest.raises(InvalidInput, match="x_0: expected the shape of x_t"):
        Queries(x, x[:1], ("a", "b"))
    with pytest.raises(InvalidInput, match="clusters: expected 2, one per query, got 1"):
        Queries(x, x, ("a",))
    with pytest.raises(InvalidInput, match="data: expected Queries, or a tuple"):
        as_queries([x])
    with pytest.raises(InvalidInput, match="at least one query"):
        compare(experts(), "alone", (x[:0], x[:0]))
    with pytest.raises(Unavailable, match="metric: expected one of exact, cells, nats"):
        as_metric("accuracy")


def test_a_function_fits_on_the_validation_queries() -> None:
    """Half of each cluster's cells are given; who is alike is on one side, and given cells are not asked."""
    given = queries(8)
    given.x_t[:, 0] = 0
    seen = []

    def mine(setting: Setting) -> Team:
        seen.append(setting.fitting_data())
        return setting.team("mixture").fit(seen[0], "weights", budget=6)

    table = compare(experts(), {"mine": mine}, queries(), validation=given)
    assert table["mine"].value(EXACT.main) == 1.0  # as the plain mixture is not
    data = seen[0]
    assert data.open_cells.sum(-1).tolist() == [3] * 8
    held = data.kept.view(4, 2)  # clusters are pairs
    assert torch.equal(held[:, 0], held[:, 1])
    assert 0 < held[:, 0].sum() < 4
    with pytest.raises(InvalidInput, match="fitted on validation queries, and there are none"):
        compare(experts(), {"mine": mine}, queries())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda x_t, x_0: (x_0, x_t), "x_t: expected hidden cells, which hold 3, got none"),
        (
            lambda x_t, x_0: (x_t, x_t),
            r"x_0: expected what is right at each hidden cell, 0 \.\. 2, got 3 \.\. 3",
        ),
        (lambda x_t, x_0: (x_t, x_0 - 100), r"got -100 \.\. -98; data are \(x_t, x_0\)"),
        (lambda x_t, x_0: (x_t, x_0, x_0[:1]), "condition: expected one for each of 2 items, got 1"),
        (lambda x_t, x_0: (x_t.float(), x_0), "x_t: expected int64 tokens"),
    ],
)
@pytest.mark.parametrize("of", ["data", "validation"])
def test_data_that_make_no_table_are_refused(change: Any, sentence: str, of: str, untyped: None) -> None:
    """Swapped, they made one: the surest of masks was right nowhere, and every row had a figure."""
    x_t, x_0 = torch.full((2, CELLS), VALUES), torch.tensor([[0, 1, 2, 0]] * 2)
    asked = {"data": (x_t, x_0), of: change(x_t, x_0)}
    with pytest.raises(InvalidInput, match=sentence):
        compare(experts(), "alone", **asked)


def test_given_cells_may_be_anything_in_the_truth() -> None:
    """Labels of other libraries have -100 where nothing is asked."""
    x_t, x_0 = torch.tensor([[0, VALUES, VALUES, VALUES]]), torch.tensor([[-100, 1, 2, 1]])
    assert compare(experts(), "alone", (x_t, x_0))["left"].value(EXACT.main) == 1.0


def test_a_metric_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidInput, match="metric: lambda is NaN for 6 of 6 queries"):
        compare(experts(), "alone", queries(), lambda answers, truth: torch.full((6,), torch.nan))


def test_items_of_different_lengths_are_asked_by_length() -> None:
    x_0 = torch.tensor([[0, 1, 2, 0], [0, 1, 0, 0], [0, 1, 2, 0]])
    x_t = torch.tensor([[3, 3, 3, 3], [3, 3, 0, 0], [3, 3, 3, 3]])
    data = Queries(x_t, x_0, ("a", "b", "c"), lengths=torch.tensor([4, 2, 4]))
    assert [index.tolist() for index in data.batches(8, set())] == [[1], [0, 2]]
    assert [index.tolist() for index in data.batches(1, {0})] == [[1], [2]]
    assert data[torch.tensor([1])].cut().x_t.shape == (1, 2)
    with pytest.raises(InvalidInput, match="items of one length"):
        data.cut()
