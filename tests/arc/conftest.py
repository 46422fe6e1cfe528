from __future__ import annotations

import pytest

from factordiff.arc.artefact import Artefact, load_artefact
from factordiff.arc.dataset import Dataset


@pytest.fixture(scope="session")
def shipped() -> Artefact:
    return load_artefact()


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    return Dataset.load()
