"""What validation decides: every method's numbers by one search, from records made by hand."""

from __future__ import annotations

import math

import pytest

from factordiff.evaluation.runs import PARTICLE_METHODS
from factordiff.experiments.fitted import METHODS, said
from factordiff.experiments.pairs import BUDGET, COL_OCC, FOUR, FULL_FULL, OCC_FULL, PAST_ENDS
from factordiff.experiments.protocols import ALL_FITTED, PRINTED
from factordiff.experiments.tuning import (
    choice,
    fitted_as,
    fitted_outcomes,
    fitted_row,
    next_trial,
    numbers,
    tune,
)
from factordiff.report.outcomes import RecordFolder
from tests.experiments.lookup import lookup_bench
from tests.experiments.records import TRIAL, share, write, write_search


def last(number: str):
    """The last expert's number of a row, 1 where it is left open."""
    return lambda row: (getattr(row, number) or (1.0,))[-1]


def test_a_temperature_is_searched_beyond_the_first_grid_and_between_its_steps(tmp_path):
    at = last("temperatures")
    tried = write_search(tmp_path, COL_OCC, "routing", lambda row: 0.9 - abs(math.log(at(row) / 0.01)) / 12)
    found = choice(RecordFolder(tmp_path), COL_OCC, "routing")
    assert len(tried) == len(found.trials) == BUDGET + 2  # which break ties
    assert not found.edge
    chosen = found.options["temperatures"][-1]
    assert min(at(row) for row in tried) < chosen < max(at(row) for row in tried)
    assert abs(math.log(chosen / 0.01)) == min(abs(math.log(at(row) / 0.01)) for row in tried[:BUDGET])
    assert fitted_row(RecordFolder(tmp_path), COL_OCC, "routing", 600).temperatures == (1.0, chosen)


def test_a_number_that_is_best_at_its_end_is_followed_past_it(tmp_path):
    """Both exponents are best far out: sixteen trials end on the way to the second, a few more find both its sides."""

    def rate(row):
        return 0.9 - sum(abs(math.log(number / 4.0**6)) for number in row.beta or (1.0, 1.0)) / 40

    tried = write_search(tmp_path, COL_OCC, "fkc", rate)
    assert BUDGET < len(tried) <= BUDGET + PAST_ENDS
    found = choice(RecordFolder(tmp_path), COL_OCC, "fkc")
    assert not found.edge
    assert found.options["beta"] == (4096.0, 4096.0)
    assert max(row.beta[1] for row in tried if row.beta) > 4096
    assert "edge" not in said(found)


def test_a_number_that_ends_at_the_edge_all_the_same_says_so(tmp_path):
    """Past an end the trials come to an end, wherever that is."""
    at = last("beta")
    tried = write_search(tmp_path, COL_OCC, "product", lambda row: 0.5 + math.log(at(row)) / 80)
    assert len(tried) > BUDGET
    found = choice(RecordFolder(tmp_path), COL_OCC, "product")
    assert found.edge
    assert said(found).endswith("; at the edge of what was tried")


@pytest.mark.parametrize("method", METHODS)
def test_among_equals_the_usual_setting_is_chosen(method, tmp_path):
    tried = write_search(tmp_path, COL_OCC, method, lambda row: 0.5)
    assert len(tried) <= BUDGET + PAST_ENDS, "one budget for all"
    assert not choice(RecordFolder(tmp_path), COL_OCC, method).edge
    assert len({row.name for row in tried}) == len(tried)
    found = choice(RecordFolder(tmp_path), COL_OCC, method)
    assert fitted_as(COL_OCC, method, found.options, 600).name == tried[0].name.replace("validation", "test")


@pytest.mark.parametrize("method", [*PRINTED, "mixture", "product"])
def test_with_nothing_chosen_it_is_the_row_as_the_paper_has_it(method):
    assert fitted_as(FULL_FULL, method, {}, 600) == FULL_FULL.row(method, 600)
    assert fitted_as(FULL_FULL, "routing", {}, 600) == FULL_FULL.row("routing", 600)
    if method in PARTICLE_METHODS:
        assert fitted_as(FULL_FULL, method, {"resampling": 0.5}, 600) == FULL_FULL.row(method, 600)


def test_a_search_that_is_not_over_has_chosen_nothing(tmp_path):
    tried = write_search(tmp_path, COL_OCC, "mixture", lambda row: 0.5)
    tried[-1].file(tmp_path).unlink()
    archive = RecordFolder(tmp_path)
    assert choice(archive, COL_OCC, "mixture") is None
    assert fitted_outcomes(archive, COL_OCC, "mixture", 600) is None
    assert next_trial(archive, COL_OCC, "mixture", TRIAL) == tried[-1]
    write(tmp_path, tried[-1], share(0.5)[: TRIAL // 2])  # interrupted
    assert choice(RecordFolder(tmp_path), COL_OCC, "mixture") is None
    assert next_trial(RecordFolder(tmp_path), COL_OCC, "mixture", TRIAL) == tried[-1]


def test_particles_are_read_as_they_did_best_on_validation(tmp_path):
    write_search(tmp_path, OCC_FULL, "rne", lambda row: 0.9 if row.resampling == 1.0 else 0.6, drawn=-0.1)
    archive = RecordFolder(tmp_path)
    found = choice(archive, OCC_FULL, "rne")
    assert (found.options["resampling"], found.reading) == (1.0, "highest-target")
    row = fitted_row(archive, OCC_FULL, "rne", 600)
    assert (row.split, row.resampling) == ("test", 1.0)
    write(tmp_path, row, share(0.7), share(0.8))
    assert fitted_outcomes(RecordFolder(tmp_path), OCC_FULL, "rne", 600).exact.mean() == pytest.approx(0.7)
    again = tmp_path / "again"
    write_search(again, OCC_FULL, "fkc", lambda row: 0.5, drawn=0.2)
    assert choice(RecordFolder(again), OCC_FULL, "fkc").reading == "draw"


def test_every_method_of_the_second_protocol_has_numbers_of_its_own():
    options = {method: [one.option for one in numbers(method, 2)] for method in METHODS}
    assert set(ALL_FITTED.rivals) < set(options)
    assert options["routing"] == ["temperatures"]
    assert options["product"] == ["beta"]
    assert options["mixture"] == ["weights"]
    assert options["superdiff"] == ["density_temperature", "bias"]
    assert options["fkc"] == ["resampling", "beta", "beta"]
    assert options["rne"] == ["resampling", "weights", "beta", "beta"], "the proposal too"
    assert options["evidence"] == ["evidence_temperature", "factors", "demonstration_evidence", "bias"]
    assert len(numbers("routing", len(FOUR.experts))) == 3


def test_a_search_runs_its_own_trials_and_stops_where_rows_are_not_asked_for(sets, tmp_path):
    runner = lookup_bench(sets, tmp_path)
    assert tune(runner, COL_OCC, "product")
    found = choice(runner.archive, COL_OCC, "product")
    # At background the color expert gives the truth 1e-6 of its mass: the other's exponent must be larger.
    assert found.options["beta"][1] > 1
    assert found.share == 1.0
    assert not tune(lookup_bench(sets, tmp_path, only="product"), COL_OCC, "mixture")
