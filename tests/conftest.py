"""One thread per worker, and how many examples hypothesis draws: few by default, many with the slow tests."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator

import jaxtyping
import pytest
import torch
from hypothesis import settings

# Where nothing can be installed there may be no beartype (the machines with GPUs). Then jaxtyping's hook, which the
# options in pyproject.toml put in, would let no module of the package be imported; other conftests import some at once.
CHECKED = importlib.util.find_spec("beartype") is not None
if not CHECKED:
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if not type(finder).__module__.startswith("jaxtyping.")
    ]

settings.register_profile("quick", deadline=None, derandomize=True, database=None, max_examples=25)
settings.register_profile("full", deadline=None, derandomize=True, database=None, max_examples=400)


def pytest_configure(config: pytest.Config) -> None:
    if not CHECKED:
        config.issue_config_time_warning(
            pytest.PytestWarning("beartype is not installed: annotations are not checked"), stacklevel=2
        )
    quick = config.getoption("markexpr") == "not slow"
    settings.load_profile("quick" if quick else "full")
    torch.set_num_threads(1)  # tensors are tiny and pytest-xdist fills the cores


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a GPU"))


@pytest.fixture
def untyped() -> Iterator[None]:
    """Without the shape checks that only run under pytest: what a user who passes something wrong sees."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done on a CPU alone, since nothing waits there, is not done: waits for a GPU are counted without one."""
    from factordiff.composition import contenders

    monkeypatch.setattr(contenders, "NOTHING_WAITS", ())


@pytest.fixture(autouse=True)
def _no_width_but_the_tests_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command prints is as wide as a test says, not as the terminal that started it."""
    monkeypatch.delenv("COLUMNS", raising=False)
