"""Which compositions draw from what they promise: total variation to the target, by enumeration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from factordiff.composition.composition import Composition
from factordiff.composition.correctors import Corrected, feynman_kac, rne
from factordiff.composition.factors import rows, whole
from factordiff.composition.mixture import Mixture
from factordiff.composition.product import GeometricMean, Product
from factordiff.composition.routing import FactorWeights, Routing, SoftRouting
from factordiff.composition.single import Single
from factordiff.composition.superdiff import SuperDiff, SuperDiffAnd
from factordiff.composition.views import HardViews, Views
from factordiff.errors import InvalidInput
from factordiff.sampling.request import check_memory
from factordiff.sampling.reveal import ByConfidence
from factordiff.toy.law import exact_law, total_variation
from factordiff.toy.laws import CellByCell, Led, drawn_particle_law, law_of_vote
from factordiff.toy.world import CELLS, Joint, normalised, random_joint, two_halves, two_opinions, two_views

ROUNDING = 1e-12  # a distance below this is float64's rounding, not a difference
PARTICLES = (1, 2, 8, 32)
BYTES = 4_096  # of memory that a particle takes, about
OPINIONS = "two opinions"


@dataclass(frozen=True)
class Measured:
    """The distance between what a method draws from and what it is held against."""

    world: str
    method: str
    target: str
    distance: float
    noise: float | None  # what a perfect sampler would show at this many draws; None: enumerated
    remark: str

    @property
    def exact(self) -> bool:
        """Whether the two laws are the same up to rounding."""
        return self.noise is None and self.distance < ROUNDING


def measurements(draws: int = 48_000, seed: int = 0) -> Iterator[Measured]:
    """Every composition on every toy world, one at a time; `draws` particles for each Monte Carlo line."""
    if draws < max(PARTICLES):
        raise InvalidInput(f"draws: expected at least {max(PARTICLES)}, one population, got {draws}")
    check_memory(draws, BYTES, torch.device("cpu"), "draws", "particles", "use fewer")
    yield from _opinions()
    yield from _corrected(draws, seed)
    yield from _halves()
    yield from _views()


def _opinions() -> Iterator[Measured]:
    experts = two_opinions()
    p_1, p_2 = random_joint(1), random_joint(2)
    both, either = normalised(p_1 * p_2), (p_1 + p_2) / 2
    balanced = normalised((p_1 * p_2).sqrt())
    two_at_a_time = ByConfidence(2)

    def held(
        method: str,
        composition: Composition,
        target: str,
        law: Joint,
        remark: str,
        reveal: ByConfidence | None = None,
    ) -> Measured:
        drawn = exact_law(experts, composition, CELLS, reveal=reveal).distribution()
        return Measured(OPINIONS, method, target, total_variation(drawn, law), None, remark)

    yield held("single", Single(), "p1", p_1, "An exact expert, surest cell first, gives its own joint.")
    yield held(
        "single, two cells a step",
        Single(),
        "p1",
        p_1,
        "Cells revealed together are drawn as if independent: few steps cost exactness.",
        two_at_a_time,
    )
    yield Measured(
        OPINIONS,
        "vote of 3 single runs",
        "p1",
        total_variation(law_of_vote(p_1, runs=3), p_1),
        None,
        "Each cell votes on its own: grids appear that no run drew, and the best one gets rarer.",
    )
    yield held("mixture", Mixture(), "(p1+p2)/2", either, "Each cell is mixed on its own: opinions blend.")
    yield held("superdiff", SuperDiff(), "(p1+p2)/2", either, "Keeps count of who predicted what: exact OR.")
    own = [exact_law(experts, Led(SuperDiff(), m), CELLS, reveal=two_at_a_time) for m in (0, 1)]
    paths = sum((law.distribution() for law in own), start=torch.zeros_like(p_1)) / 2
    yield held(
        "superdiff, two cells a step",
        SuperDiff(),
        "mean of both runs",
        paths,
        "One expert is drawn for the whole step: exact for the experts' own two-cell runs.",
        two_at_a_time,
    )
    yield held(
        "... cell by cell instead",
        CellByCell(SuperDiff()),
        "mean of both runs",
        paths,
        "What goes wrong if each cell of a step draws its own expert.",
        two_at_a_time,
    )
    yield held("product", Product(), "p1 p2", both, "Cell-wise AND forgets the mass it loses on the way.")
    yield held("geometric-mean", GeometricMean(), "sqrt(p1 p2)", balanced, "The same, half as strong.")
    for form in ("geometric", "linear"):
        yield held(
            f"superdiff-and ({form})",
            SuperDiffAnd(form),
            "none; sqrt(p1 p2)",
            balanced,
            "Balances the experts along the path; it has no target law in closed form.",
        )
    yield held(
        "routing (pixel)", Routing(), "none; (p1+p2)/2", either, "A valid sampler of no stated target."
    )
    yield held(
        "routing (whole)", Routing(whole(CELLS)), "none; (p1+p2)/2", either, "One expert a step: likewise."
    )
    yield held("soft-routing", SoftRouting(), "none; (p1+p2)/2", either, "In between routing and mixture.")


def _corrected(draws: int, seed: int) -> Iterator[Measured]:
    experts = two_opinions()
    both = normalised(random_joint(1) * random_joint(2))
    beta = (1.0, 1.0)
    methods: tuple[tuple[str, Corrected], ...] = (("fkc", feynman_kac(beta)), ("rne", rne(beta)))
    for name, composition in methods:
        weighted = exact_law(experts, composition, CELLS).distribution(weighted=True)
        yield Measured(
            OPINIONS,
            f"{name}, weighted law",
            "p1 p2",
            total_variation(weighted, both),
            None,
            "The weights repair the proposal exactly: infinitely many particles would be right.",
        )
        for particles in PARTICLES:
            law, noise = drawn_particle_law(experts, composition, particles, draws // particles, seed)
            yield Measured(
                OPINIONS,
                f"{name}, one of {particles}",
                "p1 p2",
                total_variation(law, both),
                noise,
                "The proposal alone." if particles == 1 else f"{2 * particles} passes a step.",
            )


def _halves() -> Iterator[Measured]:
    uniform, wrong = two_halves(), two_halves(wrongly_sure=True)
    halves = rows(2, 2)  # the first expert's two cells are the first row
    told = FactorWeights(torch.eye(2, dtype=torch.float64), halves)
    for world, method, composition, remark in (
        (uniform, "mixture", Mixture(), "Half of the ignorance is let in everywhere."),
        (uniform, "geometric-mean", GeometricMean(), "Ignorance halves the exponent of knowledge."),
        (uniform, "product", Product(), "Exact: a uniform factor changes nothing."),
        (
            uniform,
            "routing (whole)",
            Routing(whole(CELLS)),
            "Exact as well: it chooses anew each step, and the surest cell goes first.",
        ),
        (uniform, "soft-routing", SoftRouting(), "A little ignorance still gets in."),
        (uniform, "routing (pixel)", Routing(), "Exact: who knows, speaks."),
        (wrong, "mixture", Mixture(), "One weight for all cells lets both wrong halves in."),
        (wrong, "product", Product(), "So does one exponent for all cells."),
        (wrong, "routing (pixel)", Routing(), "Confidence misleads where it does not track competence."),
        (wrong, "factor weights, told", told, "Exact: the factors are right, and someone says whose."),
    ):
        drawn = exact_law(world.experts, composition, CELLS).distribution()
        yield Measured(world.name, method, "the truth", total_variation(drawn, world.truth), None, remark)


def _views() -> Iterator[Measured]:
    world = two_views()
    for method, composition, remark in (
        ("routing (pixel)", Routing(), "Compares margins that answer different questions."),
        ("geometric-mean", GeometricMean(), "The second expert vetoes every empty cell."),
        ("hard views", HardViews(), "Made for argmax: empty or not is decided, not drawn."),
        ("views", Views(), "Exact: each expert answers only what it was trained on."),
    ):
        drawn = exact_law(world.experts, composition, CELLS).distribution()
        yield Measured(world.name, method, "the truth", total_variation(drawn, world.truth), None, remark)
