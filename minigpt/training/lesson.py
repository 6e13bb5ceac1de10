"""A lesson: a training whose losses are the same on every laptop, to the third digit.

It computes in float32 with one thread, since a sum that several threads share out is rounded
otherwise, and it is as many steps long as the plan says, however long they take. Processors of
different makers still round a little differently.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import torch

from .. import UserError
from ..config import TrainConfig
from . import distributed


def as_lesson(config: TrainConfig) -> TrainConfig:
    """The config of a lesson with the settings that all lessons share; any other as it is."""
    if not config.lesson:
        return config
    return replace(
        config,
        device="cpu",
        precision="float32",
        compile="off",
        num_workers=1,
        seed=TrainConfig.seed,
    )


def check_lesson(config: TrainConfig) -> None:
    """Refuse a lesson that would not have the same numbers everywhere."""
    if config.lesson and config.steps is None:
        raise UserError("a lesson is trained for steps and not for minutes: give steps=")
    if config.lesson and distributed.world_size() > 1:
        raise UserError("--lesson is for one process; leave torchrun out", kind="setting")


@contextlib.contextmanager
def threads_of(config: TrainConfig) -> Iterator[None]:
    """Within, torch has one thread if this is a lesson, else as many as before."""
    threads = torch.get_num_threads()
    if config.lesson:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
