"""The last state of a training: all that resuming needs, in one safetensors file, and the one
before it until the next is whole.

The file's metadata holds the counters, what optimizers keep beside tensors, and a SHA-256 of
everything in the file. Rank 0 writes and reads the file for all ranks, so that any number of
processes can continue the training.
"""

import copy
import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.optim import Optimizer

from .. import UserError
from ..config import Natural, TrainConfig, from_dict
from ..runs.folder import CHECKPOINT, DAMAGED, LAST, PREVIOUS
from ..runs.weights import saved_name
from ..system.networks import named_parameters, tensors_of
from ..system.platforms import rename
from ..system.safetensors_files import save_tensors
from . import distributed
from .precision import FIRST_SCALE
from .weights import WeightAverage, Weights


@dataclass
class TrainingState:
    """How far a training has come."""

    step: Natural = 0  # optimizer steps taken
    seconds: float = 0.0  # spent training so far
    evaluations: Natural = 0  # made so far
    eval_tokens: int = 1  # validation tokens that each is made on
    first_loss: float = 0.0  # of the first step, nats a token
    train_loss: float = 0.0  # of the latest steps on average, nats a token
    train_bits_per_byte: float = 0.0  # the same in bits for each byte that the tokens stand for
    best_loss: float | None = None  # validation loss of the weights that are kept, nats a token
    best_bits_per_byte: float | None = None  # the same in bits a byte
    best_step: Natural = 0  # when it was reached
    finished: bool = False  # whether all its steps or all its time are used up
    loss_scale: float = FIRST_SCALE  # that losses in float16 are multiplied by
    scaled_since: Natural = 0  # the step at which loss_scale changed last

    def rescale(self, factor: float) -> None:
        """Multiply the scale of losses in float16 by a factor."""
        self.loss_scale *= factor
        self.scaled_since = self.step


@dataclass(frozen=True)
class Learner:
    """A model with what training adds to it: what a checkpoint holds besides the counters.

    The settings with which the groups of an optimizer begin come from the program, also in a
    training that is continued. Settings that have changed since are part of the checkpoint: a
    setting that a callback has moved, a count that an optimizer keeps in its groups.
    """

    model: nn.Module
    optimizers: Sequence[Optimizer]
    first_settings: list[list[dict[str, Any]]]  # of each group of each optimizer
    average: WeightAverage
    first: Weights | None = None  # that training began with, if the kept ones may lie near them

    @classmethod
    def of(
        cls, model: nn.Module, optimizers: Sequence[Optimizer], config: TrainConfig
    ) -> "Learner":
        """A model that has not been trained yet."""
        return cls(
            model,
            optimizers=optimizers,
            first_settings=[list(map(_settings, o.param_groups)) for o in optimizers],
            average=WeightAverage(model),
            first=Weights.trained(model).copy() if config.interpolate else None,
        )

    def tensors(self) -> dict[str, Tensor]:
        """By their names in the file, and not copied: the parameters and buffers, the averages of
        the weights and, if they are needed at the end, the weights that training began with."""
        parts = {"model": tensors_of(self.model), "average": self.average.tensors}
        if self.first is not None:
            parts["first"] = self.first.tensors
        return {f"{part}.{name}": t for part, held in parts.items() for name, t in held.items()}

    def optimizer_states(self, tensors: dict[str, Tensor]) -> list[dict[str, Any]]:
        """What each optimizer keeps, as JSON; its tensors are added to `tensors` and named there.
        Any `torch.optim.Optimizer` says by its `state_dict` what that is."""
        names = {parameter: name for name, parameter in named_parameters(self.model)}
        states = []
        for i, optimizer in enumerate(self.optimizers):
            groups = zip(optimizer.param_groups, self.first_settings[i], strict=True)
            changed = [_changed(group, before) for group, before in groups]
            kept = optimizer.state_dict()["state"]
            state = {
                "changed": _packed(changed, f"optimizer.{i}.groups", tensors),
                "state": _packed(kept, f"optimizer.{i}", tensors),
            }
            states.append(_identity(optimizer, names) | state)
        return states

    def misfit(self, states: list[dict[str, Any]], tensors: Mapping[str, Tensor]) -> str | None:
        """What of the states does not fit the optimizers and their parameters; None if all does."""
        if len(states) != len(self.optimizers):
            return "the number of optimizers"

        names = {parameter: name for name, parameter in named_parameters(self.model)}
        for optimizer, saved in zip(self.optimizers, states, strict=True):
            for key, value in _identity(optimizer, names).items():
                if saved.get(key) != value:
                    return f"the {key} of {type(optimizer).__name__}"
            for key in ("changed", "state"):
                try:
                    _unpacked(saved[key], tensors)
                except (LookupError, TypeError, ValueError) as error:
                    return f"the {key} of {type(optimizer).__name__}: {error}"
        return None

    def restore(self, states: list[dict[str, Any]], tensors: Mapping[str, Tensor]) -> None:
        """Take over tensors by their names in the file, and states without a :meth:`misfit`."""
        with torch.no_grad():
            for name, own in self.tensors().items():
                own.copy_(tensors[name])

        for i, (optimizer, saved) in enumerate(zip(self.optimizers, states, strict=True)):
            changed = _unpacked(saved["changed"], tensors)
            state_dict = optimizer.state_dict()
            state_dict["state"] = _unpacked(saved["state"], tensors)
            groups = zip(state_dict["param_groups"], self.first_settings[i], changed, strict=True)
            for group, before, later in groups:
                group.update(before | later)
            optimizer.load_state_dict(state_dict)


