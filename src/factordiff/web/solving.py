"""POST /solve: a body becomes work on anybody's task."""

from __future__ import annotations

from functools import partial

from factordiff.web.endpoint import Asked
from factordiff.web.limits import Limits
from factordiff.web.registry import ExpertRegistry
from factordiff.web.request import read_request
from factordiff.web.run import perform, prepare


def asked_solve(body: bytes, registry: ExpertRegistry, limits: Limits) -> Asked:
    """What a body asks for, checked."""
    request = read_request(body, registry.names(), limits)
    return Asked(lambda: partial(perform, prepare(request, registry)), request.deadline, request.stream)
