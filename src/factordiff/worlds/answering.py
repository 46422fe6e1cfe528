"""Queries answered by a team: the loop, one pass, or all outcomes, and a record of each query."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.method import Method
from factordiff.errors import InvalidInput
from factordiff.evaluation.benchmark import answer_hashes
from factordiff.experts.condition import on_device
from factordiff.experts.forward import Forward
from factordiff.report.record import Record
from factordiff.sampling.gathered_evidence import gathered
from factordiff.sampling.request import common_vocabulary
from factordiff.sampling.reveal import ByConfidence
from factordiff.state import SamplerState
from factordiff.team.team import Team
from factordiff.toy.law import exact_law
from factordiff.types import CellLogProbs
from factordiff.worlds.metric import Filled
from factordiff.worlds.queries import Queries
from factordiff.worlds.setting import Answering, PreparedMethod, Setting


def records_of(
    prepared: PreparedMethod, queries: Queries, index: Int[Tensor, " query"], setting: Setting
) -> list[Record]:
    """A record of each of these queries, which are of one length; of several teams, the best one's."""
    asked = queries[index].cut()
    each = [_records(team, asked, index, setting) for team in prepared.teams]
    main = setting.metric.main
    passes = torch.zeros(len(index), dtype=torch.int64) + prepared.passes
    found = []
    for row, extra in enumerate(passes.tolist()):
        tries = [records[row] for records in each]
        best = max(tries, key=lambda record: main.sign * _value(record, main.name))
        nominal = sum(record.nominal for record in tries) + extra
        found.append(
            replace(best, nominal=nominal, executed=sum(record.executed for record in tries) + extra)
        )
    return found


def value_of(answering: Answering, queries: Queries, setting: Setting) -> float:
    """The main figure of a method on all these queries."""
    records = [
        record
        for index in queries.batches(setting.batch, set())
        for record in records_of(answering(queries[index].cut()), queries, index, setting)
    ]
    pairs = [record.measures[setting.metric.main.name] for record in records if record.measures]
    return sum(total for total, _ in pairs) / sum(size for _, size in pairs)


def _value(record: Record, name: str) -> float:
    assert record.measures is not None
    total, size = record.measures[name]
    return total / size if size else 0.0


def _records(team: Team, asked: Queries, index: Int[Tensor, " query"], setting: Setting) -> list[Record]:
    filled, nominal, executed = _filled(team, asked, index, setting)
    ratios = {name: (a.tolist(), b.tolist()) for name, (a, b) in setting.metric.score(filled).items()}
    wrong = filled.hidden & ~filled.right
    hashes = answer_hashes(filled.x_0)
    return [
        Record(
            query,
            asked.clusters[row],
            query,
            tuple(wrong[row].nonzero().flatten().tolist()),
            nominal[row] * setting.rows,
            executed[row] * setting.rows,
            setting.seed,
            answer=hashes[row],
            measures={name: (sums[row], sizes[row]) for name, (sums, sizes) in ratios.items()},
        )
        for row, query in enumerate(index.tolist())
    ]


def _filled(
    team: Team, asked: Queries, index: Int[Tensor, " query"], setting: Setting
) -> tuple[Filled, list[int], list[int]]:
    """What the team makes of the queries, and the passes that each took, nominal and executed."""
    hidden = asked.hidden(common_vocabulary(team.experts).mask)
    mode = setting.metric.mode
    if mode == "enumerated":
        law = enumerated(team, asked.x_t.shape[1])
        outcome = torch.tensor([list(torch.unravel_index(law.argmax(), law.shape))])
        passes = [len(team) * asked.x_t.shape[1]] * len(asked)
        return Filled(asked, hidden, outcome.expand_as(asked.x_0), law=law), passes, passes
    if mode == "one-pass":
        log_probs, spent = one_pass(team, asked, index, setting.seed)
        x_0 = torch.where(hidden, log_probs.argmax(-1), asked.x_t)
        passes = (len(team) + spent).tolist()
        return Filled(asked, hidden, x_0, log_probs), passes, passes
    samples = team.sample(asked.x_t, asked.condition, seed=setting.seed, items=index)
    filled = Filled(asked, hidden, samples.x_0.cpu())
    return filled, samples.nominal_passes.tolist(), samples.executed_passes.tolist()


@torch.no_grad()
def one_pass(
    team: Team, asked: Queries, index: Int[Tensor, " query"], seed: int = 0
) -> tuple[CellLogProbs, Int[Tensor, " query"]]:
    """The composed distribution of every hidden cell while all of them are hidden: one pass of each expert.

    And the passes that went into evidence before, where a method asks for some.
    """
    x_t, condition = asked.x_t.to(team.device), on_device(asked.condition, team.device)
    how = team.method_for(x_t.shape[1], condition)
    _check_distribution(how)
    mask, ids = common_vocabulary(team.experts).mask, index.to(team.device)
    composition, spent = gathered(how.composition, team.experts, x_t, condition, seed=seed, items=ids)
    state = SamplerState.begin(x_t, mask, len(team), seed=seed, ids=ids)
    forward = Forward(team.experts, condition, len(x_t))
    log_probs, _ = forward.whole(state, state.masked)
    forward.errors.check()
    return composition(log_probs, state).log_probs.cpu(), spent.cpu()


def enumerated(team: Team, cells: int) -> Float[Tensor, ...]:
    """The law of what the team draws, surest cell first; with a target, that of infinitely many particles."""
    how = team.method_for(cells)
    _check_distribution(how)
    weighted = how.composition.target(len(team)) is not None
    return exact_law(team.experts, how.composition, cells, reveal=ByConfidence(cells)).distribution(weighted)


def _check_distribution(how: Method) -> None:
    """Refuse methods that choose among finished answers where only distributions are looked at."""
    if how.selection == "vote" or how.paths != "alike":
        raise InvalidInput(
            f"methods: {how.name!r} chooses among answers, and in one pass there are only distributions, as in a law "
            "that is enumerated; compare it where answers are decoded"
        )
