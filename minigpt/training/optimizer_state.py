"""All that an optimizer keeps, as JSON and named tensors, for a checkpoint.

Any `torch.optim.Optimizer` says by its `state_dict` what that is.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .. import UserError
from ..networks import named_parameters


@dataclass(frozen=True)
class OptimizerState:
    """The state of some optimizers: `about` holds numbers and names of tensors, and can be JSON."""

    about: list[dict[str, Any]]
    tensors: dict[str, Tensor]


class OptimizerKeeper:
    """Takes the state of optimizers, and restores it.

    The settings with which their groups begin come from the program, also in a training that is
    continued. Settings that have changed since are part of the state: a rate that a callback has
    moved, a count that an optimizer keeps in its groups.
    """

    def __init__(self, optimizers: Sequence[torch.optim.Optimizer], model: nn.Module):
        self.optimizers = optimizers
        self._names = {p: name for name, p in named_parameters(model)}
        self._beginning = [
            [_settings(group) for group in optimizer.param_groups] for optimizer in optimizers
        ]

    def state(self) -> OptimizerState:
        """The state that they are in now."""
        about = []
        tensors = dict[str, Tensor]()
        for i, optimizer in enumerate(self.optimizers):
            groups = zip(optimizer.param_groups, self._beginning[i], strict=True)
            changed = [_changed(_settings(group), beginning) for group, beginning in groups]
            kept = optimizer.state_dict()["state"]
            own = {
                "changed": _packed(changed, f"optimizer.{i}.groups", tensors),
                "state": _packed(kept, f"optimizer.{i}", tensors),
            }
            about.append(self._identity(optimizer) | own)
        return OptimizerState(about, tensors)

    def misfit(self, found: OptimizerState) -> str | None:
        """What of a state does not fit these optimizers and their parameters; None if all does."""
        if len(found.about) != len(self.optimizers):
            return "the number of optimizers"
        for optimizer, saved in zip(self.optimizers, found.about, strict=True):
            for key, value in self._identity(optimizer).items():
                if saved.get(key) != value:
                    return f"the {key} of {type(optimizer).__name__}"
            for key in ("changed", "state"):
                try:
                    _unpacked(saved[key], found.tensors)
                except (LookupError, TypeError, ValueError) as error:
                    return f"the {key} of {type(optimizer).__name__}: {error}"
        return None

    def restore(self, found: OptimizerState) -> None:
        """Put the optimizers into a state that has no :meth:`misfit`."""
        for i, (optimizer, saved) in enumerate(zip(self.optimizers, found.about, strict=True)):
            changed = _unpacked(saved["changed"], found.tensors)
            state_dict = optimizer.state_dict()
            state_dict["state"] = _unpacked(saved["state"], found.tensors)
            groups = zip(state_dict["param_groups"], self._beginning[i], changed, strict=True)
            for group, beginning, later in groups:
                group.update(beginning | later)
            optimizer.load_state_dict(state_dict)

    def _identity(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        parameters = [[self._names[p] for p in g["params"]] for g in optimizer.param_groups]
        return {"class": type(optimizer).__name__, "parameters": parameters}


def _settings(group: dict[str, Any]) -> dict[str, Any]:
    """The settings of a group, without its rate: the schedule sets that anew for each step."""
    return {key: copy.copy(value) for key, value in group.items() if key not in ("params", "lr")}


def _changed(now: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in now.items() if not _equal(value, before.get(key))}


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.equal(one, other)
    return bool(one == other)


def _packed(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """A value as JSON; tensors in it are added to `tensors` by names that begin with `name`."""
    if isinstance(value, Tensor):
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, Mapping):
        items = [[key, _packed(inner, f"{name}.{key}", tensors)] for key, inner in value.items()]
        return {"items": items}
    if isinstance(value, list | tuple):
        parts = [_packed(inner, f"{name}.{i}", tensors) for i, inner in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": parts}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UserError(
        f"a checkpoint cannot hold {name} of an optimizer, of type {type(value).__name__}"
    )


def _unpacked(packed: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The value that :func:`_packed` was given."""
    if not isinstance(packed, dict):
        return packed
    ((kind, content),) = packed.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "items":
        return {key: _unpacked(inner, tensors) for key, inner in content}
    parts = [_unpacked(inner, tensors) for inner in content]
    return tuple(parts) if kind == "tuple" else parts
