"""Trained experts as ONNX files that a browser can run: one pass, from a canvas and what is told to logits."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from factordiff.arc.grid import CELLS, COLORS
from factordiff.errors import InvalidInput, MissingDependency
from factordiff.networks.parameters import Weights
from factordiff.networks.refinement import RefinementNetwork
from factordiff.solving.solver import MOST_DEMONSTRATIONS

INPUTS = ("x_t", "query", "inputs", "outputs")
EXAMPLE_FRAMES = 3
LARGE = 1_000  # numbers; smaller tables are not worth a node of their own


class OnePass(nn.Module):
    """Encode and pass in one function of tensors; the weights are constants of it."""

    def __init__(self, network: RefinementNetwork) -> None:
        super().__init__()
        # In a tuple, so that the vector of weights does not travel too.
        self.parts: tuple[RefinementNetwork, Weights] = (network, network.ready())

    def forward(self, x_t: Tensor, query: Tensor, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Logits of every value at every cell; all demonstrations are there."""
        network, weights = self.parts
        present = torch.ones(inputs.shape[:2], dtype=torch.bool)
        encoded, _ = network.encode_tensors(weights, query, inputs, outputs, present)
        logits: Tensor = network.logits(weights, x_t, encoded)
        return logits


def export_onnx(name: str, expert: Any, file: str | Path) -> Path:
    """Write an expert as an ONNX file; its inputs are `INPUTS`, int64, with any number of demonstrations."""
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingDependency(
            "onnx: --with-experts writes experts with it; install factordiff[onnx] (pip install 'factordiff[onnx]')"
        ) from error
    if not isinstance(expert, RefinementNetwork) or expert.config.cells != CELLS:
        raise InvalidInput(f"export: {name} is no network on a canvas of {CELLS} cells; leave it out")
    if not expert.config.sees_sizes:
        raise InvalidInput(
            f"export: {name} does not see sizes, which the page tells; train it with sees_sizes"
        )
    grid = torch.zeros(1, CELLS, dtype=torch.int64)
    frames = torch.zeros(1, EXAMPLE_FRAMES, CELLS, dtype=torch.int64)
    some = {1: torch.export.Dim("frames", min=1, max=MOST_DEMONSTRATIONS)}
    with _quietly(), torch.no_grad():
        program = torch.onnx.export(
            OnePass(expert).eval(),
            # A copy: one tensor would be one input.
            (torch.full_like(grid, COLORS.mask), grid, frames, frames.clone()),
            dynamo=True,
            input_names=list(INPUTS),
            output_names=["logits"],
            dynamic_shapes={"x_t": None, "query": None, "inputs": some, "outputs": some},
            verbose=False,
            optimize=False,  # it would store folded copies of weights, which the runtime folds itself
        )
    assert program is not None, "with dynamo=True there is a program"
    path = Path(file)
    path.write_bytes(_halved(program.model_proto).SerializeToString())
    return path


def _halved(model: Any) -> Any:
    """The model without remarks; large tables that bfloat16 holds exactly are stored so and cast when it is loaded."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    casts = []
    for table in model.graph.initializer:
        if table.data_type != TensorProto.FLOAT:
            continue
        bits = numpy_helper.to_array(table).view(np.uint32)
        if bits.size < LARGE or (bits & 0xFFFF).any():
            continue
        name, shape = table.name, list(table.dims)
        stored = (bits >> 16).astype("<u2").tobytes()
        table.CopyFrom(helper.make_tensor(f"{name}.half", TensorProto.BFLOAT16, shape, stored, raw=True))
        casts.append(helper.make_node("Cast", [table.name], [name], to=TensorProto.FLOAT))
    for node in model.graph.node:
        del node.metadata_props[:]  # where in our code it comes from: as many bytes as the node
    nodes = [*casts, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without the exporter's own remarks about what it tries."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
