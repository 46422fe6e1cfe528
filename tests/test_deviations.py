"""What the shipped experts have that the paper's do not: on both pages, and on every card that it holds for."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factordiff.experts.registry import SHIPPED, shipped_experts
from factordiff.networks.store import read_config
from factordiff.report.card import CARD, card, read_figures
from factordiff.training.provenance import provenance

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("paper-map.md", "faq.md")
EXPERTS = shipped_experts()

Settings = dict[str, Any]


def some(name: str, above: float = 0.0) -> Callable[[Settings, list[Settings]], bool]:
    """Whether a setting of any stage is larger."""
    return lambda _, stages: any(stage[name] > above for stage in stages)


def with_latents(network: Settings, _: list[Settings]) -> bool:
    return network["conditioning"] == "latents"


# What a page says, what a card says, and for which networks and stages of training it holds.
DEVIATIONS: dict[str, tuple[str, str, Callable[[Settings, list[Settings]], bool]]] = {
    "rotary": ("rotary positions", "rotary positions", with_latents),
    "field": ("the field", "the field", lambda network, _: with_latents(network, _) and network["field"]),
    "latents": ("read by latents", "read by latents", with_latents),
    "agreement": (r"agreement loss", r"agreement loss 0\.02", some("agreement")),
    "convnet": (
        r"attention and 1x1 maps in conv-ir|conv-ir\*\* attends.{,300}1x1 maps",
        r"attention \(with rotary positions\) and 1x1 maps in conv-ir",
        lambda network, _: with_latents(network, _) and "groups" in network,
    ),
    "sizes": (
        r"sizes( of grids)?\W* (of grids )?are seen",
        "sizes seen",
        lambda network, _: network["sees_sizes"],
    ),
    "symmetry": (
        r"90 % identity symmetry|symmetries\W* 90 %",
        "own orientation 90% of the time",
        some("identity_share", 1 / 8),
    ),
    "renaming": (r"renaming\W* of exchangeable colors", "values renamed in up to 50%", some("rename")),
    "emphasis": (
        r"emphasis\W* on some tasks",
        "emphasis: some tasks more often",
        lambda _, stages: any(stage.get("emphasis") for stage in stages),
    ),
    "Muon": (
        r"muon at 2e-3,? (with )?adamw at 1e-3",
        r"muon up to 0\.002 and adamw up to 0\.001",
        some("lr", 2e-4),
    ),
    "averages": ("weight averages", "averaged weights", some("ema")),
    "stages": ("several stages", r"\d stages", lambda _, stages: len(stages) > 1),
    "split": ("760/40/200", "760/40/200", lambda *_: True),
    "demonstrations": (
        r"demonstrations of test queries are training pairs",
        "demonstrations of test queries are training pairs",
        lambda *_: True,
    ),
}


def words(file: Path) -> str:
    """A page on one line, in small letters."""
    return re.sub(r"\s+", " ", file.read_text()).lower()


def stages_of(about: dict[str, Any]) -> list[Settings]:
    """The settings of every stage; what a stage of before did not know was off."""
    earlier = stages_of(about["started_from"]["about"]) if "started_from" in about else []
    return [*earlier, {"rename": 0.0, "ema": 0.0, **about["settings"]}]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", DEVIATIONS)
def test_a_page_names_every_deviation(page: str, name: str) -> None:
    assert re.search(DEVIATIONS[name][0], words(DOCS / page)), f"{page} does not say: {name}"


@pytest.mark.parametrize("expert", EXPERTS)
def test_a_card_names_the_deviations_that_hold_for_it_and_no_others(expert: str) -> None:
    config, said = read_config(SHIPPED / expert), words(SHIPPED / expert / CARD)
    stages = stages_of(config["about"])
    for name, (_, on_card, holds) in DEVIATIONS.items():
        assert bool(re.search(on_card, said)) == bool(holds(config["network"], stages)), (expert, name)


def test_each_deviation_holds_for_some_expert() -> None:
    configs = [read_config(SHIPPED / expert) for expert in EXPERTS]
    for name, (_, _, holds) in DEVIATIONS.items():
        assert any(holds(config["network"], stages_of(config["about"])) for config in configs), name


@pytest.mark.parametrize("expert", EXPERTS)
def test_a_card_is_what_the_library_writes(expert: str) -> None:
    """From the figures and the weights beside it; how long a run took and how it ended only its folder knew."""
    folder = SHIPPED / expert
    text, figures = (folder / CARD).read_text(), read_figures(folder)
    assert figures is not None
    told = [line[2:] for line in text.split("## Training\n\n")[1].split("\n- data set")[0].splitlines()]
    assert card(folder, figures, told) == text
    of_the_run = [line for line in told if "minutes on" in line or line.startswith("last check:")]
    assert [line for line in told if line not in of_the_run] == provenance(folder, None)
