"""The last state of a training: all that resuming needs, in one safetensors file."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ..config import UserError, from_dict
from ..model import GPT
from ..run_folder import CHECKPOINT, read_tensors, replace

FILE = "last.safetensors"


@dataclass
class TrainingState:
    """Where a training stands."""

    step: int = 0  # optimizer steps taken
    seconds: float = 0.0  # spent training so far
    evaluations: int = 0  # made so far
    best_loss: float | None = None  # lowest validation loss so far, nats a token
    best_bits_per_byte: float | None = None  # the same in bits a byte
    best_step: int = 0  # when it was reached


def checkpoint_path(folder: Path) -> Path:
    """Where a run keeps its checkpoint."""
    return folder / CHECKPOINT / FILE


def save_checkpoint(
    folder: Path, model: GPT, optimizer: torch.optim.Optimizer, state: TrainingState
) -> None:
    """Write weights, optimizer state, random state and counters, whole or not at all."""
    tensors: dict[str, Tensor] = {
        f"model.{name}": parameter for name, parameter in model.named_parameters()
    }
    for i, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{i}.{name}": tensor for name, tensor in values.items()}
    tensors["random"] = torch.get_rng_state()
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    metadata = {"state": json.dumps(dataclasses.asdict(state))}
    path = checkpoint_path(folder)
    path.parent.mkdir(exist_ok=True)
    replace(path, lambda new: save_file(contiguous, new, metadata))


def load_checkpoint(folder: Path, model: GPT, optimizer: torch.optim.Optimizer) -> TrainingState:
    """Put model, optimizer and random state back to where `save_checkpoint` left them.

    Raises:
        UserError: if there is no checkpoint, or it is damaged or of another model.
    """
    state = read_state(folder)
    path = checkpoint_path(folder)
    tensors = read_tensors(path)
    try:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                _copy(parameter, tensors[f"model.{name}"])
        optimizer_state = optimizer.state_dict()
        optimizer_state["state"] = _optimizer_state(tensors)
        optimizer.load_state_dict(optimizer_state)
        torch.set_rng_state(tensors["random"])
    except (KeyError, ValueError, TypeError, RuntimeError) as error:
        raise UserError(f"{path} cannot be resumed: it does not fit this run ({error})") from None
    return state


def read_state(folder: Path) -> TrainingState:
    """Where the training of a run stands, by its checkpoint.

    Raises:
        UserError: if there is no checkpoint, or it is damaged.
    """
    path = checkpoint_path(folder)
    try:
        with safe_open(path, "pt") as file:
            return from_dict(TrainingState, json.loads(file.metadata()["state"]))
    except FileNotFoundError:
        raise UserError(f"{folder} cannot be resumed: it has no checkpoint") from None
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path} is damaged: {error}") from None


def _optimizer_state(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        kind, _, rest = key.partition(".")
        if kind == "optimizer":
            i, _, name = rest.partition(".")
            state.setdefault(int(i), {})[name] = tensor
    return state


def _copy(parameter: Tensor, saved: Tensor) -> None:
    if parameter.shape != saved.shape:
        raise ValueError(f"shape {tuple(saved.shape)} instead of {tuple(parameter.shape)}")
    parameter.copy_(saved)
