"""What a solve answers, event by event: a line of JSON each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from factordiff.arc.grid import CELLS
from factordiff.web.request import Color, Grid

Cell = Annotated[int, Field(ge=0, lt=CELLS, description="row * 10 + column")]
Cells = list[Cell]


class StartEvent(BaseModel):
    """The run begins."""

    event: Literal["start"] = "start"
    version: int
    experts: list[str]
    masked: int = Field(description="Cells to be filled.")


class Voice(BaseModel):
    """What one expert, or all together, say about the cells of a step, in the order of `cells`."""

    best: list[Color] = Field(description="The likeliest color.")
    log_doubt: list[float] = Field(description="log(1 - margin).")
    probs: list[list[int]] | None = Field(
        None, description="The distribution over the ten colors, in thousandths; with `detail` only."
    )


class StepEvent(BaseModel):
    """One step of the first particle; steps carry numbers, the last of a run may come late."""

    event: Literal["step"] = "step"
    number: int
    run: int = Field(description="A vote has one run per expert, all others have one.")
    x: list[int] = Field(description="The canvas after the step and any resampling; 10 is MASK.")
    cells: Cells = Field(description="The cells that were asked about.")
    revealed: Cells
    routing: list[int] | None = Field(description="The place of the expert that speaks for each of `cells`.")
    compared: list[list[float]] | None = Field(
        description="Per expert and cell: the log-doubt that routing compares, tempered and per factor."
    )
    weights: list[list[int]] | None = Field(
        description="Per expert and cell: how much it counts, in hundredths; null where no weights are worked out."
    )
    composed: Voice
    experts: list[Voice]


class PassCounts(BaseModel):
    """Passes of the composition, without those of evidence."""

    nominal: int
    executed: int


class ExpertFamiliarity(BaseModel):
    """How well one expert predicts a task's demonstrations from each other, in bits a cell: less is better."""

    expert: str
    bits: float
    known_median: float = Field(description="Of tasks that the expert was trained on.")
    known_worst: float = Field(description="Nine in ten of those are below it.")


class Familiarity(BaseModel):
    """Whether anything that the experts know explains the demonstrations."""

    demonstrations: int
    known_tasks: int = Field(description="How many known tasks it was compared with.")
    explained: bool | None = Field(
        description="Whether some expert is as sure as on known tasks; null with fewer than two demonstrations."
    )
    experts: list[ExpertFamiliarity]


class AnswerEvent(BaseModel):
    """Attempt 1, the last event of a request for it."""

    event: Literal["answer"] = "answer"
    version: int
    canvas: list[Color] = Field(min_length=CELLS, max_length=CELLS)
    grid: Grid
    right: bool | None = Field(description="Null where the task does not say what is right.")
    evidence: Familiarity | None = Field(description="Null where it was not asked for.")
    passes: PassCounts
    seconds: float
    trace: str | None = Field(description="`Trace.to_json` of the run; null where there were several.")


class ProgressEvent(BaseModel):
    """How far one of the runs is that attempt 2 takes: attempt 1 once more, then the others."""

    event: Literal["progress"] = "progress"
    done: int = Field(description="Cells that are filled.")
    total: int


class SecondAttemptEvent(BaseModel):
    """Attempt 2, the last event of a request for it: the team's best other answer."""

    event: Literal["second"] = "second"
    version: int
    grid: Grid | None = Field(description="Null where the team has no other answer.")
    reason: str | None = Field(description="Ends the sentence: attempt 2 is what the team answers ...")
    right: bool | None = Field(description="Null where the task does not say what is right.")
    executed_passes: int = Field(description="Of both attempts.")
    seconds: float


class ErrorEvent(BaseModel):
    """In a stream that had begun; before that it is the response, with its status."""

    event: Literal["error"] = "error"
    status: int
    reason: str


class RefusalReply(BaseModel):
    """The body of every response that is not what was asked for."""

    version: int
    status: int
    reason: str


EVENTS: dict[str, type[BaseModel]] = {
    "start": StartEvent,
    "step": StepEvent,
    "answer": AnswerEvent,
    "progress": ProgressEvent,
    "second": SecondAttemptEvent,
    "error": ErrorEvent,
}
