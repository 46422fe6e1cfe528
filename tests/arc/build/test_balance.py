from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np

from factordiff.arc.build.balance import balanced, even_shares
from factordiff.arc.build.candidates import Candidate


def candidate(number: int, height: int, width: int) -> Candidate:
    grid = np.zeros((height, width), dtype=np.uint8)
    return Candidate(number, (grid, grid[:1, :1]), hashlib.sha256(bytes([number])).digest()[:16])


def test_shares_are_as_even_as_can_be() -> None:
    assert even_shares({3: 9, 4: 9, 5: 9}, 9) == {3: 3, 4: 3, 5: 3}
    assert even_shares({3: 9, 4: 9, 5: 9}, 11) == {3: 3, 4: 4, 5: 4}, "what is left over goes to the larger"
    assert even_shares({3: 9, 4: 1, 5: 9}, 11) == {3: 5, 4: 1, 5: 5}, "4 gives all it has"
    assert even_shares({3: 2, 4: 1, 5: 9}, 11) == {3: 2, 4: 1, 5: 8}
    assert even_shares({3: 2, 4: 1, 5: 3}, 11) == {3: 2, 4: 1, 5: 3}, "no more than there are"
    assert even_shares({}, 5) == {}


def test_large_inputs_are_taken_as_often_as_small_ones() -> None:
    """By hand: 20 of 3x3 and 3x4 (size 3), 9 of size 8 (8x8, 8x9), 2 of 10x10; nine are wanted."""
    shapes = [(3, 3)] * 12 + [(3, 4)] * 8 + [(8, 8)] * 8 + [(9, 8)] + [(10, 10)] * 2
    candidates = [candidate(number, *shape) for number, shape in enumerate(shapes)]
    taken = balanced(candidates, 9)
    areas = Counter(one.pair[0].size for one in taken)
    # 10x10 gives its 2; 7 are left for sizes 3 and 8: 3 and 4, the larger gets more.
    # In size 3 the larger area gives 2 of the 3; in size 8 area 72 has but 1, so 64 gives 3.
    assert areas == {9: 1, 12: 2, 64: 3, 72: 1, 100: 2}


def test_all_inputs_smaller_than_three_by_three_share_with_it_as_one_area() -> None:
    shapes = [(1, 1)] * 20 + [(2, 2)] * 20 + [(3, 3)] * 20 + [(4, 4)] * 20
    taken = balanced([candidate(number, *shape) for number, shape in enumerate(shapes)], 12)
    areas = Counter(one.pair[0].size for one in taken)
    assert (areas[1] + areas[4], areas[9], areas[16]) == (3, 3, 6)


def test_within_an_area_the_hash_decides_and_the_order_given_does_not() -> None:
    candidates = [candidate(number, 5, 5) for number in range(20)]
    smallest = sorted(one.orbit for one in candidates)[:6]
    assert [one.orbit for one in balanced(candidates, 6)] == smallest
    assert [one.orbit for one in balanced(candidates[::-1], 6)] == smallest


def test_area_is_that_of_the_input() -> None:
    small, large = np.zeros((2, 2), dtype=np.uint8), np.zeros((9, 9), dtype=np.uint8)
    candidates = [Candidate(n, (small, large), bytes([n])) for n in range(5)]
    candidates.append(Candidate(9, (large, small), b"\xff"))
    assert {one.number for one in balanced(candidates, 2)} == {0, 9}
