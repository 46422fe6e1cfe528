"""The built data set on a device, and training batches drawn from it.

A batch is a pure function of (seed, step, item): the same on any number of devices and after any resume. Drawing it
is a fixed sequence of tensor operations without a loop over items or a word from the host, so it can be part of a
captured graph.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, cycle
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from factordiff.arc.artefact import SHIPPED, Artefact, load_artefact
from factordiff.arc.build.balance import size_of
from factordiff.arc.conditions import condition_from, inside
from factordiff.arc.evaluation_set import EvaluationSet, official_queries, split_queries
from factordiff.arc.grid import CELLS, SIDE
from factordiff.arc.recoloring import draw_renaming, exchangeable_colors
from factordiff.arc.splits import TEST, TRAIN, VALIDATION
from factordiff.arc.symmetry import SYMMETRIES, canvas_table, shape_table
from factordiff.errors import DataError, InvalidInput
from factordiff.experts.condition import Condition
from factordiff.streams import Purpose, integers, uniform
from factordiff.types import Tokens

MOST_FRAMES = 5
MOST_ROUNDS = 1_000  # of a list: each holds the whole list again

Split = Literal["validation", "test", "official", "unseen"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """All instances on one device; a pair is a row of `canvases`, its input first, then its output.

    With a training-only set (`factordiff data more`) its instances come behind those of the artefact.
    """

    artefact: Artefact
    canvases: UInt8[Tensor, "pair 2 cell"]
    shapes: Int[Tensor, "pair 2"]  # (height - 1) * 10 + (width - 1)
    moves: Int[Tensor, "symmetry_and_shape cell"]  # where each cell of a transformed canvas comes from
    masks: Bool[Tensor, "symmetry_and_shape cell"]  # and whether it is inside the transformed grid
    more: Artefact | None = None

    @classmethod
    def load(
        cls, device: torch.device | str = "cpu", file: Path = SHIPPED, more: Path | None = None
    ) -> Dataset:
        """Read an artefact, by default the shipped one, check it and put it on a device; `more` is training-only."""
        artefact = load_artefact(file)
        extra = None if more is None else load_artefact(more)
        if extra is not None and extra.tasks != artefact.tasks:
            raise DataError(
                f"{more}: its tasks are not those of {file.name}; build it with `factordiff data more`"
            )
        pairs = [_pairs(one) for one in (artefact, extra) if one is not None]
        return cls(
            artefact,
            torch.from_numpy(np.concatenate([canvases for canvases, _ in pairs])).to(device),
            torch.from_numpy(np.concatenate([shapes for _, shapes in pairs])).to(device),
            torch.from_numpy(canvas_table().reshape(-1, CELLS)).to(device),
            inside(torch.from_numpy(shape_table().reshape(-1, 2))).to(device),
            extra,
        )

    @property
    def sha256(self) -> str:
        """The hash that names the data: the artefact's, and that of the training-only set if there is one."""
        return self.artefact.sha256 if self.more is None else f"{self.artefact.sha256}+{self.more.sha256}"

    @property
    def tasks(self) -> list[str]:
        """The ids of the tasks, sorted; a task's position here is its index everywhere."""
        return self.artefact.tasks

    @property
    def device(self) -> torch.device:
        """Where the data and the batches live."""
        return self.canvases.device

    def draw(
        self,
        seed: int | Tensor,
        step: int | Tensor,
        items: Int[Tensor, " item"],
        frames: int = 3,
        symmetry_weights: Float[Tensor, " symmetry"] | None = None,
        tasks: Int[Tensor, " task"] | None = None,
        min_frames: int | None = None,
        alike: Bool[Tensor, "any_task value"] | None = None,
        rename: float = 0.0,
        more: float = 0.0,
        by_size: Int[Tensor, "task instance"] | None = None,
        sized: float = 0.0,
    ) -> tuple[Condition, Tokens]:
        """The training items of these indices at this step: what each is told, and its answer.

        Task and query are uniform over the 760 training instances of every task (or of `tasks`, indices). The
        demonstrations are distinct, never the query, and under the same symmetry as the query. With `min_frames`
        each item has its own number of frames, uniform in min_frames .. frames; `present` says which. With
        `alike` (`exchangeable`) a share `rename` of the items has its exchangeable colors renamed. A share `more` of
        the items, query and demonstrations, comes from the training-only set. With `by_size` (`evenly_sized`) a share
        `sized` of those that do not has its query drawn evenly over the sizes of its task's inputs.
        """
        if not 1 <= frames <= MOST_FRAMES:
            raise InvalidInput(f"frames: expected 1 to {MOST_FRAMES}, got {frames}")
        if min_frames is not None and not 1 <= min_frames <= frames:
            raise InvalidInput(f"min_frames: expected 1 to {frames} (frames), got {min_frames}")
        if more and self.more is None:
            raise InvalidInput(f"more: {more} of the items from a training-only set, but none was loaded")
        task, query = self._draw_query(seed, step, items, tasks)
        if by_size is not None:
            query = torch.where(
                uniform(seed, Purpose.SET, step, items, 2) < sized, by_size[task, query], query
            )
        first, among = task * TEST.stop, torch.full_like(task, len(TRAIN))
        if self.more is not None and more:
            count = self.more.arrays["inputs"].shape[1]
            other = uniform(seed, Purpose.SET, step, items) < more
            first = torch.where(other, len(self.tasks) * TEST.stop + task * count, first)
            query = torch.where(other, integers(count, seed, Purpose.SET, step, items, 1), query)
            among = torch.where(other, count, among)
        context = draw_context(seed, step, items, query, frames, among)
        pairs = first[:, None] + torch.cat([query[:, None], context], dim=1)
        symmetry = draw_symmetry(seed, step, items, symmetry_weights)
        moved, masks = self.transformed(pairs, symmetry)
        if alike is not None:
            renaming = draw_renaming(seed, step, items, alike[task], rename).to(torch.uint8)
            moved = renaming.gather(1, moved.flatten(1).to(torch.int64)).view_as(moved)
        present = None
        if min_frames is not None and min_frames < frames:
            used = min_frames + integers(frames - min_frames + 1, seed, Purpose.CONTEXT, step, items, frames)
            present = torch.arange(frames, device=items.device)[None, :] < used[:, None]
        return condition_from(moved, masks, present), moved[:, 0, 1].to(torch.int64)

    def _draw_query(
        self, seed: int | Tensor, step: int | Tensor, items: Int[Tensor, " item"], tasks: Tensor | None
    ) -> tuple[Int[Tensor, " item"], Int[Tensor, " item"]]:
        """Each item's task and its query among the 760."""
        count = len(self.tasks) if tasks is None else len(tasks)
        drawn = integers(count * len(TRAIN), seed, Purpose.QUERY, step, items)
        task = drawn // len(TRAIN)
        return task if tasks is None else tasks[task], drawn % len(TRAIN)

    def transformed(
        self, pairs: Int[Tensor, "item slot"], symmetry: Int[Tensor, " item"]
    ) -> tuple[UInt8[Tensor, "item slot 2 cell"], Bool[Tensor, "item slot 2 cell"]]:
        """The canvases of pairs, each item's under its own symmetry, and which of their cells are inside the grids.

        The ragged grids are moved, then padded.
        """
        # index_select copies whole rows; square brackets would compute an address per cell, ten times as slow.
        rows = pairs.flatten()
        shapes = self.shapes.index_select(0, rows).view(*pairs.shape, 2)
        cases = (symmetry[:, None, None] * (SIDE * SIDE) + shapes).flatten()
        canvases = self.canvases.index_select(0, rows).view(-1, CELLS)
        moved = canvases.gather(1, self.moves.index_select(0, cases))
        whole = (*pairs.shape, 2, CELLS)
        return moved.view(whole), self.masks.index_select(0, cases).view(whole)

    def exchangeable(self) -> Bool[Tensor, "task value"]:
        """Which colors of each task its training instances use alike."""
        arrays = self.artefact.arrays
        shown = [
            arrays[side][:, : TRAIN.stop].reshape(len(self.tasks), -1, CELLS)
            for side in ("inputs", "outputs")
        ]
        return torch.from_numpy(exchangeable_colors(*shown)).to(self.device)

    def evenly_sized(self) -> Int[Tensor, "task instance"]:
        """For each task 760 of its training instances, some repeatedly: each size of input (`size_of`) as often."""
        cells = self.artefact.arrays["input_shapes"][:, : TRAIN.stop].astype(np.int64).prod(axis=2)
        table = [_evenly([size_of(int(area)) for area in areas]) for areas in cells]
        return torch.tensor(table, device=self.device)

    def evaluation(self, split: Split, limit: int | None = None, rounds: int = 1) -> EvaluationSet:
        """A fixed list of queries with fixed demonstrations, on this device; `limit` takes its first ones.

        `validation` and `test` are RE-ARC queries with three demonstrations out of the 760, `official` the
        published pairs of the same tasks, `unseen` those of the other tasks that fit. The order interleaves the
        tasks: query 0 of every task, then query 1 of every task, and so on. With several `rounds` all of them follow
        again, each time with other demonstrations of the 760: fresh questions where queries are few.
        """
        if limit is not None and limit < 1:
            raise InvalidInput(f"limit: expected at least 1, got {limit}")
        if split in ("validation", "test"):
            queries = split_queries(self.artefact, VALIDATION if split == "validation" else TEST)
        elif split in ("official", "unseen"):
            queries = official_queries(self.artefact, split)
        else:
            raise InvalidInput(f"split: expected validation, test, official or unseen, got {split!r}")
        if not 1 <= rounds <= (MOST_ROUNDS if split in ("validation", "test") else 1):
            raise InvalidInput(
                f"rounds: expected 1, or up to {MOST_ROUNDS:,} on validation or test, got {rounds} on {split}"
            )
        return _repeated(queries.first(limit), rounds).to(self.device)


