"""Which candidates of a task to take so that small and large inputs come alike.

The rule: an input smaller than 3x3, which ARC hardly has, counts as one of 8 cells, and one of n cells is of size
isqrt(n), but at least 3. So there are eight sizes, 3 to 10; only 10x10 itself is of size 10, and 64 cells are where
size 8 begins. The wanted number is shared as evenly over the sizes as the candidates allow: a size with fewer than
an even share gives all it has, and what is missing is shared by the others. A size's share is then shared in the
same way over its areas (72 cells, 80 cells), and of each area those come first whose orbit has the smallest name,
which is a hash. What cannot be shared evenly goes to the larger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import isqrt

from factordiff.arc.build.candidates import Candidate

SMALLEST = 3  # the side of the square below which neither sizes nor areas are told apart


def size_of(area: int) -> int:
    """The size that an input of that many cells counts as: 3 to 10.

    >>> [size_of(area) for area in (1, 9, 15, 16, 63, 64, 90, 100)]
    [3, 3, 3, 4, 7, 8, 9, 10]
    """
    return max(isqrt(area), SMALLEST)


def balanced(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """`count` of the candidates, or all if they are fewer, spread over sizes and areas; ordered by orbit."""
    sizes: dict[int, dict[int, list[Candidate]]] = defaultdict(lambda: defaultdict(list))
    for candidate in sorted(candidates, key=lambda candidate: candidate.orbit):
        area = max(candidate.pair[0].size, SMALLEST**2 - 1)
        sizes[size_of(area)][area].append(candidate)
    of_size = even_shares({size: sum(map(len, areas.values())) for size, areas in sizes.items()}, count)
    taken = []
    for size, areas in sizes.items():
        of_area = even_shares({area: len(found) for area, found in areas.items()}, of_size[size])
        for area, found in areas.items():
            taken += found[: of_area[area]]
    return sorted(taken, key=lambda candidate: candidate.orbit)


def even_shares(available: Mapping[int, int], total: int) -> dict[int, int]:
    """`total` shared as evenly as `available` allows, the remainder to the largest keys that have any left.

    >>> even_shares({3: 1, 4: 9, 5: 9}, 10)
    {3: 1, 4: 4, 5: 5}
    """
    shares = dict.fromkeys(available, 0)
    while left := min(total, sum(available.values())) - sum(shares.values()):
        unfilled = sorted((key for key in shares if shares[key] < available[key]), reverse=True)
        for key in unfilled[:left]:
            shares[key] += min(max(left // len(unfilled), 1), available[key] - shares[key])
    return shares
