"""A device that is not there: tensors that say that they are on `far:0`, and whose numbers lie on
the CPU. It refuses what a GPU refuses, and notes which operations it was asked for.

torch knows `far` by the name that it keeps for backends of others, PrivateUse1. That is set for a
whole process, so that only a process of its own imports this module.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

aten = torch.ops.aten
_BETWEEN_DEVICES = {aten._to_copy.default, aten.copy_.default}
_INDEXED = {aten.index.Tensor, aten.index_put_.default, aten._index_put_impl_.default}

seen = set[str]()  # operations that `far` was asked for, as "aten.mm.default"
spoiled = set[str]()  # those that give something wrong


class FarTensor(torch.Tensor):
    """A tensor on `far:0`. `near` holds its numbers."""

    near: torch.Tensor

    @staticmethod
    def __new__(cls, near: torch.Tensor) -> "FarTensor":
        if near.dtype in (torch.float64, torch.complex128):
            raise TypeError(f"far has no {near.dtype}")
        return torch.Tensor._make_wrapper_subclass(
            cls,
            near.shape,
            strides=near.stride(),
            storage_offset=near.storage_offset(),
            dtype=near.dtype,
            device="far:0",
        )

    def __init__(self, near: torch.Tensor):
        self.near = near

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError("a tensor on far has no numpy array; copy it to the CPU first")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


class Far(TorchDispatchMode):
    """Within, tensors can be made on `far`."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


def compute(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """What an operation gives, computed on the CPU; RuntimeError or TypeError where a GPU would
    refuse it."""
    far = [t for t in tree_leaves((args, kwargs)) if isinstance(t, FarTensor)]
    is_far = _is_on_far(func, args, kwargs, bool(far))
    if far:
        _check_one_device(func, args, kwargs)
    if is_far:
        seen.add(str(func))
        generator = kwargs.get("generator")
        if generator is not None and generator.device.type != "far":
            raise RuntimeError(f"{func}: a generator of {generator.device} for a tensor on far")

    if kwargs.get("device") is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    own = {id(tensor.near): tensor for tensor in far}  # what is changed in place stays itself
    args, kwargs = tree_map_only(FarTensor, lambda tensor: tensor.near, (args, kwargs))
    result = func(*args, **kwargs)
    if not is_far:
        return result
    if str(func) in spoiled:
        result = result * 1.5
    return tree_map_only(
        torch.Tensor, lambda t: own[id(t)] if id(t) in own else FarTensor(t), result
    )


def _is_on_far(func: Any, args: Any, kwargs: Mapping[str, Any], has_far: bool) -> bool:
    """Whether the result of an operation is on `far`."""
    if func is aten.copy_.default:
        return isinstance(args[0], FarTensor)
    device = kwargs.get("device")
    return has_far if device is None else torch.device(device).type == "far"


def _check_one_device(func: Any, args: Any, kwargs: Mapping[str, Any]) -> None:
    """Refuse tensors on two devices. Single numbers, and indices, may be on the CPU."""
    if func in _BETWEEN_DEVICES:
        return
    if func in _INDEXED and isinstance(args[0], FarTensor):
        return
    tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    if any(not isinstance(t, FarTensor) and t.dim() > 0 for t in tensors):
        raise RuntimeError(f"{func}: tensors on far and on the CPU")


def set_up() -> None:
    """Make `far` known to torch, for the rest of the process. AttributeError or RuntimeError where
    this version of torch has other ways for that."""
    _setup_privateuseone_for_python_backend("far")
    torch.__future__.set_swap_module_params_on_conversion(True)  # tied weights stay one
    # Wrapped tensors cannot be inference tensors.
    torch.inference_mode = (  # type: ignore[misc, assignment]
        lambda mode=True: torch.no_grad() if mode else contextlib.nullcontext()
    )