def _evenly(sizes: list[int]) -> list[int]:
    """Indices into `sizes`, as many as there are: the sizes in turn, the instances of each size in turn."""
    of_size = [cycle([i for i, found in enumerate(sizes) if found == size]) for size in sorted(set(sizes))]
    return [next(of_size[i % len(of_size)]) for i in range(len(sizes))]


def _pairs(artefact: Artefact) -> tuple[np.ndarray, np.ndarray]:
    """The canvases of an artefact's instances, task after task, and the numbers of their shapes."""
    arrays = artefact.arrays
    canvases = np.stack([arrays["inputs"], arrays["outputs"]], axis=2).reshape(-1, 2, CELLS)
    shapes = np.stack([arrays["input_shapes"], arrays["output_shapes"]], axis=2).reshape(-1, 2, 2)
    return canvases, (shapes[..., 0].astype(np.int64) - 1) * SIDE + (shapes[..., 1] - 1)


def _repeated(queries: EvaluationSet, rounds: int) -> EvaluationSet:
    """The queries `rounds` times: with their own demonstrations, then with drawn ones."""
    if rounds == 1:
        return queries
    items, frames = torch.arange(len(queries)), queries.frames.shape[1]
    first = queries.task_indices[:, None] * TEST.stop
    drawn = [first + draw_context(0, turn, items, None, frames) for turn in range(1, rounds)]
    return replace(
        queries,
        queries=queries.queries.repeat(rounds),
        frames=torch.cat([queries.frames, *drawn]),
        present=queries.present.repeat(rounds, 1),
        task_indices=queries.task_indices.repeat(rounds),
        numbers=queries.numbers.repeat(rounds),
    )


