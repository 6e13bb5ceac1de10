"""Several processes train one model together: torchrun starts them, DDP or FSDP2 is applied to the
model from outside. With a single process the functions here do nothing, or just what they say.

Numbers and objects travel through gloo on the CPU, gradients and parameters through gloo or NCCL.
"""

import atexit
import contextlib
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .. import UserError, runs
from ..model import GPT

T = TypeVar("T")

_PATIENCE = timedelta(days=7)  # while rank 0 prepares a long text, the others wait for it
_uses = itertools.count()


def rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if world_size() > 1 else 0


def world_size() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def is_main() -> bool:
    """Whether this is rank 0, which prints and writes for all."""
    return rank() == 0


@contextlib.contextmanager
def process_group() -> Iterator[None]:
    """Join the processes that torchrun started; without torchrun, do nothing.

    Inside, ranks above 0 print nothing. An error that one rank alone has is printed by that rank
    and ends all of them.
    """
    if "LOCAL_RANK" not in os.environ or os.environ.get("WORLD_SIZE", "1") == "1":
        yield
        return
    if not dist.is_initialized():
        _connect()
    store, failures = dist.distributed_c10d._get_default_store(), f"failures {next(_uses)}"
    try:
        with contextlib.ExitStack() as silence:
            if rank() > 0:
                nowhere = silence.enter_context(open(os.devnull, "w"))
                silence.enter_context(contextlib.redirect_stdout(nowhere))
                silence.enter_context(contextlib.redirect_stderr(nowhere))
            yield
    except (UserError, OSError, RuntimeError) as error:
        with contextlib.suppress(ValueError):  # only the main thread may do this
            # torchrun terminates all ranks when the first has ended; first say why.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        is_first = True
        with contextlib.suppress(RuntimeError):  # the store may be lost as well
            is_first = store.add(failures, 1) == 1
        if isinstance(error, UserError | OSError):
            if rank() > 0 and not _all_fail(store, failures):
                _say(f"rank {rank()} of {world_size()}: {error}")
        elif isinstance(error, dist.DistError) or "gloo" in str(error):
            if is_first:  # and not because another rank has said its error and ended
                _say("a process has ended or cannot be reached; continue with --resume")
            os._exit(2)  # an ordinary exit waits for the lost process for ever
        raise


def _connect() -> None:
    """Start torch.distributed; it stays until the process ends."""
    local_rank = int(os.environ["LOCAL_RANK"])
    if local_rank < torch.cuda.device_count():
        torch.cuda.set_device(local_rank)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=_PATIENCE)
    atexit.register(dist.destroy_process_group)


def _all_fail(store: dist.Store, failures: str) -> bool:
    """Whether every rank has an error within five seconds, so that rank 0 prints it."""
    end = time.monotonic() + 5.0
    while (failed := store.add(failures, 0)) < world_size() and time.monotonic() < end:
        time.sleep(0.05)
    return failed == world_size()


def _say(line: str) -> None:  # also on a silenced rank
    print(f"error: {line}", file=sys.__stderr__, flush=True)


def on_main(action: Callable[[], T]) -> T:
    """Let rank 0 act; its result, or its UserError or OSError, reaches all ranks."""
    outcome: list[Any] = list(_outcome(action) if is_main() else (None, None))
    if world_size() > 1:
        dist.broadcast_object_list(outcome, src=0)
    if outcome[1] is not None:
        raise outcome[1]
    return outcome[0]


def on_all(action: Callable[[], T]) -> T:
    """Let every rank act; if one has a UserError or OSError, all raise that of the lowest rank."""
    result, error = _outcome(action)
    for found in gather(error):
        if found is not None:
            raise found
    return result  # type: ignore[return-value]


