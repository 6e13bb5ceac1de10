"""The last state of a training: all that resuming needs, in one safetensors file, and the one
before it until the next is whole.

The file's metadata holds a version, the counters, and a SHA-256 of everything in the file.
"""

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ..config import UserError, from_dict
from ..model import GPT
from ..run_folder import CHECKPOINT, replace
from .optimizer import Optimizers

VERSION = 1
LAST, PREVIOUS = "last.safetensors", "previous.safetensors"


@dataclass
class TrainingState:
    """Where a training stands."""

    step: int = 0  # optimizer steps taken
    seconds: float = 0.0  # spent training so far
    evaluations: int = 0  # made so far
    eval_tokens: int = 1  # validation tokens that each is made on
    train_loss: float = 0.0  # of the latest steps on average, nats a token
    best_loss: float | None = None  # lowest validation loss so far, nats a token
    best_bits_per_byte: float | None = None  # the same in bits a byte
    best_step: int = 0  # when it was reached
    finished: bool = False  # whether it had all its steps or time
    setbacks: int = 0  # how often training went wrong and was set back; each halves the rate


def save_checkpoint(folder: Path, model: GPT, optimizer: Optimizers, state: TrainingState) -> None:
    """Write weights, optimizer state, random state and counters, whole or not at all.

    Raises:
        OSError: if it cannot be written; the checkpoints there stay as they are.
    """
    tensors: dict[str, Tensor] = {
        f"model.{name}": parameter for name, parameter in model.named_parameters()
    }
    tensors |= {f"optimizer.{name}": tensor for name, tensor in optimizer.state().items()}
    tensors |= _random_state(model.token_embedding.weight.device)
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


def load_checkpoint(
    folder: Path, model: GPT, optimizer: Optimizers
) -> tuple[TrainingState, list[str]]:
    """Put model, optimizer and random state back to where the latest checkpoint left them.

    Returns:
        The counters, and what is wrong with a later checkpoint that was passed over.

    Raises:
        UserError: if there is none that is whole and fits, naming what is wrong with those there
            are; nothing is changed then.
    """
    problems: list[str] = []
    for path in _checkpoints(folder):
        try:
            state, tensors = _read(path)
            _restore(path, tensors, model, optimizer)
        except UserError as error:
            problems.append(str(error))
        else:
            return state, problems
    raise UserError("; ".join([f"{folder} has no checkpoint to resume from", *problems]))


def read_state(folder: Path) -> TrainingState:
    """The counters of the latest checkpoint that is whole.

    Raises:
        UserError: if there is none.
    """
    problems: list[str] = []
    for path in _checkpoints(folder):
        try:
            return _read(path)[0]
        except UserError as error:
            problems.append(str(error))
    raise UserError("; ".join([f"{folder} has no checkpoint to resume from", *problems]))


def _checkpoints(folder: Path) -> list[Path]:
    """Those that exist, the latest first."""
    paths = (folder / CHECKPOINT / name for name in (LAST, PREVIOUS))
    return [path for path in paths if path.exists()]


def _restore(path: Path, tensors: dict[str, Tensor], model: GPT, optimizer: Optimizers) -> None:
    try:
        for name, parameter in model.named_parameters():
            saved, expected = tuple(tensors[f"model.{name}"].shape), tuple(parameter.shape)
            if saved != expected:
                raise ValueError(f"{name} has shape {saved}, the model {expected}")
        optimizer.load_state(
            {
                name.removeprefix("optimizer."): tensor
                for name, tensor in tensors.items()
                if name.startswith("optimizer.")
            }
        )
        _set_random_state(tensors, model.token_embedding.weight.device)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(tensors[f"model.{name}"])
    except (KeyError, ValueError, TypeError, RuntimeError) as error:
        raise UserError(f"{path} does not fit this run: {error}") from None


def _read(path: Path) -> tuple[TrainingState, dict[str, Tensor]]:
    try:
        with _opened(path) as file:
            metadata = _metadata(file)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata["sha256"] != _checksum(metadata["state"], tensors):
            raise UserError("it is damaged, its checksum does not match")
        return _counters(metadata), tensors
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A safetensors file; whatever is wrong with it is a UserError."""
    try:
        with safe_open(path, "pt") as file:
            yield file
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"it is damaged: {error}") from None


def _metadata(file: Any) -> dict[str, str]:
    metadata: dict[str, str] = file.metadata() or {}
    if int(metadata["version"]) > VERSION:
        raise UserError(
            f"format {metadata['version']} is newer than this minigpt's, {VERSION}: update it"
        )
    return {name: metadata[name] for name in ("state", "sha256")}


def _counters(metadata: dict[str, str]) -> TrainingState:
    try:
        state = from_dict(TrainingState, json.loads(metadata["state"]))
    except (ValueError, RecursionError) as error:
        raise UserError(str(error)) from None
    _check_ranges(state)
    return state


def _check_ranges(state: TrainingState) -> None:
    counters = (state.step, state.evaluations, state.best_step, state.setbacks)
    if min(counters) < 0 or max(counters) >= 1 << 62 or not 0 <= state.seconds < 1e12:
        raise UserError("a counter is out of range")


def _checksum(counters: str, tensors: dict[str, Tensor]) -> str:
    """SHA-256 over the counters and every tensor's name, type, shape and bytes."""
    digest = hashlib.sha256(counters.encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _random_state(device: torch.device) -> dict[str, Tensor]:
    """The state of the generators that dropout draws from."""
    state = {"random.cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["random.cuda"] = torch.cuda.get_rng_state(device)
    return state


def _set_random_state(tensors: dict[str, Tensor], device: torch.device) -> None:
    torch.set_rng_state(tensors["random.cpu"])
    if device.type == "cuda" and "random.cuda" in tensors:  # not if it was trained on a CPU
        torch.cuda.set_rng_state(tensors["random.cuda"], device)
