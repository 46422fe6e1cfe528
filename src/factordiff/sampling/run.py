"""One call of the loop: what stays the same from step to step, and the parts of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from factordiff.composition.composition import Composition, State
from factordiff.composition.vote import majority_vote
from factordiff.experts.expert import Expert, voices
from factordiff.sampling.decision import Decision, decide
from factordiff.sampling.draws import Draws
from factordiff.sampling.emission import log_drawn
from factordiff.sampling.first_pass import FirstPass
from factordiff.sampling.panel import Panel, Question
from factordiff.sampling.particles import (
    draw_one,
    effective_size,
    highest_target,
    log_target,
    normalised,
    systematic,
)
from factordiff.sampling.population import ItemCells, Population
from factordiff.sampling.request import Selection
from factordiff.sampling.reveal import Moment, RevealRule
from factordiff.sampling.savings import Bucket, Savings
from factordiff.sampling.trace import Event
from factordiff.streams import Purpose
from factordiff.types import Cells, ExpertLogProbs

NEVER = 2**62
ROUNDING = 1e-9  # by which the effective size of equal weights may seem smaller than their number
REFILL = 16  # waiting items take off when this share of the places is free: few, large encodings


class Run:
    """The experts, the rule and the queue; a population goes through its methods once per step."""

    def __init__(
        self,
        experts: Sequence[Expert],
        composition: Composition,
        rule: RevealRule,
        x_t: Int[Tensor, "item cell"],
        condition: Any,
        *,
        ids: Int[Tensor, " item"],
        particles: int,
        seed: int,
        temperature: float,
        resampling: float,
        places: int,
        bucket: Bucket | None,
        leaving: bool,
        savings: Savings,
        first_pass: FirstPass | None,
    ) -> None:
        self.composition, self.rule, self.savings = composition, rule, savings
        self.experts, self.mask = sum(map(voices, experts)), experts[0].vocabulary.mask
        self.particles, self.seed, self.temperature = particles, seed, temperature
        self.enough = resampling * particles * (1 - ROUNDING)
        beta = composition.target(self.experts)
        self.beta = None if beta is None else beta.to(x_t.device)
        self.x_t, self.ids = x_t, ids
        self.start = (x_t == self.mask).sum(-1)
        self.places, self.leaving, self.waiting = places, leaving, 0  # the first item that still waits
        self.panel = Panel(experts, condition, bucket, savings, first_pass, particles)
        everyone = torch.arange(len(x_t), device=x_t.device)
        self.landed = Population.begin(x_t, everyone, self.experts, particles)
        self.nominal = torch.zeros_like(everyone)
        self.executed = torch.zeros_like(everyone)

    # Items come and go.

    def begin(self) -> Population:
        """The first items take off."""
        return self.land(self._take_off(self.places))

    def _take_off(self, items: int) -> Population:
        place = torch.arange(self.waiting, self.waiting + items, device=self.x_t.device)
        self.waiting += items
        self.panel.admit(place)
        return Population.begin(self.x_t[place], place, self.experts, self.particles, self.rule.repairs)

    def land(self, population: Population) -> Population:
        """Finished items leave, and waiting ones take their place; an empty population is the end."""
        while True:
            unfinished = self.masked(population).flatten(1).any(-1)
            staying = unfinished.nonzero().squeeze(-1)
            if len(staying) and not self.leaving:
                return population
            if len(staying) < len(population):
                finished = population.of((~unfinished).nonzero().squeeze(-1))
                self.landed.put(finished)
                self.panel.dismiss(staying, self.ids[finished.place])
                population = population.of(staying)
            room = self.places - len(population)
            arriving = min(room, len(self.x_t) - self.waiting)
            if arriving == 0 or (len(population) and room * REFILL < self.places):
                return population
            population = population.joined(self._take_off(arriving))

    # Where everybody is.

    def masked(self, population: Population) -> ItemCells:
        """The cells still hidden."""
        return population.x_t == self.mask

    def hidden(self, population: Population) -> int:
        """How many cells are still hidden, in flight or waiting."""
        return int(self.masked(population).sum()) + self.particles * int(self.start[self.waiting :].sum())

    def moment(self, population: Population) -> Moment:
        """Where each row is on its way."""
        masked = self.masked(population).flatten(0, 1)
        row = torch.arange(len(masked), device=masked.device)
        item = row // self.particles
        place = population.place[item]
        draws = Draws(self.seed, self.ids[place], row % self.particles)
        return Moment(masked, population.step[item], self.start[place], draws)

    # The parts of a step.

    def skip_idle(self, population: Population) -> tuple[Population, Moment, ItemCells]:
        """Move every item's clock to its next step with something to reveal, at no cost."""
        moment = self.moment(population)
        if self.savings.idle:
            due = torch.where(moment.masked.any(-1), self.rule.due(moment), NEVER)
            step = due.view(len(population), -1).amin(-1)
            population = replace(population, step=torch.where(step < NEVER, step, population.step))
            moment = replace(moment, step=population.step.repeat_interleave(self.particles))
        return population, moment, self.rule.candidates(moment).view_as(population.x_t)

    def reveal(
        self, population: Population, moment: Moment, candidates: ItemCells
    ) -> tuple[Population, Event]:
        """Ask the experts about the rows that have candidates, and fill in what they say."""
        may_open = candidates.flatten(0, 1)
        asked = may_open.any(-1) if self.savings.idle else torch.ones_like(may_open[:, 0])
        rows = asked.nonzero().squeeze(-1)
        item = rows // self.particles
        place = population.place[item]
        here, x_t = moment, population.x_t.flatten(0, 1)
        if len(rows) < len(asked):
            here, x_t, may_open = moment.of(rows), x_t[rows], may_open[rows]

        fresh = here.masked.sum(-1) == here.start
        log_probs, passes = self.panel.ask(Question(x_t, here.masked, item, here.draws.item, fresh))
        self.executed.index_add_(0, place, passes)
        self.nominal.index_add_(0, population.place, self._defined(candidates))

        return self._fill(population, rows, here, may_open, log_probs)

    def _fill(
        self,
        population: Population,
        rows: Int[Tensor, " batch"],
        here: Moment,
        may_open: Cells,
        log_probs: ExpertLogProbs,
    ) -> tuple[Population, Event]:
        """Compose what the experts said about these rows, choose cells, fill them, weight."""
        place = population.place[rows // self.particles]
        x_t = population.x_t.flatten(0, 1)[rows]
        state = State(x_t, here.masked, population.log_density.flatten(1)[:, rows], place)
        decision = self.decide(log_probs, state, may_open, here)
        log_said = decision.log_said
        log_w = population.log_w.flatten()
        if self.beta is not None:
            drawn = log_drawn(log_probs, decision.composed, decision.tokens, decision.cells, self.temperature)
            log_w = log_w.index_add(0, rows, log_target(log_said, self.beta) - drawn)
        revealed = replace(
            population,
            x_t=population.x_t.flatten(0, 1).index_put((rows,), decision.filled(x_t)).view_as(population.x_t),
            log_density=population.log_density.flatten(1)
            .index_add(1, rows, log_said)
            .view_as(population.log_density),
            log_w=log_w.view_as(population.log_w),
        )
        cells, doubt = decision.cells, decision.log_doubt
        event = Event(rows, cells, decision.composed.routing, doubt)
        return revealed.remember(rows, cells, doubt, decision.said), event

    def decide(self, log_probs: ExpertLogProbs, state: State, may_open: Cells, here: Moment) -> Decision:
        """What the step decides about rows."""
        return decide(self.composition, self.rule, self.temperature, log_probs, state, may_open, here)

    def count(self, place: Int[Tensor, " item"]) -> None:
        """A pass of every expert for each of these items, one row each, defined and run."""
        passes = torch.full_like(place, self.experts)
        self.executed.index_add_(0, place, passes)
        self.nominal.index_add_(0, place, passes)

    def _defined(self, candidates: ItemCells) -> Int[Tensor, " item"]:
        """The passes of this step as the method defines them: all experts and particles, unless it is idle."""
        return self.experts * self.particles * candidates.flatten(1).any(-1).to(torch.int64)

    def resample(self, population: Population, event: Event) -> tuple[Population, Event]:
        """Systematic resampling of the items whose effective size fell below the wanted share of their particles."""
        if self.beta is None:
            return population, event
        log_w = population.log_w
        size = effective_size(log_w)
        poor = (size < self.enough)[:, None]
        offset = self._item_draws(population.place).rows(Purpose.RESAMPLE, population.step)
        kept = torch.arange(self.particles, device=log_w.device).expand_as(log_w)
        ancestors = torch.where(poor, systematic(normalised(log_w), offset), kept)
        resampled = replace(
            population,
            x_t=population.x_t.gather(1, ancestors[:, :, None].expand_as(population.x_t)),
            log_density=population.log_density.gather(2, ancestors.expand_as(population.log_density)),
            log_w=torch.where(poor, 0.0, log_w),
        )
        return resampled, replace(event, ess=size, ancestors=ancestors)

    def repair(self, population: Population) -> Population:
        """Mask the doubtful cells of full rows again, if the rule repairs and has not done so often enough."""
        if population.committed is None:
            return population
        full = ~self.masked(population).any(-1) & (population.committed.repairs > 0)
        was_hidden = (self.x_t[population.place] == self.mask)[:, None]
        doubtful = self.rule.doubtful(population.committed.log_doubt.flatten(0, 1)).view_as(population.x_t)
        return population.masked_again(doubtful & was_hidden & full[..., None], self.mask)

    def tick(self, population: Population) -> Population:
        """Every unfinished item's clock moves on."""
        unfinished = self.masked(population).flatten(1).any(-1)
        return replace(population, step=population.step + unfinished.to(torch.int64))

    # The end.

    def select(self, selection: Selection) -> Int[Tensor, "item cell"]:
        """Each item's answer."""
        if selection == "vote":
            return majority_vote(self.landed.x_t.transpose(0, 1), self.mask)
        item = self.landed.place
        chosen = torch.zeros_like(item)
        if selection == "draw":
            uniforms = self._item_draws(item).rows(Purpose.SELECT, torch.zeros_like(item))
            chosen = draw_one(self.landed.log_w, uniforms)
        elif selection == "highest-target" and self.beta is not None:
            chosen = highest_target(self.landed.log_density, self.beta)
        return self.landed.x_t[item, chosen]

    def _item_draws(self, place: Int[Tensor, " item"]) -> Draws:
        return Draws(self.seed, self.ids[place], torch.zeros_like(place))
