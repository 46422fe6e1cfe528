"""One thread per worker, and how many examples hypothesis draws: few by default, many with the slow tests."""

from __future__ import annotations

from collections.abc import Iterator

import jaxtyping
import pytest
import torch
from hypothesis import settings

settings.register_profile("quick", deadline=None, derandomize=True, database=None, max_examples=25)
settings.register_profile("full", deadline=None, derandomize=True, database=None, max_examples=400)


def pytest_configure(config: pytest.Config) -> None:
    quick = config.getoption("markexpr") == "not slow"
    settings.load_profile("quick" if quick else "full")
    torch.set_num_threads(1)  # tensors are tiny and pytest-xdist fills the cores


@pytest.fixture
def untyped() -> Iterator[None]:
    """Without the shape checks that only run under pytest: what a user who passes something wrong sees."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
