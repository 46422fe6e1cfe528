"""Every mutant makes its named test fail, and that test passes without it: the tests are able to fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from tests.mutants import MUTANTS


def named(killed_by: str) -> Callable[..., None]:
    module, test = killed_by.split(":")
    found: Callable[..., None] = getattr(import_module(f"tests.{module}"), test)
    return found


@cache
def passes(killed_by: str, arguments: tuple[Any, ...]) -> bool:
    named(killed_by)(*arguments)
    return True


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str) -> None:
    mutant = MUTANTS[name]
    assert passes(mutant.killed_by, mutant.arguments)
    with pytest.MonkeyPatch.context() as patch:
        mutant.apply(patch)
        with pytest.raises(AssertionError):
            named(mutant.killed_by)(*mutant.arguments)


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) == 86  # a mutant that is lost is a test that may have gone blind
    properties = {
        mutant.killed_by.split(":")[1][5:7] for mutant in MUTANTS.values() if "properties" in mutant.killed_by
    }
    assert properties == {f"{number:02d}" for number in range(1, 16)}
