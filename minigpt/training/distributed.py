"""Several processes train one model together: torchrun starts them, DDP averages their gradients.
With a single process the functions here do nothing, or just what they say.

Numbers and objects travel through gloo on the CPU, gradients and weights through gloo or NCCL.
"""

import atexit
import contextlib
import functools
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar

import torch
import torch.distributed as dist
import torch.distributed.nn  # noqa: F401, not later: it would keep a group's threads alive
from torch import Tensor, nn

from .. import UserError
from ..devices.check import why_wrong
from ..devices.choice import find_device, this_gpu
from .messages import say

P = ParamSpec("P")
T = TypeVar("T")

_PATIENCE = timedelta(days=7)  # while rank 0 prepares a long text, the others wait for it
_uses = itertools.count()
_open: list[str] = []  # groups that this process is inside of: one at most
_are_alone: list[bool] = []  # whether it computes something by itself, see `alone`


def rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if world_size() > 1 else 0


def world_size() -> int:
    """How many processes train together."""
    return 1 if _are_alone else started()


def started() -> int:
    """How many processes torchrun has started; 1 without it."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Within, this process trains as a single one does and waits for no other, which may have
    something else to do."""
    _are_alone.append(True)
    try:
        yield
    finally:
        _are_alone.pop()


def is_main() -> bool:
    """Whether this is rank 0, which prints and writes for all."""
    return rank() == 0


@contextlib.contextmanager
def process_group() -> Iterator[None]:
    """Join the processes that torchrun started; without torchrun, do nothing.

    Inside, ranks above 0 print nothing. An error that one rank alone has is printed by that rank
    and ends all ranks. In a process that is inside already this does nothing.
    """
    join()
    if _open or world_size() == 1:
        yield
        return

    store = dist.distributed_c10d._get_default_store()
    failures = f"failures {next(_uses)}"
    _open.append(failures)
    try:
        with _silence() if rank() > 0 else contextlib.nullcontext():
            yield
    except (UserError, OSError, RuntimeError) as error:
        _tell(error, store, failures)
        raise
    finally:
        _open.pop()


def join() -> None:
    """Connect with the processes that torchrun started; without torchrun, do nothing."""
    is_started_by_torchrun = "LOCAL_RANK" in os.environ
    is_alone = os.environ.get("WORLD_SIZE", "1") == "1"
    if is_started_by_torchrun and not is_alone and not dist.is_initialized():
        _connect()


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Within, nothing is printed."""
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


def _tell(error: Exception, store: dist.Store, failures: str) -> None:
    """Say what went wrong, once, before torchrun ends all ranks. `failures` is the key under which
    the store counts the ranks with an error."""
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
        if is_first:  # else the lost process is a rank that has said its error and ended
            _say("a process has ended or cannot be reached; continue with --resume")
        # To leave the process group would be to wait for the lost process for ever.
        atexit.register(os._exit, 2)
        raise SystemExit(2) from None


def _connect() -> None:
    """Start torch.distributed; it stays until the process ends."""
    local_rank = int(os.environ["LOCAL_RANK"])
    if local_rank < torch.cuda.device_count():
        torch.cuda.set_device(local_rank)
    has_nccl = torch.cuda.is_available() and dist.is_nccl_available()  # Windows has none
    backend = "cpu:gloo,cuda:nccl" if has_nccl else "gloo"

    # After a restart the store may still hold the addresses of earlier processes: each attempt has
    # a prefix of its own, and does not find them.
    found, number, processes = next(dist.rendezvous("env://", timeout=_PATIENCE))
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = dist.PrefixStore(f"attempt {attempt}", found)
    dist.init_process_group(
        backend, store=store, rank=number, world_size=processes, timeout=_PATIENCE
    )
    atexit.register(dist.destroy_process_group)


def _all_fail(store: dist.Store, failures: str) -> bool:
    """Whether every rank has an error within five seconds, so that rank 0 prints it."""
    end = time.monotonic() + 5.0
    while (failed := store.add(failures, 0)) < world_size() and time.monotonic() < end:
        time.sleep(0.05)
    return failed == world_size()


def _say(line: str) -> None:  # also on a silenced rank
    with contextlib.suppress(OSError, ValueError):  # nobody can read it any more
        print(f"error: {line}", file=sys.__stderr__, flush=True)


def on_main(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function on rank 0; its result, or its UserError or OSError, reaches all ranks."""
    outcome: list[Any] = [None, None]
    if is_main():
        try:
            outcome[0] = function(*args, **kwargs)
        except (UserError, OSError) as problem:
            outcome[1] = problem
    if world_size() > 1:
        dist.broadcast_object_list(outcome, src=0)

    result, error = outcome
    if error is not None:
        raise error
    return result


