"""What a verb reads is never what it writes: experts, routers, teams, data and tasks, however they are spelled."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import safetensors.torch
import torch
from typer.testing import CliRunner

from factordiff.cli.app import app
from factordiff.composition.router import Router, RouterConfig
from factordiff.composition.router_store import save_router
from factordiff.errors import InvalidInput
from factordiff.team.team import compose
from tests.solving_experts import task, tiny_experts
from tests.task_files import write_task

PAIR = "experts/trans-full,experts/conv-full"
SOLVE, SHOWN = f"solve tasks --experts {PAIR}", "experts/trans-full"
LEARNED = f"--experts {PAIR} --method learned --router router --other-experts allow"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two experts, a router, a team of both, tasks and data, and other names for some of them."""
    folder = tmp_path_factory.mktemp("desk")
    names = tiny_experts(folder / "experts")
    router = save_router(Router.new(RouterConfig(experts=2, values=10)), folder / "router")
    compose(names, "learned", router=router, other_experts="allow").save(folder / "team.json")
    write_task(task(), folder / "tasks" / "one.json")
    (folder / "text.py").write_text("print(1)\n")
    safetensors.torch.save_file(
        {"answers": torch.zeros(4, 100, dtype=torch.int64)}, folder / "model.safetensors"
    )
    for name in ("data.npz", "data.json", "records.jsonl.gz", "experts/trans-full/README.md"):
        (folder / name).write_text(name)
    for link, target in (
        ("link.jsonl.gz", "experts/trans-full/config.json"),
        ("link.png", "experts/conv-full/model.safetensors"),
        ("link.txt", "tasks/one.json"),
        ("here", "."),
        ("half/config.json", "../experts/trans-full/config.json"),
        ("pictures/demo.png", "../experts/trans-full/config.json"),
        ("run/log.jsonl", "../data.npz"),
        ("compared/arc-full+full/test/table.md", "../../../experts/trans-full/README.md"),
    ):
        (folder / link).parent.mkdir(parents=True, exist_ok=True)
        (folder / link).symlink_to(target)
    for link, target in (
        ("hard.json", "router/model.safetensors"),
        ("hard.jsonl.gz", "data.npz"),
        ("hard.txt", "tasks/one.json"),
    ):
        os.link(folder / target, folder / link)
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    yield folder
    patch.undo()


def files(folder: Path) -> dict[str, str]:
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and "here" not in path.parts]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


@pytest.mark.parametrize(
    "words",
    [
        f"{SOLVE} --out experts/trans-full/config.json",
        f"{SOLVE} --trace experts/conv-full/model.safetensors",
        f"{SOLVE} --out here/../{{here}}/experts/trans-full/config.json",
        f"{SOLVE} --picture link.png",
        f"{SOLVE} --trace link.txt",
        f"{SOLVE} --out hard.txt",
        f"{SOLVE} --trace experts/trans-full/README.md",
        f"solve tasks {LEARNED} --out router/config.json",
        f"solve tasks {LEARNED} --trace hard.json",
        "solve tasks --team team.json --out team.json",
        "solve tasks --team team.json --trace here/team.json",
        "solve tasks --team team.json --out router/model.safetensors",
        "solve tasks --team team.json --out experts/conv-full/config.json",
        f"eval --experts {PAIR} --limit 1 --out link.jsonl.gz",
        f"eval --experts {PAIR} --data data.npz --out hard.jsonl.gz",
        f"eval --experts {PAIR} --data records.jsonl.gz --out records.jsonl.gz",
        f"diagnose {PAIR} --out experts/trans-full/config.json",
        f"diagnose {PAIR} --picture experts/trans-full/model.safetensors",
        f"diagnose {PAIR} --data model.safetensors --out model.safetensors",
        f"fit {PAIR} --data model.safetensors --out here",
        f"fit {PAIR} --out experts/trans-full",
        f"infill text.py --mask 1 --experts {PAIR} --out experts/trans-full/config.json",
        f"infill text.py --mask 1 {LEARNED} --out router/config.json",
        "infill text.py --mask 1 --out here/text.py",
        f"bench --quick --experts {PAIR} --out experts/conv-full/config.json",
        f"bench --quick --experts {PAIR} --curve link.png",
        f"demo --experts {PAIR} --out pictures",
        "train tiny --init-from run/weights --out run",
        "train tiny --more-data data.npz --out run",
        "reproduce voting --expert trans-full=experts/trans-full --out experts/trans-full",
        "compare arc-full+full --expert trans-full=experts/trans-full --out compared",
        "data more --apart-from data.npz --out here/data.npz",
        f"card {SHOWN} {SHOWN}/figures.json",
        f"store {SHOWN} half",
    ],
)
def test_what_is_read_is_not_written_over(desk: Path, words: str) -> None:
    before = files(desk)
    result = CliRunner().invoke(app, shlex.split(words.format(here=desk.name)))
    with pytest.raises(
        InvalidInput, match=r"^[^;]* is also what is read \(.*\); choose another file name$"
    ) as said:
        raise result.exception or AssertionError(result.output)
    assert "\n" not in str(said.value)
    assert files(desk) == before


def test_what_lies_beside_it_may_be_written_again(desk: Path) -> None:
    words = "solve tasks --team team.json --reveal confidence:2 --attempts 1 --out router/answers.json"
    for _ in range(2):
        result = CliRunner().invoke(app, shlex.split(words))
        assert result.exit_code == 0, result.output
    assert (desk / "router" / "answers.json").is_file()
    (desk / "router" / "answers.json").unlink()
