from __future__ import annotations

import numpy as np
import pytest

from factordiff.arc.artefact import Artefact
from factordiff.arc.build.verify import rebuild_sample
from factordiff.errors import DataError


def test_a_sample_of_every_task_can_be_rebuilt(shipped: Artefact) -> None:
    heard: list[int] = []
    assert rebuild_sample(shipped, per_task=2, key=1, progress=heard.append) == 240
    assert heard == [2 * task for task in range(1, 121)]


@pytest.mark.parametrize("part", ["inputs", "outputs", "input_shapes", "output_shapes", "attempts"])
def test_an_instance_that_the_generator_does_not_give_is_named(shipped: Artefact, part: str) -> None:
    changed = shipped.arrays[part].copy()
    changed[1] = (changed[1] + 1) % 10 if part != "attempts" else np.roll(changed[1], 1)
    with pytest.raises(DataError, match=rf"task {shipped.tasks[1]}, instance \d+ \(seed 0, attempt \d+\)"):
        rebuild_sample(Artefact({**shipped.arrays, part: changed}, shipped.manifest), per_task=1)
