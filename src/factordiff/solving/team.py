"""A team: named experts and the way in which they answer together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.composition.composition import Composition
from factordiff.composition.factor_names import check_factors, partition
from factordiff.composition.factors import Partition
from factordiff.composition.method import Method, spec
from factordiff.composition.options import PARTICLES, SELECTION
from factordiff.engine.decode import decode
from factordiff.engine.engine import Engine
from factordiff.errors import InvalidInput, Unavailable
from factordiff.experts.condition import Condition
from factordiff.experts.expert import Expert
from factordiff.experts.refinement import Network
from factordiff.experts.store import load_expert, read_config
from factordiff.experts.whereabouts import find_expert
from factordiff.sampling.request import common_vocabulary
from factordiff.sampling.reveal import RevealRule
from factordiff.sampling.rules import reveal_rule
from factordiff.sampling.samples import Samples
from factordiff.solving.team_file import read_team, save_team
from factordiff.training.machines import choose_device

if TYPE_CHECKING:
    from factordiff.arc.task import Task
    from factordiff.solving.answer import TaskAnswers

ExpertLike = str | Path | Expert
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Member:
    """An expert, what it is called and what it was trained on."""

    name: str
    expert: Expert
    objective: str = "full"
    folder: Path | None = None  # where it was loaded from

    def __repr__(self) -> str:
        return f"{self.name} ({self.objective})"


@dataclass(frozen=True, eq=False)
class Team:
    """Experts that answer together. `sample` fills any masked cells, `solve` answers an ARC task.

    `options` are those that were given, checked; what was not given is as the method declares it.
    """

    members: tuple[Member, ...]
    method: str | Composition = "routing"
    options: Mapping[str, Any] = field(default_factory=dict)
    layout: tuple[int, int] | None = None
    reveal: str | RevealRule = "fast"
    engine: Engine = field(default_factory=Engine)
    device: torch.device = CPU

    @property
    def names(self) -> tuple[str, ...]:
        """What the experts are called, in tie order."""
        return tuple(member.name for member in self.members)

    @property
    def experts(self) -> list[Expert]:
        """The experts themselves."""
        return [member.expert for member in self.members]

    @property
    def method_name(self) -> str:
        """What its method is called."""
        return self.method if isinstance(self.method, str) else type(self.method).__name__

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        parts = [" + ".join(map(repr, self.members)), self.method_name]
        parts += [f"{name} {_shown(value)}" for name, value in self.options.items()]
        parts.append(f"reveal {self.reveal}")
        return f"Team({'; '.join(parts)})"

    def how(self, cells: int, condition: Any = None) -> Method:
        """The method for items of that many cells under that condition."""
        if isinstance(self.method, Composition):
            return _composed(self.method, len(self), self.options)
        labels: str | Partition | None = self.options.get("factors", "pixel")
        if isinstance(labels, str):
            query = condition.query if isinstance(condition, Condition) else None
            labels = partition(labels, cells, self.layout, query)
        objectives = [member.objective for member in self.members]
        return spec(self.method).method(self.options, objectives, labels)

    def sample(
        self,
        x_t: Int[Tensor, "item cell"],
        condition: Any = None,
        *,
        temperature: float | None = None,
        reveal: str | RevealRule | None = None,
        seed: int = 0,
        items: Int[Tensor, " item"] | None = None,
        trace: bool = False,
        on_step: Callable[[int, int], None] | None = None,
    ) -> Samples:
        """Fill the masked cells of every item: a grid, a sentence, anything made of cells.

        `temperature` 0 takes the likeliest values, above 0 draws them; by default as the method is usually decoded.
        """
        x_t, condition = x_t.to(self.device), on_device(condition, self.device)
        how = self.how(x_t.shape[-1], condition)
        if temperature is not None:
            how = replace(how, temperature=temperature)
        return decode(
            how,
            self.experts,
            x_t,
            condition,
            reveal=reveal_rule(self.reveal if reveal is None else reveal),
            seed=seed,
            items=None if items is None else items.to(self.device),
            engine=self.engine,
            trace=trace,
            on_step=on_step,
        )

    def alone(self, index: int) -> Team:
        """The team of this one expert."""
        return replace(self, members=(self.members[index],), method="single", options={})

    def save(self, file: str | Path) -> Path:
        """Write the team as JSON; `compose(FILE)` puts it together again."""
        return save_team(self, file)

    def solve(self, task: Task | Mapping[str, Any] | str | Path, **settings: Any) -> TaskAnswers:
        """The answers to an ARC task, as `factordiff.solve` takes it; `settings` are those of `solver.solve_task`."""
        from factordiff.solving.solver import solve_task

        return solve_task(self, task, **settings)


def compose(
    experts: Sequence[ExpertLike] | Mapping[str, ExpertLike] | str | Path,
    method: str | Composition = "routing",
    *,
    layout: tuple[int, int] | None = None,
    reveal: str | RevealRule = "fast",
    objectives: Sequence[str] | None = None,
    engine: Engine | None = None,
    device: torch.device | str = "cpu",
    **options: Any,
) -> Team:
    """Put experts together: shipped names, folders, or any objects that are experts.

    Or a whole team: the file that `Team.save` wrote, or a shipped team's name (`col+occ`), with all its numbers. Names
    come from a mapping, or from the folder, or are counted. `method` is a name or a composition of one's own.
    `options` are the method's (`factordiff eval --help` lists them): a number per expert in order or by name, as
    `temperatures={"trans-occ": 0.25}`; `factors` is a name (`pixel`, `row`, `column`, `block:2x2`, `component`,
    `whole`) or labels. `reveal` is `fast`, `exact`, a rule's name such as `margin:0.9`, or a rule. `objectives` say
    what experts of one's own were trained on, for methods that ask (`views`).

    >>> from factordiff.toy.painting import painters
    >>> compose(dict(zip(("edges", "middle"), painters())), temperatures={"middle": 0.5})
    Team(edges (full) + middle (full); routing; temperatures 1, 0.5; reveal fast)
    """
    if isinstance(experts, str | Path):
        if (method, layout, reveal, objectives, options) != ("routing", None, "fast", None, {}):
            raise InvalidInput(
                f"experts: {str(experts)!r} names a whole team, with its method and numbers; name its experts in "
                "a list to set others"
            )
        return compose(**read_team(experts), engine=engine, device=device)
    device = _device(device)
    named = experts.items() if isinstance(experts, Mapping) else [(None, expert) for expert in experts]
    members = [_member(name, expert, number, device) for number, (name, expert) in enumerate(named)]
    common_vocabulary([member.expert for member in members])
    if objectives is not None:
        if len(objectives) != len(members):
            raise InvalidInput(f"objectives: expected {len(members)}, one per expert, got {len(objectives)}")
        members = [replace(member, objective=one) for member, one in zip(members, objectives, strict=True)]
    members = _told_apart(members)
    if len(members) == 1 and method == "routing":
        method, options = "single", {}  # one expert alone has nobody to be routed to
    given = {name: value for name, value in options.items() if value is not None}
    names = [member.name for member in members]
    if isinstance(method, Composition):
        _composed(method, len(members), given)
    elif isinstance(method, str):
        given = spec(method).check(given, names)
    else:
        raise InvalidInput(f"method: expected a name or a Composition, got {type(method).__name__}")
    if isinstance(given.get("factors"), str):
        check_factors(given["factors"])
    team = Team(tuple(members), method, given, layout, reveal, engine or Engine(), device)
    reveal_rule(reveal)
    if isinstance(method, str) and spec(method).objectives:
        team.how(cells=1)  # refuses experts that do not fit the method, before anything runs
    return team


def _composed(composition: Composition, experts: int, options: Mapping[str, Any]) -> Method:
    """A composition of one's own as a method; one with a target is decoded with particles."""
    if composition.target(experts) is None:
        if options:
            raise InvalidInput(
                f"{next(iter(options))}: a composition carries its own numbers; set them where it is made"
            )
        return Method(type(composition).__name__, composition)
    unknown = sorted(options.keys() - {"particles", "selection", "resampling"})
    if unknown:
        raise InvalidInput(
            f"{unknown[0]}: a composition carries its own numbers; with a target it takes particles, selection and "
            "resampling"
        )
    usual = {"particles": PARTICLES.default, "selection": SELECTION.default}
    return Method(type(composition).__name__, composition, 1.0, **{**usual, **options})


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{number:g}" for number in value)
    return f"{value}" if isinstance(value, str | int | float) else "given"


def on_device(condition: Any, device: torch.device) -> Any:
    """The condition where the experts are; what cannot be moved stays."""
    if isinstance(condition, dict):
        return {key: on_device(part, device) for key, part in condition.items()}
    if isinstance(condition, tuple):
        parts = [on_device(part, device) for part in condition]
        return type(condition)(*parts) if hasattr(condition, "_fields") else tuple(parts)
    return condition.to(device) if isinstance(condition, Tensor | Condition) else condition


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
        return Member(name or found.name, load_expert(found.folder, device), objective, found.folder)
    if not isinstance(expert, Expert):
        raise InvalidInput(
            f"experts: number {number + 1} is a {type(expert).__name__}, expected a name, a folder, or an object with "
            "vocabulary, encode and log_probs"
        )
    if isinstance(expert, torch.nn.Module) and expert.training and not isinstance(expert, Network):
        raise InvalidInput(
            f"experts: number {number + 1}, a {type(expert).__name__}, is in training mode, where dropout and the like "
            "draw numbers of their own; call .eval() on it first"
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
