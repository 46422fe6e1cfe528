"""The only loop: draw from a composition of experts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from factordiff.composition.composition import Composition, State, check_log_probs, refuse, sum_error
from factordiff.composition.confidence import log_doubt
from factordiff.composition.vote import majority_vote
from factordiff.errors import InvalidInput
from factordiff.experts.expert import Expert, take
from factordiff.sampling.draws import Draws
from factordiff.sampling.emission import draw_tokens, log_drawn, log_prob_of_cells
from factordiff.sampling.particles import (
    draw_one,
    effective_size,
    highest_target,
    log_target,
    normalised,
    systematic,
)
from factordiff.sampling.request import (
    Selection,
    check_encoded,
    check_particles,
    check_seed,
    check_tokens,
    common_vocabulary,
    item_ids,
)
from factordiff.sampling.reveal import ByConfidence, Moment, RevealRule
from factordiff.sampling.trace import Event, Trace
from factordiff.streams import Purpose
from factordiff.types import Cells, ExpertLogProbs, Tokens

ItemCells = Bool[Tensor, "item particle cell"]


@dataclass(frozen=True)
class Population:
    """Everything the loop carries from step to step: one row per particle of every item."""

    x_t: Int[Tensor, "item particle cell"]
    log_density: Float[Tensor, "expert item particle"]
    log_w: Float[Tensor, "item particle"]
    step: Int[Tensor, " item"]  # each item's own clock


@dataclass(frozen=True)
class Samples:
    """One answer per item, the particles it was chosen from, and what it cost."""

    x_0: Int[Tensor, "item cell"]
    particles: Int[Tensor, "item particle cell"]
    log_w: Float[Tensor, "item particle"]
    log_density: Float[Tensor, "expert item particle"]
    nominal_passes: Int[Tensor, " item"]  # experts x particles x steps that were not idle
    executed_passes: Int[Tensor, " item"]  # rows that experts were really asked about
    trace: Trace | None = None

    def __repr__(self) -> str:
        items, particles, cells = self.particles.shape
        return (
            f"Samples({items} items of {cells} cells, {particles} particles, "
            f"{int(self.executed_passes.sum())} passes executed of {int(self.nominal_passes.sum())} nominal)"
        )


@torch.no_grad()
def sample(
    experts: Sequence[Expert],
    composition: Composition,
    x_t: Int[Tensor, "item cell"],
    condition: Any = None,
    *,
    reveal: RevealRule | None = None,
    temperature: float = 0.0,
    particles: int = 1,
    selection: Selection = "draw",
    seed: int = 0,
    items: Int[Tensor, " item"] | None = None,
    trace: bool = False,
    on_step: Callable[[int, int], None] | None = None,
) -> Samples:
    """Fill the masked cells of every item; given cells stay as they are.

    `temperature` 0 takes the likeliest value, above 0 draws from r^(1/temperature). A composition with a
    target (`feynman_kac`, `rne`) weights its particles and resamples them when their effective size falls
    below half. `selection` says which particle is the answer: one drawn by weight, the one of highest target,
    a vote cell by cell, or the first. `items` are the ids that random numbers belong to (default 0, 1, ...):
    an item draws the same numbers alone, in any batch and on any device. `on_step(done, total)` is told how
    many cells are filled.
    """
    vocabulary = common_vocabulary(experts)
    beta = composition.target(len(experts))
    check_tokens(x_t, vocabulary)
    check_particles(particles, temperature, selection, beta is not None)
    check_seed(seed)
    ids = item_ids(items, x_t)

    run = Run(
        experts, composition, reveal or ByConfidence(), condition, x_t, ids, particles, seed, temperature
    )
    population = run.begin(x_t)
    nominal = torch.zeros(len(x_t), dtype=torch.int64, device=x_t.device)
    executed = torch.zeros_like(nominal)
    story = Trace(vocabulary.size, x_t.tolist()) if trace else None
    total = int((population.x_t == vocabulary.mask).sum())

    while run.unfinished(population).any():
        population, candidates = run.skip_idle(population)
        asked = candidates.any(-1)
        nominal += len(experts) * particles * asked.any(-1)
        executed += len(experts) * asked.sum(-1)
        revealed, event = run.reveal(population, candidates)
        population, event = run.resample(revealed, event)
        if story is not None:
            story.record(event, revealed.step, asked, revealed.x_t, revealed.log_w)
        population = run.tick(population)
        if on_step is not None:
            on_step(total - int((population.x_t == vocabulary.mask).sum()), total)
    run.check()

    return Samples(
        run.select(population, selection),
        population.x_t,
        population.log_w,
        population.log_density,
        nominal,
        executed,
        story,
    )


class Run:
    """One call of `sample`: what stays the same from step to step, and the parts of a step."""

    def __init__(
        self,
        experts: Sequence[Expert],
        composition: Composition,
        rule: RevealRule,
        condition: Any,
        x_t: Int[Tensor, "item cell"],
        ids: Int[Tensor, " item"],
        particles: int,
        seed: int,
        temperature: float,
    ) -> None:
        self.experts, self.composition, self.rule = experts, composition, rule
        self.vocabulary = experts[0].vocabulary
        self.temperature, self.particles = temperature, particles
        beta = composition.target(len(experts))
        self.beta = None if beta is None else beta.to(x_t.device)
        self.encoded = [expert.encode(condition) for expert in experts]
        check_encoded(tuple(self.encoded), len(ids))
        row = torch.arange(len(ids) * particles, device=ids.device)
        self.item = row // particles  # position of a row's item in this batch
        self.start = (x_t == self.vocabulary.mask).sum(-1)[self.item]
        self.draws = Draws(seed, ids[self.item], row % particles)
        self.item_draws = Draws(seed, ids, torch.zeros_like(ids))
        self.worst_sum: Tensor | None = None

    def begin(self, x_t: Int[Tensor, "item cell"]) -> Population:
        """Every particle at the start, unweighted."""
        items, device = len(x_t), x_t.device
        return Population(
            x_t[:, None].repeat(1, self.particles, 1),
            torch.zeros(len(self.experts), items, self.particles, dtype=torch.float64, device=device),
            torch.zeros(items, self.particles, dtype=torch.float64, device=device),
            torch.zeros(items, dtype=torch.int64, device=device),
        )

    def masked(self, population: Population) -> ItemCells:
        """The cells still hidden."""
        return population.x_t == self.vocabulary.mask

    def unfinished(self, population: Population) -> Bool[Tensor, " item"]:
        """The items with a masked cell in some particle."""
        return self.masked(population).flatten(1).any(-1)

    def moment(self, population: Population) -> Moment:
        """Where each row is on its way."""
        masked = self.masked(population).flatten(0, 1)
        return Moment(masked, population.step[self.item], self.start, self.draws)

    def skip_idle(self, population: Population) -> tuple[Population, ItemCells]:
        """Move every unfinished item's clock to its next step with something to reveal, at no cost."""
        unfinished = self.unfinished(population)
        while True:
            candidates = self.rule.candidates(self.moment(population)).view_as(population.x_t)
            idle = unfinished & ~candidates.flatten(1).any(-1)
            if not idle.any():
                return population, candidates
            population = replace(population, step=population.step + idle.to(torch.int64))

    def reveal(self, population: Population, candidates: ItemCells) -> tuple[Population, Event]:
        """Ask the experts about the rows that have candidates, compose, choose cells, fill them, weight."""
        rows = candidates.flatten(0, 1).any(-1).nonzero().squeeze(-1)
        here = self.moment(population).of(rows)
        x_t = population.x_t.flatten(0, 1)[rows]
        state = State(x_t, here.masked, population.log_density.flatten(1)[:, rows], self.item[rows])

        log_probs = self.ask(x_t, here.masked, state.item)
        composed = self.composition(log_probs, state)
        doubt = composed.log_doubt if composed.log_doubt is not None else log_doubt(composed.log_probs)
        cells = self.rule.choose(doubt, candidates.flatten(0, 1)[rows], here)
        tokens = draw_tokens(log_probs, composed, self.temperature, here.draws, here.step)

        log_said = log_prob_of_cells(log_probs, tokens, cells)
        log_w = population.log_w.flatten()
        if self.beta is not None:
            drawn = log_drawn(log_probs, composed, tokens, cells, self.temperature)
            log_w = log_w.index_add(0, rows, log_target(log_said, self.beta) - drawn)
        return (
            Population(
                population.x_t.flatten(0, 1)
                .index_put((rows,), torch.where(cells, tokens, x_t))
                .view_as(population.x_t),
                population.log_density.flatten(1)
                .index_add(1, rows, log_said)
                .view_as(population.log_density),
                log_w.view_as(population.log_w),
                population.step,
            ),
            Event(rows, cells, composed.routing, doubt),
        )

    def ask(self, x_t: Tokens, masked: Cells, item: Int[Tensor, " batch"]) -> ExpertLogProbs:
        """One pass of every expert over the given rows."""
        spoken = []
        for index, (expert, encoded) in enumerate(zip(self.experts, self.encoded, strict=True)):
            said = expert.log_probs(x_t, take(encoded, item))
            if said.shape != (*x_t.shape, self.vocabulary.size):
                raise InvalidInput(
                    f"experts: expert {index} returned log-probabilities of shape {tuple(said.shape)}, "
                    f"expected {(*x_t.shape, self.vocabulary.size)} (batch, cell, value)"
                )
            spoken.append(said)
        dtype = torch.float64 if any(said.dtype == torch.float64 for said in spoken) else torch.float32
        log_probs = torch.stack([said.to(dtype) for said in spoken])
        if self.worst_sum is None:  # a bad expert is refused at once; later passes are checked at the end
            check_log_probs(log_probs, masked)
            self.worst_sum = torch.zeros(len(spoken), dtype=dtype, device=x_t.device)
        self.worst_sum = torch.maximum(self.worst_sum, sum_error(log_probs, masked))
        return log_probs

    def check(self) -> None:
        """Refuse the result if some expert's distributions went bad on the way."""
        if self.worst_sum is not None:
            refuse(self.worst_sum)

    def resample(self, population: Population, event: Event) -> tuple[Population, Event]:
        """Systematic resampling of the items whose effective size fell below half their particles."""
        if self.beta is None:
            return population, event
        log_w = population.log_w
        size = effective_size(log_w)
        poor = (size < self.particles / 2)[:, None]
        offset = self.item_draws.rows(Purpose.RESAMPLE, population.step)
        kept = torch.arange(self.particles, device=log_w.device).expand_as(log_w)
        ancestors = torch.where(poor, systematic(normalised(log_w), offset), kept)
        resampled = Population(
            population.x_t.gather(1, ancestors[:, :, None].expand_as(population.x_t)),
            population.log_density.gather(2, ancestors.expand_as(population.log_density)),
            torch.where(poor, 0.0, log_w),
            population.step,
        )
        return resampled, replace(event, ess=size, ancestors=ancestors)

    def tick(self, population: Population) -> Population:
        """Every unfinished item's clock moves on."""
        return replace(population, step=population.step + self.unfinished(population).to(torch.int64))

    def select(self, population: Population, selection: Selection) -> Int[Tensor, "item cell"]:
        """Each item's answer."""
        if selection == "vote":
            return majority_vote(population.x_t.transpose(0, 1), self.vocabulary.size)
        item = torch.arange(len(population.step), device=population.step.device)
        chosen = torch.zeros_like(item)
        if selection == "draw":
            uniforms = self.item_draws.rows(Purpose.SELECT, torch.zeros_like(item))
            chosen = draw_one(population.log_w, uniforms)
        elif selection == "highest-target" and self.beta is not None:
            chosen = highest_target(population.log_density, self.beta)
        return population.x_t[item, chosen]
