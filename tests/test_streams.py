"""Counter-based randomness against whole-number arithmetic, and what keys promise."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from factordiff.streams import Purpose, hash_words, integers, uniform
from tests import oracle

words = st.lists(st.integers(-(2**63), 2**64 - 1), min_size=1, max_size=6)


@given(words)
def test_the_hash_is_splitmix_in_whole_numbers(key: list[int]) -> None:
    assert int(hash_words(*key)) % 2**64 == oracle.hash_words(*key)


def test_the_finaliser_is_the_published_one() -> None:
    """The first number of SplitMix64 seeded with 0 and with 1234567, as its reference code prints it."""
    assert int(hash_words(0)) % 2**64 == 0xE220A8397B1DCDAF
    assert int(hash_words(1234567)) % 2**64 == 6457827717110365317


@given(words, st.integers(0, 5))
def test_tensor_words_broadcast_and_agree_with_numbers(key: list[int], place: int) -> None:
    place %= len(key)
    varied = torch.arange(7)[:, None] + torch.tensor([[0, 100]])
    found = hash_words(*key[:place], varied, *key[place + 1 :])
    assert found.shape == (7, 2)
    for row, column in ((0, 0), (3, 1), (6, 1)):
        alone = hash_words(*key[:place], int(varied[row, column]), *key[place + 1 :])
        assert found[row, column] == alone


@given(words)
def test_uniforms_are_the_top_bits(key: list[int]) -> None:
    bits = oracle.hash_words(*key)
    assert float(uniform(*key)) == (bits >> 11) / 2**53
    assert float(uniform(*key, dtype=torch.float32)) == (bits >> 40) / 2**24
    assert 0 <= float(uniform(*key)) < 1


def test_the_largest_hash_stays_below_one() -> None:
    top = torch.tensor(-1)  # all 64 bits set
    assert (top >> 11) & ((1 << 53) - 1) == 2**53 - 1
    assert (2**53 - 1) * 2.0**-53 < 1
    assert torch.tensor((2**24 - 1) * 2.0**-24, dtype=torch.float32) < 1


def test_order_and_length_of_a_key_matter() -> None:
    keys = [(1, 2), (2, 1), (1,), (1, 0), (0, 1), (0,), (0, 0), (1, 2, 0)]
    assert len({int(hash_words(*key)) for key in keys}) == len(keys)
    streams = {float(uniform(0, purpose, 5, 0, 3, 2)) for purpose in Purpose}
    assert len(streams) == len(Purpose)


@given(words, st.integers(1, 1000))
def test_integers_stay_below_their_bound(key: list[int], high: int) -> None:
    assert int(integers(high, *key)) == math.floor(oracle.hash_words(*key) // 2**11 * 2.0**-53 * high)
    assert 0 <= int(integers(high, *key)) < high


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_uniforms_are_even_and_uncorrelated_along_every_word(axis: int) -> None:
    count = 40_000
    key: list[int | torch.Tensor] = [7, 11, 13]
    key[axis] = torch.arange(count)
    u = uniform(*key)
    assert abs(float(u.mean()) - 0.5) < 5 * math.sqrt(1 / 12 / count)
    assert abs(float((u - 0.5).square().mean()) - 1 / 12) < 5 * math.sqrt(1 / 180 / count)
    for lag in (1, 2, 7):
        correlation = float(((u[lag:] - 0.5) * (u[:-lag] - 0.5)).mean() * 12)
        assert abs(correlation) < 5 / math.sqrt(count)
    tenths = torch.bincount((10 * u).long(), minlength=10)
    assert float(((tenths - count / 10).square() / (count / 10)).sum()) < 9 + 5 * math.sqrt(18)
