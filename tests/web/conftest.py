"""Servers for the tests; the browser's tests are run by `make test-web` only."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from factordiff.web import server
from tests.web.serving import Served, serve
from tests.web.stubs import SPELLERS, copying, spellers

collect_ignore = [] if os.environ.get("FACTORDIFF_BROWSER") else ["browser"]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server with two quick experts that copy the query."""
    with serve(copying()) as running:
        yield running


@pytest.fixture(scope="module")
def reading() -> Iterator[Served]:
    """The same, and two experts of text that spell the alphabet."""
    with pytest.MonkeyPatch.context() as patch, serve(copying()) as running:
        patch.setattr(server, "text_experts", lambda device: spellers())
        patch.setattr(server, "text_names", lambda: list(SPELLERS))
        yield running
