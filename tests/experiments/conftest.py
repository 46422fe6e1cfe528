from __future__ import annotations

import pytest

from factordiff.arc.dataset import Dataset
from tests.experiments.lookup import small_sets


@pytest.fixture(scope="session")
def sets():
    return small_sets(Dataset.load(), 12)
