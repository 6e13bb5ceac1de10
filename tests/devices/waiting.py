"""What makes a program wait for a device, seen as it is asked for: a number of a tensor, a copy in
main memory, and all whose size depends on what a tensor holds.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten
_WAIT = {
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten._unique2.default,
    aten.repeat_interleave.Tensor,
    aten.equal.default,
}
_INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default}


class Waiting(TorchDispatchMode):
    """Within, operations that wait are noted in `found`, or refused if it is `strict`."""

    def __init__(self, strict: bool = False):
        super().__init__()
        self.found: list[str] = []
        self._strict = strict

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if waits(func, args, kwargs or {}):
            if self._strict:
                raise RuntimeError(f"{func} waits for the device")
            self.found.append(str(func))
        return func(*args, **(kwargs or {}))


def waits(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an operation waits until a device has computed what it is asked of."""
    if func in _INDEXED:
        indices = tree_leaves(args[1])
        return any(isinstance(t, torch.Tensor) and t.dtype == torch.bool for t in indices)
    if func is aten._to_copy.default:
        to = kwargs.get("device")
        return to is not None and torch.device(to).type == "cpu" and args[0].device.type != "cpu"
    if func is aten.copy_.default:
        return args[0].device.type == "cpu" and args[1].device.type != "cpu"
    return func in _WAIT


@contextlib.contextmanager
def noting_waits() -> Iterator[list[str]]:
    """Within, what waits is noted."""
    with Waiting() as mode:
        yield mode.found
