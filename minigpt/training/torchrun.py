"""Several processes, started by torchrun: what `processes.py` promises, with torch.distributed.

Small things (times, signals, results) go through gloo on the CPU; gradients and parameters through
gloo or NCCL, wherever the model is.
"""

import contextlib
import copy
import logging
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from .. import UserError
from ..model import GPT
from ..runs import choose_device
from . import sharding
from .interruption import Interrupted
from .processes import LoneError, Processes

T = TypeVar("T")

_PATIENCE = timedelta(days=7)  # with the process that prepares a long text for the others


class Torchrun(Processes):
    """One of several processes; see :class:`Processes`.

    Args:
        rank: this process, counted from 0.
        size: how many there are.
        local_rank: this process, counted from 0 on each machine.
        store: keys and values that all of them see.
    """

    def __init__(self, rank: int, size: int, local_rank: int, store: dist.Store):
        super().__init__(rank, size)
        self._local_rank, self._store = local_rank, store
        self._preparations = 0
        self._mesh: DeviceMesh | None = None  # all of them in a row
        self._copy: GPT | None = None  # of a sharded model, all of it

    # What all agree on

    def gather(self, value: T) -> list[T]:
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def together(self, action: Callable[[], T]) -> T:
        problem = None
        try:
            result = action()
        except (UserError, OSError) as error:
            problem = error
        for found in self.gather(problem):
            if found is not None:
                raise found
        return result

    def by_first(self, action: Callable[[], T]) -> T:
        result = self.together(lambda: action() if self.is_first else None)
        return self.gather(result)[0]  # type: ignore[return-value]

    def by_node(self, action: Callable[[], T]) -> T:
        self._preparations += 1
        done = f"node {os.environ['GROUP_RANK']}/{self._preparations}"

        def in_turn() -> T:
            if self._local_rank > 0:
                self._store.wait([done], _PATIENCE)
                return action()
            try:
                return action()
            finally:
                self._store.set(done, "")

        return self.together(in_turn)

    def from_first(self, number: float) -> float:
        value = torch.tensor(number, dtype=torch.float64)
        dist.broadcast(value, src=0)
        return value.item()

    def highest(self, number: int) -> int:
        value = torch.tensor(number)
        dist.all_reduce(value, dist.ReduceOp.MAX)
        return int(value.item())

    def mean(self, number: float) -> float:
        return self.sum(torch.tensor(number, dtype=torch.float64)).item() / self.size

    def sum(self, tensor: Tensor) -> Tensor:
        dist.all_reduce(tensor)
        return tensor

    # The model

    def device(self, name: str) -> torch.device:
        if name == "auto":
            name = "cuda" if torch.cuda.is_available() else "cpu"
        device = choose_device(name)
        if device.type not in ("cpu", "cuda") or device.index is not None:
            raise UserError(f"several processes train on cpu or cuda, not on {name!r}")
        if device.type == "cpu":
            return device
        if self._local_rank >= torch.cuda.device_count():
            raise UserError(
                f"there are more processes than the {torch.cuda.device_count()} GPUs here; "
                "use --nproc-per-node gpu"
            )
        return torch.device("cuda", self._local_rank)

    def placed(self, model: GPT, device: torch.device, shard: bool) -> GPT:
        self._mesh = init_device_mesh(device.type, (self.size,))
        self.is_sharded = shard
        if not shard:
            return model.to(device)
        self._copy = copy.deepcopy(model) if self.is_first else None
        for parameter in model.parameters():  # every process may have read its own file
            dist.broadcast(parameter.data, src=0)
        sharding.shard(model, self._mesh)
        return model

    def averaged(self, loss: nn.Module) -> nn.Module:
        if self.is_sharded:
            return loss
        return DistributedDataParallel(loss, gradient_as_bucket_view=True)

    def average_now(self, loss: nn.Module, now: bool) -> None:
        # A sharded model averages always: adding up whole gradients would take the memory that
        # sharding saves.
        if isinstance(loss, DistributedDataParallel):
            loss.require_backward_grad_sync = now

    def settle(self, model: GPT) -> None:
        if self.is_sharded:
            model.reshard()  # type: ignore[operator]

    def whole_model(self, model: GPT) -> GPT:
        if self.is_sharded:
            sharding.gather_into(self._copy, model)
        return self._copy or model

    def whole(self, tensor: Tensor) -> Tensor:
        return sharding.whole(tensor)

    def like(self, tensor: Tensor, other: Tensor) -> Tensor:
        return sharding.like(tensor, other)

    def by_rows(self, tensor: Tensor) -> Tensor:
        assert self._mesh is not None
        return sharding.by_rows(tensor, self._mesh)

    def each_some(
        self, function: Callable[[Tensor], Tensor], matrices: Tensor, like: Tensor
    ) -> Tensor:
        return sharding.each_some(function, matrices, like)


