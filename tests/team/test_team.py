"""Experts put together: names, temperatures, factors, and every method on cells in a line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from factordiff import ByConfidence, Evidence, Mixture, SuperDiff, TabularExpert, compose, feynman_kac, rne
from factordiff.composition.factor_names import partition
from factordiff.composition.factors import blocks
from factordiff.composition.method import specs
from factordiff.errors import InvalidInput, Unavailable
from factordiff.toy.painting import painters, picture
from tests.solving_experts import halves, tiny_experts


def chains() -> dict[str, TabularExpert]:
    """Two experts about a line of four cells and two values: one knows the first two are equal, one the last two."""
    anything, equal = torch.full((2, 2), 0.25), torch.tensor([[0.5, 0.0], [0.0, 0.5]])
    return {
        "first": TabularExpert(equal[:, :, None, None] * anything),
        "last": TabularExpert(anything[:, :, None, None] * equal),
    }


LINE = torch.full((6, 4), 2)


@pytest.mark.parametrize("name", [name for name in specs() if name not in ("single", "views")])
def test_every_method_fills_a_line_of_cells(name: str) -> None:
    drawn = compose(chains(), name).sample(LINE, seed=1)
    assert drawn.x_0.shape == (6, 4)
    assert int(drawn.x_0.max()) < 2


def test_routing_on_a_line_keeps_both_rules() -> None:
    """The equality of the first two is one expert's to see, that of the last two the other's."""
    x_0 = compose(chains()).sample(LINE.repeat(20, 1), temperature=1.0, seed=1).x_0
    assert (x_0[:, 0] == x_0[:, 1]).all()
    assert (x_0[:, 2] == x_0[:, 3]).all()
    assert len(x_0.unique(dim=0)) == 4


@pytest.mark.parametrize("layout", [(1, 64), (64, 1), (8, 8)])
def test_a_line_and_a_grid_are_the_same_cells(layout: tuple[int, int]) -> None:
    blank = torch.full((1, 64), 5)
    pixel = compose(list(painters()), layout=layout, reveal="fast").sample(blank).x_0
    assert (pixel == picture()).sum() == 64
    for factors in ("row", "column", "whole", "block:1x2"):
        team = compose(list(painters()), factors=factors, layout=layout, reveal=ByConfidence(4))
        assert team.sample(blank).x_0.shape == (1, 64)


def test_one_rule_everywhere_unless_told() -> None:
    blank = torch.full((1, 64), 5)
    rules = ("fast", "exact", "confidence:2", ByConfidence(2), "margin:0.5")
    passes = {
        rule: int(compose(list(painters()), reveal=rule).sample(blank).nominal_passes) for rule in rules
    }
    assert int(compose(list(painters())).sample(blank).nominal_passes) == passes["fast"] < passes["exact"]
    assert passes["exact"] == 2 * 64
    assert passes["confidence:2"] == passes[ByConfidence(2)] == 4
    assert int(compose(list(painters())).sample(blank, reveal="exact").nominal_passes) == passes["exact"]


def test_names_come_from_the_mapping_the_folder_or_are_counted(tmp_path: Path) -> None:
    folders = tiny_experts(tmp_path)
    assert compose(folders).names == ("trans-full", "conv-full")
    assert compose({"a": folders[0], "b": folders[1]}).names == ("a", "b")
    assert compose(list(painters())).names == ("expert 1", "expert 2")
    assert compose([folders[0], folders[0]]).names == ("trans-full (1)", "trans-full (2)")


def test_objectives_come_from_the_folder(tmp_path: Path) -> None:
    folders = tiny_experts(tmp_path, ("trans-color", "trans-occ"))
    team = compose(folders, "views")
    assert repr(team) == "Team(trans-color (color) + trans-occ (occupancy); views; reveal fast)"
    composition = team.method_for(100).composition
    assert (composition.occupancy, composition.color) == (1, 0)  # type: ignore[attr-defined]


def test_temperatures_by_name_or_in_order() -> None:
    assert compose(halves(), temperatures={"right": 0.25}).options["temperatures"] == (1.0, 0.25)
    assert compose(halves(), temperatures=[2, 0.5]).options["temperatures"] == (2.0, 0.5)
    assert "temperatures 1, 0.25" in repr(compose(halves(), temperatures={"right": 0.25}))


def test_a_partition_can_be_given_as_it_is() -> None:
    team = compose(list(painters()), factors=blocks(8, 8, 4, 4))
    assert "factors given" in repr(team)
    assert team.method_for(64).composition.partition is team.options["factors"]  # type: ignore[attr-defined]


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"experts": []}, InvalidInput, "at least one expert"),
        ({"experts": [3]}, InvalidInput, "number 1 is a int, expected a name, a folder, or an object with"),
        ({"experts": ["nobody"]}, Unavailable, "'nobody' is neither a folder nor a shipped expert"),
        ({"method": "magic"}, Unavailable, "method: expected one of .*, got 'magic'"),
        ({"method": "single"}, InvalidInput, "'single' takes one expert, got 2"),
        ({"method": "views"}, InvalidInput, "'views' takes two experts, one of them trained on occupancy"),
        ({"factors": "line"}, InvalidInput, "factors: expected one of pixel, .*, got 'line'"),
        ({"factors": "block:0x2"}, InvalidInput, "factors: expected"),
        ({"factors": "block:HxW"}, InvalidInput, "such as block:2x2"),
        ({"temperatures": [1]}, InvalidInput, "temperatures: expected 2 numbers, one per expert, got 1"),
        ({"temperatures": {"up": 1}}, InvalidInput, "no expert is called 'up'; expected left, right"),
        (
            {"temperatures": [1, math.nan]},
            InvalidInput,
            "temperatures: .* positive number for right, got nan",
        ),
        ({"temperatures": [0, 1]}, InvalidInput, "positive number for left, got 0"),
        (
            {"beta": [1, 2], "method": "mixture"},
            InvalidInput,
            "beta: the method 'mixture' does not take it; its options: weights",
        ),
        ({"weights": [1, 2, 3], "method": "mixture"}, InvalidInput, "weights: expected 2 numbers, one per"),
        ({"particles": 0, "method": "fkc"}, InvalidInput, "particles: expected a whole number from 1 to"),
        ({"selection": "best", "method": "fkc"}, InvalidInput, "selection: expected one of draw, .*'best'"),
        (
            {"resampling": 2, "method": "rne"},
            InvalidInput,
            "resampling: expected a finite number from 0 to 1",
        ),
        ({"method": Mixture([1.0, 2.0]), "weights": [1, 2]}, InvalidInput, "carries its own numbers"),
        (
            {"method": feynman_kac(), "beta": [1, 2]},
            InvalidInput,
            "takes particles, selection and resampling",
        ),
        ({"method": Mixture([1, 2, 3])}, InvalidInput, "weights: expected 2 numbers, one per expert, got 3"),
        ({"method": SuperDiff(bias=[1])}, InvalidInput, "bias: expected 2 numbers, one per expert, got 1"),
        ({"method": rne(weights=[1])}, InvalidInput, "weights: expected 2 numbers, one per expert, got 1"),
        ({"method": feynman_kac([1])}, InvalidInput, "beta: expected 2 numbers, one per expert, got 1"),
        ({"method": feynman_kac(), "particles": 0}, InvalidInput, "particles: expected a whole number from"),
        ({"method": feynman_kac(), "selection": "best"}, InvalidInput, "selection: expected one of draw"),
        ({"method": 3}, InvalidInput, "method: expected a name or a Composition, got int"),
        ({"experts": 3}, InvalidInput, "experts: expected a list of experts, or experts by name, got int"),
        ({"engine": "turbo"}, InvalidInput, "engine: expected 'auto' or an Engine, got 'turbo'"),
        ({"layout": (8,)}, InvalidInput, r"layout: expected a list of two, each .*, got \(8,\)"),
        ({"objectives": ["full"]}, InvalidInput, "objectives: expected 2, one per expert, got 1"),
        ({"reveal": 7}, InvalidInput, "reveal: expected a name or a reveal rule, got 7"),
        ({"temperatures": ["hot", 1]}, InvalidInput, "positive number for left, got 'hot'"),
        ({"temperatures": 0.5}, InvalidInput, "temperatures: expected a number for each expert, .* got 0.5"),
        ({"device": "abacus"}, Unavailable, "device: expected one of auto, cpu"),
        ({"device": "cpu:x"}, Unavailable, "device: expected a name such as .*, got 'cpu:x'"),
        ({"reveal": "slow"}, InvalidInput, "reveal: expected fast, exact, or one of .* got 'slow'"),
        ({"sharpness": 1}, InvalidInput, "sharpness: the method 'routing' does not take it; .* temperatures"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], error: type, sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        compose(**{"experts": halves(), **arguments})


@pytest.mark.parametrize("factors", ["row", "block:2x2", "component"])
def test_one_expert_alone_does_not_mind_factors(factors: str) -> None:
    assert compose(list(painters())[:1], factors=factors).method == "single"


def test_one_expert_alone_minds_what_nobody_takes() -> None:
    with pytest.raises(InvalidInput, match="temperature: the method 'routing' does not take it"):
        compose(list(painters())[:1], temperature=0.5)


def test_factors_with_a_shape_need_a_layout() -> None:
    with pytest.raises(InvalidInput, match="layout: factors 'row' need the height and width of the 64 cells"):
        compose(list(painters()), factors="row").sample(torch.full((1, 64), 5))
    with pytest.raises(InvalidInput, match=r"of the 64 cells, got \(3, 3\)"):
        partition("column", 64, (3, 3))
    with pytest.raises(InvalidInput, match="'component' are those of the query"):
        partition("component", 64, (8, 8))


def test_a_composition_of_ones_own_is_a_method() -> None:
    """Objects at the front door: the same answers as by name, and a target brings its particles along."""
    blank = LINE.repeat(5, 1)
    by_name = compose(chains(), "mixture", weights=[1, 2]).sample(blank, temperature=1.0)
    assert torch.equal(compose(chains(), Mixture([1.0, 2.0])).sample(blank, temperature=1.0).x_0, by_name.x_0)
    corrected = compose(chains(), feynman_kac(), particles=3).sample(blank)
    named = compose(chains(), "fkc", particles=3).sample(blank)
    assert torch.equal(corrected.particles, named.particles)
    assert compose(chains(), feynman_kac()).sample(blank).particles.shape[1] == 8
    assert "; Mixture([1.0, 2.0]); reveal fast" in repr(compose(chains(), Mixture([1.0, 2.0])))


def test_objectives_of_ones_own_experts() -> None:
    team = compose(chains(), "views", objectives=["color", "occupancy"])
    assert team.method_for(4).composition.occupancy == 1  # type: ignore[attr-defined]


def test_a_module_in_training_mode_is_refused() -> None:
    class Dropping(torch.nn.Module):
        vocabulary = chains()["first"].vocabulary

        def encode(self, condition: Any) -> Any:
            return condition

        def log_probs(self, x_t: torch.Tensor, encoded: Any) -> torch.Tensor:
            return torch.full((*x_t.shape, 2), 0.5).log()

    with pytest.raises(InvalidInput, match=r"number 1, a Dropping, is in training mode.*\.eval\(\)"):
        compose([Dropping(), Dropping()])
    assert len(compose([Dropping().eval(), Dropping().eval()])) == 2


@pytest.mark.usefixtures("untyped")
def test_what_is_no_expert_yet_is_told_what_is_missing() -> None:
    with pytest.raises(
        InvalidInput, match=r"number 1 is the class TabularExpert, .* made of it: TabularExpert\("
    ):
        compose([TabularExpert, TabularExpert])
    with pytest.raises(InvalidInput, match=r"^experts: number 2 is called 2, expected a name in letters"):
        compose({"one": chains()["first"], 2: chains()["last"]})  # type: ignore[dict-item]
    with pytest.raises(
        InvalidInput, match=r"^method: expected a name or a Composition, got the class Mixture"
    ):
        compose(chains(), Mixture)
    model = type("Model", (), {"config": None})()
    with pytest.raises(InvalidInput, match=r"wrap a language model: MaskedLanguageModel\(model\)"):
        compose([model])


def test_evidence_by_name_is_the_composition_by_hand() -> None:
    blank = LINE.repeat(5, 1)
    labels = torch.tensor([0, 0, 1, 1])
    by_hand = compose(chains(), Evidence(labels, temperature=2.0, weights=[1.0, 2.0], bias=[0.0, 0.5]))
    named = compose(
        chains(), "evidence", factors=labels, evidence_temperature=2.0, weights=[1, 2], bias=[0, 0.5]
    )
    for rule in ("exact", "confidence:2"):
        one, two = (team.sample(blank, temperature=1.0, reveal=rule, seed=3).x_0 for team in (by_hand, named))
        assert torch.equal(one, two)
    assert compose(chains(), "evidence").reveal == "exact"  # it learns on the way
    assert compose(chains()).reveal == "fast"
    with pytest.raises(InvalidInput, match=r"'near:1' overlap, .* only 'evidence' takes them"):
        compose(chains(), factors="near:1").sample(blank)


@pytest.mark.parametrize("layout", [None, (2, 2)])
def test_evidence_of_neighbours_is_a_window(layout: tuple[int, int] | None) -> None:
    kernel = compose(chains(), "evidence", factors="near:1", layout=layout).method_for(4).composition.kernel  # type: ignore[attr-defined]
    expected = torch.ones(4, 4) if layout else torch.ones(4, 4).tril(1).triu(-1)
    assert torch.equal(kernel, expected.double())
    mixture = compose(chains(), "mixture").sample(LINE, reveal="exact").x_0
    assert torch.equal(compose(chains(), "evidence", factors="pixel").sample(LINE).x_0, mixture)
