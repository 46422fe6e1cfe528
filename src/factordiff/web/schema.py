"""The schema of the JSON API, version 1: what a request may hold and what its events hold."""

from __future__ import annotations

from typing import Any

from factordiff.composition.method import specs
from factordiff.web.limits import API_VERSION, Limits
from factordiff.web.request import FACTORS, LARGEST_SEED, RULES

Schema = dict[str, Any]

COLOR: Schema = {"type": "integer", "minimum": 0, "maximum": 9}
CELL: Schema = {"type": "integer", "minimum": 0, "maximum": 99, "description": "row * 10 + column"}
GRID: Schema = {
    "type": "array",
    "minItems": 1,
    "maxItems": 10,
    "items": {"type": "array", "minItems": 1, "maxItems": 10, "items": COLOR},
}


def request_schema(limits: Limits) -> Schema:
    """What POST /api/v1/solve takes."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["task"],
        "properties": {
            "version": {"const": API_VERSION},
            "task": {
                "type": "object",
                "description": "as ARC's JSON spells it",
                "required": ["train", "test"],
                "properties": {
                    "train": _pairs(limits.demonstrations, ["input", "output"]),
                    "test": _pairs(limits.tests, ["input"]),
                },
            },
            "test": {
                "type": "integer",
                "minimum": 0,
                "default": 0,
                "description": "which of the task's tests",
            },
            "experts": {
                "type": "array",
                "items": {"type": "string"},
                "uniqueItems": True,
                "minItems": 1,
                "maxItems": limits.experts,
                "description": "names from /api/v1/about; ties go to the first; by default the first two",
            },
            "method": {
                "enum": list(specs()),
                "description": "routing by default, single with one expert",
            },
            "temperatures": {
                "type": "object",
                "description": "routing temperature of an expert, 1 by default",
                "additionalProperties": {"type": "number", "minimum": 0.001, "maximum": 1000},
            },
            "factors": {
                "type": "string",
                "pattern": f"^({FACTORS})$",
                "description": "pixel by default, near:2 for evidence, which alone takes near",
            },
            "reveal": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "rule": {"enum": list(RULES), "default": "fast"},
                    "steps": {"type": "integer", "minimum": 1, "maximum": limits.steps, "default": 128},
                    "threshold": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.995},
                    "gamma": {"type": "number", "minimum": 0, "maximum": 1000, "default": 0.005},
                },
            },
            "particles": {
                "type": "integer",
                "minimum": 1,
                "maximum": limits.particles,
                "description": "of fkc and rne, 8 by default; the runs of each expert in a vote, 3 by default",
            },
            "softness": {"type": "number", "minimum": 0.001, "maximum": 1000, "default": 0.1},
            "seed": {"type": "integer", "minimum": 0, "maximum": LARGEST_SEED, "default": 0},
            "given": {
                "description": "rows of the canvas: a color where a cell is fixed, null elsewhere",
                "type": ["array", "null"],
                "maxItems": 10,
                "items": {
                    "type": "array",
                    "maxItems": 10,
                    "items": {"type": ["integer", "null"], "minimum": 0, "maximum": 9},
                },
            },
            "alternative": {
                "type": "boolean",
                "default": False,
                "description": "true: attempt 2 as well, at the cost of the experts' own runs",
            },
            "stream": {
                "type": "boolean",
                "default": True,
                "description": "false: one JSON object at the end",
            },
            "detail": {"type": "boolean", "default": True, "description": "false: no distributions"},
            "deadline": {
                "type": "number",
                "minimum": 0.01,
                "maximum": limits.deadline,
                "description": "seconds",
            },
        },
    }


def _pairs(most: int, required: list[str]) -> Schema:
    return {
        "type": "array",
        "minItems": 1,
        "maxItems": most,
        "items": {"type": "object", "required": required, "properties": {"input": GRID, "output": GRID}},
    }


_VOICE: Schema = {
    "type": "object",
    "description": "one entry for each of the step's `cells`",
    "properties": {
        "best": {"type": "array", "items": COLOR, "description": "the likeliest color"},
        "log_doubt": {"type": "array", "items": {"type": "number"}, "description": "log(1 - margin)"},
        "probs": {
            "type": "array",
            "description": "the distribution over the ten colors, in thousandths; with `detail` only",
            "items": {"type": "array", "items": {"type": "integer"}, "minItems": 10, "maxItems": 10},
        },
    },
}

EVENTS: Schema = {
    "start": {
        "type": "object",
        "properties": {
            "event": {"const": "start"},
            "version": {"const": API_VERSION},
            "experts": {"type": "array", "items": {"type": "string"}},
            "masked": {"type": "integer", "description": "cells to be filled"},
        },
    },
    "step": {
        "type": "object",
        "description": "one step of the first particle; steps carry numbers, the last of a run may come late",
        "properties": {
            "event": {"const": "step"},
            "number": {"type": "integer"},
            "run": {"type": "integer", "description": "a vote has one run per expert, all others have one"},
            "x": {
                "type": "array",
                "items": {"type": "integer"},
                "description": "the canvas after the step and any resampling; 10 is MASK",
            },
            "cells": {"type": "array", "items": CELL, "description": "the cells that were asked about"},
            "revealed": {"type": "array", "items": CELL},
            "routing": {
                "type": ["array", "null"],
                "description": "the place of the expert that speaks for each of `cells`",
            },
            "compared": {
                "type": ["array", "null"],
                "description": "per expert and cell: the log-doubt that routing compares, tempered and per factor",
            },
            "composed": _VOICE,
            "experts": {"type": "array", "items": _VOICE},
        },
    },
    "answer": {
        "type": "object",
        "properties": {
            "event": {"const": "answer"},
            "version": {"const": API_VERSION},
            "canvas": {"type": "array", "items": COLOR, "minItems": 100, "maxItems": 100},
            "grid": GRID,
            "right": {
                "type": ["boolean", "null"],
                "description": "null where the task does not say what is right",
            },
            "alternative": {
                "type": ["object", "null"],
                "description": "attempt 2: the first expert's own answer that differs from `grid`, in the order of the "
                "experts; null where none does, or where it was not asked for",
                "properties": {
                    "by": {"type": "string", "description": "the expert's name"},
                    "grid": GRID,
                    "right": {"type": ["boolean", "null"]},
                },
            },
            "passes": {
                "type": "object",
                "description": "of the composition, without those of attempt 2",
                "properties": {"nominal": {"type": "integer"}, "executed": {"type": "integer"}},
            },
            "seconds": {"type": "number"},
            "trace": {
                "type": ["string", "null"],
                "description": "`Trace.to_json` of the run; null where there were several",
            },
        },
    },
    "error": {
        "type": "object",
        "description": "in a stream that had begun; before that it is the response, with its status",
        "properties": {
            "event": {"const": "error"},
            "status": {"type": "integer"},
            "reason": {"type": "string"},
        },
    },
}


def api_schema(limits: Limits) -> Schema:
    """The whole schema, as GET /api/v1/schema gives it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "version": API_VERSION,
        "solve": {"request": request_schema(limits), "events": EVENTS},
        "refusal": {
            "type": "object",
            "properties": {
                "version": {"const": API_VERSION},
                "status": {"type": "integer"},
                "reason": {"type": "string"},
            },
        },
        "statuses": {
            "400": "not addressed to this server (Host), or not HTTP as it should be",
            "404": "no such page or task",
            "405": "the address exists, not with this method",
            "408": "the body did not arrive in time",
            "413": "the body is too large",
            "415": "the body is not declared as application/json",
            "422": "the body is not a request; the reason names the place",
            "429": "this client has too many open requests",
            "503": "the queue is full, the deadline has passed or the server is stopping",
        },
    }
