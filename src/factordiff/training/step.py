"""One training step, entirely on the device: draw, corrupt, loss, gradient, update, moving average.

No number goes back to the host, nothing is decided in Python, and all randomness is a function of the step
counter, which lives on the device too. So the whole step can be recorded once in a CUDA graph and replayed, and
a step computed after a restart is the step that would have been computed without it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from factordiff.devices import where_to_draw
from factordiff.diffusion.objectives import diffusion_loss, objective
from factordiff.diffusion.process import corrupt, noise
from factordiff.networks.network import Network
from factordiff.training.agreement import agreement_loss
from factordiff.training.machines import rows_of
from factordiff.training.optimizer import Optimizer
from factordiff.training.settings import TrainingSettings
from factordiff.training.source import Source

BAD_IN_A_ROW = 10

Draw = Callable[[Tensor], tuple[Tensor, ...]]


def rate_factor(step: Int[Tensor, ""], warmup: int, decay_from: int, max_steps: int) -> Float[Tensor, ""]:
    """What the learning rates are multiplied with at a step: up over the warm-up, flat, then linearly to zero.

    A tensor of a tensor, so that a recorded step computes its own rate.
    """
    position = step.to(torch.float32)
    up = ((position + 1.0) / max(warmup, 1)).clamp(max=1.0)
    down = ((max_steps - position) / max(max_steps - decay_from, 1)).clamp(0.0, 1.0)
    return up * down


class Loss(nn.Module):
    """The loss of a drawn batch: what is differentiated, compiled and distributed."""

    def __init__(
        self, network: Network, settings: TrainingSettings, dtype: torch.dtype, rows: int, world: int
    ) -> None:
        super().__init__()
        self.network = network
        self.cell_loss = objective(settings.objective)
        self.agreement, self.batch = settings.agreement, settings.batch
        self.dtype = dtype
        self.rows, self.world = rows, world

    def forward(self, *batch: Tensor) -> Float[Tensor, ""]:
        """The rows' part of the global batch's loss, times the number of machines (which then average).

        A batch is what the network is told, and then x_0, x_t and t.
        """
        *given, x_0, x_t, t = batch
        weights = self.network.weights(self.dtype)
        encoded, read = self.network.encode_tensors(weights, *given)
        logits = self.network.logits(weights, x_t, encoded)
        # Revealed cells carry no loss, so SUBS is not needed here; its -inf would only endanger the gradient.
        log_probs = torch.log_softmax(logits, -1)
        loss = diffusion_loss(self.cell_loss, log_probs, x_0, x_t, t) * (self.rows / self.batch)
        if self.agreement > 0.0:
            codes = self.network.codes(weights, read)
            loss = loss + self.agreement * agreement_loss(codes, present=given[-1], batch=self.batch)
        return loss * self.world


class TrainingStep:
    """The state of a run on the device, and the function that advances it by one step."""

    def __init__(
        self,
        network: Network,
        source: Source,
        settings: TrainingSettings,
        dtype: torch.dtype,
        newton_schulz: torch.dtype,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        device = network.vector.device
        self.network, self.source, self.settings = network, source, settings
        network.fused = settings.kernels == "on"
        self.optimizer = Optimizer(
            network.layout,
            lr=settings.lr,
            lr_rest=settings.lr_rest,
            momentum=settings.momentum,
            betas=settings.betas,
            weight_decay=settings.weight_decay,
            dtype=newton_schulz,
            device=device,
        )
        # Without averaging the weights are their own average, and no second copy is kept.
        self.averages = settings.ema > 0.0
        self.ema = network.vector.detach().clone() if self.averages else network.vector.detach()
        self.counters = {
            name: torch.zeros((), dtype=torch.int64, device=device)
            for name in ("step", "updates", "skipped", "in_a_row", "measured")
        }
        wide = torch.float32 if device.type == "mps" else torch.float64
        self.loss_sum = torch.zeros((), dtype=wide, device=device)
        self.norm_sum = torch.zeros((), dtype=wide, device=device)
        rows = rows_of(settings.batch, rank, world)
        self.items = torch.arange(rows.start, rows.stop, device=where_to_draw(device))
        self.world = world
        loss: nn.Module = Loss(network, settings, dtype, len(self.items), world)
        if world > 1:
            loss = DistributedDataParallel(loss)
        self.loss: Callable[..., Tensor] = loss
        self.draw: Draw = self._draw
        if settings.compile != "none":
            self._compile()

    def _compile(self) -> None:
        mode = None if self.settings.compile_mode == "default" else self.settings.compile_mode
        self.draw = torch.compile(self._draw, dynamic=False)
        self.network.compile_parts(mode=mode)
        self._update = torch.compile(self._update, dynamic=False)  # type: ignore[method-assign]

    def _draw(self, step: Int[Tensor, ""]) -> tuple[Tensor, ...]:
        settings = self.settings
        condition, x_0 = self.source.draw(settings.seed, step, self.items)
        t, uniforms = noise(settings.seed, step, self.items, settings.batch, x_0.shape[-1])
        x_t = corrupt(x_0, t, uniforms, self.network.vocabulary)
        return *self.network.tensors_of_condition(condition), x_0, x_t, t.to(torch.float32)

    def __call__(self) -> None:
        """Advance by one step."""
        with torch.no_grad():
            batch = self.draw(self.counters["step"].to(self.items.device))
        vector = self.network.vector
        batch = tuple(part.to(vector.device) for part in batch)
        loss = self.loss(*batch)
        if self.world > 1:
            vector.grad = None
            loss.backward()  # the machines' average happens in here
            gradient = vector.grad
            loss = loss.detach().clone()
            dist.all_reduce(loss)
            loss /= self.world
        else:
            (gradient,) = torch.autograd.grad(loss, [vector])
        assert gradient is not None
        self._update(loss.detach(), gradient)

    @torch.no_grad()
    def _update(self, loss: Float[Tensor, ""], gradient: Float[Tensor, " parameter"]) -> None:
        settings, counters = self.settings, self.counters
        norm = gradient.norm()
        finite = torch.isfinite(loss) & torch.isfinite(norm)
        # After ten bad steps in a row everything stands still until the host notices.
        running = counters["in_a_row"] < BAD_IN_A_ROW
        good = finite & running
        gradient = gradient * (settings.clip / (norm + 1e-6)).clamp(max=1.0)
        factor = rate_factor(counters["step"], settings.warmup, settings.decay_from, settings.max_steps)
        vector = self.network.vector.detach()
        self.optimizer.step(vector, gradient, factor, counters["updates"], good)
        if self.averages:
            # The average forgets the initial weights quickly: its memory grows with the number of updates.
            count = counters["updates"].to(torch.float32)
            decay = ((1.0 + count) / (10.0 + count)).clamp(max=settings.ema)
            self.ema.copy_(torch.where(good, torch.lerp(vector, self.ema, decay), self.ema))
        counters["updates"] += good
        counters["measured"] += good
        counters["skipped"] += ~finite & running
        counters["in_a_row"].copy_(torch.where(good, 0, counters["in_a_row"] + running.to(torch.int64)))
        counters["step"] += running
        self.loss_sum += torch.where(good, loss, 0.0)
        self.norm_sum += torch.where(good, norm, 0.0)

    def state(self) -> dict[str, Tensor]:
        """Every tensor that determines the future of the run, by name."""
        return {
            "weights": self.network.vector.detach(),
            **({"ema": self.ema} if self.averages else {}),
            **self.optimizer.state(),
            **self.counters,
            "loss_sum": self.loss_sum,
            "norm_sum": self.norm_sum,
        }

    def take_measurements(self) -> tuple[float, float]:
        """The mean loss and gradient norm since the last call; waits for the device."""
        count = max(int(self.counters["measured"]), 1)
        means = float(self.loss_sum) / count, float(self.norm_sum) / count
        for tensor in (self.counters["measured"], self.loss_sum, self.norm_sum):
            tensor.zero_()
        return means


class RecordedStep:
    """A step that records itself in a CUDA graph after a few ordinary calls, and from then on is replayed.

    Every call is a real step of the run, the ordinary ones too.
    """

    WARM_UP = 3  # calls in which libraries choose their kernels and everything is compiled

    def __init__(self, step: Callable[[], None]) -> None:
        self._step = step
        self._calls = 0
        self._stream = torch.cuda.Stream()
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Advance by one step."""
        if self._calls < self.WARM_UP:
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                self._step()
            torch.cuda.current_stream().wait_stream(self._stream)
        else:
            if self._graph is None:
                self._graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._graph):
                    self._step()
            self._graph.replay()
        self._calls += 1