@contextlib.contextmanager
def connected() -> Iterator[Torchrun]:
    """This process, connected to the others while the context is open.

    An error that it alone has it says itself, whichever process it is.
    """
    local_rank = int(os.environ["LOCAL_RANK"])
    if local_rank < torch.cuda.device_count():
        torch.cuda.set_device(local_rank)
    # torch remarks that gloo has no all-to-all, and makes up for it.
    logging.getLogger("torch.distributed.tensor._collective_utils").setLevel(logging.ERROR)
    store, rank, size = next(rendezvous("env://"))
    store = _store_of_this_attempt(store, rank, size)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size)
    try:
        yield Torchrun(rank, size, local_rank, store)
    except BaseException as error:
        _end_undisturbed()
        if isinstance(error, LoneError) and rank > 0:
            _say_alone(f"process {rank} of {size}: {error}")
        elif isinstance(error, RuntimeError) and _is_lost_contact(error):
            _say_alone(
                f"process {rank} of {size} has lost contact with another, which has ended or "
                "cannot be reached; go on from the last checkpoint with --resume"
            )
            os._exit(2)  # gloo's threads would wait for the lost one for ever
        if isinstance(error, UserError | Interrupted) and not isinstance(error, LoneError):
            dist.destroy_process_group()  # all have the same error, and none waits for another
        raise
    dist.destroy_process_group()


def _store_of_this_attempt(store: dist.Store, rank: int, size: int) -> dist.Store:
    """A part of torchrun's store that is empty when its processes start.

    torchrun keeps the store when it starts them again after one was lost, and what the former ones
    left there leads the new ones astray (github.com/pytorch/pytorch/issues/135712); nor do all
    machines count the attempts alike. So the first process names the attempt, and tells it to
    everyone who arrives, by a number that never comes twice.
    """
    store = dist.PrefixStore("minigpt", store)
    if rank > 0:
        name = store.get(f"welcome/{store.add('arrivals', 1)}").decode()
        store.add(f"{name}/present", 1)
        return dist.PrefixStore(name, store)
    name, welcomed = uuid.uuid4().hex, 0
    while store.add(f"{name}/present", 0) < size - 1:
        arrivals = store.add("arrivals", 0)
        for number in range(welcomed + 1, arrivals + 1):
            store.set(f"welcome/{number}", name)
        welcomed = arrivals
        time.sleep(0.01)
    return dist.PrefixStore(name, store)


def _end_undisturbed() -> None:
    """Let this process say why it ends, though torchrun stops all when the first has ended."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _say_alone(line: str) -> None:
    """Say something on the true standard error, which is silenced for all but the first."""
    print(f"error: {line}", file=sys.__stderr__, flush=True)


def _is_lost_contact(error: RuntimeError) -> bool:
    """Whether a collective failed; gloo's errors are known by their text only."""
    return isinstance(error, dist.DistError) or "gloo" in str(error)
