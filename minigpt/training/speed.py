"""How fast this machine trains, measured in a moment, and the precision that suits it."""

import contextlib
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from ..config import GPTConfig, TrainConfig
from ..model import GPT, flops_per_token
from . import workers
from .optimizer import make_optimizers

_FEW, _MANY = 1, 16  # sequences in the steps timed; at least 1 and 4 a worker
_TIMES = 12  # each, in turn, since others may use the machine for a moment
_LIMIT = 1.6  # seconds; a slow or busy machine is judged by what was timed by then
_REFERENCE = GPTConfig(1024, context_length=64, emb_dim=128, num_layers=2, num_heads=2)
_WIDE = GPTConfig(1024, context_length=256, emb_dim=512, num_layers=2, num_heads=8)


@dataclass(frozen=True)
class Speed:
    """How long a training step takes: a cost of each block, and a cost of each operation."""

    flops: float  # floating-point operations a second in the matrix products
    start: float  # seconds that each block of width 128 costs a step, however little it computes
    num_workers: int = 1  # that shared the work

    def seconds(self, shape: GPTConfig, tokens: int) -> float:
        """The seconds of a step on `tokens` tokens with a model of this shape."""
        start = self.start * (shape.emb_dim / 128) ** 0.5  # a narrow one's optimizer does less
        slow = replace(shape, context_length=2 * shape.context_length)  # attention is half as fast
        return shape.num_layers * start + tokens * flops_per_token(slow) / self.flops


def measure_speed(
    device: torch.device,
    precision: torch.dtype,
    num_workers: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Speed:
    """Time steps of a small model on few and on many tokens; on a GPU, of a wider one."""
    shape = _REFERENCE if device.type == "cpu" else _WIDE
    few, many = max(_FEW, num_workers), max(_MANY, 4 * num_workers)

    def loss_of(ids: Tensor) -> Tensor:
        with autocast(device, precision):
            return model.loss(ids, ids)

    def step(count: int) -> float:
        """Train on `count` sequences; the seconds that it takes."""
        ids = torch.zeros(count, shape.context_length, dtype=torch.int64, device=device)
        start = clock()
        loss = workers.backward(loss_of, list(model.parameters()), ids.chunk(workers.count()))
        for optimizer in optimizers:
            optimizer.step()
        loss.item()  # waits until a GPU has computed
        return clock() - start

    random_state = torch.random.fork_rng([device] if device.type == "cuda" else [])
    with random_state, workers.team(num_workers):
        model = GPT(shape).to(device)
        optimizers = make_optimizers(model, TrainConfig(), precision)
        end = clock() + _LIMIT
        step(few)  # the first is slow
        times_of_few, times_of_many = [step(few)], list[float]()
        while clock() < end and len(times_of_many) < _TIMES:
            times_of_few.append(step(few))
            if clock() + times_of_few[-1] * many / few < end:
                times_of_many.append(step(many))
    short = sorted(times_of_few)[len(times_of_few) // 2]  # the median
    # Without a time of many, starting and computing may have taken the same time.
    guess = [short * (few + many) / (2 * few)]
    long = sorted(times_of_many or guess)[len(times_of_many) // 2]
    per_token = (long - short) / ((many - few) * shape.context_length)
    per_token = max(per_token, long / (2 * many * shape.context_length))  # the line must rise
    start = max(short - few * shape.context_length * per_token, 0.0) / shape.num_layers
    start *= (128 / shape.emb_dim) ** 0.5
    return Speed(flops_per_token(shape) / per_token, start, num_workers)


def choose_precision(
    name: Literal["auto", "float32", "bfloat16"], device: torch.device
) -> Literal["float32", "bfloat16"]:
    """The type of the matrix products; "auto" is the faster one."""
    if name != "auto":
        return name
    is_faster = device.type == "cuda" and torch.cuda.is_bf16_supported(False)
    if device.type == "cpu":
        is_faster = matmul_gflops(torch.bfloat16) > 1.3 * matmul_gflops(torch.float32)
    return "bfloat16" if is_faster else "float32"


def autocast(device: torch.device, precision: torch.dtype) -> contextlib.AbstractContextManager:
    """A context in which matrix products are computed in `precision`."""
    if precision == torch.float32:
        return contextlib.nullcontext()
    # No cache: threads would share it, and a step uses each weight once.
    return torch.autocast(device.type, dtype=precision, cache_enabled=False)


def matmul_gflops(dtype: torch.dtype, size: int = 256) -> float:
    """Measured speed of a square matrix product on the CPU, in 10⁹ operations a second."""
    a = torch.ones(size, size, dtype=dtype)  # small: without bfloat16 it is 100 times as slow
    return 2 * size**3 / min(timeit.repeat(lambda: a @ a, repeat=6, number=1)) / 1e9