def _outcome(action: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return action(), None
    except (UserError, OSError) as error:
        return None, error


def gather(value: T) -> list[T]:
    """The values of all ranks."""
    values: list[Any] = [value] * world_size()
    if world_size() > 1:
        dist.all_gather_object(values, value)
    return values


def highest(*numbers: float) -> list[float]:
    """The highest value of each number on any rank."""
    return _reduced(numbers, dist.ReduceOp.MAX)


def mean(*numbers: float) -> list[float]:
    """The mean of each number over all ranks."""
    return [total / world_size() for total in _reduced(numbers, dist.ReduceOp.SUM)]


def _reduced(numbers: Sequence[float], operation: Any) -> list[float]:
    values = torch.tensor(numbers, dtype=torch.float64)
    if world_size() > 1:
        dist.all_reduce(values, operation)
    return values.tolist()


# The batch and the model


def check_batch(batch_size: int) -> None:
    """Refuse a batch that cannot be divided evenly."""
    if batch_size % (size := world_size()):
        raise UserError(f"batch_size must be a multiple of {size}, the processes; got {batch_size}")


def share(count: int) -> slice:
    """This rank's share of `count` rows."""
    return slice(rank() * count // world_size(), (rank() + 1) * count // world_size())


def choose_device(name: str) -> torch.device:
    """The device called `name` that this rank computes on; UserError if there is none."""
    if name == "auto" and world_size() > 1:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = runs.choose_device(name)
    if world_size() == 1 or device.type == "cpu":
        return device
    local_rank = int(os.environ["LOCAL_RANK"])
    if device != torch.device("cuda") or local_rank >= torch.cuda.device_count():
        raise UserError(
            "several processes train on --device cpu, or each on a GPU of its own: "
            "torchrun --nproc-per-node gpu train.py ..."
        )
    return torch.device("cuda", local_rank)


def parallelize(model: GPT, device: torch.device, shard: bool) -> GPT:
    """The model on its device: whole, or this rank's rows of every parameter.

    Sharded ("PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel", Zhao et al. 2023),
    a block's parameters are gathered just before it computes and dropped after.
    """
    if not shard or world_size() == 1:
        return model.to(device)
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    for parameter in model.parameters():  # all ranks start from those of rank 0
        dist.broadcast(parameter.data, src=0)
    mesh = dist.init_device_mesh(device.type, (world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    register_fsdp_forward_method(model, "loss")
    return model


def averaged(loss: nn.Module, shard: bool) -> nn.Module:
    """A loss whose gradients are averaged over all ranks; FSDP2 does that by itself."""
    if shard or world_size() == 1:
        return loss
    return nn.parallel.DistributedDataParallel(loss, gradient_as_bucket_view=True)


def not_averaged(loss: nn.Module) -> contextlib.AbstractContextManager:
    """Add gradients up on each rank, to be averaged later.

    A sharded model averages them at once: whole gradients would not fit.
    """
    if isinstance(loss, nn.parallel.DistributedDataParallel):
        return loss.no_sync()
    return contextlib.nullcontext()


def reshard(model: GPT) -> None:
    """After a forward pass without a backward pass, drop what a sharded model gathered for it."""
    if hasattr(model, "reshard"):
        model.reshard()  # type: ignore[operator]


def whole(tensor: Tensor) -> Tensor:
    """All rows of a tensor that may be sharded."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def sharded_like(tensor: Tensor, other: Tensor) -> Tensor:
    """This rank's rows of a tensor that all ranks hold whole, if `other` is sharded."""
    if not hasattr(other, "full_tensor"):
        return tensor
    from torch.distributed.tensor import distribute_tensor

    mesh, placements = other.device_mesh, other.placements  # type: ignore[attr-defined]
    return distribute_tensor(tensor, mesh, placements, src_data_rank=None)


def whole_model(model: GPT) -> GPT:
    """The model itself, or a whole copy of a sharded one on rank 0."""
    if not hasattr(model, "reshard"):
        return model
    copy = GPT(model.config) if is_main() else model
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = whole(parameter)
            if is_main():
                copy.get_parameter(name).copy_(value)
    return copy