def of_main(value: T) -> T:
    """The value that rank 0 has, on all ranks."""
    values = [value]
    if world_size() > 1:
        dist.broadcast_object_list(values, src=0)
    return values[0]


def on_all(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function on every rank. If it raises UserError or OSError on any of them, all ranks
    raise the error of the lowest of these ranks."""
    result: Any = None
    error: Exception | None = None
    try:
        result = function(*args, **kwargs)
    except (UserError, OSError) as problem:
        error = problem

    for found in gather(error):
        if found is not None:
            raise found
    return result


def gather(value: T) -> list[T]:
    """The values of all ranks."""
    values: list[Any] = [value] * world_size()
    if world_size() > 1:
        dist.all_gather_object(values, value)
    return values


def highest(*numbers: float) -> list[float]:
    """The highest value of each number on any rank."""
    found = torch.tensor(numbers, dtype=torch.float64)
    if world_size() > 1:
        dist.all_reduce(found, dist.ReduceOp.MAX)
    return found.tolist()


def add_up(numbers: Tensor) -> None:
    """Put the sum over all ranks in the place of each number."""
    if world_size() > 1:
        dist.all_reduce(numbers)


def broadcast(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of rank 0 on all ranks, on the CPU; what others give does not matter."""
    if world_size() == 1:
        return dict(tensors)

    kinds = {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}
    received = {}
    for name, (shape, dtype) in gather(kinds)[0].items():
        tensor = tensors[name].cpu().contiguous() if is_main() else torch.empty(shape, dtype=dtype)
        dist.broadcast(tensor, src=0)
        received[name] = tensor
    return received


# The batch and the loss


def share(count: int) -> slice:
    """This rank's share of `count` rows."""
    return slice(rank() * count // world_size(), (rank() + 1) * count // world_size())


def device_of_rank(name: str) -> torch.device:
    """The device called `name` that this rank computes on; UserError if there is none. With "auto"
    it is a GPU if there is one; a single process takes no GPU that computes wrongly."""
    if name == "auto" and world_size() == 1:
        gpu = this_gpu()
        if gpu.problem is not None:
            _say_once(gpu.problem)
        return gpu.device or torch.device("cpu")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"

    device = find_device(name)
    problem = None if device.type == "cpu" else why_wrong(device)
    if problem is not None:
        _say_once(f"{name} computes wrongly here: {problem}; --device cpu would not")
    if world_size() == 1 or device.type == "cpu":
        return device
    processes_here = int(os.environ["LOCAL_WORLD_SIZE"])  # so that all of them refuse
    if device != torch.device("cuda") or processes_here > torch.cuda.device_count():
        raise UserError(
            "several processes train on --device cpu, or each on a GPU of its own: "
            "torchrun --nproc-per-node gpu -m minigpt train ..."
        )
    return torch.device("cuda", int(os.environ["LOCAL_RANK"]))


@functools.cache
def _say_once(line: str) -> None:
    say(line)


def synchronised(loss: nn.Module) -> nn.Module:
    """A loss whose gradients are the mean over all ranks, and whose buffers are those of rank 0."""
    if world_size() == 1:
        return loss
    return nn.parallel.DistributedDataParallel(loss, gradient_as_bucket_view=True)


def not_yet_reduced(loss: nn.Module) -> contextlib.AbstractContextManager[None]:
    """Within, the gradients of a synchronised loss are added up in this rank. The first backward
    pass outside makes them the mean over all ranks."""
    if isinstance(loss, nn.parallel.DistributedDataParallel):
        return loss.no_sync()
    return contextlib.nullcontext()
