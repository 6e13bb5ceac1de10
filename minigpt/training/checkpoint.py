"""The last state of a training: all that resuming needs, in one safetensors file, and the one
before it until the next is whole.

The file's metadata holds the counters and a SHA-256 of everything in the file. Rank 0 writes and
reads it for all, so that any number of processes can continue it.
"""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from .. import UserError
from ..config import GPT_NAME, Natural, from_dict
from ..model import GPT, network_name
from ..runs.atomic import write_tensors
from ..runs.folder import CHECKPOINT, LAST, PREVIOUS
from . import distributed
from .optimizer import prepare_step

Optimizers = Sequence[torch.optim.Optimizer]


@dataclass
class TrainingState:
    """Where a training stands."""

    step: Natural = 0  # optimizer steps taken
    seconds: float = 0.0  # spent training so far
    evaluations: Natural = 0  # made so far
    eval_tokens: int = 1  # validation tokens that each is made on
    first_loss: float = 0.0  # of the first step, nats a token
    train_loss: float = 0.0  # of the latest steps on average, nats a token
    train_bits_per_byte: float = 0.0  # the same in bits for each byte that the tokens stand for
    best_loss: float | None = None  # lowest validation loss so far, nats a token
    best_bits_per_byte: float | None = None  # the same in bits a byte
    best_step: Natural = 0  # when it was reached
    finished: bool = False  # whether all its steps or all its time are used up


def save_checkpoint(folder: Path, model: GPT, optimizers: Optimizers, state: TrainingState) -> None:
    """Write weights, optimizer state and counters, whole or not at all; for rank 0.

    If that raises OSError, the checkpoints there stay as they are.
    """
    tensors = {name: tensor.cpu() for name, tensor in _tensors(model, optimizers).items()}
    counters, last = json.dumps(dataclasses.asdict(state)), folder / CHECKPOINT / LAST
    metadata = {"state": counters, "sha256": _checksum(counters, tensors)}
    metadata["network"] = network_name(model)

    def make_room() -> None:  # at every moment one of the two is there
        if last.exists():
            last.replace(last.with_name(PREVIOUS))

    last.parent.mkdir(exist_ok=True)
    write_tensors(tensors, last, metadata, make_room)


def load_checkpoint(
    folder: Path, model: GPT, optimizers: Optimizers
) -> tuple[TrainingState, list[str]]:
    """Put model and optimizers back to where the last checkpoint left them.

    Returns its counters, and what is wrong with a later checkpoint that was skipped; that is kept
    under another name, so that it never takes the place of a whole one. Raises UserError if none
    is whole and fits; the weights stay as they are.
    """
    _make_room(optimizers)
    own = _tensors(model, optimizers)

    def fill() -> tuple[TrainingState, list[str]]:
        state, tensors, problems = _last_whole(folder, own, network_name(model))
        for name in own.keys() & tensors.keys():
            own[name].copy_(tensors[name])
        if problems:
            last = folder / CHECKPOINT / LAST
            last.replace(last.with_name("damaged.safetensors"))
        return state, problems

    state, problems = distributed.on_main(fill)
    distributed.broadcast(own.values())
    if state.step == 0:  # before the first step there is nothing to keep
        for optimizer in optimizers:
            optimizer.state.clear()
    return state, problems


def read_state(folder: Path) -> TrainingState:
    """The counters of the last checkpoint that is whole; UserError if there is none."""
    return _last_whole(folder, {})[0]


def _tensors(model: GPT, optimizers: Optimizers) -> dict[str, Tensor]:
    """The parameters, and what optimizers keep for each, by their names in the file."""
    names: dict[Tensor, str] = {p: name for name, p in model.named_parameters()}
    tensors = {f"model.{name}": p.detach() for p, name in names.items()}
    for optimizer in optimizers:
        for p, kept in optimizer.state.items():
            tensors |= {f"optimizer.{names[p]}.{key}": tensor for key, tensor in kept.items()}
    return tensors


def _make_room(optimizers: Optimizers) -> None:
    """Have optimizers make what they keep, by a step that changes no weight: its rate is 0."""
    prepare_step(optimizers, 0, 0.0)
    for optimizer in optimizers:
        optimizer.zero_grad()
        if not optimizer.state:
            for parameter in (p for group in optimizer.param_groups for p in group["params"]):
                parameter.grad = torch.zeros_like(parameter)
            optimizer.step()
            optimizer.zero_grad()


def _last_whole(
    folder: Path, expected: dict[str, Tensor], network: str | None = None
) -> tuple[TrainingState, dict[str, Tensor], list[str]]:
    """The last checkpoint that is whole and holds the expected names and shapes, of this network if
    it is given, and what is wrong with later ones."""
    problems: list[str] = []
    for path in (folder / CHECKPOINT / name for name in (LAST, PREVIOUS)):
        if not path.exists():
            continue
        try:
            state, tensors, found = _read(path)
        except UserError as error:
            problems.append(f"{path}: {error}")
            continue
        if network not in (None, found):
            problem = f"it is of a {found}, and cannot continue the training of a {network}"
            raise UserError(f"{path}: {problem}")
        for name, blank in expected.items():
            if name.startswith("optimizer.") and state.step == 0:
                continue
            if name not in tensors or tensors[name].shape != blank.shape:
                settings = "resume with the settings that the run began with"
                raise UserError(f"{path}: it does not fit this run, see {name}; {settings}")
        return state, tensors, problems
    raise UserError("; ".join([f"{folder} has no checkpoint to resume from", *problems]))


def _read(path: Path) -> tuple[TrainingState, dict[str, Tensor], str]:
    """A file's counters, its tensors and the name of its network; UserError if it is damaged."""
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata["sha256"] != _checksum(metadata["state"], tensors):
            raise ValueError("its checksum does not match")
        state = from_dict(TrainingState, json.loads(metadata["state"]))
        return state, tensors, metadata.get("network", GPT_NAME)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"it is damaged: {error}") from None


def _checksum(counters: str, tensors: dict[str, Tensor]) -> str:
    """SHA-256 over the counters and every tensor's name, type, shape and bytes."""
    digest = hashlib.sha256(counters.encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
