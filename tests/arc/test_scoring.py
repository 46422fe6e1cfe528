from __future__ import annotations

import numpy as np

from factordiff.arc.scoring import grid_right


def test_a_grid_is_right_only_with_its_shape() -> None:
    truth = np.array([[1, 0]], dtype=np.uint8)
    assert grid_right([truth], truth)
    assert grid_right([truth[:, :1], truth], truth), "one of two attempts is enough"
    assert not grid_right([truth[:, :1], np.array([[1], [0]], dtype=np.uint8)], truth)
    assert not grid_right([], truth)
