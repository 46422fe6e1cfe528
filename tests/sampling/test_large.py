"""Large vocabularies: chunk by chunk the step does what it does at once, and asks about no more than it must."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from factordiff import (
    Ancestral,
    ByConfidence,
    ByEntropy,
    ByMargin,
    ByProduct,
    Composition,
    Engine,
    Evidence,
    GeometricMean,
    HardViews,
    Mixture,
    Product,
    Repaired,
    RevealRule,
    Routing,
    Samples,
    Single,
    SoftRouting,
    SuperDiff,
    SuperDiffAnd,
    Views,
    Vocabulary,
    feynman_kac,
    rne,
    rows,
    sample,
)
from factordiff.composition import confidence, contenders
from factordiff.composition.drawn_expert import DrawnExpert
from factordiff.engine import expert_batch
from factordiff.errors import InvalidInput
from factordiff.experts import forward
from factordiff.experts.asked_cells import AskedCells
from factordiff.experts.cell_outputs import CellOutputs, SupportsCells
from factordiff.sampling import step
from factordiff.sampling.reveal import Posterior
from factordiff.types import LARGE, Cells

CELLS = 12


class Words:
    """An expert whose opinion of a cell depends on the mean of what is revealed; float64, to be compared."""

    def __init__(
        self, seed: int, values: int, sharp: float = 3.0, dtype: torch.dtype = torch.float64
    ) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.vocabulary = Vocabulary(values)
        self.seen = torch.randn(values + 1, 8, generator=generator, dtype=dtype)
        self.place = torch.randn(CELLS, 8, generator=generator, dtype=dtype)
        self.head = sharp * torch.randn(8, values, generator=generator, dtype=dtype)
        self.asked: list[Cells] = []

    def encode(self, condition: Any) -> None:
        return None

    def hidden(self, x_t: Tensor) -> Tensor:
        return torch.tanh(self.seen[x_t].mean(1, keepdim=True) + self.place)

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        return torch.log_softmax(self.hidden(x_t) @ self.head, dim=-1)


class WordsAt(Words):
    """The same, at some cells alone; it remembers at which."""

    def log_probs_at(self, x_t: Tensor, encoded: Any, cells: Cells) -> Tensor:
        self.asked.append(cells)
        return torch.log_softmax((self.hidden(x_t))[cells] @ self.head, dim=-1)


@pytest.fixture
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it, and from then on a vocabulary of three values counts as large."""

    def lower() -> None:
        for module in (confidence, contenders, expert_batch, forward, step):
            monkeypatch.setattr(module, "LARGE", 2)
        monkeypatch.setattr(confidence, "BLOCK", 2)

    return lower


COMPOSITIONS: dict[str, Composition] = {
    "single": Single(1),
    "mixture": Mixture([0.5, 0.2, 0.3]),
    "product": Product([1.0, 0.5, 0.0]),
    "geometric-mean": GeometricMean(),
    "routing": Routing(),
    "routing, tempered": Routing(temperatures=[1.0, 0.5, 2.0]),
    "routing by rows": Routing(rows(3, 4)),
    "soft-routing": SoftRouting(0.2),
    "superdiff": SuperDiff([0.2, 0.3, 0.5]),
    "superdiff-and": SuperDiffAnd(),
    "views": Views(),
    "hard views": HardViews(),
    "evidence": Evidence(rows(3, 4)),
    "fkc": feynman_kac([1.0, 1.0, 0.5]),
    "rne": rne(),
    "rne by superdiff": rne(proposal=SuperDiff()),
    "drawn-expert": DrawnExpert([0.2, 0.3, 0.5]),
    "rne by drawn-expert": rne(proposal=DrawnExpert()),
}
RULES: dict[str, RevealRule] = {
    "confidence": ByConfidence(5),
    "ancestral": Ancestral(6),
    "margin": ByMargin(0.3),
    "entropy": ByEntropy(1.0),
    "product": ByProduct(0.5),
    "repaired": Repaired(ByMargin(0.3), 0.5),
}


def drawn(composition: Composition, rule: RevealRule, experts: list[Words], engine: Engine | None) -> Samples:
    x_t = torch.full((3, CELLS), experts[0].vocabulary.mask)
    x_t[1, :5] = torch.arange(5) % experts[0].vocabulary.size
    targeted = composition.target(3) is not None
    settings: dict[str, Any] = {"reveal": rule, "seed": 4, "particles": 4 if targeted else 1}
    settings["temperature"] = 1.0 if targeted or isinstance(rule, Ancestral) else 0.0
    if engine is not None:
        return engine.sample(experts, composition, x_t, **settings)
    return sample(experts, composition, x_t, **settings)


