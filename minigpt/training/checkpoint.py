"""The last state of a training: all that resuming needs, in one safetensors file, and the one
before it until the next is whole.

The file's metadata holds a version, the counters, and a SHA-256 of everything in the file. Of a
model that is sharded among processes it is a folder instead, see `sharded_checkpoint.py`; either is
read by any number of processes, sharded or not.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from .. import UserError
from ..config import from_dict
from ..model import GPT
from ..runs import CHECKPOINT, replace
from .optimizer import Optimizers
from .processes import ALONE, Processes

VERSION = 1
LAST, PREVIOUS = "last.safetensors", "previous.safetensors"
LAST_SHARDS, PREVIOUS_SHARDS = "last", "previous"


@dataclass
class TrainingState:
    """Where a training stands."""

    step: int = 0  # optimizer steps taken
    seconds: float = 0.0  # spent training so far
    evaluations: int = 0  # made so far
    eval_tokens: int = 1  # validation tokens that each is made on
    train_loss: float = 0.0  # of the latest steps on average, nats a token
    train_bits_per_byte: float = 0.0  # the same in bits for each byte that the tokens stand for
    best_loss: float | None = None  # lowest validation loss so far, nats a token
    best_bits_per_byte: float | None = None  # the same in bits a byte
    best_step: int = 0  # when it was reached
    finished: bool = False  # whether it had all its steps or time
    setbacks: int = 0  # how often training went wrong and was set back; each halves the rate


def save_checkpoint(
    folder: Path,
    model: GPT,
    optimizer: Optimizers,
    state: TrainingState,
    processes: Processes = ALONE,
) -> None:
    """Write weights, optimizer state and counters, whole or not at all.

    Raises:
        OSError: if it cannot be written; the checkpoints there stay as they are.
    """
    tensors = {f"model.{name}": parameter.detach() for name, parameter in model.named_parameters()}
    tensors |= {f"optimizer.{name}": tensor for name, tensor in optimizer.state().items()}
    counters = json.dumps(dataclasses.asdict(state))
    if processes.is_sharded:
        from .sharded_checkpoint import save_shards  # torch.distributed.checkpoint takes long

        room = functools.partial(make_room, folder / CHECKPOINT)
        save_shards(folder / CHECKPOINT / LAST_SHARDS, counters, tensors, processes, room)
        return
    for name, tensor in tensors.items():
        whole = processes.whole(tensor)
        tensors[name] = whole.cpu().contiguous() if processes.is_first else whole
    processes.by_first(lambda: _write(folder / CHECKPOINT, counters, tensors))


def _write(checkpoints: Path, counters: str, tensors: dict[str, Tensor]) -> None:
    metadata = {
        "version": str(VERSION),
        "state": counters,
        "sha256": _checksum(counters, tensors),
    }
    checkpoints.mkdir(exist_ok=True)
    replace(
        checkpoints / LAST,
        lambda new: save_file(tensors, new, metadata),
        make_room=functools.partial(make_room, checkpoints),
    )


def make_room(checkpoints: Path) -> None:
    """Let the last checkpoint become the one before it, in place of that; file or folder.

    At every moment one of the two is there.
    """
    for last, previous in ((LAST, PREVIOUS), (LAST_SHARDS, PREVIOUS_SHARDS)):
        if (checkpoints / last).exists():
            shutil.rmtree(checkpoints / PREVIOUS_SHARDS, ignore_errors=True)
            if previous != PREVIOUS:
                (checkpoints / PREVIOUS).unlink(missing_ok=True)
            (checkpoints / last).replace(checkpoints / previous)


def load_checkpoint(
    folder: Path, model: GPT, optimizer: Optimizers, processes: Processes = ALONE
) -> tuple[TrainingState, list[str]]:
    """Put model and optimizer back to where the latest checkpoint left them.

    Returns:
        The counters, and what is wrong with a later checkpoint that was passed over.

    Raises:
        UserError: if there is none that is whole and fits, naming what is wrong with those there
            are; nothing is changed then.
    """
    problems: list[str] = []
    for path in _checkpoints(folder):
        read = functools.partial(_read_as, path, model, optimizer, processes)
        try:
            state, tensors = processes.together(read)
        except UserError as error:
            problems.append(str(error))
        else:
            _restore(tensors, model, optimizer)
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
            return _read_folder(path, ALONE) if path.is_dir() else _read(path)[0]
        except UserError as error:
            problems.append(str(error))
    raise UserError("; ".join([f"{folder} has no checkpoint to resume from", *problems]))


def _checkpoints(folder: Path) -> list[Path]:
    """Those that exist, the latest first."""
    names = (LAST, LAST_SHARDS, PREVIOUS, PREVIOUS_SHARDS)
    paths = (folder / CHECKPOINT / name for name in names)
    return [path for path in paths if path.exists()]


def _read_as(
    path: Path, model: GPT, optimizer: Optimizers, processes: Processes
) -> tuple[TrainingState, dict[str, Tensor]]:
    """A checkpoint's counters, and its tensors as they are needed here: whole, or this process's
    shards of them."""
    try:
        if path.is_dir():
            from .sharded_checkpoint import load_shards

            state = _read_folder(path, processes)
            return state, load_shards(path, lambda saved: dict(_blanks(model, optimizer, saved)))
        state, tensors = _read(path)
        return state, {
            name: processes.like(_fitting(name, tensors[name], blank), blank)
            for name, blank in _blanks(model, optimizer, tensors)
        }
    except (KeyError, ValueError, TypeError, RuntimeError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path} does not fit this run: {error}") from None


def _blanks(
    model: GPT, optimizer: Optimizers, saved: Iterable[str]
) -> Iterator[tuple[str, Tensor]]:
    """What a checkpoint of these names has to hold, in shape and place; in value, nothing."""
    for name, parameter in model.named_parameters():
        yield f"model.{name}", torch.empty_like(parameter)
    if any(name.startswith("optimizer.") for name in saved):  # none before the first step
        for name, tensor in optimizer.blank_state():
            yield f"optimizer.{name}", tensor


def _fitting(name: str, tensor: Tensor, blank: Tensor) -> Tensor:
    if tensor.shape != blank.shape:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, not {tuple(blank.shape)}")
    return tensor


def _restore(tensors: dict[str, Tensor], model: GPT, optimizer: Optimizers) -> None:
    optimizer.load_state(
        {
            name.removeprefix("optimizer."): tensor
            for name, tensor in tensors.items()
            if name.startswith("optimizer.")
        }
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[f"model.{name}"])


def _read_folder(path: Path, processes: Processes) -> TrainingState:
    """The counters of a sharded checkpoint that is whole."""
    from .sharded_checkpoint import read_counters

    try:
        return _counters(read_counters(path, processes))
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _read(path: Path) -> tuple[TrainingState, dict[str, Tensor]]:
    try:
        with _opened(path) as file:
            metadata = _metadata(file)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata["sha256"] != _checksum(metadata["state"], tensors):
            raise UserError("it is damaged, its checksum does not match")
        return _counters(metadata["state"]), tensors
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


def _counters(text: str) -> TrainingState:
    try:
        state = from_dict(TrainingState, json.loads(text))
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
