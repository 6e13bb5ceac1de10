"""Where a training runs and how fast that is. speed.py measures it."""

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch

from ..config import GPTConfig
from ..model import attention_flops_per_token, flops_per_token
from ..training import workers
from ..training.messages import say

# The model by whose steps a CPU is judged.
REFERENCE = GPTConfig(1024, context_length=64, emb_dim=128, num_layers=2, num_heads=2)


@dataclass(frozen=True)
class Speed:
    """How long a training step takes: a cost of each block, and a cost of each token, for what is
    computed of it and for what is moved."""

    flops: float  # floating-point operations a second in the matrix products
    start: float  # seconds that each block of width 128 costs a step, however little it computes
    num_workers: int = 1  # that shared the work
    # Of a GPU, which multiplies faster than it moves what it multiplies. A CPU computes for so long
    # that these make no difference.
    transfer: float = 0.0  # seconds that a block takes for each component of a token's vector
    busy: int = 1  # tokens in a step that keep it busy: one on fewer takes hardly less time

    def seconds(self, shape: GPTConfig, tokens: int) -> float:
        """The seconds of a step on `tokens` tokens with a model of this shape."""
        start = self.start * (shape.emb_dim / 128) ** 0.5  # a narrow one's optimizer does less
        # Attention is half as fast as the other products.
        operations = flops_per_token(shape) + attention_flops_per_token(shape)
        computing = tokens * operations / self.flops
        moving = tokens * shape.num_layers * shape.emb_dim * self.transfer
        return shape.num_layers * start + computing + moving

    def shared_by(self, most: int) -> "Speed":
        """This speed where at most so many workers have something to do. If that is one, there
        are no workers: torch's own threads share what is computed."""
        if most == 1:
            return self
        num_workers = min(self.num_workers, most)
        flops = self.flops * (num_workers / self.num_workers)
        return replace(self, flops=flops, num_workers=num_workers)

    def rounded(self) -> "Speed":
        """This speed in coarse steps: to plan with, so that the same machine plans the same again.

        The seconds of a step on 2,048 tokens become a power of two: of all that is measured they
        differ least from time to time. How many operations one start and one transfer are worth
        become powers of four.
        """
        tokens = 2048
        seconds = 2.0 ** round(math.log2(self.seconds(REFERENCE, tokens)))
        start = _power_of_four(self.start * self.flops)  # operations
        transfer = _power_of_four(self.transfer * self.flops)

        # With these, the step takes so long at this many operations a second.
        worth = replace(self, flops=1.0, start=start, transfer=transfer)
        flops = worth.seconds(REFERENCE, tokens) / seconds
        return replace(
            self,
            flops=flops,
            start=start / flops,
            transfer=transfer / flops,
            busy=2 ** round(math.log2(self.busy)),
        )


def _power_of_four(operations: float) -> float:
    """The nearest one; 0 stays as it is."""
    return 4.0 ** round(math.log(operations, 4)) if operations > 0.0 else 0.0


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

    def seconds(self, shape: GPTConfig, tokens: int) -> float:
        """The seconds of a step on so many tokens with a model of this shape."""
        return (self.speed or _UNKNOWN).seconds(shape, tokens // self.processes)

    @property
    def busy(self) -> int:
        """Tokens in a step that keep all processes busy."""
        return (self.speed or _UNKNOWN).busy * self.processes

    def shared_by(self, sequences: int) -> "Machine":
        """The machine as a step uses it that computes so many sequences at once: each worker has
        one of them at least, and one without does nothing."""
        return replace(
            self,
            speed=self.speed and self.speed.shared_by(sequences),
            num_workers=min(self.num_workers, sequences),
        )

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