@pytest.mark.parametrize("rules", [1, pytest.param(len(RULES), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", COMPOSITIONS)
def test_chunk_by_chunk_a_run_is_the_run_at_once(
    name: str, rules: int, all_are_large: Callable[[], None]
) -> None:
    composition = COMPOSITIONS[name]
    experts = [Words(seed, 7) for seed in (1, 2, 3)]
    first = list(COMPOSITIONS).index(name) + 1  # every rule has its turn; those with a target have no repairs
    turns = [list(RULES.items())[(first + more) % len(RULES)] for more in range(rules)]
    allowed = {key: rule for key, rule in turns if composition.target(3) is None or not rule.repairs}
    plain = {key: drawn(composition, rule, experts, None) for key, rule in allowed.items()}
    all_are_large()
    few = 3 * 7 * 8 * 5  # bytes: five cells at a time
    at_cells = [WordsAt(seed, 7) for seed in (1, 2, 3)]
    for key, rule in allowed.items():
        for found in (
            drawn(composition, rule, experts, None),
            drawn(composition, rule, at_cells, Engine(batch=8, chunk=few)),
        ):
            assert torch.equal(found.particles, plain[key].particles), key
            assert torch.equal(found.nominal_passes, plain[key].nominal_passes), key
            assert torch.allclose(found.log_w, plain[key].log_w, atol=1e-9), key
            assert torch.allclose(found.log_density, plain[key].log_density, atol=1e-9), key
    assert at_cells[0].asked


def test_traces_tell_of_the_cells_that_were_asked_about(all_are_large: Callable[[], None]) -> None:
    experts = [Words(seed, 7) for seed in (1, 2)]
    x_t = torch.full((2, CELLS), 7)
    plain = sample(experts, Routing(), x_t, reveal=ByConfidence(4), trace=True).trace
    ancestral = sample(experts, Routing(), x_t, reveal=Ancestral(4), temperature=1.0, trace=True).trace
    all_are_large()
    again = sample(experts, Routing(), x_t, reveal=ByConfidence(4), trace=True).trace
    some = sample(experts, Routing(), x_t, reveal=Ancestral(4), temperature=1.0, trace=True).trace
    assert plain is not None
    assert again is not None
    assert [step.routing for step in again.steps] == [step.routing for step in plain.steps]
    for one, other in zip(again.steps, plain.steps, strict=True):
        for told, found in zip(other.margin, one.margin, strict=True):
            assert [m is None for m in told[0]] == [m is None for m in found[0]]
            assert [m or 0.0 for m in found[0]] == pytest.approx([m or 0.0 for m in told[0]], abs=1e-12)
    # Where a step may reveal a few cells only, nobody is asked about the others.
    assert some is not None
    assert ancestral is not None
    assert some.steps[0].revealed == ancestral.steps[0].revealed
    asked = [[c for c, m in enumerate(row[0]) if m is not None] for row in some.steps[0].margin]
    assert asked == [row[0] for row in some.steps[0].revealed]


def test_experts_are_asked_about_candidates_alone() -> None:
    experts = [WordsAt(seed, LARGE + 5) for seed in (1, 2)]
    x_t = torch.full((2, CELLS), LARGE + 5)
    sample(experts, Mixture(), x_t, reveal=Ancestral(4), temperature=1.0)
    for expert in experts:
        # Every cell was asked about once: in the step that revealed it.
        assert sum(int(cells.sum()) for cells in expert.asked) == 2 * CELLS
    others = [WordsAt(seed, LARGE + 5) for seed in (1, 2)]
    sample(others, Routing(rows(3, 4)), x_t, reveal=Ancestral(4), temperature=1.0)
    assert others[0].asked[0].all()  # a factor's confidence is that of all its masked cells


@pytest.mark.parametrize("name", ["routing", "mixture", "geometric-mean", "superdiff", "evidence"])
def test_asked_at_cells_or_everywhere_the_answers_are_the_same(name: str) -> None:
    values, x_t = 5000, torch.full((2, CELLS), 5000)
    x_t[0, 3] = 77
    answers = [
        sample(
            [kind(s, values, 1.0, torch.float32) for s in (1, 2, 3)],
            COMPOSITIONS[name],
            x_t,
            reveal=ByConfidence(3),
        )
        for kind in (Words, WordsAt)
    ]
    assert torch.equal(answers[0].x_0, answers[1].x_0)
    assert (answers[0].x_0 < values).all()
    assert int(answers[0].x_0[0, 3]) == 77


@pytest.mark.parametrize("name", ["routing", "mixture", "geometric-mean"])
def test_cut_to_their_likeliest_values_sharp_experts_answer_as_before(name: str) -> None:
    experts = [Words(seed, 2000, 8.0) for seed in (1, 2, 3)]
    full = drawn(COMPOSITIONS[name], ByConfidence(5), experts, Engine())
    kept = drawn(COMPOSITIONS[name], ByConfidence(5), experts, Engine(top_k=2000))
    assert torch.equal(full.particles, kept.particles)
    assert torch.allclose(full.log_density, kept.log_density, atol=1e-9)
    few = drawn(COMPOSITIONS[name], ByConfidence(5), experts, Engine(top_k=300))
    if name != "geometric-mean":  # experts that disagree compromise on values that each of them has cut
        assert torch.equal(full.x_0, few.x_0)
    assert not torch.equal(full.log_density, few.log_density)  # what was cut is only nearly right


def test_the_recorded_form_works_on_whole_tensors_of_any_vocabulary() -> None:
    experts = [Words(seed, LARGE + 100) for seed in (1, 2)]
    x_t = torch.full((5, CELLS), LARGE + 100)
    for composition in (Routing(), Mixture(), SuperDiff()):
        plain = sample(experts, composition, x_t, reveal=ByProduct(0.5))
        recorded = Engine(batch=2, cuda_graph=True).sample(experts, composition, x_t, reveal=ByProduct(0.5))
        assert torch.equal(plain.x_0, recorded.x_0)
        assert torch.allclose(plain.log_density, recorded.log_density, atol=1e-9)


def test_a_chunk_is_as_large_as_it_may_be() -> None:
    cells = torch.ones(2, CELLS, dtype=torch.bool)
    for chunk, expected in ((2 * 7 * 8 * 10, [10, 10, 4]), (1, [1] * 24)):
        asked = CellOutputs(AskedCells.of(cells), 7, None, chunk=chunk)
        for seed in (1, 2):
            asked.forward(Words(seed, 7), torch.full((2, CELLS), 7), None, AskedCells.of(cells))
        assert [len(places) for places in asked.chunks()] == expected


class Wrong(Words):
    """Says what it should not."""

    def __init__(self, what: Callable[[Tensor], Tensor]) -> None:
        super().__init__(1, LARGE + 5)
        self.what = what

    def log_probs(self, x_t: Tensor, encoded: Any) -> Tensor:
        return self.what(super().log_probs(x_t, encoded))


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        (
            lambda said: said[..., :-1],
            r"expert 2 returned log-probabilities of shape \(1, 12, 1028\), expected",
        ),
        (lambda said: said + 0.1, "those of expert 2 sum to one only within a factor of"),
        (lambda said: torch.where(said > said.mean(), math.nan, said), "those of expert 2 contain NaN"),
    ],
)
@pytest.mark.parametrize("composition", [Routing(), Mixture(), Routing(rows(3, 4))])
@pytest.mark.usefixtures("untyped")
def test_what_is_no_distribution_is_refused(
    what: Callable[[Tensor], Tensor], sentence: str, composition: Composition
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        sample([Words(1, LARGE + 5), Wrong(what)], composition, torch.full((1, CELLS), LARGE + 5))


@pytest.mark.usefixtures("untyped")
def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidInput, match="chunk: expected a number of bytes, 1 or more, got 0"):
        Engine(chunk=0)
    with pytest.raises(InvalidInput, match="top_k: expected a whole number of at least 2, got 1"):
        Engine(top_k=1)


def test_a_rule_names_what_it_reads() -> None:
    class Forgetful(ByEntropy):
        @property
        def reads(self) -> tuple[Any, ...]:
            return ()

    experts = [Words(1, LARGE + 5)]
    with pytest.raises(InvalidInput, match="name entropy among what the rule `reads`"):
        sample(experts, Single(), torch.full((1, CELLS), LARGE + 5), reveal=Forgetful(0.1))
    small = Posterior(torch.zeros(1, 1, 2).log_softmax(-1), torch.zeros(1, 1, dtype=torch.float64))
    assert float(small.of(confidence.entropy)) == pytest.approx(math.log(2))


def test_who_can_be_asked_at_cells() -> None:
    assert isinstance(WordsAt(1, 3), SupportsCells)
    assert not isinstance(Words(1, 3), SupportsCells)
