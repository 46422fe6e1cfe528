"""What a trace tells agrees with what was drawn, and survives JSON."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff.composition.confidence import margin
from factordiff.composition.correctors import feynman_kac, rne
from factordiff.composition.evidence import Evidence
from factordiff.composition.mixture import Mixture
from factordiff.composition.routing import Routing
from factordiff.composition.single import Single
from factordiff.errors import DataError
from factordiff.experts.tabular import TabularExpert
from factordiff.sampling.adaptive import ByMargin, Repaired
from factordiff.sampling.particles import effective_size
from factordiff.sampling.path import path_steps
from factordiff.sampling.reveal import Ancestral, ByConfidence, RevealRule
from factordiff.sampling.sampler import sample
from factordiff.sampling.samples import Samples
from factordiff.sampling.trace import Trace, TraceStep
from tests.toy import CELLS, EXPERTS, MASK, P_1, empty, states

METHODS = {"mixture": Mixture(), "routing": Routing(), "fkc": feynman_kac([1.0, 1.0]), "rne": rne([1.0, 1.0])}
RULES = [ByConfidence(3), ByConfidence(40), Ancestral(6)]


def traced(method: str, reveal: RevealRule) -> tuple[Samples, Trace, torch.Tensor]:
    x_t = states(1, 12, CELLS, MASK, hidden=0.8)
    drawn = sample(
        EXPERTS,
        METHODS[method],
        x_t,
        reveal=reveal,
        temperature=1.0,
        particles=4,
        seed=3,
        trace=True,
    )
    assert drawn.trace is not None
    return drawn, drawn.trace, x_t


@pytest.mark.parametrize("reveal", RULES, ids=repr)
@pytest.mark.parametrize("method", METHODS)
def test_replaying_a_trace_gives_the_samples(method: str, reveal: RevealRule) -> None:
    drawn, trace, x_t = traced(method, reveal)
    assert trace.start == x_t.tolist()
    now = x_t[:, None].repeat(1, 4, 1)
    passes = torch.zeros(12, dtype=torch.int64)
    for step in trace.steps:
        after = torch.tensor(step.x)
        opened = torch.zeros_like(now, dtype=torch.bool)
        for item, rows in enumerate(step.revealed):
            for particle, cells in enumerate(rows):
                opened[item, particle, cells] = True
        assert (now[opened] == MASK).all()  # only masked cells are revealed
        assert (after[opened] != MASK).all()
        assert torch.equal(after[~opened], now[~opened])  # and nothing else changes
        asked = opened.any(-1)
        passes += 2 * asked.sum(-1)
        # margins and routing are told for the cells that were masked, in rows that were asked about, and no others
        spoken = ((now == MASK) & asked.unsqueeze(-1)).tolist()
        told = [[[m is not None for m in row] for row in item] for item in step.margin]
        assert told == spoken
        if step.routing is not None:
            assert [[[z >= 0 for z in row] for row in item] for item in step.routing] == spoken
        now = after
        if step.ancestors is not None:
            now = now.gather(1, torch.tensor(step.ancestors)[:, :, None].expand_as(now))
    assert torch.equal(now, drawn.particles)
    assert torch.equal(passes, drawn.executed_passes)


@pytest.mark.parametrize("reveal", RULES, ids=repr)
@pytest.mark.parametrize("method", METHODS)
def test_weights_sizes_and_margins_are_those_of_the_run(method: str, reveal: RevealRule) -> None:
    drawn, trace, x_t = traced(method, reveal)
    clock = torch.full((12,), -1)
    now = x_t[:, None].repeat(1, 4, 1)
    for step in trace.steps:
        log_w = torch.tensor([[-math.inf if w is None else w for w in row] for row in step.log_w]).double()
        moved = torch.tensor([any(map(bool, rows)) for rows in step.revealed])
        assert (torch.tensor(step.step)[moved] > clock[moved]).all()  # each item's clock runs forward
        clock = torch.tensor(step.step)
        if method == "routing":
            log_p = torch.stack([expert.log_probs(now.flatten(0, 1)) for expert in EXPERTS])
            margins = margin(log_p).view(2, 12, 4, CELLS)
            for item, row, cell in (now == MASK).nonzero().tolist():
                if step.margin[item][row][cell] is not None:
                    assert step.routing is not None
                    z = step.routing[item][row][cell]
                    assert z == int(margins[:, item, row, cell].argmax())
                    assert step.margin[item][row][cell] == pytest.approx(float(margins[z, item, row, cell]))
        if step.ess is not None:
            assert step.ancestors is not None
            assert step.ess == pytest.approx(effective_size(log_w).tolist())
            for item, size in enumerate(step.ess):
                if size >= 2:  # half of four
                    assert step.ancestors[item] == [0, 1, 2, 3]
        else:
            assert (log_w == 0).all()
        now = torch.tensor(step.x)
        if step.ancestors is not None:
            now = now.gather(1, torch.tensor(step.ancestors)[:, :, None].expand_as(now))
    assert drawn.trace is not None


@pytest.mark.parametrize("reveal", RULES, ids=repr)
@pytest.mark.parametrize("method", METHODS)
def test_json_brings_back_the_same_trace(method: str, reveal: RevealRule) -> None:
    _, trace, _ = traced(method, reveal)
    text = trace.to_json()
    again = Trace.from_json(text)
    assert again == trace
    assert again.to_json() == text
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_dead_particles_and_certain_cells_survive_json() -> None:
    apart = [TabularExpert(torch.tensor([1.0, 0.0])), TabularExpert(torch.tensor([0.0, 1.0]))]
    drawn = sample(apart, feynman_kac([1.0, 1.0]), empty(2, 1, 2), temperature=1.0, particles=3, trace=True)
    assert drawn.trace is not None
    assert drawn.trace.steps[-1].log_w == [[None] * 3] * 2
    assert Trace.from_json(drawn.trace.to_json()) == drawn.trace
    sure = sample(apart[:1], Mixture(), empty(1, 1, 2), trace=True)
    assert sure.trace is not None
    assert sure.trace.steps[0].margin == [[[1.0]]]


def test_a_trace_changes_nothing_and_is_only_made_on_request() -> None:
    plain = sample(EXPERTS, Mixture(), empty(5), temperature=1.0)
    told = sample(EXPERTS, Mixture(), empty(5), temperature=1.0, trace=True)
    assert plain.trace is None
    assert torch.equal(plain.particles, told.particles)


def broken(change: dict[str, Any]) -> str:
    _, trace, _ = traced("mixture", ByConfidence(3))
    return json.dumps({**json.loads(trace.to_json()), **change})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "{",
        "null",
        '{"version": 1}',
        '{"version": 1, "values": 3, "start": [], "steps": [{}]}',
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="trace: expected"):
        Trace.from_json(text)


def test_other_versions_and_unknown_fields_are_refused() -> None:
    with pytest.raises(DataError, match="trace: expected version 1"):
        Trace.from_json(broken({"version": 2}))
    with pytest.raises(DataError, match="trace: expected"):
        Trace.from_json(broken({"more": 1}))


def test_weights_are_told_where_they_were_worked_out() -> None:
    x_t = states(1, 5, CELLS, MASK, hidden=0.8)
    drawn = sample(EXPERTS, Evidence(), x_t, temperature=1.0, particles=2, trace=True)
    assert drawn.trace is not None
    assert Trace.from_json(drawn.trace.to_json()) == drawn.trace
    for step in drawn.trace.steps:
        assert step.weights is not None
        assert step.routing is not None
        for item, routes in zip(step.weights, step.routing, strict=True):
            for particle, route in zip(item, routes, strict=True):
                for cell, speaker in enumerate(route):
                    each = [weights[cell] for weights in particle]
                    if speaker == -1:
                        assert each == [None, None]
                    else:
                        assert sum(each) == pytest.approx(1.0, abs=2e-6)  # type: ignore[arg-type]
                        assert each[speaker] == max(each)  # type: ignore[type-var]
    plain = sample(EXPERTS, Mixture(), x_t, trace=True).trace
    assert plain is not None
    assert all(step.weights is None for step in plain.steps)


def test_who_decided_is_who_spoke_when_a_cell_was_revealed() -> None:
    steps = [
        TraceStep([0], [[[1, 2, 2]]], [[[0]]], [[[1, 0, 0]]], [[[0.5, 0.5, 0.5]]], [[0.0]], None, None),
        TraceStep([1], [[[1, 2, 0]]], [[[2]]], [[[-1, 0, 0]]], [[[None, 0.5, 0.5]]], [[0.0]], None, None),
    ]
    assert Trace(2, [[2, 1, 2]], steps).deciders() == [[1, None, 0]]
    assert Trace(2, [[2, 1, 2]], [replace(step, routing=None) for step in steps]).deciders() == [[None] * 3]


@pytest.mark.parametrize("rule", [ByMargin(1.0), Repaired(ByMargin(0.4), 0.6, 2)], ids=repr)
def test_a_path_shows_what_the_experts_saw(rule: RevealRule) -> None:
    """Cells that a repair took back were masked when they were asked about again, and all of them at once."""
    seen: list[list[int]] = []

    class Watching(TabularExpert):
        def log_probs(self, x_t: Tensor, encoded: Any = None) -> Tensor:
            seen.extend(x_t.tolist())
            return super().log_probs(x_t, encoded)

    drawn = sample([Watching(P_1)], Single(), empty(1), reveal=rule, trace=True)
    assert [step.before for step in path_steps(drawn)] == seen
    assert len(seen) > CELLS or not rule.repairs
