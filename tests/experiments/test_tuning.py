"""What validation decides: temperatures and how particle methods are set, from records made by hand."""

from __future__ import annotations

from dataclasses import replace

from factordiff.experiments.pairs import COL_OCC, OCC_FULL
from factordiff.experiments.tuning import (
    better_row,
    candidates,
    fitted_number,
    fitted_row,
    particle_rows,
    settled,
)
from factordiff.report.outcomes import RecordFolder
from tests.experiments.test_claims import share, write


def test_a_particle_method_is_set_as_it_did_best_by_its_better_reading(tmp_path):
    archive = RecordFolder(tmp_path)
    usual, product, often, both, *_ = particle_rows(OCC_FULL, "rne")
    assert better_row(archive, OCC_FULL, "rne", 600).name == replace(usual, split="test").name
    write(tmp_path, usual, share(0.6), share(0.7))
    write(tmp_path, product, share(0.7), share(0.6))
    assert better_row(archive, OCC_FULL, "rne", 600).beta is None, "of equals the first"
    write(tmp_path, often, share(0.2), share(0.8))
    write(tmp_path, both, share(0.5), share(0.5))
    chosen = better_row(RecordFolder(tmp_path), OCC_FULL, "rne", 600)
    assert (chosen.split, chosen.beta, chosen.resampling, chosen.queries) == ("test", None, 1.0, 600)
    # A planned row is run so; what validation looks at, and other methods, stay as they are.
    archive = RecordFolder(tmp_path)
    assert settled(archive, replace(usual, split="test")).resampling == 1.0
    assert settled(archive, usual) == usual
    assert settled(archive, OCC_FULL.row("routing")) == OCC_FULL.row("routing")


def test_a_temperature_is_the_best_and_among_equals_the_nearest_to_one(tmp_path):
    rows = list(candidates(COL_OCC, "routing").values())
    for row in rows[:-1]:
        write(tmp_path, row, share(0.5))
    assert fitted_number(RecordFolder(tmp_path), COL_OCC, "routing") is None, "one of them is not run"
    write(tmp_path, rows[-1], share(0.5))
    assert fitted_number(RecordFolder(tmp_path), COL_OCC, "routing") == 1.0
    rows[1].file(tmp_path).unlink()
    write(tmp_path, rows[1], share(0.6))
    assert fitted_number(RecordFolder(tmp_path), COL_OCC, "routing") == 0.1


def test_a_product_and_a_mixture_get_the_ratio_that_validation_likes_best(tmp_path):
    for method in ("product", "mixture"):
        first, *others = candidates(COL_OCC, method).values()
        for row in others:
            write(tmp_path, row, share(0.5))
        assert fitted_row(RecordFolder(tmp_path), COL_OCC, method, 600) is None, "one of them is not run"
        write(tmp_path, first, share(0.5))
        assert fitted_number(RecordFolder(tmp_path), COL_OCC, method) == 1.0
        assert fitted_row(RecordFolder(tmp_path), COL_OCC, method, 600) == COL_OCC.row(method, 600), (
            "equal says"
        )
        best = candidates(COL_OCC, method)[0.1]
        best.file(tmp_path).unlink()
        write(tmp_path, best, share(0.6))
    product = fitted_row(RecordFolder(tmp_path), COL_OCC, "product", 600)
    mixture = fitted_row(RecordFolder(tmp_path), COL_OCC, "mixture", 600)
    assert (product.beta, product.weights, product.split) == ((0.1, 1.0), None, "test")
    assert (mixture.beta, mixture.weights, mixture.split) == (None, (0.1, 1.0), "test")
    assert COL_OCC.weighted("product", 4.0).beta == (1.0, 0.25), "the larger say is 1"


def test_rows_of_other_weights_have_other_names():
    names = [row.name for method in ("product", "mixture") for row in candidates(COL_OCC, method).values()]
    assert len(set(names)) == len(names)
    assert COL_OCC.weighted("mixture", 0.1).name == "validation.trans-color+trans-occ.mixture.w0.1-1"
