"""What a recorded step (captured.py) holds fast: numbers in Python and the places of tensors, which
a graph has as they were when it was recorded. They are noted here, to be compared before it is
replayed.
"""

import functools
import inspect
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks

from .loss import Loss
from .optimizer import PEAK

_PLAIN = (bool, int, float, str, type(None))
_DEEP = 4  # how far what is kept in lists and dictionaries is compared
_OF_TORCH = vars(nn.Module()).keys() - {"training"}  # attributes that every module has
_OF_OPTIMIZERS = ("param_groups", "state", "defaults")  # attributes that are compared apart


def held_fast(loss: Loss, optimizers: Sequence[Optimizer]) -> list[Any]:
    """What a graph of a step holds fast, as it is now: the numbers of the model's parts, such as
    dropout and mode, and of the loss; which parameters are trained; the settings of the optimizers
    without the rates; where all tensors lie; how many hooks there are."""
    found: list[Any] = []
    parts = list(loss.modules())
    for part in [*parts, *_parts_of(loss._function)]:
        found.append(type(part))
        _note(found, {k: v for k, v in vars(part).items() if k not in _OF_TORCH})
    for parameter in _parameters_of(parts):
        found += [parameter.requires_grad, parameter.data_ptr()]
    for part in parts:
        found += [buffer.data_ptr() for buffer in part._buffers.values() if buffer is not None]

    for optimizer in optimizers:
        _note(found, {k: v for k, v in vars(optimizer).items() if k not in _OF_OPTIMIZERS})
        for group in optimizer.param_groups:
            _note(found, {k: v for k, v in group.items() if k not in ("params", "lr", PEAK)})
        for state in optimizer.state.values():
            _note(found, state)
    found += map(len, _hooks(parts, optimizers))
    return found


def has_hooks(loss: Loss, optimizers: Sequence[Optimizer]) -> bool:
    """Whether somebody else's Python code is to run within a step."""
    kinds = _hooks(list(loss.modules()), optimizers)
    hooks = [hook for of_a_kind in kinds for hook in of_a_kind.values()]
    return any(hook != loss.note for hook in hooks)


def random_states() -> list[Any]:
    """Of the generators on the processor that everybody shares."""
    of_numpy = np.random.get_state(legacy=False)
    return [random.getstate(), str(of_numpy), torch.default_generator.get_state().tolist()]


def _hooks(parts: list[nn.Module], optimizers: Sequence[Optimizer]) -> list[Mapping[int, Any]]:
    """All hooks that may run within a step, of each kind."""
    found: list[Mapping[int, Any]] = [*_hooks_of_all()]
    for part in parts:
        found += [part._forward_pre_hooks, part._forward_hooks]
        found += [part._backward_pre_hooks, part._backward_hooks]
    for parameter in _parameters_of(parts):
        found += [parameter._backward_hooks or {}, parameter._post_accumulate_grad_hooks or {}]
    for optimizer in optimizers:
        found += [optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks]
    return found


def _hooks_of_all() -> list[Mapping[int, Any]]:
    """Those that were registered for every module and every optimizer there is."""
    of_modules = nn.modules.module
    return [
        of_modules._global_forward_pre_hooks,
        of_modules._global_forward_hooks,
        of_modules._global_backward_pre_hooks,
        of_modules._global_backward_hooks,
        _global_optimizer_pre_hooks,
        _global_optimizer_post_hooks,
    ]


def _parameters_of(parts: list[nn.Module]) -> list[nn.Parameter]:
    """Those that the modules themselves have; one that several of them share is there for each."""
    held = [one for part in parts for one in part._parameters.values()]
    return [parameter for parameter in held if parameter is not None]


def _parts_of(function: Any) -> list[Any]:
    """What has the attributes that a loss function may use: itself, and the object whose method it
    is; of a module all modules in it."""
    if isinstance(function, functools.partial):
        return _parts_of(function.func)
    found: list[Any] = []
    for owner in (function, getattr(function, "__self__", None)):
        if isinstance(owner, nn.Module):
            found += owner.modules()
        elif hasattr(owner, "__dict__"):
            found.append(owner)
    return found


def _note(found: list[Any], value: Any, depth: int = _DEEP) -> None:
    """Add to what was found whatever of a value can be compared: a number, a name, a function,
    where a tensor lies, or several of these."""
    if isinstance(value, _PLAIN) or inspect.isroutine(value):
        found.append(value)
    elif isinstance(value, Tensor):
        found.append(value.data_ptr() if value.layout == torch.strided else id(value))
    elif isinstance(value, dict) and depth > 0:
        for key, one in value.items():
            _note(found, key, depth - 1)
            _note(found, one, depth - 1)
    elif isinstance(value, (list, tuple)) and depth > 0:
        for one in value:
            _note(found, one, depth - 1)
