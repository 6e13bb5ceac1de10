"""The processes that train one model together: one, unless torchrun starts several.

This is the one: each method says what several do, and has next to nothing to do itself. Several
are in `torchrun.py`, which is imported only where there are any, and much of torch with it.
"""

import contextlib
import hashlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from .. import UserError

if TYPE_CHECKING:  # so that the command line can silence all but the first without torch
    import torch
    from torch import Tensor, nn

    from ..model import GPT

T = TypeVar("T")


class LoneError(UserError):
    """Something a user can put right, and that one process alone may meet."""


class Processes:
    """Who trains: here a single process.

    Args:
        rank: this process, counted from 0; the first one speaks and writes for all.
        size: how many there are.
    """

    is_sharded = False  # whether each holds only a part of the model

    def __init__(self, rank: int = 0, size: int = 1):
        self.rank, self.size = rank, size

    @property
    def is_first(self) -> bool:
        """Whether this is the process that speaks and writes for all."""
        return self.rank == 0

    # Who does what

    def check_batch(self, batch_size: int) -> None:
        """Refuse a batch that cannot be shared out evenly.

        Raises:
            UserError: naming the sizes next to it that can.
        """
        if batch_size % self.size:
            below = batch_size - batch_size % self.size
            fitting = f"{below} or {below + self.size}" if below else str(self.size)
            raise UserError(
                f"batch_size must be a multiple of the {self.size} processes, got {batch_size}; "
                f"use --batch-size {fitting}"
            )

    def share(self, count: int) -> slice:
        """Which of `count` things in a row are this process's."""
        return slice(self.rank * count // self.size, (self.rank + 1) * count // self.size)

    def seed(self, seed: int, step: int) -> int:
        """A seed for what is drawn at random in a step: another on each process, always the same,
        so that nothing about it has to be kept in a checkpoint."""
        digest = hashlib.sha256(f"{seed} {step} {self.rank}".encode()).digest()
        return int.from_bytes(digest[:8], "little")

    def turns(self, things: Iterable[T]) -> Iterator[tuple[T, bool]]:
        """The things that this process does, in turn with the others, each with whether it counts.

        All get equally many, since what a sharded model computes it computes on all processes at
        once. Where that takes more than there are, the last is done again, and does not count.
        """
        rest = iter(things)
        while turn := list(itertools.islice(rest, self.size)):
            yield turn[min(self.rank, len(turn) - 1)], self.rank < len(turn)

    # What all agree on

    def gather(self, value: T) -> list[T]:
        """The values that all processes have, by rank."""
        return [value]

    def together(self, action: Callable[[], T]) -> T:
        """Do something on every process.

        Raises:
            UserError, OSError: on all, if one of them did; that of the lowest rank.
        """
        return action()

    def by_first(self, action: Callable[[], T]) -> T:
        """Let the first process do something, and tell all what came of it: result or error."""
        return action()

    def by_node(self, action: Callable[[], T]) -> T:
        """Do something on one process of each machine, and then on the others there: what leaves
        files behind that spare them the work.

        Raises:
            UserError, OSError: as :meth:`together`.
        """
        return action()

    def from_first(self, number: float) -> float:
        """The number that the first process has, such as the time on its clock."""
        return number

    def highest(self, number: int) -> int:
        """The highest of all processes' numbers."""
        return number

    def mean(self, number: float) -> float:
        """The mean of all processes' numbers."""
        return number

    def sum(self, tensor: "Tensor") -> "Tensor":
        """The sum of all processes' tensors, which are alike in shape and on the CPU."""
        return tensor

    # The model

    def device(self, name: str) -> "torch.device":
        """Where this process computes, of the devices that `name` allows.

        Raises:
            UserError: if there is none.
        """
        from ..runs import choose_device

        return choose_device(name)

    def placed(self, model: "GPT", device: "torch.device", shard: bool) -> "GPT":
        """The model on its device: whole, or this process's shard of every parameter."""
        return model.to(device)

    def averaged(self, loss: "nn.Module") -> "nn.Module":
        """A loss whose gradients are averaged over all processes as they are computed."""
        return loss

    def average_now(self, loss: "nn.Module", now: bool) -> None:
        """Whether the next gradients of `averaged(loss)` are averaged, or added up until then."""

    def settle(self, model: "GPT") -> None:
        """After a forward pass without a backward one: let go of what was gathered for it."""

    def whole_model(self, model: "GPT") -> "GPT":
        """The model with all of its parameters; of a sharded one a copy, on the first only."""
        return model

    def whole(self, tensor: "Tensor") -> "Tensor":
        """All of a tensor that may be sharded."""
        return tensor

    def like(self, tensor: "Tensor", other: "Tensor") -> "Tensor":
        """A whole tensor, sharded if and as `other` is."""
        return tensor

    def by_rows(self, tensor: "Tensor") -> "Tensor":
        """A tensor that all processes have alike, sharded by rows; one that is sharded as it is."""
        return tensor

    def each_some(
        self, function: Callable[["Tensor"], "Tensor"], matrices: "Tensor", like: "Tensor"
    ) -> "Tensor":
        """A function of matrices ``(n, rows, columns)``, each process computing some of the n.

        Args:
            function: maps ``(m, rows, columns)`` to the same shape, each matrix by itself.
            matrices: from :meth:`by_rows`, stacked.
            like: a matrix ``(rows, columns)``; the result is sharded by rows if it is.
        """
        return function(matrices)


ALONE = Processes()


@contextlib.contextmanager
def joined() -> Iterator[Processes]:
    """The processes that torchrun has started, connected; or this one alone."""
    if os.environ.get("WORLD_SIZE", "1") == "1" or "LOCAL_RANK" not in os.environ:
        yield ALONE
        return
    from .torchrun import connected

    with only_the_first_speaks(), connected() as processes:
        yield processes


@contextlib.contextmanager
def only_the_first_speaks() -> Iterator[None]:
    """Silence what all but the first process print, on standard output and standard error."""
    if os.environ.get("RANK", "0") == "0" or "LOCAL_RANK" not in os.environ:
        yield
        return
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


def launch() -> str:
    """The name of this start of torchrun, which stays when it starts its processes again; "" if
    it has none."""
    name = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    return "" if name == "none" else name


def restarts() -> int:
    """How often torchrun has started its processes again because it lost one."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
