"""How fast this machine trains, measured in half a second, and the precision that suits it."""

import contextlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from ..config import GPTConfig, TrainConfig
from ..model import GPT, flops_per_token
from .optimizer import make_optimizers

_FEW, _MANY = 1, 16  # sequences in the steps that are timed
_TIMES = 6  # each, since others may use the machine
_LIMIT = 2.0  # seconds, after which a machine that is slow or busy is judged by what was timed
_REFERENCE = GPTConfig(1024, context_length=64, emb_dim=128, num_layers=2, num_heads=2)
_WIDE = GPTConfig(1024, context_length=256, emb_dim=512, num_layers=2, num_heads=8)


@dataclass(frozen=True)
class Speed:
    """How long a training step takes, as a line: what must be started, and what is computed."""

    flops: float  # floating-point operations a second in the matrix products
    start: float  # seconds that each block costs a step, however little it computes

    def seconds(self, shape: GPTConfig, tokens: int) -> float:
        """What a step on so many tokens takes with a model of this shape."""
        return shape.num_layers * self.start + tokens * flops_per_token(shape) / self.flops


def measure_speed(
    device: torch.device,
    precision: torch.dtype,
    clock: Callable[[], float] = time.perf_counter,
) -> Speed:
    """Time steps of a small model on few and on many tokens; on a GPU, of a wider one."""
    shape = _REFERENCE if device.type == "cpu" else _WIDE
    end = clock() + _LIMIT
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        model = GPT(shape).to(device)
        optimizers = make_optimizers(model, TrainConfig(), precision)
        few = _seconds(model, optimizers, precision, _FEW, clock, end - _LIMIT / 2)
        if clock() + few * _MANY / _FEW < end:
            many = _seconds(model, optimizers, precision, _MANY, clock, end)
        else:  # as if half of the time had gone into what must be started
            many = (few + few * _MANY / _FEW) / 2
    per_token = (many - few) / ((_MANY - _FEW) * shape.context_length)
    per_token = max(per_token, many / (2 * _MANY * shape.context_length))  # the line must rise
    flops = flops_per_token(shape) / per_token
    start = max(few - _FEW * shape.context_length * per_token, 0.0) / shape.num_layers
    return Speed(flops, start)


def _seconds(
    model: GPT,
    optimizers: list[torch.optim.Optimizer],
    precision: torch.dtype,
    count: int,
    clock: Callable[[], float],
    end: float,
) -> float:
    """The median of some steps on `count` sequences, after a first one that is slow."""
    device = model.token_embedding.weight.device
    ids = torch.zeros(count, model.config.context_length, dtype=torch.int64, device=device)
    times: list[float] = []
    while len(times) < _TIMES and (not times or clock() < end):
        start = clock()
        with autocast(device, precision):
            _, loss = model(ids, ids)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        loss.item()  # a GPU answers when it has computed
        times.append(clock() - start)
    return statistics.median(times[1:] or times)


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """The type of the matrix products: "float32", "bfloat16", or "auto" for the faster one."""
    if name != "auto":
        return torch.bfloat16 if name == "bfloat16" else torch.float32
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(False) else torch.float32
    if device.type != "cpu":
        return torch.float32
    faster = matmul_gflops(torch.bfloat16) > 1.3 * matmul_gflops(torch.float32)
    return torch.bfloat16 if faster else torch.float32


def autocast(device: torch.device, precision: torch.dtype) -> contextlib.AbstractContextManager:
    """A context in which matrix products are computed in `precision`."""
    if precision == torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=precision)


def matmul_gflops(dtype: torch.dtype, size: int = 256) -> float:
    """Measured speed of a square matrix product on the CPU, in 10⁹ operations a second.

    By default one so small that it takes a moment even where a type is computed a hundred times
    more slowly, as bfloat16 is by processors that do not know it.
    """
    a = torch.ones(size, size, dtype=dtype)
    best = float("inf")
    for _ in range(6):
        start = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best / 1e9
