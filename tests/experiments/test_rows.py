"""Rows: interrupted and divided runs give the records of one whole run."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch

from factordiff.composition.factors import components
from factordiff.composition.method import Method, spec
from factordiff.engine.decode import decode, drawn_by_weight
from factordiff.errors import DataError, InvalidInput
from factordiff.evaluation.runs import RunSettings, build_method, header
from factordiff.experiments.pairs import COL_OCC, FULL_FULL, single
from factordiff.experiments.runner import Callbacks, check_only
from factordiff.report.record import Record
from factordiff.report.records import Batch, append, open_records, read_records
from factordiff.report.run_spec import RunSpec
from factordiff.sampling.reveal import ByConfidence
from tests.experiments.lookup import lookup_bench

SMALL = RunSettings(steps=4, particles=4, batch_size=5)
FKC = RunSpec(FULL_FULL.experts, "fkc")


def records(runner, row):
    return read_records(row.file(runner.context.folder)).records


@pytest.fixture(scope="session")
def whole(sets, tmp_path_factory):
    runner = lookup_bench(sets, tmp_path_factory.mktemp("whole"), settings=SMALL)
    runner.run([FKC])
    return records(runner, FKC)


def test_a_record_tells_everything(whole, sets):
    assert [record.query for record in whole] == list(range(12))
    assert [record.task for record in whole] == sets["test"].task_ids
    assert all(record.nominal == 2 * 4 * 4 for record in whole)
    assert all(record.executed <= record.nominal for record in whole)
    assert all(record.drawn is not None for record in whole)
    assert all(len(record.answer) == 8 for record in whole)


def test_an_interrupted_run_continues(whole, sets, tmp_path):
    runner = lookup_bench(sets, tmp_path, settings=SMALL)
    late = replace(runner.context, deadline=time.monotonic() - 1)
    runner.run([FKC], late)
    assert not FKC.file(tmp_path).exists()
    runner.limit = 7
    runner.run([FKC])
    assert len(records(runner, FKC)) == 7
    path = FKC.file(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    runner.limit = None
    runner.run([FKC])
    assert records(runner, FKC) == whole


def test_parts_add_up_in_any_order(whole, sets, tmp_path):
    runner = lookup_bench(sets, tmp_path, settings=SMALL)
    for part in (2, 0, 1):
        runner.run([FKC], replace(runner.context, part=(part, 3)))
    assert records(runner, FKC) == whole


def test_other_weights_or_settings_are_refused(sets, tmp_path):
    lookup_bench(sets, tmp_path, settings=SMALL).run([single("trans-occ")])
    with pytest.raises(DataError, match=r"settings.steps is 4 in the file and 5 now"):
        lookup_bench(sets, tmp_path, settings=replace(SMALL, steps=5)).run([single("trans-occ")])
    with pytest.raises(DataError, match="data is 'data' in the file and 'other' now"):
        lookup_bench(sets, tmp_path, settings=SMALL, data="other").run([single("trans-occ")])


def test_a_file_from_before_there_was_a_choice_is_continued_as_the_usual(tmp_path):
    weights = {"trans-full": "a", "conv-full": "b"}
    usual = header(FKC, SMALL, weights, "data", 12)
    before = {**usual, "method": {key: one for key, one in usual["method"].items() if key != "resampling"}}
    path = FKC.file(tmp_path)
    open_records(path, before)
    append(path, Batch((Record(0, "aaaaaaaa", 800, (), 100, 90, 3),), 1.0, "cpu", "abc"))
    open_records(path, usual)
    with pytest.raises(DataError, match=r"method\.resampling is None in the file and 1\.0 now"):
        open_records(
            path, {**header(replace(FKC, resampling=1.0), SMALL, weights, "data", 12), "row": FKC.name}
        )


def test_both_readings_come_from_one_run(sets, tmp_path):
    runner = lookup_bench(sets, tmp_path)
    experts = [runner.experts(name).expert for name in FULL_FULL.experts]
    queries, items = sets["test"], torch.arange(12)
    start = torch.full((12, 100), 10)
    how = spec("rne").method({}, ["full", "full"])
    rule = ByConfidence(4)
    once = decode(how, experts, start, queries.condition(), reveal=rule, seed=4, items=items)
    draw = Method("rne", how.composition, how.temperature, how.particles, "draw")
    again = decode(draw, experts, start, queries.condition(), reveal=rule, seed=4, items=items)
    assert torch.equal(drawn_by_weight(once, 4, items), again.x_0)
    assert not torch.equal(once.x_0, again.x_0)


def test_factors_of_a_batch_belong_to_its_queries(sets):
    index = torch.tensor([7, 2])
    row = COL_OCC.row("routing", factors="component")
    how = build_method(row, RunSettings(), ["color", "occupancy"], sets["test"], index)
    inputs = sets["test"].condition(index).query.view(-1, 10, 10)
    assert torch.equal(how.composition.partition, components(inputs))
    assert how.composition.temperatures == (1.0, 0.25)
    whole = COL_OCC.row("routing", factors="whole")
    how = build_method(whole, RunSettings(), ["color", "occupancy"], sets["test"], index)
    assert how.composition.partition.unique().tolist() == [0]
    with pytest.raises(InvalidInput, match="factors: expected one of pixel, row"):
        build_method(
            replace(row, factors="magic"), RunSettings(), ["color", "occupancy"], sets["test"], index
        )


def test_names_tell_rows_apart():
    rows = [
        FKC,
        replace(FKC, beta=(1.0, 1.0)),
        replace(FKC, resampling=1.0),
        replace(FKC, method="routing"),
        replace(FKC, method="routing", temperatures=(1.0, 0.25)),
        replace(FKC, method="routing", factors="row"),
        replace(FKC, split="validation"),
    ]
    assert len({row.name for row in rows}) == len(rows)
    # temperatures of 1 are none at all
    assert replace(rows[2], temperatures=(1.0, 1.0)).name == rows[2].name


def test_only_selects_by_method_experts_or_name(sets, tmp_path):
    by_row = FULL_FULL.row("routing", factors="row")
    rows = [single("trans-full"), single("conv-full"), FULL_FULL.row("routing"), by_row, FKC]
    asked = {
        "fkc": [FKC],
        "trans-full": [rows[0]],
        "trans-full+conv-full": rows[2:],
        "routing": rows[2:4],
        "test.trans-full+conv-full.routing": [rows[2]],
        "row": [by_row],
        "single,fkc": [*rows[:2], FKC],
    }
    for only, expected in asked.items():
        check_only(only, rows)
        assert lookup_bench(sets, tmp_path, only=only).planned(rows) == expected
    with pytest.raises(InvalidInput, match="only: no row of this experiment is called magic"):
        check_only("fkc,magic", rows)


def test_a_plan_has_each_row_once_with_the_most_queries(sets, tmp_path):
    rows = [single("trans-full", 10), single("trans-full"), single("conv-full", 10), single("conv-full", 11)]
    runner = lookup_bench(sets, tmp_path)
    assert runner.planned(rows) == [single("trans-full"), single("conv-full", 11)]
    runner.limit = 4
    assert runner.planned(rows) == [single("trans-full", 4), single("conv-full", 4)]


def test_machines_share_the_queries_and_their_records_are_those_of_one(whole, tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    ended = subprocess.run(
        [*command, "-m", "tests.experiments.two_machines", str(tmp_path)], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == [f"{FKC.name}.jsonl.gz"]
    assert read_records(FKC.file(tmp_path)).records == whole


def test_what_a_machine_left_behind_is_gathered_not_run_again(whole, sets, tmp_path):
    runner = lookup_bench(sets, tmp_path, settings=SMALL)
    runner.run([FKC], replace(runner.context, part=(0, 2)))
    left = FKC.file(tmp_path)
    left.rename(left.with_name(f"{FKC.name}.rank3.jsonl.gz"))
    ran = []
    runner.callbacks = Callbacks(batch=lambda queries, passes: ran.append(queries))
    runner.run([FKC])
    assert records(runner, FKC) == whole
    assert sum(ran) + len(read_part(whole)) == 12
    assert [path.name for path in tmp_path.iterdir()] == [left.name]


def read_part(whole):
    """Batches hold two queries (half of five): the even ones were done."""
    return [record for record in whole if record.query // 2 % 2 == 0]


@pytest.mark.parametrize("row", [FKC, RunSpec(FULL_FULL.experts, "rne"), RunSpec(FULL_FULL.experts, "vote")])
def test_passes_of_few_sizes_give_the_same_records(row, sets, tmp_path):
    """What compiled experts are given: particles that agree are asked once, and the pass is filled up again."""
    asked, engine = {}, {}
    for compiled in (False, True):
        settings = replace(SMALL, compiled=compiled)
        runner = lookup_bench(sets, tmp_path / str(compiled), settings=settings)
        engine[compiled] = settings.engine(row, (), torch.device("cpu"), 2)
        sizes = asked[compiled] = set()
        runner.experts = listening(runner.experts, sizes)
        runner.run([row])
        assert sizes
    one, other = (read_records(row.file(tmp_path / str(compiled))).records for compiled in (False, True))
    assert one == other
    assert asked[True] <= set(engine[True].batch.sizes)
    assert engine[False].batch is None


def listening(experts, sizes):
    """The same experts, with a note of how many rows each pass has."""

    class Heard:
        def __init__(self, expert):
            self.vocabulary, self.encode, self.expert = expert.vocabulary, expert.encode, expert

        def log_probs(self, x_t, encoded):
            sizes.add(len(x_t))
            return self.expert.log_probs(x_t, encoded)

    return lambda name: replace(experts(name), expert=Heard(experts(name).expert))
