"""A team: named experts and the way in which they answer together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.composition.factors import Partition
from factordiff.errors import InvalidInput, Unavailable
from factordiff.evaluation.methods import METHODS, Method, Options, answer, method
from factordiff.experts.expert import Expert
from factordiff.experts.store import load_expert, read_config
from factordiff.experts.whereabouts import find_expert
from factordiff.sampling.request import common_vocabulary
from factordiff.sampling.reveal import RevealRule
from factordiff.sampling.sampler import Samples
from factordiff.solving.factors import check_factors, partition, query_of
from factordiff.solving.pace import Pace, reveal_rule
from factordiff.training.machines import choose_device

if TYPE_CHECKING:
    from factordiff.arc.task import Task
    from factordiff.solving.answer import TaskAnswers

Temperatures = Mapping[str, float | int] | Sequence[float | int]
ExpertLike = str | Path | Expert
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Member:
    """An expert, what it is called and what it was trained on."""

    name: str
    expert: Expert
    objective: str = "full"

    def __repr__(self) -> str:
        return f"{self.name} ({self.objective})"


@dataclass(frozen=True, eq=False)
class Team:
    """Experts that answer together. `sample` fills any masked cells, `solve` answers an ARC task."""

    members: tuple[Member, ...]
    method: str = "routing"
    temperatures: tuple[float, ...] | None = None
    factors: str | Partition = "pixel"
    layout: tuple[int, int] | None = None
    reveal: Pace | RevealRule | None = None
    options: Options = field(default_factory=Options)
    device: torch.device = CPU

    @property
    def names(self) -> tuple[str, ...]:
        """What the experts are called, in tie order."""
        return tuple(member.name for member in self.members)

    @property
    def experts(self) -> list[Expert]:
        """The experts themselves."""
        return [member.expert for member in self.members]

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        parts = [" + ".join(map(repr, self.members)), self.method]
        if self.temperatures is not None:
            parts.append(f"temperatures {', '.join(f'{number:g}' for number in self.temperatures)}")
        parts.append(f"factors {self.factors if isinstance(self.factors, str) else 'given'}")
        return f"Team({'; '.join(parts)})"

    def how(self, cells: int, condition: Any = None) -> Method:
        """The method for items of that many cells under that condition."""
        labels: Partition | None
        if isinstance(self.factors, str):
            labels = partition(self.factors, cells, self.layout, query_of(condition))
        else:
            labels = self.factors
        options = replace(self.options, temperatures=self.temperatures, partition=labels)
        return method(self.method, [member.objective for member in self.members], options)

    def sample(
        self,
        x_t: Int[Tensor, "item cell"],
        condition: Any = None,
        *,
        temperature: float | None = None,
        reveal: Pace | RevealRule | None = None,
        seed: int = 0,
        items: Int[Tensor, " item"] | None = None,
        trace: bool = False,
        on_step: Callable[[int, int], None] | None = None,
    ) -> Samples:
        """Fill the masked cells of every item: a grid, a sentence, anything made of cells.

        `temperature` 0 takes the likeliest values, above 0 draws them; by default as the method is usually decoded.
        """
        how = self.how(x_t.shape[-1], condition)
        if temperature is not None:
            how = replace(how, temperature=temperature)
        rule = reveal_rule(reveal or self.reveal or "exact")
        return answer(
            how,
            self.experts,
            x_t.to(self.device),
            condition,
            reveal=rule,
            seed=seed,
            items=items,
            trace=trace,
            on_step=on_step,
        )

    def alone(self, index: int) -> Team:
        """The team of this one expert."""
        return replace(
            self, members=(self.members[index],), method="single", temperatures=None, factors="pixel"
        )

    def solve(self, task: Task | Mapping[str, Any] | str | Path, **settings: Any) -> TaskAnswers:
        """The answers to an ARC task, as `factordiff.solve` takes it; `settings` are those of `solver.solve_task`."""
        from factordiff.solving.solver import solve_task

        return solve_task(self, task, **settings)


def compose(
    experts: Sequence[ExpertLike] | Mapping[str, ExpertLike],
    method: str = "routing",
    *,
    temperatures: Temperatures | None = None,
    factors: str | Partition = "pixel",
    layout: tuple[int, int] | None = None,
    reveal: Pace | RevealRule | None = None,
    device: torch.device | str = "cpu",
    **options: Any,
) -> Team:
    """Put experts together: shipped names, folders, or any objects that are experts.

    Names come from a mapping, or from the folder, or are counted. `temperatures` are the routing temperatures, in
    order or by name (those left out are 1). `factors` is a name (`pixel`, `row`, `column`, `block:2x2`,
    `component`, `whole`) or a partition; `reveal` is `"fast"`, `"exact"` or a rule. `options` are the further
    fields of `evaluation.methods.Options`: beta, weights, softness, particles, selection, resampling, runs.

    >>> from factordiff.toy.painting import painters
    >>> compose(dict(zip(("edges", "middle"), painters())), temperatures={"middle": 0.5})
    Team(edges (full) + middle (full); routing; temperatures 1, 0.5; factors pixel)
    """
    if isinstance(experts, str | Path):
        raise InvalidInput(
            f"experts: expected a list of experts, got {str(experts)!r}; write [{str(experts)!r}]"
        )
    if method not in METHODS:
        raise Unavailable(f"method: expected one of {', '.join(METHODS)}, got {method!r}")
    if isinstance(factors, str):
        check_factors(factors)
    device = _device(device)
    named = experts.items() if isinstance(experts, Mapping) else [(None, expert) for expert in experts]
    members = [_member(name, expert, number, device) for number, (name, expert) in enumerate(named)]
    common_vocabulary([member.expert for member in members])
    members = _told_apart(members)
    if len(members) == 1 and method == "routing":
        method = "single"  # one expert alone has nobody to be routed to
    team = Team(
        tuple(members),
        method,
        _in_order(temperatures, [member.name for member in members]),
        factors,
        layout,
        reveal,
        _options(options),
        device,
    )
    reveal_rule(reveal or "exact")
    if method == "views" or method == "single":
        replace(team, factors="pixel").how(
            cells=1
        )  # refuses experts that do not fit the method, before anything runs
    return team


def _device(device: torch.device | str) -> torch.device:
    """The device, found out to be there before an expert is loaded onto it; `cuda:1` is one of several."""
    kind = device.type if isinstance(device, torch.device) else device.partition(":")[0]
    chosen = choose_device(kind)
    try:
        return chosen if kind == device else torch.device(device)
    except RuntimeError:
        raise Unavailable(f"device: expected a name such as cpu, cuda or cuda:1, got {device!r}") from None


def _member(name: str | None, expert: ExpertLike, number: int, device: torch.device) -> Member:
    if isinstance(expert, str | Path):
        found = find_expert(expert)
        objective = str(read_config(found.folder).get("about", {}).get("objective", "full"))
        return Member(name or found.name, load_expert(found.folder, device), objective)
    if not isinstance(expert, Expert):
        raise InvalidInput(
            f"experts: number {number + 1} is a {type(expert).__name__}, expected a name, a folder, or an object with "
            "vocabulary, encode and log_probs"
        )
    return Member(name or f"expert {number + 1}", expert)


def _told_apart(members: list[Member]) -> list[Member]:
    """Folders of one name get a number."""
    names = [member.name for member in members]
    return [
        replace(member, name=f"{member.name} ({names[:place].count(member.name) + 1})")
        if names.count(member.name) > 1
        else member
        for place, member in enumerate(members)
    ]


def _in_order(temperatures: Temperatures | None, names: list[str]) -> tuple[float, ...] | None:
    if temperatures is None:
        return None
    if not isinstance(temperatures, Mapping | Sequence):
        raise InvalidInput(
            f"temperatures: expected a number for each expert, or numbers by name, got {temperatures!r}"
        )
    if isinstance(temperatures, Mapping):
        unknown = sorted(set(temperatures) - set(names))
        if unknown:
            raise InvalidInput(
                f"temperatures: no expert is called {unknown[0]!r}; expected {', '.join(names)}"
            )
        temperatures = [temperatures.get(name, 1.0) for name in names]
    if len(temperatures) != len(names):
        raise InvalidInput(
            f"temperatures: expected {len(names)} numbers, one per expert, got {len(temperatures)}"
        )
    for name, number in zip(names, temperatures, strict=True):
        # Checked for every method, also for those that compare nobody's confidence.
        if not isinstance(number, float | int) or not 0 < number < math.inf:
            raise InvalidInput(f"temperatures: expected a finite positive number for {name}, got {number!r}")
    return tuple(float(number) for number in temperatures)


def _options(given: Mapping[str, Any]) -> Options:
    try:
        return Options(**given)
    except TypeError as error:
        raise InvalidInput(f"options: {error}") from None
