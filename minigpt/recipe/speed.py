"""Measures how fast a device trains, in a moment: of a CPU by a small model's steps on few and on
many tokens in turn; of a GPU by the steps that a training makes there, many one after the other.
"""

import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from ..config import GPTConfig, TrainConfig
from ..data.batches import Dataset, make_batches
from ..model import GPT, attention_flops_per_token, flops_per_token
from ..training import distributed, workers
from ..training.checkpoint import Learner, TrainingState
from ..training.optimizer import chosen_optimizers, make_optimizers
from ..training.precision import Precision, autocast
from ..training.step import GradientDescent
from ..training.weights import WeightAverage
from .machine import REFERENCE, Speed

Clock = Callable[[], float]

# Of a CPU
_FEW = 1  # sequences in the short steps that are timed; at least 1 a worker
_MANY = 32  # and in the long ones; at least 8 a worker
_TIMES = 12  # steps of each kind, in turn: others may use the machine for a moment
_LIMIT = 1.6  # seconds; a slow or busy machine is judged by what was timed by then

# Of a GPU
SHAPE_ON_GPU = GPTConfig(
    2048, context_length=256, emb_dim=192, num_layers=6, num_heads=3, dropout=0.1
)
_FEW_ON_GPU = 4  # sequences
_MANY_ON_GPU = 32  # of which a card with 2 GB has room for the activations
_WARM_UP = 5  # steps: a GPU loads its libraries in the first, and chooses how to compute
_ENOUGH = 0.2  # seconds that the steps together take that are timed
_MOST = 128  # of them
_PRODUCT = 4096  # rows of the matrix product that is timed
_HARDLY_LESS = 1.5  # times: a step of which two thirds are starting


def measure_speed(
    device: torch.device,
    precision: torch.dtype,
    num_workers: int = 1,
    clock: Clock = time.perf_counter,
) -> Speed:
    """How fast a device trains. It draws none of the caller's random numbers. Of several processes
    the first alone may measure its device."""
    gpus = [device] if device.type == "cuda" else []
    with distributed.alone(), torch.random.fork_rng(gpus):
        if device.type == "cpu":
            return _of_cpu(precision, num_workers, clock)
        return _of_gpu(device, precision, clock)


# A CPU


def _of_cpu(precision: torch.dtype, num_workers: int, clock: Clock) -> Speed:
    """Time steps of a small model on few and on many sequences."""
    few = max(_FEW, num_workers)
    many = max(_MANY, 8 * num_workers)
    with workers.team(num_workers):
        step = _training_step(precision, clock)
        times_of_few, times_of_many = _times(step, few, many, clock)

    # A step takes so many seconds to start, and so many more for each token.
    short = _usual(times_of_few)
    # If no long step was timed, half of a short one is taken to be starting, and half computing.
    guess = short * (few + many) / (2 * few)
    long = _usual(times_of_many or [guess])
    start, per_token = _line(REFERENCE, few=few, many=many, short=short, long=long)
    return Speed(flops_per_token(REFERENCE) / per_token, start, num_workers)


def _line(
    shape: GPTConfig, *, few: int, many: int, short: float, long: float
) -> tuple[float, float]:
    """The seconds that each block of width 128 costs a step, and that each token adds to it, where
    steps on few sequences take `short` and those on many `long` seconds."""
    per_token = (long - short) / ((many - few) * shape.context_length)
    per_token = max(per_token, long / (2 * many * shape.context_length))  # the line must rise
    start = max(short - few * shape.context_length * per_token, 0.0) / shape.num_layers
    start *= (128 / shape.emb_dim) ** 0.5
    return start, per_token


def _training_step(precision: torch.dtype, clock: Clock) -> Callable[[int], float]:
    """A function that trains the small model for a step on so many sequences, and returns the
    seconds that it took."""
    device = torch.device("cpu")
    model = GPT(REFERENCE)
    optimizers = make_optimizers(model, TrainConfig(), precision)
    average = WeightAverage(model)

    def losses_of(ids: Tensor) -> tuple[Tensor]:
        with autocast(device, precision):
            return (model.loss(ids, ids),)

    def step(count: int) -> float:
        ids = torch.zeros(count, REFERENCE.context_length, dtype=torch.int64)
        start = clock()
        parts = ids.chunk(workers.count())
        loss = workers.backward(losses_of, list(model.parameters()), parts)
        for optimizer in optimizers:
            optimizer.step()
        average.update(step=0)
        loss.item()
        return clock() - start

    return step


