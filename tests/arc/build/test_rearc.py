from __future__ import annotations

import random
import signal
import time

import numpy as np
import pytest
import torch

from factordiff import streams
from factordiff.arc.build import rearc
from factordiff.errors import DataError


def test_the_python_hash_is_the_streams_hash() -> None:
    words = [(0,), (11, 0, 0x007BBFB7, 5), (11, -3, 2**63 - 1, 2**40), (2**64 - 1, 7)]
    for key in words:
        assert rearc.hash_words(*key) == streams.hash_words(*key).item() % 2**64
    assert int(streams.Purpose.INSTANCE) == rearc.PURPOSE_INSTANCE


def test_counting_changes_no_number() -> None:
    counted, plain = rearc.CountingRandom(7, limit=10**6), random.Random(7)
    for rng in (counted, plain):
        rng.difficulty = None  # generators hang attributes on the generator
    calls = ["random()", "choice(range(9))", "sample(range(99), 30)", "randint(3, 30)", "uniform(0.2, 1)"]
    for call in calls * 20:
        assert eval(f"rng.{call}", {"rng": counted}) == eval(f"rng.{call}", {"rng": plain})
    assert counted.draws >= 100


def test_an_attempt_is_a_function_of_its_key() -> None:
    keys = [("27a28665", 0, number) for number in range(30)]
    once = {key: rearc.attempt(*key) for key in keys}
    random.seed(1)
    torch.manual_seed(1)
    for key in reversed(keys):
        again = rearc.attempt(*key)
        assert (again.draws, again.refusal) == (once[key].draws, once[key].refusal)
        if again.pair is not None:
            assert all(map(np.array_equal, again.pair, once[key].pair))
    assert any(made.pair is not None for made in once.values())
    other_seed = [rearc.attempt("27a28665", 1, number) for number in range(30)]
    assert [made.draws for made in other_seed] != [made.draws for made in once.values()]


def test_accepted_grids_fit_and_the_rest_say_why() -> None:
    attempts = [rearc.attempt("8d5021e8", 0, number) for number in range(200)]
    for made in attempts:
        assert (made.pair is None) == bool(made.refusal)
        if made.pair is not None:
            assert max(side for grid in made.pair for side in grid.shape) <= 10
    assert {made.refusal for made in attempts} == {"", "size"}


def test_a_generator_that_draws_for_ever_is_stopped_by_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(rng: random.Random, lower: float, upper: float) -> dict[str, object]:
        while True:
            rng.choice((1, 2, 3))

    monkeypatch.setattr(rearc, "generators", lambda: {"abcdef01": endless})
    made = rearc.attempt("abcdef01", 0, 0)
    assert (made.refusal, made.draws) == ("draws", rearc.DRAW_LIMIT + 1)


def test_a_generator_that_fails_or_gives_nonsense_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(rng: random.Random, lower: float, upper: float) -> dict[str, object]:
        raise IndexError("empty range")

    def nonsense(rng: random.Random, lower: float, upper: float) -> dict[str, object]:
        return {"input": ((1, 2), (3,)), "output": ((1,),)}

    monkeypatch.setattr(rearc, "generators", lambda: {"abcdef01": fails, "abcdef02": nonsense})
    assert rearc.attempt("abcdef01", 0, 0).refusal == "generator"
    assert rearc.attempt("abcdef02", 0, 0).refusal == "grid"


def test_a_generator_that_hangs_without_drawing_is_an_error_with_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hangs(rng: random.Random, lower: float, upper: float) -> dict[str, object]:
        time.sleep(60)
        return {}

    monkeypatch.setattr(rearc, "generators", lambda: {"abcdef01": hangs})
    monkeypatch.setattr(rearc, "CLOCK_LIMIT_S", 0.05)
    before = signal.getsignal(signal.SIGALRM)
    try:
        rearc.start_clock()
        with pytest.raises(DataError, match="task abcdef01, seed 3, attempt 17"):
            rearc.attempt_by_the_clock("abcdef01", 3, 17)
    finally:
        signal.signal(signal.SIGALRM, before)
    monkeypatch.setattr(rearc, "SKIPPED", frozenset({("abcdef01", 3, 17)}))
    assert rearc.attempt("abcdef01", 3, 17).refusal == "skipped"
