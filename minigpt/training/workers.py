"""Worker threads that share a training step, its optimizer and an evaluation on a CPU.

Torch's own threads meet after every small operation, so that one core that another program uses
holds up all of them. Workers compute with one thread of torch each and meet a few times a step.
"""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from ..attention.fused import Dropout, randomness
from ..config import TrainConfig
from .distributed import world_size

Item = TypeVar("Item")
Result = TypeVar("Result")
Gradients = list[Tensor | None]  # of the parameters; None where a loss does not depend on one

_team = threading.local()  # of the thread that leads it: its size, and a pool of the others


@contextlib.contextmanager
def team(size: int) -> Iterator[None]:
    """Within, this thread leads so many workers, itself among them. If it is the only one, torch's
    own threads stay."""
    if size == 1:
        yield
        return

    torch_threads = torch.get_num_threads()
    torch.set_num_threads(1)  # in this thread; each has a number of its own
    others = ThreadPoolExecutor(size - 1, "worker", torch.set_num_threads, (1,))
    try:
        _team.size = size
        _team.others = others
        yield
    finally:
        _team.size = 1
        others.shutdown(cancel_futures=True)
        torch.set_num_threads(torch_threads)


def count() -> int:
    """How many workers this thread leads."""
    return getattr(_team, "size", 1)


def compute(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """The results in the order of the items, whichever worker computes them."""
    if count() == 1:
        return [function(item) for item in items]

    futures = [_team.others.submit(function, item) for item in items]
    own: dict[int, Result] = {}
    try:
        for i in reversed(range(len(items))):  # the others begin with the first
            if futures[i].cancel():  # none of them has begun with it
                own[i] = function(items[i])
        return [own[i] if i in own else future.result() for i, future in enumerate(futures)]
    except BaseException:  # nobody is at work any more when the caller hears of an error or Ctrl-C
        wait([future for future in futures if not future.cancel()])
        raise


def number_for(model: nn.Module, config: TrainConfig) -> int:
    """How many workers train a model: as many as the config says, or one where they cannot. Each
    computes a sequence at least, so there are no more than sequences that are computed at once."""
    # What drops something by random numbers that all threads have in common, as attention and
    # torch's own layers do.
    common_dropout = 0.0
    for part in model.modules():
        draws_its_own = isinstance(part, Dropout)
        probability = part.p if isinstance(part, _DropoutNd) else getattr(part, "dropout", 0.0)
        if isinstance(probability, float) and not draws_its_own:
            common_dropout = max(common_dropout, probability)

    device = next(model.parameters()).device
    if why_not_shared(device, config.compile, common_dropout) is not None:
        return 1
    at_once = min(config.micro_batch_size or config.batch_size, config.batch_size)
    return min(config.num_workers or 1, at_once)


def why_not_shared(device: torch.device, compile: str, attention_dropout: float) -> str | None:
    """Why workers cannot share a step, or None if they can."""
    if device.type != "cpu":
        return f"on {device.type} one thread is enough"
    if world_size() > 1:
        return "several processes share each batch"
    if compile == "on":
        return "compiled code has threads of its own"
    if attention_dropout > 0.0:
        return "dropout of attention weights is drawn from random numbers common to all threads"
    return None


def backward(
    losses_of: Callable[[Item], tuple[Tensor, ...]],
    parameters: Sequence[Tensor],
    parts: Sequence[Item],
) -> Tensor:
    """Set the gradients of the sum of the parts' losses, and return that sum.

    `losses_of` a part returns its loss, and any further numbers without gradients. The sum of each
    over all parts is returned, in one tensor.

    Each of n workers' shares is every n-th part and draws dropout from random numbers of its own,
    by torch's seed. The gradients of the shares are added in a fixed order: the result depends on
    the seed and n alone.
    A parameter that no loss depends on, or that is not trained, has no gradient.
    """
    seed = torch.initial_seed()
    n = count()
    trained = [p for p in parameters if p.requires_grad]

    def share(k: int) -> tuple[Tensor, Gradients]:
        randomness.generator = torch.Generator().manual_seed((seed + k) % (1 << 63))
        try:
            totals = torch.zeros(())
            gradients: Gradients = [None] * len(trained)
            for part in parts[k::n]:
                losses = losses_of(part)
                found = torch.autograd.grad(losses[0], trained, allow_unused=True)
                gradients = _added(found, gradients)
                totals = totals + torch.stack([loss.detach() for loss in losses])
            return totals, gradients
        finally:
            randomness.generator = None

    totals, gradients = zip(*compute(share, range(min(n, len(parts)))), strict=True)

    def add(k: int) -> None:
        for parameter, *found in list(zip(trained, *gradients, strict=True))[k::n]:
            used = [gradient for gradient in found if gradient is not None]
            parameter.grad = functools.reduce(Tensor.add_, used) if used else None

    compute(add, range(n))
    return torch.stack(totals).sum(0)


def _added(found: Sequence[Tensor | None], earlier: Gradients) -> Gradients:
    """The sum of the gradients of two parts, in memory in which it can be changed. Autograd returns
    the same tensor for two parameters that are added to each other, and a single number, expanded,
    for a parameter that is summed up."""
    kept = set[int]()
    sums: Gradients = []
    for gradient, total in zip(found, earlier, strict=True):
        if gradient is None:
            sums.append(total)
        elif total is not None:
            sums.append(total.add_(gradient))
        elif gradient.data_ptr() in kept or 0 in gradient.stride():
            sums.append(gradient.clone(memory_format=torch.contiguous_format))
        else:
            kept.add(gradient.data_ptr())
            sums.append(gradient)
    return sums
