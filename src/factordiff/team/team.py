"""A team: named experts and the way in which they answer together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.composition.composition import Composition, check_lengths
from factordiff.composition.factor_names import check_factors, factors_named
from factordiff.composition.method import Method, spec
from factordiff.composition.options import PARTICLES, RESAMPLING, SELECTION
from factordiff.composition.router import Router
from factordiff.devices import device_named
from factordiff.engine.auto import AutoEngine
from factordiff.engine.decode import decode
from factordiff.engine.engine import Engine
from factordiff.errors import InvalidInput
from factordiff.experts.condition import Condition, on_device
from factordiff.experts.expert import Expert
from factordiff.fitting.diagnosis import Diagnosis
from factordiff.fitting.report import FitReport
from factordiff.networks.named import NamedExpert
from factordiff.sampling.request import common_vocabulary
from factordiff.sampling.reveal import RevealRule
from factordiff.sampling.rules import reveal_rule
from factordiff.sampling.samples import Samples
from factordiff.schema.bound import shown
from factordiff.team.diagnose import diagnose_team
from factordiff.team.file import LAYOUT, read_team, save_team
from factordiff.team.fit import Progress, data_of, fit_options, fit_team
from factordiff.team.members import ExpertLike, named_expert, with_names_apart
from factordiff.team.router import check_router
from factordiff.tensors import Numbers, as_number, as_tensor

if TYPE_CHECKING:
    from factordiff.team.model import TeamModel

CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class Team:
    """Experts that answer together: `sample` fills any masked cells.

    `options` are those that were given, checked; what was not given is as the method declares it.
    """

    members: tuple[NamedExpert, ...]
    method: str | Composition = "routing"
    options: Mapping[str, Any] = field(default_factory=dict)
    layout: tuple[int, int] | None = None
    reveal: str | RevealRule = "fast"
    engine: Engine | AutoEngine = field(default_factory=AutoEngine)
    device: torch.device = CPU
    report: FitReport | None = None  # what was tried, of a team that was fitted

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
        # A composition of one's own shows its numbers, unless it shows nothing but where it is in memory.
        bare = isinstance(self.method, str) or type(self.method).__repr__ is object.__repr__
        parts = [" + ".join(map(repr, self.members)), self.method_name if bare else repr(self.method)]
        parts += [f"{name} {_shown(value)}" for name, value in self.options.items()]
        parts.append(f"reveal {self.reveal}")
        return f"Team({'; '.join(parts)})"

    def method_for(self, cells: int, condition: Any = None) -> Method:
        """The method for items of that many cells under that condition."""
        if isinstance(self.method, Composition):
            return _composed(self.method, len(self), self.options)
        declared = spec(self.method)
        factors: Any = self.options.get("factors", declared.factors)
        if isinstance(factors, str):
            query = condition.query if isinstance(condition, Condition) else None
            factors = factors_named(factors, cells, self.layout, query, declared.overlapping)
        objectives = [member.objective for member in self.members]
        return declared.method(self.options, objectives, factors)

    def sample(
        self,
        x_t: Int[Tensor, "item cell"] | Numbers,
        condition: Any = None,
        *,
        temperature: float | None = None,
        reveal: str | RevealRule | None = None,
        seed: int = 0,
        items: Int[Tensor, " item"] | Numbers | None = None,
        trace: bool = False,
        on_step: Callable[[int, int], None] | None = None,
    ) -> Samples:
        """Fill the masked cells of every item: a grid, a sentence, anything made of cells.

        `temperature` 0 takes the likeliest values, above 0 draws them; by default as the method is usually decoded.
        """
        x_t, condition = as_tensor("x_t", x_t).to(self.device), on_device(condition, self.device)
        how = self.method_for(x_t.shape[-1] if x_t.dim() else 0, condition)
        if temperature is not None:
            how = replace(how, temperature=temperature)
        return decode(
            how,
            self.experts,
            x_t,
            condition,
            reveal=reveal_rule(self.reveal if reveal is None else reveal),
            seed=as_number(seed),
            items=None if items is None else as_tensor("items", items).to(self.device),
            engine=self.engine,
            trace=trace,
            on_step=on_step,
        )

    def alone(self, index: int) -> Team:
        """The team of this one expert."""
        return replace(self, members=(self.members[index],), method="single", options={})

    def save(self, file: str | Path) -> Path:
        """Write the team as JSON; `compose(FILE)` puts it together again.

        A router that is only in memory is written beside it: that of team.json into team-router.
        """
        return save_team(self, file)

    def fit(
        self,
        data: Any,
        what: str = "router",
        *,
        folder: str | Path | None = None,
        on_progress: Progress | None = None,
        **options: Any,
    ) -> Team:
        """The team with its router or its numbers fitted on held-out data; `Team.report` says what was tried.

        `data` are `FittingData`, or a tuple of right answers, condition, asked cells and layout, by default the team's.
        `what` is `router`, `temperatures` (of routing), `exponents` (of the product), `weights` (of the mixture),
        `superdiff`, `rne` or `evidence`; `options` are fields of `team.fit.FitOptions`, such as `budget` or `kind`.
        With a `folder` an interrupted fit goes on where it was. `on_progress(stage, done, total)` hears how far it is.
        """
        place = None if folder is None else Path(folder)
        given = data_of(self, data)
        return fit_team(self, given, what, fit_options(options), place, on_progress)

    def diagnose(self, data: Any, *, seed: int = 0, on_progress: Progress | None = None) -> Diagnosis:
        """Whether these experts need weights per cell: single numbers, confidence, evidence, a small router, bounds.

        `data` as for `fit`. Teacher-forced, per hidden cell; nothing is decoded.
        """
        return diagnose_team(self, data, seed, on_progress)

    def as_model(self, shifted: bool = False) -> TeamModel:
        """The team as one model, for other people's samplers: `model(input_ids, ...)` returns `.logits`.

        Those at a position speak of that position, whatever the models' own do; `shifted`, of the next one, for
        samplers that shift them by themselves (Dream's).
        """
        from factordiff.team.model import TeamModel

        return TeamModel(self, shifted)


def compose(
    experts: Sequence[ExpertLike] | Mapping[str, ExpertLike] | str | Path,
    method: str | Composition = "routing",
    *,
    layout: tuple[int, int] | None = None,
    reveal: str | RevealRule | None = None,
    objectives: Sequence[str] | None = None,
    engine: Engine | AutoEngine | Literal["auto"] | None = "auto",
    device: torch.device | str | None = "cpu",
    **options: Any,
) -> Team:
    """Put experts together: shipped names, folders, or any objects that are experts.

    Or a whole team: the file that `Team.save` wrote, or a shipped team's name (`col+occ`), with all its numbers. Names
    come from a mapping, or from the folder, or are counted. `method` is a name or a composition of one's own.
    `options` are the method's (`factordiff eval --help` lists them): a number per expert in order or by name, as
    `temperatures={"trans-occ": 0.25}`; `factors` is a name (`pixel`, `row`, `column`, `block:2x2`, `component`,
    `whole`) or labels. Lists, numpy arrays and tensors are taken alike. `reveal` is `fast`, `exact`, a rule's name such
    as `margin:0.9`, or a rule; by default what suits the method: `exact` for `evidence`, which learns on the way,
    `fast` for the others. `objectives` say what experts of one's own were trained on, for methods that ask (`views`).
    `engine` is `auto`, chosen for each request by its size and the device, or an `Engine`; it changes no result.

    >>> from factordiff.toy.painting import painters
    >>> compose(dict(zip(("edges", "middle"), painters())), temperatures={"middle": 0.5})
    Team(edges (full) + middle (full); routing; temperatures 1, 0.5; reveal fast)
    """
    if isinstance(experts, str | Path):
        if (method, layout, reveal, objectives, options) != ("routing", None, None, None, {}):
            raise InvalidInput(
                f"experts: {str(experts)!r} names a whole team, with its method and numbers; name its experts in "
                "a list to set others"
            )
        return compose(**read_team(experts), engine=engine, device=device)
    if not isinstance(experts, Iterable):
        raise InvalidInput(
            f"experts: expected a list of experts, or experts by name, got {type(experts).__name__}"
        )
    if engine in (None, "auto"):
        engine = AutoEngine()
    if not isinstance(engine, Engine | AutoEngine):
        raise InvalidInput(f"engine: expected 'auto' or an Engine, got {shown(engine)}")
    if layout is not None:
        layout = LAYOUT.read(layout, "layout")
    device = device_named(device)
    named = experts.items() if isinstance(experts, Mapping) else [(None, expert) for expert in experts]
    members = [named_expert(name, expert, number, device) for number, (name, expert) in enumerate(named)]
    common_vocabulary([member.expert for member in members])
    if objectives is not None:
        if len(objectives) != len(members):
            raise InvalidInput(f"objectives: expected {len(members)}, one per expert, got {len(objectives)}")
        members = [replace(member, objective=one) for member, one in zip(members, objectives, strict=True)]
    members = with_names_apart(members)
    if len(members) == 1 and method == "routing":
        for name in options:
            spec(method).option(name)  # a name that is wrong is wrong here too
        method, options = "single", {}  # one expert alone has nobody to be routed to
    given = {name: value for name, value in options.items() if value is not None}
    names = [member.name for member in members]
    if isinstance(method, Composition):
        _composed(method, len(members), given)
    elif isinstance(method, str):
        given = spec(method).check(given, names)
    else:
        what = f"the class {method.__name__}" if isinstance(method, type) else type(method).__name__
        raise InvalidInput(f"method: expected a name or a Composition, got {what}")
    if isinstance(given.get("factors"), str):
        check_factors(given["factors"])
    if reveal is None:
        reveal = spec(method).reveal if isinstance(method, str) else "fast"
    team = Team(tuple(members), method, given, layout, reveal, engine, device)
    reveal_rule(reveal)
    check_router(team)
    if isinstance(method, str) and (spec(method).objectives or not isinstance(given.get("factors", ""), str)):
        team.method_for(
            cells=1
        )  # refuses experts or factors that do not fit the method, before anything runs
    return team


def _composed(composition: Composition, experts: int, options: Mapping[str, Any]) -> Method:
    """A composition of one's own as a method; one with a target is decoded with particles."""
    check_lengths(composition, experts)
    if composition.target(experts) is None:
        if options:
            raise InvalidInput(
                f"{next(iter(options))}: a composition carries its own numbers; set them where it is made"
            )
        return Method(type(composition).__name__, composition)
    decoding = {option.name: option for option in (PARTICLES, SELECTION, RESAMPLING)}
    unknown = sorted(options.keys() - decoding.keys())
    if unknown:
        raise InvalidInput(
            f"{unknown[0]}: a composition carries its own numbers; with a target it takes particles, selection and "
            "resampling"
        )
    settings = {name: option.check(options.get(name), ()) for name, option in decoding.items()}
    return Method(type(composition).__name__, composition, 1.0, **settings)


def _shown(value: Any) -> str:
    if isinstance(value, Router):
        return f"{value!r}"
    if isinstance(value, tuple):
        return ", ".join(f"{number:g}" for number in value)
    return f"{value}" if isinstance(value, str | int | float) else "given"
