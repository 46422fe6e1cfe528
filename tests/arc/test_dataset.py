from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from factordiff.arc.artefact import encode_ids, make_artefact, save_artefact
from factordiff.arc.build.balance import size_of
from factordiff.arc.dataset import Dataset, draw_context, draw_symmetry
from factordiff.arc.grid import to_canvas
from factordiff.arc.instances import instance_grids
from factordiff.arc.symmetry import transform
from factordiff.errors import DataError, InvalidInput
from factordiff.streams import Purpose, integers

ITEMS = torch.arange(300)


def per_item(dataset: Dataset, seed: int, step: int, item: int, frames: int) -> list[np.ndarray]:
    """One item the plain way: ragged grids, one after the other."""
    number = torch.tensor([item])
    task, query = divmod(int(integers(len(dataset.tasks) * 760, seed, Purpose.QUERY, step, number)), 760)
    left, context = [other for other in range(760) if other != query], []
    for frame in range(frames):
        place = int(integers(len(left), seed, Purpose.CONTEXT, step, number, frame))
        context.append(left.pop(place))
    symmetry = int(integers(8, seed, Purpose.SYMMETRY, step, number))
    grids = [
        grid for instance in (query, *context) for grid in instance_grids(dataset.artefact, task, instance)
    ]
    return [to_canvas(transform(grid, symmetry)) for grid in grids]


@pytest.mark.parametrize("frames", [1, 3, 5])
def test_a_batch_is_what_drawing_item_by_item_gives(dataset: Dataset, frames: int) -> None:
    condition, x_0 = dataset.draw(7, 40, ITEMS, frames=frames)
    for item in range(0, 300, 7):
        query, answer, *context = per_item(dataset, 7, 40, item, frames)
        assert np.array_equal(condition.query[item], query)
        assert np.array_equal(x_0[item], answer)
        assert np.array_equal(condition.context_inputs[item], np.stack(context[0::2]))
        assert np.array_equal(condition.context_outputs[item], np.stack(context[1::2]))
    assert condition.present.all()
    assert x_0.dtype == torch.int64


def test_a_batch_does_not_depend_on_how_it_is_cut(dataset: Dataset) -> None:
    """Two ranks, another order, a step that is a tensor: always the same items."""
    whole, x_0 = dataset.draw(1, 5, ITEMS)
    for part in (ITEMS[0::2], ITEMS[1::2], ITEMS.flip(0), ITEMS[17:18]):
        drawn, answers = dataset.draw(torch.tensor(1), torch.tensor(5), part)
        assert torch.equal(answers, x_0[part])
        assert torch.equal(drawn.query, whole.query[part])
        assert torch.equal(drawn.context_outputs, whole.context_outputs[part])
    for seed, step in ((1, 6), (2, 5)):
        assert not torch.equal(dataset.draw(seed, step, ITEMS)[1], x_0)


def test_frames_are_distinct_and_never_the_query() -> None:
    items = torch.arange(200_000)
    query = integers(760, 3, Purpose.QUERY, 0, items)
    context = draw_context(3, 0, items, query, 5)
    shown = torch.cat([query[:, None], context], dim=1).sort(dim=1).values
    assert (shown.diff(dim=1) > 0).all()
    assert shown.min() == 0
    assert shown.max() == 759


