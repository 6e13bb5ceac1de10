"""What a plan needs to know of the machine: its speed, and how many processes share the work."""

from dataclasses import dataclass

import torch

from ..config import GPTConfig
from ..training.messages import say
from ..training.workers import why_not_shared
from .speed import Speed

_UNKNOWN = Speed(flops=1e11, start=0.0)  # of a machine whose speed makes no difference


@dataclass(frozen=True)
class Machine:
    """What trains: processes that share each step, each on a machine of this speed."""

    speed: Speed | None  # None: not measured, since all that depends on it was given
    processes: int = 1

    @property
    def assumed_speed(self) -> Speed:
        """The speed, or one that serves where it makes no difference."""
        return self.speed or _UNKNOWN

    def seconds(self, model: GPTConfig, tokens: int) -> float:
        """The seconds of a step on so many tokens."""
        return self.assumed_speed.seconds(model, tokens // self.processes)


def count_workers(
    asked: int | None, *, device: torch.device, compile: str, attention_dropout: float
) -> int:
    """The workers that share a step; if fewer than were asked for, a line says why."""
    reason = why_not_shared(device, compile, attention_dropout)
    if reason is None:
        return asked or torch.get_num_threads()
    if asked is not None and asked > 1:
        say(f"--num-workers {asked} is not used: {reason}")
    return 1
