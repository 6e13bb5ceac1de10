"""Whether a device computes what the CPU does, found out with a small model before it is taken.

Kernels of some devices have been wrong in silence in some versions of torch. A model that learns
there is bad, or it writes nonsense, and nobody knows why.
"""

import contextlib
import copy
import functools
from collections.abc import Iterator

import torch
from torch import Tensor

from ..config import GPTConfig
from ..model import GPT

# Heads of 64, one for keys and values, and lengths that are no multiple of 32: where kernels for
# attention have been wrong.
_SHAPE = GPTConfig(64, context_length=40, emb_dim=128, num_layers=2, num_heads=2, num_kv_heads=1)
_PARTS = (33, 1, 1, 3, 1, 1)  # tokens of the context that are read at once with a cache
_FLOAT32 = 1e-3  # relative error that is allowed
_NARROW = 0.1  # the same in bfloat16 and float16

_Results = dict[str, Tensor]  # what was computed, on the CPU


@functools.cache
def why_wrong(device: torch.device, precision: torch.dtype = torch.float32) -> str | None:
    """What a device computes otherwise than the CPU, or cannot compute; None if it is right.

    Loss and gradients have matrix products in `precision`; what is read token by token with a
    key/value cache is in float32. It takes a few hundredths of a second on the CPU.
    """
    if device.type == "cpu" and precision == torch.float32:
        return None

    with torch.random.fork_rng([]):
        model = GPT(_SHAPE)
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():  # in a new model, attention adds nothing
            parameter.copy_(0.1 * torch.randn(parameter.shape, generator=draw))
    token_ids = torch.randint(64, (2, 41), generator=draw)  # (b, T + 1)

    with _one_thread():
        expected = _results(model, token_ids, torch.device("cpu"), torch.float32)
        try:
            found = _results(copy.deepcopy(model), token_ids, device, precision)
        except (RuntimeError, TypeError, AssertionError) as error:
            return (str(error).strip() or type(error).__name__).splitlines()[0]

    allowed = _FLOAT32 if precision == torch.float32 else _NARROW
    for name, right in expected.items():
        difference = float((found[name] - right).norm() / right.norm())
        if not difference < allowed:  # also true of nan
            return f"{name} differ by {difference:.0%}"
    return None


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Within, torch has one thread: several wait for each other on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _results(
    model: GPT, token_ids: Tensor, device: torch.device, precision: torch.dtype
) -> _Results:
    """What a model computes of tokens ``(b, T + 1)`` on a device."""
    model.to(device)
    inputs, targets = (ids.to(device) for ids in (token_ids[:, :-1], token_ids[:, 1:]))
    products: contextlib.AbstractContextManager = contextlib.nullcontext()
    if precision != torch.float32:
        products = torch.autocast(device.type, precision)
    with products:
        losses, _ = model.token_losses(inputs, targets)  # (b, T)
        loss = model.loss(inputs, targets)
    loss.backward()
    gradients = [p.grad.flatten() for p in model.parameters() if p.grad is not None]

    with torch.no_grad():
        caches = model.new_caches(len(inputs))
        logits = [
            model(part, caches=caches)[:, -1]  # (b, vocab_size)
            for part in inputs.split(_PARTS, dim=1)
        ]

    results = {
        "its losses": losses,
        "its gradients": torch.cat(gradients),
        "its next tokens": torch.stack(logits),
    }
    return {name: tensor.detach().float().cpu() for name, tensor in results.items()}
