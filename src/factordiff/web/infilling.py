"""POST /infill: what is hidden of anybody's text is filled in by the shipped experts of text, window by window."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from pydantic import Field
from torch import Tensor

from factordiff.composition.method import Method
from factordiff.errors import InvalidInput
from factordiff.sampling.samples import Samples
from factordiff.team.infill import by_windows
from factordiff.team.router import with_router
from factordiff.team.team import Team
from factordiff.text.alphabet import BYTES, letters, values
from factordiff.text.windows import LENGTH
from factordiff.web.asked_method import AskedMethod, validated, with_options
from factordiff.web.endpoint import Asked
from factordiff.web.limits import API_VERSION, Limits
from factordiff.web.observer import Observer, decode_watched
from factordiff.web.registry import ExpertRegistry
from factordiff.web.run import Check, Emit

LONGEST = 2_048  # characters: eleven windows
LIKELIEST = 5  # values of a distribution that are sent: whole ones would be megabytes

Stretch = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)]


class InfillRequest(AskedMethod):
    """A text, what of it is hidden, and who fills it in."""

    text: str = Field(min_length=1, max_length=LONGEST, description="Newlines and printable ASCII.")
    hidden: list[Stretch] = Field(
        min_length=1,
        max_length=LONGEST,
        description="Stretches to be filled in, in order: the first character's place, and one past the last's. What "
        "stands there is not shown to anybody; it is what the answer is held against.",
    )

    @property
    def mask(self) -> Bool[Tensor, " cell"]:
        """Which characters are hidden."""
        found = torch.zeros(len(self.text), dtype=torch.bool)
        for begin, end in self.hidden:
            found[begin:end] = True
        return found

    def check_text(self) -> None:
        """Refuse letters that no expert knows, and stretches that are empty, out of order or outside the text."""
        values(self.text)
        for place, (begin, end) in enumerate(self.hidden):
            if not begin < end <= len(self.text):
                raise InvalidInput(
                    f"hidden, {place}: expected two places in order, up to {len(self.text)}, got {begin}, {end}"
                )
        for place, ((_, before), (begin, _)) in enumerate(pairwise(self.hidden), start=1):
            if begin < before:
                raise InvalidInput(
                    f"hidden, {place}: it begins at {begin}, before the one before it ends ({before})"
                )


def infill_model(limits: Limits) -> type[InfillRequest]:
    """The request with the options of every method that is offered, within these limits."""
    return with_options(InfillRequest, limits)


def asked_infill(
    body: bytes, names: Sequence[str], registry: Callable[[], ExpertRegistry], limits: Limits
) -> Asked:
    """What a body asks for, checked; `names` are the experts' of the registry, which the worker loads."""
    request = validated(infill_model(limits), body)
    request.check_text()
    request.check_method(names, limits)

    def work(emit: Emit, check: Check) -> None:
        Infilling.of(request, registry()).perform(emit, check)

    return Asked(lambda: work, request.deadline, request.stream)


@dataclass(frozen=True, eq=False)
class Infilling:
    """What the loop takes, built and checked."""

    request: InfillRequest
    team: Team
    how: Method
    x_t: Int[Tensor, " cell"]

    @classmethod
    def of(cls, request: InfillRequest, registry: ExpertRegistry) -> Infilling:
        """The parts of the run; what does not fit together is refused."""
        team = with_router(
            Team(
                tuple(registry[name] for name in request.names),
                request.how.name,
                request.options,
                reveal=request.rule,
                device=registry.device,
            )
        )
        x_0 = torch.from_numpy(values(request.text).astype(np.int64))
        x_t = torch.where(request.mask, BYTES.mask, x_0)
        return cls(request, team, team.method_for(min(len(x_t), LENGTH), None), x_t)

    def perform(self, emit: Emit, check: Check) -> None:
        """Fill window after window, every step an event; the last event is the whole text."""
        begun, request = time.perf_counter(), self.request
        emit(
            {
                "event": "start",
                "version": API_VERSION,
                "experts": list(request.names),
                "masked": int((self.x_t == BYTES.mask).sum()),
            }
        )
        shown, sent, nominal = self.x_t.clone(), 0, 0

        def fill(part: Int[Tensor, " cell"], start: int) -> Samples:
            nonlocal sent, nominal
            here = slice(start, start + len(part))
            before = sent

            def on_step(said: dict[str, Any]) -> None:
                nonlocal sent
                sent += 1
                shown[here] = torch.tensor(said["x"])
                places = {name: [cell + start for cell in said[name]] for name in ("cells", "revealed")}
                emit(
                    {
                        "event": "step",
                        **said,
                        **places,
                        "number": before + said["number"],
                        "x": shown.tolist(),
                    }
                )

            shown[here] = part  # what fell into the last window's last quarter is hidden again
            samples = self._filled(part, start, on_step, check)
            nominal += int(samples.nominal_passes.sum())
            return samples

        filled = by_windows(fill, self.x_t, BYTES.mask, LENGTH)
        text = letters(filled.x_0.tolist())
        emit(
            {
                "event": "answer",
                "version": API_VERSION,
                "canvas": filled.x_0.tolist(),
                "text": text,
                "right": text == request.text,
                "passes": {"nominal": nominal, "executed": filled.passes},
                "seconds": round(time.perf_counter() - begun, 3),
            }
        )

    def _filled(
        self, part: Int[Tensor, " cell"], start: int, on_step: Callable[[dict[str, Any]], None], check: Check
    ) -> Samples:
        """One window, watched."""
        request, how, device = self.request, self.how, self.team.device
        observer = Observer(
            on_step, check, request.detail, one_by_one=how.paths == "alone", likeliest=LIKELIEST
        )
        return decode_watched(
            how,
            self.team.experts,
            part[None].to(device),
            None,
            request.rule,
            observer,
            seed=request.seed,
            items=torch.tensor([start], device=device),
        )
