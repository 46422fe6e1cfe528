r"""Where a branch joins the stream: $y = x + \alpha b$, then $n = (1+\gamma)\,\mathrm{norm}(y)+\beta$.

In plain operations this passes over the stream in memory about ten times, forward and back; the kernel does it in
one pass each way, with the sums over an item's cells that the modulation's gradient needs.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from factordiff.experts import junction_kernel as kernel

Stream = Float[Tensor, "batch token channel"]
Each = Float[Tensor, "batch channel"]  # one vector per item, for all its tokens

EPSILON = 1e-5


def join(
    x: Stream, branch: Stream, gate: Each, gamma: Each, beta: Each, fused: bool = False
) -> tuple[Stream, Stream]:
    """The stream with the gated branch added, and its modulated norm. `fused` needs a GPU."""
    if fused:
        return torch.ops.factordiff.join(x, branch, gate, gamma, beta)
    y = x + gate.unsqueeze(1) * branch
    normed = F.layer_norm(y, (y.shape[-1],), eps=EPSILON)
    return y, normed * (1.0 + gamma.unsqueeze(1)) + beta.unsqueeze(1)


@torch.library.custom_op(
    "factordiff::join",
    mutates_args=(),
    schema="(Tensor x, Tensor branch, Tensor gate, Tensor gamma, Tensor beta) -> (Tensor, Tensor)",
)
def _join(x: Tensor, branch: Tensor, gate: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    return kernel.forward(x.contiguous(), branch.contiguous(), gate, gamma, beta, EPSILON)


@_join.register_fake
def _(x: Tensor, branch: Tensor, gate: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x.contiguous()), torch.empty_like(x.contiguous())


@torch.library.custom_op(
    "factordiff::join_gradient",
    mutates_args=(),
    schema="(Tensor grad_y, Tensor grad_normed, Tensor y, Tensor branch, Tensor gate, Tensor gamma)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def _join_gradient(
    grad_y: Tensor, grad_normed: Tensor, y: Tensor, branch: Tensor, gate: Tensor, gamma: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    return kernel.backward(
        grad_y.contiguous(), grad_normed.contiguous(), y, branch.contiguous(), gate, gamma, EPSILON
    )


@_join_gradient.register_fake
def _(
    grad_y: Tensor, grad_normed: Tensor, y: Tensor, branch: Tensor, gate: Tensor, gamma: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    each = [gate.new_empty(gate.shape) for _ in range(3)]
    return torch.empty_like(y), torch.empty_like(y), each[0], each[1], each[2]


def _remember(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    _, branch, gate, gamma, _ = inputs
    ctx.save_for_backward(output[0], branch, gate, gamma)


def _differentiate(ctx, grad_y, grad_normed):  # type: ignore[no-untyped-def]
    y, branch, gate, gamma = ctx.saved_tensors
    return torch.ops.factordiff.join_gradient(grad_y, grad_normed, y, branch, gate, gamma)


_join.register_autograd(_differentiate, setup_context=_remember)
