"""The same as distributed.py in the words of before, until run.py calls that itself."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

from ..model import GPT
from . import distributed

T = TypeVar("T")


class Processes:
    """All processes that train together."""

    size = property(lambda self: distributed.world_size())
    is_first = property(lambda self: distributed.is_main())
    check_batch = staticmethod(distributed.check_batch)
    device = staticmethod(distributed.choose_device)

    def gather(self, value: T) -> list[T]:
        """The values of all ranks."""
        return distributed.gather(value)

    def together(self, action: Callable[[], T]) -> T:
        """Let every rank act."""
        return distributed.on_all(action)

    def by_first(self, action: Callable[[], T]) -> T:
        """Let rank 0 act."""
        return distributed.on_main(action)

    def by_node(self, action: Callable[[], T]) -> T:
        """Let rank 0 act, then all."""
        if distributed.world_size() > 1:
            distributed.on_main(lambda: action() and None)
        return distributed.on_all(action)

    def placed(self, model: GPT, device: torch.device, shard: bool) -> GPT:
        """The model on its device."""
        return distributed.parallelize(model, device, shard)


@contextlib.contextmanager
def joined() -> Iterator[Processes]:
    """The processes that torchrun started."""
    with distributed.process_group():
        yield Processes()