def test_a_list_can_be_asked_again_with_other_demonstrations(dataset: Dataset) -> None:
    once, thrice = dataset.evaluation("validation"), dataset.evaluation("validation", rounds=3)
    assert len(thrice) == 3 * len(once)
    for turn in range(3):
        part = slice(turn * len(once), (turn + 1) * len(once))
        assert torch.equal(thrice.queries[part], once.queries)
        assert torch.equal(thrice.condition(part).query, once.condition().query)
        assert thrice.task_ids[part] == once.task_ids
        same = (thrice.frames[part] == once.frames).all(1)
        assert bool(same.all()) if turn == 0 else int(same.sum()) <= 1
    # Demonstrations are training instances of the query's own task, none twice.
    assert torch.equal(thrice.frames // 1000, thrice.task_indices[:, None].expand(-1, 3))
    assert int((thrice.frames % 1000).max()) == 759
    assert (thrice.frames.sort(1).values.diff(dim=1) > 0).all()
    assert torch.equal(dataset.evaluation("validation", 5, 3).frames[:5], once.frames[:5])
    for split, rounds in (("official", 2), ("validation", 0)):
        with pytest.raises(InvalidInput, match=f"rounds: expected 1, or up to .*got {rounds} on {split}"):
            dataset.evaluation(split, rounds=rounds)  # type: ignore[arg-type]


@pytest.mark.parametrize("frame", range(5))
def test_every_other_instance_is_equally_likely_in_every_frame(frame: int) -> None:
    items = torch.arange(759 * 200)
    context = draw_context(4, 0, items, torch.full_like(items, 400), 5)
    counts = torch.bincount(context[:, frame], minlength=760)
    assert counts[400] == 0
    # Pearson's statistic has mean 758 and variance 2 * 758.
    statistic = ((counts.double() - 200) ** 2 / 200).sum() - 200
    assert abs(statistic - 758) < 4 * (2 * 758) ** 0.5


def test_symmetries_come_in_proportion_to_their_weights() -> None:
    items = torch.arange(100_000)
    weights = torch.tensor([4.0, 1, 0, 1, 0, 1, 1, 0])
    for share, counts in (
        (torch.full((8,), 1 / 8), torch.bincount(draw_symmetry(0, 0, items), minlength=8)),
        (weights / weights.sum(), torch.bincount(draw_symmetry(0, 0, items, weights), minlength=8)),
    ):
        error = (share * (1 - share) / len(items)).sqrt()
        assert ((counts / len(items) - share).abs() <= 4 * error).all()


def test_only_the_identity_leaves_the_grids_alone(dataset: Dataset) -> None:
    condition, x_0 = dataset.draw(0, 0, ITEMS, symmetry_weights=torch.eye(8)[0])
    pairs = {
        (given.tobytes(), answer.tobytes())
        for given, answer in zip(
            dataset.artefact.arrays["inputs"][:, :760].reshape(-1, 100),
            dataset.artefact.arrays["outputs"][:, :760].reshape(-1, 100),
            strict=True,
        )
    }
    for given, answer in zip(condition.query.byte().numpy(), x_0.byte().numpy(), strict=True):
        assert (given.tobytes(), answer.tobytes()) in pairs


def test_tasks_can_be_chosen_and_are_uniform(dataset: Dataset) -> None:
    chosen = torch.tensor([3, 50, 119])
    outputs = dataset.canvases[:, 1].reshape(120, 1000, 100).long()
    _, x_0 = dataset.draw(0, 0, ITEMS, tasks=chosen, symmetry_weights=torch.eye(8)[0])
    found = [
        torch.stack([(outputs[task] == answer).all(-1).any() for task in chosen.tolist()]) for answer in x_0
    ]
    assert all(hits.any() for hits in found)
    assert torch.stack(found).any(0).all()


def test_the_number_of_frames_may_vary(dataset: Dataset) -> None:
    condition, _ = dataset.draw(0, 0, torch.arange(3000), frames=5, min_frames=2)
    used = condition.present.sum(1)
    assert torch.equal(condition.present, torch.arange(5)[None] < used[:, None])
    counts = torch.bincount(used, minlength=6) / 3000
    assert counts[:2].sum() == 0
    assert ((counts[2:] - 0.25).abs() < 4 * (0.25 * 0.75 / 3000) ** 0.5).all()
    assert not condition.context_inputs[~condition.present].any()
    fixed, _ = dataset.draw(0, 0, torch.arange(3000), frames=5)
    assert torch.equal(fixed.context_outputs[condition.present], condition.context_outputs[condition.present])


def test_drawing_is_one_graph_without_the_host(dataset: Dataset) -> None:
    """Tracing without values refuses any dependence of Python on them, and so does capturing on a device."""
    alike = dataset.exchangeable()

    def draw(step: torch.Tensor, items: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        condition, x_0 = dataset.draw(0, step, items, 4, torch.ones(8), min_frames=1, alike=alike, rename=0.5)
        return condition.query, condition.context_inputs, x_0

    traced = make_fx(draw, tracing_mode="fake", _allow_non_fake_inputs=True)(torch.tensor(3), ITEMS)
    for step in (torch.tensor(0), torch.tensor(9)):
        assert all(map(torch.equal, traced(step, ITEMS), draw(step, ITEMS)))


@pytest.mark.parametrize(
    ("options", "name"),
    [({"frames": 0}, "frames"), ({"frames": 6}, "frames"), ({"frames": 3, "min_frames": 4}, "min_frames")],
)
def test_impossible_numbers_of_frames_are_refused(
    dataset: Dataset, options: dict[str, int], name: str
) -> None:
    with pytest.raises(InvalidInput, match=name):
        dataset.draw(0, 0, ITEMS, **options)


def test_loading_takes_under_a_second() -> None:
    Dataset.load()
    started = time.perf_counter()
    Dataset.load()
    assert time.perf_counter() - started < 1.0


def test_a_training_only_set_gives_a_share_of_the_items(tmp_path: Path) -> None:
    """Of items from it, query and demonstrations alike are its instances; the others are as without it."""
    shipped = Dataset.load()
    count, tasks = 5, len(shipped.tasks)
    shapes = np.full((tasks, count, 2), 9, dtype=np.uint8)
    canvas = np.zeros((10, 10), dtype=np.uint8)
    canvas[:9, :9] = 7  # nothing in the shipped set looks like this
    grids = np.tile(canvas.reshape(-1), (tasks, count, 1))
    grids[:, :, 0] = np.arange(count)  # but its instances differ
    arrays = {
        "tasks": encode_ids(shipped.tasks),
        "inputs": grids,
        "outputs": grids,
        "input_shapes": shapes,
        "output_shapes": shapes,
    }
    file = tmp_path / "more.npz"
    save_artefact(make_artefact(arrays, {}), file)
    dataset = Dataset.load(more=file)
    plain, x_0 = shipped.draw(3, 4, ITEMS)
    mixed, answers = dataset.draw(3, 4, ITEMS, more=0.4, symmetry_weights=torch.tensor([1.0] + [0.0] * 7))
    mine = (mixed.query[:, 1] == 7) & (mixed.query[:, 88] == 7)
    assert 0.3 < float(mine.double().mean()) < 0.5
    assert (mixed.context_inputs[mine][:, :, 1] == 7).all()
    number = torch.cat([mixed.query[mine][:, None, 0], mixed.context_inputs[mine][:, :, 0]], 1)
    assert all(len(set(row)) == 4 for row in number.tolist())  # distinct, and never the query
    assert set(number.flatten().tolist()) == set(range(count))
    identity, right = shipped.draw(3, 4, ITEMS, symmetry_weights=torch.tensor([1.0] + [0.0] * 7))
    assert torch.equal(mixed.query[~mine], identity.query[~mine])
    assert torch.equal(answers[~mine], right[~mine])
    unused = dataset.draw(3, 4, ITEMS)
    assert torch.equal(unused[1], x_0)
    assert torch.equal(unused[0].context_outputs, plain.context_outputs)
    assert dataset.sha256 != shipped.sha256


def test_queries_evenly_over_sizes(dataset: Dataset) -> None:
    table = dataset.evenly_sized()
    areas = dataset.artefact.arrays["input_shapes"].astype(int).prod(axis=2)
    for task in range(0, len(dataset.tasks), 17):
        sizes = [size_of(int(areas[task, i])) for i in table[task].tolist()]
        counts = Counter(sizes)
        assert max(counts.values()) - min(counts.values()) <= 1
        assert set(counts) == {size_of(int(area)) for area in areas[task, :760]}
    items = torch.arange(20_000)
    plain, _ = dataset.draw(3, 4, items)
    some, _ = dataset.draw(3, 4, items, by_size=table, sized=0.5)
    every, _ = dataset.draw(3, 4, items, by_size=table, sized=1.0)
    cells = [
        told.inside.query.sum(1).double().mean() for told in (plain, some, every) if told.inside is not None
    ]
    assert cells[0] < cells[1] < cells[2]
    kept = (plain.query == some.query).all(1).double().mean()
    assert 0.45 < kept < 0.6  # half are not drawn again; the others seldom meet themselves
    none, _ = dataset.draw(3, 4, items, by_size=table, sized=0.0)
    assert torch.equal(none.query, plain.query)


def test_a_share_of_nothing_is_refused(dataset: Dataset) -> None:
    with pytest.raises(InvalidInput, match=r"more: 0.5 of the items from a training-only set, but none"):
        dataset.draw(0, 0, ITEMS, more=0.5)


def test_a_training_only_set_of_other_tasks_is_refused(tmp_path: Path) -> None:
    empty = np.zeros((1, 1, 100), dtype=np.uint8), np.ones((1, 1, 2), dtype=np.uint8)
    arrays = {"tasks": encode_ids(["00000000"]), "inputs": empty[0], "outputs": empty[0]}
    arrays |= {"input_shapes": empty[1], "output_shapes": empty[1]}
    save_artefact(make_artefact(arrays, {}), tmp_path / "more.npz")
    with pytest.raises(DataError, match=r"its tasks are not those of rearc\.npz"):
        Dataset.load(more=tmp_path / "more.npz")
