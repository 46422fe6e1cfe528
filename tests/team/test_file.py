"""A team as a file: what is written is what is composed again, and other weights are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from factordiff import ByMargin, Mixture, Repaired, compose
from factordiff.composition.router_store import shipped_router
from factordiff.errors import CheckpointError, FactorDiffError, InvalidInput, Unavailable
from factordiff.networks.store import load_expert, save_expert
from factordiff.solving.solver import solve
from factordiff.team.file import shipped_teams
from factordiff.team.router import hashes
from tests.networks.small_networks import stir
from tests.solving_experts import halves, task, tiny_experts


def saved(folder: Path, **options: Any) -> Path:
    experts = tiny_experts(folder)
    return compose(experts, reveal=Repaired(ByMargin(0.9)), layout=(10, 10), **options).save(
        folder / "team.json"
    )


def test_a_team_comes_back_as_it_was(tmp_path: Path) -> None:
    file = saved(tmp_path, temperatures={"conv-full": 0.5}, factors="block:2x2")
    again = compose(file)
    assert again.names == ("trans-full", "conv-full")
    assert again.options == {"temperatures": (1.0, 0.5), "factors": "block:2x2"}
    assert again.layout == (10, 10)
    assert again.reveal == "margin:0.9+repair:0.5"
    before = compose(tiny_experts(tmp_path), temperatures=[1, 0.5], factors="block:2x2", reveal=again.reveal)
    assert solve(task(), again)[0].grid.tolist() == solve(task(), before)[0].grid.tolist()


def test_weights_that_changed_are_refused(tmp_path: Path) -> None:
    file = saved(tmp_path)
    folder = Path(json.loads(file.read_text())["experts"][0]["expert"])
    network = load_expert(folder)
    stir(network)
    save_expert(network, folder, {"objective": "full"})
    with pytest.raises(
        CheckpointError, match="trans-full has other weights now than when the team was saved"
    ):
        compose(file)


def test_the_flagship_pair_knows_its_temperature() -> None:
    assert shipped_teams() == ["col+occ", "col+occ-default-head", "full+full", "occ+full"]
    team = compose("col+occ")
    assert team.names == ("trans-color", "trans-occ")
    assert team.options == {"temperatures": (1.0, 0.125)}
    assert compose("full+full").options == compose("occ+full").options == {}


def test_the_pair_that_is_wrongly_sure_knows_its_router() -> None:
    team = compose("col+occ-default-head")
    assert team.names == ("trans-color", "trans-occ-default-head")
    assert team.method == "learned"
    assert shipped_router(hashes(team)) == Path(team.options["router"])
    assert shipped_router(hashes(compose("col+occ"))) is None
    with pytest.raises(InvalidInput, match="fitted to trans-occ-default-head with other weights"):
        compose(["trans-color", "trans-occ"], "learned", router=team.options["router"])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"version": 2}, "not a team as `Team.save` writes it .version: expected 1, got 2"),
        ({"more": 1}, "not a team .*.more.: unknown; expected version"),
        ({"experts": [{"name": "a"}]}, "not a team"),
        ({"experts": 3}, "not a team"),
        ({"method": "magic"}, "method: expected one of"),
        ({"options": {"beta": [1, 2]}}, "beta: the method 'routing' does not take it"),
        ({"options": {"temperatures": [1]}}, "temperatures: expected 2 numbers"),
        ({"reveal": "slow"}, "reveal: expected"),
    ],
)
def test_a_bad_file_is_a_sentence(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    file = saved(tmp_path)
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(FactorDiffError, match=sentence):
        compose(file)


def test_what_a_file_cannot_name_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "team.json"
    with pytest.raises(InvalidInput, match="left is an object, and a file can only name folders"):
        compose(halves()).save(file)
    experts = tiny_experts(tmp_path)
    with pytest.raises(InvalidInput, match="its method is a Mixture of your own"):
        compose(experts, Mixture()).save(file)
    with pytest.raises(InvalidInput, match="factors: it was given as a tensor"):
        compose(experts, factors=torch.zeros(100, dtype=torch.int64)).save(file)
    assert not file.exists()
    with pytest.raises(
        Unavailable, match=r"'trans-full' is neither a file nor a shipped team .*\['trans-full'\]"
    ):
        compose("trans-full")
    with pytest.raises(InvalidInput, match=r"'col\+occ' names a whole team"):
        compose("col+occ", "mixture")
    file.write_text("{")
    with pytest.raises(CheckpointError, match="not a team"):
        compose(file)