# The file


def save_checkpoint(folder: Path, learner: Learner, state: TrainingState) -> None:
    """Write weights, optimizer state and counters, whole or not at all; for rank 0.

    If that raises OSError, the checkpoints there stay as they are.
    """
    held = learner.tensors()
    about = learner.optimizer_states(held)
    tensors = {}
    for name, tensor in held.items():  # numpy has no bfloat16; float32 holds each of its numbers
        on_cpu = tensor.cpu()
        tensors[name] = on_cpu.float() if on_cpu.dtype == torch.bfloat16 else on_cpu

    metadata = {
        "state": json.dumps(dataclasses.asdict(state)),
        "optimizers": json.dumps(about),
        "network": saved_name(learner.model),
    }
    metadata["sha256"] = _checksum(metadata, tensors)

    last = folder / CHECKPOINT / LAST
    last.parent.mkdir(exist_ok=True)
    save_tensors(tensors, last, metadata, keep_as=last.with_name(PREVIOUS))


def load_checkpoint(folder: Path, learner: Learner) -> tuple[TrainingState, list[str]]:
    """Put model and optimizers back to where the last checkpoint left them.

    Returns its counters, and what is wrong with a later checkpoint that was skipped. The file of
    the skipped one is renamed, so that it never takes the place of a whole one. Raises UserError if
    no checkpoint is whole, or the last whole one does not fit; the weights then stay as they are.
    """
    tensors = dict[str, Tensor]()

    def read() -> tuple[TrainingState, list[dict[str, Any]], list[str]]:
        found, problems = _last_whole(folder, learner)
        tensors.update(found.tensors)
        if problems:
            last = folder / CHECKPOINT / LAST
            rename(last, last.with_name(DAMAGED))
        return found.state, found.optimizers, problems

    state, about, problems = distributed.on_main(read)
    learner.restore(about, distributed.broadcast(tensors))
    return state, problems


def read_state(folder: Path) -> TrainingState:
    """The counters of the last checkpoint that is whole; UserError if there is none."""
    return _last_whole(folder)[0].state


@dataclass(frozen=True)
class _Checkpoint:
    """What a file holds."""

    state: TrainingState
    network: str
    optimizers: list[dict[str, Any]]
    tensors: dict[str, Tensor]


def _last_whole(folder: Path, learner: Learner | None = None) -> tuple[_Checkpoint, list[str]]:
    """The last checkpoint that is whole, and what is wrong with later ones; UserError if there is
    none, or if it does not fit `learner`."""
    problems: list[str] = []
    for path in (folder / CHECKPOINT / name for name in (LAST, PREVIOUS)):
        if not path.exists():
            continue

        try:
            found = _read(path)
        except UserError as error:
            problems.append(f"{path}: {error}")
            continue

        if learner is not None:
            try:
                _check_fits(found, learner)
            except UserError as error:
                raise UserError(f"{path}: {error}") from None
        return found, problems

    problem = "; ".join([f"{folder} has no checkpoint to resume from", *problems])
    raise UserError(problem, kind="damaged_run")


def _check_fits(found: _Checkpoint, learner: Learner) -> None:
    """UserError if a checkpoint is of another network, other shapes or other optimizers."""
    own = saved_name(learner.model)
    if found.network != own:
        raise UserError(f"it belongs to a training of {found.network}, not of {own}")

    settings = "resume with the settings that the run began with"
    for name, tensor in learner.tensors().items():
        if name not in found.tensors or found.tensors[name].shape != tensor.shape:
            raise UserError(f"it does not fit this run, see {name}; {settings}")
    if (problem := learner.misfit(found.optimizers, found.tensors)) is not None:
        raise UserError(f"it does not fit this run, see {problem}; {settings}")


def _read(path: Path) -> _Checkpoint:
    """What a file holds; UserError if it is damaged."""
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            # Copies: the file would stay mapped, and Windows would not let the next one replace it.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        if metadata["sha256"] != _checksum(metadata, tensors):
            raise ValueError("its checksum does not match")
        state = from_dict(TrainingState, json.loads(metadata["state"]))
        optimizers = json.loads(metadata["optimizers"])
        return _Checkpoint(state, metadata["network"], optimizers, tensors)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"it is damaged: {error}") from None


def _checksum(metadata: dict[str, str], tensors: dict[str, Tensor]) -> str:
    """SHA-256 over what the metadata says and every tensor's name, type, shape and bytes."""
    said = "\n".join(metadata[key] for key in ("state", "optimizers", "network"))
    digest = hashlib.sha256(said.encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


# What an optimizer keeps, as JSON and named tensors


def _identity(optimizer: Optimizer, names: Mapping[nn.Parameter, str]) -> dict[str, Any]:
    """What an optimizer has in common with the one whose state it can take over."""
    parameters = [[names[p] for p in group["params"]] for group in optimizer.param_groups]
    return {"class": type(optimizer).__name__, "parameters": parameters}


def _settings(group: dict[str, Any]) -> dict[str, Any]:
    """The settings of a group, without its rate: the schedule sets that anew for each step."""
    return {key: copy.copy(value) for key, value in group.items() if key not in ("params", "lr")}


def _changed(group: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    """The settings of a group that are not as they were at first."""
    changed = {}
    for key, value in _settings(group).items():
        before = first.get(key)
        if isinstance(value, Tensor) and isinstance(before, Tensor):
            is_same = torch.equal(value, before)
        else:
            is_same = bool(value == before)
        if not is_same:
            changed[key] = value
    return changed


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
