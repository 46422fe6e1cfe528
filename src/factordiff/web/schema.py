"""The schema of the JSON API, version 1, as its models have it."""

from __future__ import annotations

from typing import Any

from factordiff.web.events import EVENTS, RefusalReply
from factordiff.web.infilling import infill_model
from factordiff.web.limits import API_VERSION, Limits
from factordiff.web.request import request_model
from factordiff.web.telling import TellRequest

STATUSES = {
    "400": "not addressed to this server (Host), or not HTTP as it should be",
    "404": "no such page or task",
    "405": "the address exists, not with this method",
    "408": "the body did not arrive in time",
    "413": "the body is too large",
    "415": "the body is not declared as application/json",
    "422": "the body is not a request; the reason names the place",
    "429": "this client has too many open requests",
    "503": "the queue is full, the deadline has passed or the server is stopping",
}


def request_schema(limits: Limits) -> dict[str, Any]:
    """What POST /api/v1/solve takes."""
    return {"$id": "solve-request", **request_model(limits).model_json_schema()}


def infill_schema(limits: Limits) -> dict[str, Any]:
    """What POST /api/v1/infill takes; its events are those of a solve, over the characters of the text."""
    return {"$id": "infill-request", **infill_model(limits).model_json_schema()}


def tell_schema() -> dict[str, Any]:
    """What POST /api/v1/tell takes; its events are those of a solve."""
    return {"$id": "tell-request", **TellRequest.model_json_schema()}


def api_schema(limits: Limits) -> dict[str, Any]:
    """The whole schema, as GET /api/v1/schema gives it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "version": API_VERSION,
        "solve": {
            "request": request_schema(limits),
            "events": {name: model.model_json_schema() for name, model in EVENTS.items()},
        },
        "infill": {"request": infill_schema(limits)},
        "tell": {"request": tell_schema()},
        "refusal": RefusalReply.model_json_schema(),
        "statuses": STATUSES,
    }
