"""Wrong variants of the core, each a small patch, with the test that must catch it.

They are the mistakes that public samplers make or that a hurried edit would: a test that no mutant can make fail
proves nothing. `tests/test_mutants.py` runs each named test with and without its mutant.
"""

from tests.mutants import (  # each registers its own
    compositions,
    diffusion,
    evidence,
    learned,
    rivals,
    savings,
    weights,
    worlds,
)
from tests.mutants.registry import MUTANTS

__all__ = [
    "MUTANTS",
    "compositions",
    "diffusion",
    "evidence",
    "learned",
    "rivals",
    "savings",
    "weights",
    "worlds",
]
