"""How fast this machine trains, measured in half a second."""

import statistics
import time
from dataclasses import dataclass

import torch

from ..config import GPTConfig, TrainConfig
from ..model import GPT, flops_per_token
from .device import autocast
from .optimizer import Optimizers, make_optimizer

_FEW, _MANY = 1, 16  # sequences in the steps that are timed
_TIMES = 6  # each, since others may use the machine
_REFERENCE = GPTConfig(1024, context_length=64, emb_dim=128, num_layers=2, num_heads=2)
_WIDE = GPTConfig(1024, context_length=256, emb_dim=512, num_layers=2, num_heads=8)


@dataclass(frozen=True)
class Speed:
    """How long a training step takes, as a line: what must be started, and what is computed.

    Attributes:
        flops: floating-point operations a second in the matrix products.
        start: seconds that each block costs a step, however little it computes.
    """

    flops: float
    start: float

    def seconds(self, shape: GPTConfig, tokens: int) -> float:
        """What a step on so many tokens takes with a model of this shape."""
        return shape.num_layers * self.start + tokens * flops_per_token(shape) / self.flops


def measure_speed(device: torch.device, precision: torch.dtype) -> Speed:
    """Time steps of a small model on few and on many tokens.

    Args:
        device: to train on; a GPU is measured with a wider model.
        precision: of the matrix products.
    """
    shape = _REFERENCE if device.type == "cpu" else _WIDE
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        model = GPT(shape).to(device)
        optimizer = make_optimizer(model, TrainConfig(), precision)
        few, many = (_seconds(model, optimizer, precision, count) for count in (_FEW, _MANY))
    per_token = (many - few) / ((_MANY - _FEW) * shape.context_length)
    per_token = max(per_token, many / (2 * _MANY * shape.context_length))  # the line must rise
    flops = flops_per_token(shape) / per_token
    start = max(few - _FEW * shape.context_length * per_token, 0.0) / shape.num_layers
    return Speed(flops, start)


def _seconds(model: GPT, optimizer: Optimizers, precision: torch.dtype, count: int) -> float:
    """The median of some steps on `count` sequences, after a first one that is slow."""
    device = model.token_embedding.weight.device
    ids = torch.zeros(count, model.config.context_length, dtype=torch.int64, device=device)
    times = []
    for _ in range(_TIMES):
        start = time.perf_counter()
        with autocast(device, precision):
            _, loss = model(ids, ids)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()  # a GPU answers when it has computed
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])
