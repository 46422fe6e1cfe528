"""Partitions of the cells into factors: a whole-number label per cell, and nothing else.

A partition is a tensor of labels, shared by all items (`cell`) or one row per item (`item cell`), or a
function from the state to such labels (`batch cell`). Labels need not be contiguous, but lie in `0 .. cells-1`.
Arrays and lists of labels are taken for such tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy import ndimage
from torch import Tensor

from factordiff.errors import InvalidInput
from factordiff.state import SamplerState
from factordiff.tensors import Numbers, as_tensor, is_whole

Labels = Int[Tensor, "batch cell"]
Partition = Int[Tensor, " cell"] | Int[Tensor, "item cell"] | Callable[[SamplerState], Labels]


def _checked_layout(height: int, width: int) -> None:
    if height < 1 or width < 1:
        raise InvalidInput(f"height, width: expected at least 1 x 1, got {height} x {width}")


def pixels(cells: int) -> Int[Tensor, " cell"]:
    """Every cell its own factor: the paper's choice."""
    return torch.arange(cells)


def alone(state: SamplerState) -> Labels:
    """Every cell its own factor, however many there are."""
    return pixels(state.x_t.shape[1]).to(state.x_t.device).expand_as(state.x_t)


def whole(cells: int) -> Int[Tensor, " cell"]:
    """One factor: per-sample selection."""
    return torch.zeros(cells, dtype=torch.int64)


def rows(height: int, width: int) -> Int[Tensor, " cell"]:
    """One factor per row of the layout."""
    return blocks(height, width, 1, width)


def columns(height: int, width: int) -> Int[Tensor, " cell"]:
    """One factor per column of the layout."""
    return blocks(height, width, height, 1)


def blocks(height: int, width: int, block_height: int, block_width: int) -> Int[Tensor, " cell"]:
    """Rectangles of the given size, cut off at the border.

    >>> blocks(2, 4, 2, 2).view(2, 4).tolist()
    [[0, 0, 1, 1], [0, 0, 1, 1]]
    """
    _checked_layout(height, width)
    _checked_layout(block_height, block_width)
    across = -(-width // block_width)
    down = torch.arange(height) // block_height
    right = torch.arange(width) // block_width
    return (down[:, None] * across + right[None, :]).flatten()


def components(maps: Int[Tensor, "item height width"] | Numbers) -> Int[Tensor, "item cell"]:
    """Connected components (4 neighbours, equal value) of a map of whole numbers, one per item.

    >>> components(torch.tensor([[[5, 5, 0], [0, 5, 0]]])).view(2, 3).tolist()
    [[0, 0, 1], [2, 0, 1]]
    """
    maps = as_tensor("maps", maps)
    if maps.dim() != 3 or not is_whole(maps):
        raise InvalidInput(
            f"maps: expected whole numbers of shape (item, height, width), got {maps.dtype} of shape "
            f"{tuple(maps.shape)}"
        )
    if not len(maps):
        return maps.flatten(1).to(torch.int64)
    return torch.from_numpy(np.stack([_components(grid) for grid in maps.cpu().numpy()])).to(maps.device)


def _components(grid: np.ndarray) -> np.ndarray:
    labels = np.zeros(grid.size, dtype=np.int64)
    found = 0
    for value in np.unique(grid):
        part, count = ndimage.label(grid == value)
        inside = part.ravel() > 0
        labels[inside] = part.ravel()[inside] - 1 + found
        found += count
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return first.argsort().argsort()[inverse].astype(np.int64)  # numbered in reading order


def components_of_state(height: int, width: int) -> Callable[[SamplerState], Labels]:
    """Connected components of what is revealed so far, recomputed each step; a masked cell is alone."""

    def partition(state: SamplerState) -> Labels:
        alone = state.x_t.max() + 1 + torch.arange(height * width, device=state.x_t.device)
        return components(torch.where(state.masked, alone, state.x_t).view(-1, height, width))

    return partition


def factor_sums(
    of_cells: Float[Tensor, "*expert batch cell"], labels: Labels
) -> Float[Tensor, "*expert batch cell"]:
    r"""$\sum_{u \in f(v)} a_u$: the sum over the cells of each factor, written at every cell of it.

    >>> factor_sums(torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([[0, 2, 0]])).tolist()
    [[5.0, 2.0, 5.0]]
    """
    index = labels.expand_as(of_cells)
    return torch.zeros_like(of_cells).scatter_add(-1, index, of_cells).gather(-1, index)


def as_labels(name: str, given: Any) -> Int[Tensor, ...]:
    """Labels as they are used: whole numbers, for all items or one row per item."""
    labels = as_tensor(name, given)
    if labels.dim() not in (1, 2) or not is_whole(labels):
        raise InvalidInput(
            f"{name}: expected whole-number labels of shape (cell) or (item, cell), "
            f"got shape {tuple(labels.shape)} of {labels.dtype}"
        )
    return labels.to(torch.int64)


def as_factors(name: str, given: Any) -> Int[Tensor, ...] | Float[Tensor, "cell cell"]:
    """Labels, or the kernel of factors that overlap: numbers that are not whole, one per pair of cells."""
    numbers = as_tensor(name, given)
    kernel = numbers.is_floating_point() and numbers.dim() == 2 and numbers.shape[0] == numbers.shape[1]
    return numbers if kernel else as_labels(name, numbers)


def as_partition(given: Partition | Numbers) -> Partition:
    """The partition that a composition keeps: labels, or the function as it is."""
    return given if callable(given) else as_labels("partition", given)


def labels_for(partition: Partition, state: SamplerState) -> Labels:
    """The partition's label of every cell of every row."""
    batch, cells = state.x_t.shape
    found = partition(state) if callable(partition) else partition
    labels = as_labels("partition", found).to(state.x_t.device)
    if labels.shape[-1] != cells:
        raise InvalidInput(
            f"partition: expected one label for each of {cells} cells, got labels for {labels.shape[-1]}"
        )
    if labels.numel() and not 0 <= int(labels.min()) <= int(labels.max()) < cells:
        raise InvalidInput(
            f"partition: expected labels in 0 .. {cells - 1}, got {int(labels.min())} .. {int(labels.max())}"
        )
    if labels.dim() == 1:
        return labels.expand(batch, -1)
    if callable(partition):
        if len(labels) != batch:
            raise InvalidInput(
                f"partition: expected labels for {batch} rows, got labels for {len(labels)} rows"
            )
        return labels
    if batch and int(state.item.max()) >= len(labels):
        raise InvalidInput(
            f"partition: expected labels for every item, got {len(labels)} rows and an item of number "
            f"{int(state.item.max())}"
        )
    return labels[state.item]