def _times(
    step: Callable[[int], float], few: int, many: int, clock: Clock
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


# A GPU


def _of_gpu(device: torch.device, precision: torch.dtype, clock: Clock) -> Speed:
    """Time steps as a training makes them, on few and on many sequences, and a matrix product. What
    a token costs beyond the products is the moving of its vectors."""
    shape = SHAPE_ON_GPU
    short = _seconds_a_step(_FEW_ON_GPU, device, precision, clock)
    long = _seconds_a_step(_MANY_ON_GPU, device, precision, clock)
    start, per_token = _line(shape, few=_FEW_ON_GPU, many=_MANY_ON_GPU, short=short, long=long)

    flops = _flops_of_a_product(device, precision, clock)
    operations = flops_per_token(shape) + attention_flops_per_token(shape)
    flops = max(flops, operations / per_token)  # that steps have reached
    moving = per_token - operations / flops
    starting = short - _FEW_ON_GPU * shape.context_length * per_token
    busy = (_HARDLY_LESS - 1.0) * starting / per_token
    return Speed(
        flops,
        start,
        transfer=moving / (shape.num_layers * shape.emb_dim),
        busy=max(round(busy), 1),
    )


def _seconds_a_step(
    batch_size: int, device: torch.device, precision: torch.dtype, clock: Clock
) -> float:
    """The seconds of a step on so many sequences, from one to the next of many."""
    config = TrainConfig(
        steps=1,
        batch_size=batch_size,
        device=str(device),
        precision=cast(Precision, str(precision).removeprefix("torch.")),
        compile="off",
    )
    model = GPT(SHAPE_ON_GPU).to(device)
    descent = GradientDescent(
        Learner.of(model, chosen_optimizers(None, model, config), config),
        make_batches(_random_dataset(), config, SHAPE_ON_GPU.context_length),
        config,
        loss=None,
        byte_lengths=torch.ones(SHAPE_ON_GPU.vocab_size, dtype=torch.int64),
    )
    state = TrainingState()

    def seconds_of(count: int) -> float:
        begun = clock()
        for _ in range(count):
            descent.step(state, done=0.5, is_unchanged=True)
        _wait_for(next(model.parameters()))
        return clock() - begun

    with descent.under_way():
        seconds_of(_WARM_UP)
        count = 1
        while True:
            seconds = seconds_of(count)
            if seconds >= _ENOUGH or count >= _MOST:
                return seconds / count
            count *= 2


def _random_dataset() -> Dataset:
    """Tokens from which nothing can be learned; of their tokenizer only the size is known."""
    vocab_size = SHAPE_ON_GPU.vocab_size
    size = 4 * _MANY_ON_GPU * SHAPE_ON_GPU.context_length
    ids = np.random.default_rng(0).integers(vocab_size, size=size, dtype=np.uint16)
    tokenizer: Any = SimpleNamespace(vocab_size=vocab_size)
    return Dataset(tokenizer, train=ids, validation=ids)


def _flops_of_a_product(device: torch.device, precision: torch.dtype, clock: Clock) -> float:
    """Operations a second in a large product of matrices: the most that any step can reach."""
    a = torch.randn(_PRODUCT, _PRODUCT, device=device).to(precision)

    def seconds_of(count: int) -> float:
        begun = clock()
        for _ in range(count):
            product = a @ a
        _wait_for(product)
        return clock() - begun

    seconds_of(2)
    return 2 * _PRODUCT**3 / (seconds_of(10) / 10)


def _wait_for(tensor: Tensor) -> None:
    """Until a GPU has computed all that it was asked for, this tensor being the last of it."""
    tensor.flatten()[0].item()
