"""What worlds ask, as questions of stories: a mosaic of four tasks, a text with hidden characters.

Their experts come with the package and are loaded when such a story is first told.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.arc.grid import COLORS
from factordiff.engine.decode import decode
from factordiff.experts.condition import on_device
from factordiff.experts.registry import shipped_experts
from factordiff.sampling.rules import reveal_rule
from factordiff.text.alphabet import BYTES, LETTERS
from factordiff.web.library import Library
from factordiff.web.limits import API_VERSION
from factordiff.web.observer import Observer, WatchedComposition, WatchedExpert, WatchedRule
from factordiff.web.registry import ExpertRegistry
from factordiff.web.run import Check, Emit
from factordiff.web.stories import Cell, Picture, StoryRun
from factordiff.worlds.arc_lists import arc_list
from factordiff.worlds.mosaic.mosaics import mosaics
from factordiff.worlds.queries import Queries
from factordiff.worlds.setting import Setting
from factordiff.worlds.world import Experts, World

MOSAICS = 16  # that stories may choose from
LIKELIEST = 5  # values of a distribution that are kept: whole ones would be most of a site


@cache
def _world(name: str) -> World:
    # Imported when such a story is told: it takes seconds, and the page begins with another one.
    from factordiff.worlds.catalogue import world

    return world(name)


@cache
def _experts(name: str, device: torch.device) -> Experts:
    return _world(name).experts(device)


class _OfWorld(ABC):
    """What the questions of all worlds have in common."""

    world: str
    cell: Cell | None = None

    @abstractmethod
    def query(self) -> Queries:
        """The one query."""

    def tellable(self, names: Sequence[str], registry: ExpertRegistry) -> bool:
        """By shipped experts, whoever is served."""
        return set(names) <= {*shipped_experts(), *shipped_experts(of_text=True)}

    def perform(
        self, run: StoryRun, registry: ExpertRegistry, library: Library, emit: Emit, check: Check
    ) -> None:
        """Decode as the world's comparisons do, every step an event."""
        world, query, begun = _world(self.world), self.query(), time.perf_counter()
        condition = on_device(query.condition, registry.device)
        found = _experts(self.world, registry.device)
        names, mask = run.settings()["experts"], next(iter(found.experts.values())).vocabulary.mask
        emit(
            {
                "event": "start",
                "version": API_VERSION,
                "experts": names,
                "masked": int(query.hidden(mask).sum()),
            }
        )
        observer = Observer(lambda said: emit({"event": "step", **said}), check, likeliest=LIKELIEST)
        setting = Setting(
            {name: WatchedExpert(found.experts[name], place, observer) for place, name in enumerate(names)},
            world.metric,
            layout=world.layout,
            device=registry.device,
            rows=world.rows,
        )
        own = world.entries().get(run.method)
        if own is None or own.prepare is None:
            team, before = setting.team(run.method, **run.options), 0
        else:
            prepared = own.prepare(setting)(query)
            team, before = prepared.teams[0], int(torch.as_tensor(prepared.passes).sum())
        x_t = query.x_t.to(registry.device)
        how = team.method_for(x_t.shape[1], condition)
        samples = decode(
            replace(how, composition=WatchedComposition(how.composition, observer)),
            team.experts,
            x_t,
            condition,
            reveal=WatchedRule(reveal_rule(run.reveal), observer),
        )
        observer.finish(samples.particles[0])
        answer = samples.x_0[0].cpu()
        asked = {
            name: before + int(passes.sum()) * world.rows
            for name, passes in (("nominal", samples.nominal_passes), ("executed", samples.executed_passes))
        }
        emit(
            {
                "event": "answer",
                "version": API_VERSION,
                "canvas": answer.tolist(),
                "right": bool((answer == query.x_0[0]).all()),
                "passes": asked,
                "seconds": round(time.perf_counter() - begun, 3),
            }
        )


@dataclass(frozen=True)
class StoryMosaic(_OfWorld):
    """Four tasks of held-out instances in one mosaic: one of the world's validation queries, by its number."""

    number: int
    kind = "mosaic"
    world = "arc-mosaic"
    id = "validation"

    def query(self) -> Queries:
        """The mosaic."""
        return _mosaics()[self.number : self.number + 1]

    def picture(self, library: Library) -> Picture:
        """Its demonstrations and its test as ARC's JSON spells them, only larger, and who knows each task."""
        query = self.query()
        side, told = round(query.x_0.shape[1] ** 0.5), query.condition

        def rows(canvas: Int[Tensor, " cell"]) -> list[list[int]]:
            found: list[list[int]] = canvas.view(side, side).tolist()
            return found

        shown = zip(told.context_inputs[0], told.context_outputs[0], told.present[0].tolist(), strict=True)
        right = rows(query.x_0[0])
        return {
            "kind": self.kind,
            "side": side,
            "mask": COLORS.mask,
            "right": right,
            "owners": _owners(query),
            "task": {
                "train": [
                    {"input": rows(given), "output": rows(result)} for given, result, there in shown if there
                ],
                "test": [{"input": rows(told.query[0]), "output": right}],
            },
        }


@dataclass(frozen=True)
class StoryText(_OfWorld):
    """A short Python file, characters of which are hidden as the world hides them."""

    id: str
    text: str
    number = 0
    kind = "text"
    world = "code-prose"

    def query(self) -> Queries:
        """The text as one window."""
        from factordiff.worlds.code_prose import passage

        return passage(self.text)

    def picture(self, library: Library) -> Picture:
        """All characters in one row, and which of them are prose (0) and code (1)."""
        query = self.query()
        return {
            "kind": self.kind,
            "side": len(self.text),
            "mask": BYTES.mask,
            "right": query.x_0.tolist(),
            "start": query.x_t[0].tolist(),
            "owners": _owners(query),
            "letters": LETTERS,
        }


def _owners(query: Queries) -> list[int]:
    assert query.owners is not None  # both worlds know them
    owners: list[int] = query.owners[0].tolist()
    return owners


@cache
def _mosaics() -> Queries:
    return mosaics("validation", MOSAICS, arc_list("validation"))
