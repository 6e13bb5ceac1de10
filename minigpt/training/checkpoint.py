"""The last state of a training: all that resuming needs, in one safetensors file, and the one
before it until the next is whole.

The file's metadata holds a version, the counters, and a SHA-256 of everything in the file.
"""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ..config import UserError, from_dict
from ..model import GPT
from ..run_folder import CHECKPOINT, replace

VERSION = 1
LAST, PREVIOUS = "last.safetensors", "previous.safetensors"


@dataclass
class TrainingState:
    """Where a training stands."""

    step: int = 0  # optimizer steps taken
    seconds: float = 0.0  # spent training so far
    evaluations: int = 0  # made so far
    train_loss: float = 0.0  # of the latest steps on average, nats a token
    best_loss: float | None = None  # lowest validation loss so far, nats a token
    best_bits_per_byte: float | None = None  # the same in bits a byte
    best_step: int = 0  # when it was reached
    finished: bool = False  # whether it had all its steps or time
    setbacks: int = 0  # how often training went wrong and was set back; each halves the rate


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint as read from disk: whole, by its checksum."""

    path: Path
    state: TrainingState
    tensors: dict[str, Tensor]


def save_checkpoint(
    folder: Path, model: GPT, optimizer: torch.optim.Optimizer, state: TrainingState
) -> None:
    """Write weights, optimizer state, random state and counters, whole or not at all.

    Raises:
        OSError: if it cannot be written; the checkpoints there stay as they are.
    """
    tensors: dict[str, Tensor] = {
        f"model.{name}": parameter for name, parameter in model.named_parameters()
    }
    for i, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{i}.{name}": tensor for name, tensor in values.items()}
    tensors |= _random_state()
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    counters = json.dumps(dataclasses.asdict(state))
    metadata = {
        "version": str(VERSION),
        "state": counters,
        "sha256": _checksum(counters, tensors),
    }
    last = folder / CHECKPOINT / LAST
    last.parent.mkdir(exist_ok=True)
    replace(last, lambda new: save_file(tensors, new, metadata), keep=PREVIOUS)


def read_checkpoint(folder: Path) -> tuple[Checkpoint, list[str]]:
    """The latest checkpoint of a run that is whole.

    Returns:
        The checkpoint, and what is wrong with a later one that was passed over.

    Raises:
        UserError: if there is none, naming what is wrong with those there are.
    """
    problems: list[str] = []
    for name in (LAST, PREVIOUS):
        path = folder / CHECKPOINT / name
        if not path.exists():
            continue
        try:
            return _read(path), problems
        except UserError as error:
            problems.append(str(error))
    raise UserError("; ".join([f"{folder} has no checkpoint to resume from", *problems]))


def restore(checkpoint: Checkpoint, model: GPT, optimizer: torch.optim.Optimizer) -> TrainingState:
    """Put model, optimizer and random state back to where `save_checkpoint` left them.

    Raises:
        UserError: if the checkpoint is of a model of another shape, naming the tensor.
    """
    tensors = checkpoint.tensors
    try:
        for name, parameter in model.named_parameters():
            saved, expected = tuple(tensors[f"model.{name}"].shape), tuple(parameter.shape)
            if saved != expected:
                raise ValueError(f"{name} has shape {saved}, the model {expected}")
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(tensors[f"model.{name}"])
        optimizer_state = optimizer.state_dict()
        optimizer_state["state"] = _optimizer_state(tensors)
        if len({frozenset(values) for values in optimizer_state["state"].values()}) > 1:
            raise ValueError("the optimizer's state is incomplete")
        optimizer.load_state_dict(optimizer_state)
        torch.set_rng_state(tensors["random.cpu"])
        if torch.cuda.is_available() and "random.cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random.cuda"])
    except (KeyError, ValueError, TypeError, RuntimeError) as error:
        raise UserError(f"{checkpoint.path} does not fit this run: {error}") from None
    return dataclasses.replace(checkpoint.state)


def _read(path: Path) -> Checkpoint:
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            version = int(metadata["version"])
            if version > VERSION:
                raise UserError(
                    f"format {version} is newer than this minigpt's, {VERSION}: update it"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata["sha256"] != _checksum(metadata["state"], tensors):
            raise UserError("it is damaged, its checksum does not match")
        state = from_dict(TrainingState, json.loads(metadata["state"]))
        _check_ranges(state)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path} is damaged: {error}") from None
    return Checkpoint(path, state, tensors)


def _check_ranges(state: TrainingState) -> None:
    counters = (state.step, state.evaluations, state.best_step, state.setbacks)
    if min(counters) < 0 or max(counters) >= 1 << 62 or not 0 <= state.seconds < 1e12:
        raise ValueError("a counter is out of range")


def _checksum(counters: str, tensors: dict[str, Tensor]) -> str:
    """SHA-256 over the counters and every tensor's name, type, shape and bytes."""
    digest = hashlib.sha256(counters.encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _random_state() -> dict[str, Tensor]:
    """The state of the generators that dropout draws from."""
    state = {"random.cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["random.cuda"] = torch.cuda.get_rng_state()
    return state


def _optimizer_state(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        kind, _, rest = key.partition(".")
        if kind == "optimizer":
            i, _, name = rest.partition(".")
            state.setdefault(int(i), {})[name] = tensor
    return state
