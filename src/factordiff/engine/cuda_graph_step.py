"""A step with every slot taken: after the experts' passes one piece of work, which a GPU can replay."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.composition.confidence import Faster, computed_by
from factordiff.engine import doubt_kernel, runner_up_kernel
from factordiff.engine.checked import disagreement
from factordiff.engine.cuda_graph import CudaGraph
from factordiff.engine.queue import Queue
from factordiff.errors import InvalidInput
from factordiff.experts.asked_cells import AskedCells
from factordiff.experts.cell_outputs import CellOutput, CellOutputs
from factordiff.experts.forward import SumErrors, side_by_side, sum_error
from factordiff.sampling.reveal import RevealRule, Wrapped
from factordiff.sampling.step import step
from factordiff.sampling.window import Window
from factordiff.state import SamplerState
from factordiff.streams import Draws
from factordiff.types import LARGE, Cells, ExpertLogProbs, Tokens

KERNELS = Faster(doubt_kernel.log_doubt, runner_up_kernel.against_runner_up)


class Stepped(NamedTuple):
    """What a step changes."""

    x_t: Tokens
    log_density: Float[Tensor, "expert batch cell"]
    clock: Int[Tensor, " batch"]
    error: Float[Tensor, " expert"]  # of the experts' distributions


@dataclass(frozen=True)
class FixedShapes(Wrapped):
    """A rule for steps whose shapes never change: what bounds its choice is known, and no number is read for it.

    Reading one would end the recording. Steps over whole rows need no bound.
    """

    rule: RevealRule
    most: int | None  # cells of each row

    def at_most(self, candidates: Cells, state: SamplerState) -> int | None:
        """The most of every row together."""
        return None if self.most is None else self.most * len(state)


def recorded_window(rule: RevealRule, composition: Composition, values: int, cells: int) -> Window | None:
    """The cells that recorded steps ask about and compose, of rows of so many; None where those are all."""
    return rule.window(cells) if values > LARGE and composition.by_cell else None


class CudaGraphStep:
    """The steps of a run in which all slots are taken, as most are while items wait.

    Every item then has one row with something to reveal, so nothing need be looked up between the passes and the end
    of the step, and no shape changes: experts are asked about all cells, or of large vocabularies about those of the
    rule's `window`. On a GPU the step is recorded at its first call and held against the plain one; what fails or
    differs is given up for a slower form, and `failure` says why.
    """

    def __init__(self, queue: Queue, composition: Composition, rule: RevealRule, temperature: float) -> None:
        self._queue, self._batch = queue, queue.batch
        self._window = recorded_window(rule, composition, queue.mask, queue.x_t.shape[1])
        self._rule = FixedShapes(rule, None if self._window is None else self._window.most)
        self._composition, self._temperature = composition, temperature
        self._advance: Callable[..., Stepped] | None = None
        self.how = "plain"  # the form in use
        self.failure: str | None = None
        # Particles that wait for each other, targets and repairs need more than this; so does looking ahead.
        untargeted = composition.target(len(self._batch.experts)) is None
        alone = self._batch.particles == 1 and rule.repairs == 0 and rule.steady
        # What is cut to the likeliest values has shapes of its own.
        whole = not self._batch.large or self._batch.top_k is None
        self._able = untargeted and alone and whole and queue.leaving

    def takes(self, state: SamplerState) -> bool:
        """Whether this step can be one of these."""
        return self._able and len(state) == self._queue.slots and self._batch.believed

    def step(self, state: SamplerState) -> SamplerState:
        """Ask everybody about all that may matter, and go on: `sampling.step.step`, in one piece."""
        given = self.given(state)
        if self._advance is None:
            self._advance = self._fastest(given) if state.x_t.is_cuda else self._plain
        stepped = self._advance(*given)
        self._batch.errors.note(stepped.error)
        return replace(state, x_t=stepped.x_t, log_density=stepped.log_density, clock=stepped.clock)

    def given(self, state: SamplerState) -> tuple[Tensor, ...]:
        """What a step begins with: where everybody is, which cells are asked about, and what is said there."""
        parts = (state.x_t, state.log_density, state.clock, state.item, state.start, state.draws.item)
        if self._window is None:
            return (*parts, *self._batch.ask_all(state.x_t))
        cells = self._window.cells(state)
        asked = AskedCells.of_window(cells, state.x_t.shape[1])
        return (*parts, cells, *self._batch.ask_at(state.x_t, asked))

    def _plain(
        self,
        x_t: Tokens,
        log_density: Float[Tensor, "expert batch cell"],
        clock: Int[Tensor, " batch"],
        item: Int[Tensor, " batch"],
        start: Cells,
        ids: Int[Tensor, " batch"],
        *heard: Tensor,
    ) -> Stepped:
        zeros = torch.zeros_like(log_density[0, :, 0])
        draws = Draws(self._queue.seed, ids, torch.zeros_like(ids))
        state = SamplerState(x_t, self._queue.mask, log_density, zeros, clock, item, draws, start)
        said, errors = self._said(state, heard)

        def forward(state: SamplerState, candidates: Cells) -> Any:
            return said, torch.full_like(state.item, len(said))

        after, _ = step(state, forward, self._composition, self._rule, temperature=self._temperature)
        assert errors.worst is not None
        return Stepped(after.x_t, after.log_density, after.clock, errors.worst)

    def _said(
        self, state: SamplerState, heard: tuple[Tensor, ...]
    ) -> tuple[ExpertLogProbs | CellOutputs, SumErrors]:
        """What the experts say, and by how much it fails to add up to one; of a window, that comes with the step."""
        if self._window is None:
            log_probs = side_by_side(heard, (*state.x_t.shape, state.mask))
            return log_probs, SumErrors(sum_error(log_probs, state.masked))
        cells, *each = heard
        errors = SumErrors(torch.zeros(len(each), device=cells.device))  # given one, it looks at no number
        asked = AskedCells.of_window(cells, state.x_t.shape[1])
        said = CellOutputs(asked, state.mask, errors, self._batch.chunk)
        for one in each:
            said.append(CellOutput(one, None))
        return said, errors

    def _fastest(self, given: tuple[Tensor, ...]) -> Callable[..., Stepped]:
        """The step recorded with a kernel of our own, or recorded, or as it is: the first that works and agrees."""
        expected = self._plain(*given)
        failures = []
        for how, doubts in (("kernel", computed_by(KERNELS)), ("recorded", nullcontext())):
            try:
                with doubts:
                    recorded = CudaGraph(self._plain, *given)
                found = recorded(*given)
            except Exception as error:
                if isinstance(error, InvalidInput | torch.OutOfMemoryError):
                    raise
                failures.append(f"step, {how}: {type(error).__name__}: {error}")
                continue
            wrong = _disagreement(f"step, {how}", found, expected)
            if wrong is None:
                self.failure, self.how = "; ".join(failures) or None, how
                return recorded
            failures.append(wrong)
        self.failure = "; ".join(failures)
        return self._plain


def _disagreement(name: str, found: Stepped, expected: Stepped) -> str | None:
    """In words; of the errors, which are mere rounding themselves, only the size is compared."""
    return disagreement(name, found[:-1], expected[:-1], expected.log_density.dtype) or disagreement(
        name, found.error.exp(), expected.error.exp(), expected.error.dtype
    )
