"""Where a training runs and how fast that is, measured in a moment."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from ..config import GPTConfig, TrainConfig
from ..model import GPT, attention_flops_per_token, flops_per_token
from ..training import workers
from ..training.messages import say
from ..training.optimizer import make_optimizers
from ..training.precision import autocast
from ..training.weights import WeightAverage

_FEW = 1  # sequences in the short steps that are timed; at least 1 a worker
_MANY = 32  # and in the long ones; at least 8 a worker
_TIMES = 12  # steps of each kind, in turn: others may use the machine for a moment
_LIMIT = 1.6  # seconds; a slow or busy machine is judged by what was timed by then
_GPU_WARM_UP = 3  # rounds: a GPU loads its libraries in the first, and chooses how to compute
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
        # Attention is half as fast as the other products.
        operations = flops_per_token(shape) + attention_flops_per_token(shape)
        return shape.num_layers * start + tokens * operations / self.flops

    def rounded(self) -> "Speed":
        """This speed in coarse steps: to plan with, so that the same machine plans the same again.

        The seconds of a step on 2,048 tokens become a power of two: of all that is measured they
        differ least from time to time. How many operations one start is worth becomes a power of
        four.
        """
        tokens = 2048
        seconds = 2.0 ** round(math.log2(self.seconds(_REFERENCE, tokens)))
        worth = self.start * self.flops  # operations
        if worth > 0.0:
            worth = 4.0 ** round(math.log(worth, 4))

        # With starts of this worth, the step takes so long at this many operations a second.
        operations = replace(self, flops=1.0, start=worth).seconds(_REFERENCE, tokens)
        flops = operations / seconds
        return replace(self, flops=flops, start=worth / flops)


# The speed that a lesson assumes of every machine: about one thread of a laptop.
SPEED_OF_A_LESSON = Speed(flops=4e10, start=2e-3)
_UNKNOWN = Speed(flops=1e11, start=0.0)  # of a machine whose speed makes no difference


@dataclass(frozen=True)
class Machine:
    """What trains: processes that share each step, each on a device of this speed."""

    speed: Speed | None  # None: not measured, since all that depends on it was given
    processes: int = 1
    num_workers: int = 1  # threads that can share a step
    device: str = "cpu"  # as TrainConfig names it
    precision: Literal["float32", "bfloat16", "float16"] = "float32"

    @property
    def flops(self) -> float:
        """Operations a second of all processes together; a guess where it makes no difference."""
        return (self.speed or _UNKNOWN).flops * self.processes

    def seconds(self, model: GPTConfig, tokens: int) -> float:
        """The seconds of a step on so many tokens."""
        return (self.speed or _UNKNOWN).seconds(model, tokens // self.processes)

    def rounded(self) -> "Machine":
        """The machine that settings are planned for, so that the same one plans them again."""
        return self if self.speed is None else replace(self, speed=self.speed.rounded())


def count_workers(
    asked: int | None, *, device: torch.device, compile: str, attention_dropout: float
) -> int:
    """The workers that share a step; if fewer than were asked for, a line says why."""
    reason = workers.why_not_shared(device, compile, attention_dropout)
    if reason is None:
        return asked or torch.get_num_threads()
    if asked is not None and asked > 1:
        say(f"--num-workers {asked} is not used: {reason}")
    return 1


def measure_speed(
    device: torch.device,
    precision: torch.dtype,
    num_workers: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Speed:
    """Time steps of a small model on few and on many sequences; on a GPU, of a wider one."""
    shape = _REFERENCE if device.type == "cpu" else _WIDE
    few = max(_FEW, num_workers)
    many = max(_MANY, 8 * num_workers)

    random_state = torch.random.fork_rng([device] if device.type == "cuda" else [])
    with random_state, workers.team(num_workers):
        step = _training_step(shape, device, precision, clock)
        if device.type != "cpu":
            for _ in range(_GPU_WARM_UP):
                step(few)
                step(many)
        times_of_few, times_of_many = _times(step, few, many, clock)

    # A step takes so many seconds to start, and so many more for each token.
    short = _usual(times_of_few)
    # If no long step was timed, half of a short one is taken to be starting, and half computing.
    guess = short * (few + many) / (2 * few)
    long = _usual(times_of_many or [guess])
    per_token = (long - short) / ((many - few) * shape.context_length)
    per_token = max(per_token, long / (2 * many * shape.context_length))  # the line must rise

    start = max(short - few * shape.context_length * per_token, 0.0) / shape.num_layers
    start *= (128 / shape.emb_dim) ** 0.5
    return Speed(flops_per_token(shape) / per_token, start, num_workers)


def _training_step(
    shape: GPTConfig, device: torch.device, precision: torch.dtype, clock: Callable[[], float]
) -> Callable[[int], float]:
    """A function that trains a model of this shape for a step on so many sequences, and returns the
    seconds that it took."""
    model = GPT(shape).to(device)
    optimizers = make_optimizers(model, TrainConfig(), precision)
    average = WeightAverage(model)

    def losses_of(ids: Tensor) -> tuple[Tensor]:
        with autocast(device, precision):
            return (model.loss(ids, ids),)

    def step(count: int) -> float:
        ids = torch.zeros(count, shape.context_length, dtype=torch.int64, device=device)
        start = clock()
        parts = ids.chunk(workers.count())
        loss = workers.backward(losses_of, list(model.parameters()), parts)
        for optimizer in optimizers:
            optimizer.step()
        average.update(step=0)
        loss.item()  # waits until a GPU has computed all of this
        return clock() - start

    return step


def _times(
    step: Callable[[int], float], few: int, many: int, clock: Callable[[], float]
) -> tuple[list[float], list[float]]:
    """Seconds of steps on few and on many sequences, in turn, as many as there is time for. On a
    slow machine there may be none on many."""
    end = clock() + _LIMIT
    step(few)  # the first is slow
    of_few = [step(few)]
    of_many: list[float] = []
    while clock() < end and len(of_many) < _TIMES:
        of_few.append(step(few))
        if clock() + of_few[-1] * many / few < end:
            of_many.append(step(many))
    return of_few, of_many


def _usual(times: Sequence[float]) -> float:
    """The lower quartile: other programs make a step longer, never shorter, so that of all
    quantiles the lower ones repeat best, and a single lucky step does not decide."""
    return sorted(times)[(len(times) - 1) // 4]
