"""POST /tell: one run of a story, which a client names and has no further say in."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from factordiff.arc.grid import LONGEST_SHOWN
from factordiff.errors import InvalidInput
from factordiff.schema.bound import shown
from factordiff.web.asked_method import validated
from factordiff.web.endpoint import Asked
from factordiff.web.library import Library
from factordiff.web.limits import Limits
from factordiff.web.registry import ExpertRegistry
from factordiff.web.run import Work
from factordiff.web.story_list import tellable


class TellRequest(BaseModel):
    """Which run, of which story, on which of its candidates."""

    model_config = ConfigDict(extra="forbid", strict=True)

    story: str = Field(description="A name from /stories.")
    candidate: int = Field(0, ge=0, description="The place among the story's candidates.")
    run: int = Field(0, ge=0, description="The place among its runs.")
    stream: bool = Field(True, description="False: one JSON object at the end.")


def asked_story(body: bytes, registry: ExpertRegistry, library: Library, limits: Limits) -> Asked:
    """What a body asks for, checked."""
    request = validated(TellRequest, body)
    known = {story.name: story for story in tellable(registry)}
    if request.story not in known:
        names = ", ".join(known) or "none, since these experts tell no story"
        raise InvalidInput(f"story: expected one of {names}, got {shown(request.story, LONGEST_SHOWN)}")
    story = known[request.story]
    for name, place, places in (
        ("candidate", request.candidate, len(story.tasks)),
        ("run", request.run, len(story.runs)),
    ):
        if place >= places:
            raise InvalidInput(f"{name}: expected a whole number from 0 to {places - 1}, got {place}")
    question, run = story.tasks[request.candidate], story.runs[request.run]

    def prepare() -> Work:
        return lambda emit, check: question.perform(run, registry, library, emit, check)

    return Asked(prepare, limits.deadline, request.stream)
