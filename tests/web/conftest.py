"""Servers for the tests; the browser's tests are run by `make test-web` only."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.web.serving import Served, serve
from tests.web.stubs import copying

collect_ignore = [] if os.environ.get("FACTORDIFF_BROWSER") else ["browser"]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A server with two quick experts that copy the query."""
    with serve(copying()) as running:
        yield running