def draw_context(
    seed: int | Tensor,
    step: int | Tensor,
    items: Int[Tensor, " item"],
    query: Int[Tensor, " item"] | None,
    frames: int,
    among: int | Tensor = TRAIN.stop,
) -> Int[Tensor, "item frame"]:
    """Distinct training instances other than the query (None: it is no training instance), all choices equally likely.

    Each frame is drawn from the instances that are left, and shifted past those taken before it, smallest first;
    `taken` stays sorted by passing the newcomer along it.
    """
    taken, context = [] if query is None else [query], []
    frame = torch.arange(frames, device=items.device)
    left = (among[:, None] if isinstance(among, Tensor) else among) - frame - len(taken)
    for drawn in integers(left, seed, Purpose.CONTEXT, step, items[:, None], frame).unbind(1):
        for earlier in taken:
            drawn = drawn + (drawn >= earlier).to(torch.int64)
        context.append(drawn)
        for place, earlier in enumerate(taken):
            taken[place], drawn = torch.minimum(earlier, drawn), torch.maximum(earlier, drawn)
        taken.append(drawn)
    return torch.stack(context, dim=1)


def draw_symmetry(
    seed: int | Tensor,
    step: int | Tensor,
    items: Int[Tensor, " item"],
    weights: Float[Tensor, " symmetry"] | None = None,
) -> Int[Tensor, " item"]:
    """One of the eight symmetries per item, in proportion to the weights (uniform by default)."""
    if weights is None:
        return integers(len(SYMMETRIES), seed, Purpose.SYMMETRY, step, items)
    # Added one by one: a GPU's cumsum adds in another order.
    limits = torch.stack(list(accumulate(weights.to(torch.float64).unbind())))
    drawn = uniform(seed, Purpose.SYMMETRY, step, items) * limits[-1]
    # A product that rounds up to the total would fall off the end, hence the seven inner limits only.
    return (drawn[:, None] >= limits[:-1]).sum(1)
