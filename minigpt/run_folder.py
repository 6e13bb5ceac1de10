"""The folder of a run: `runs/<name>/` with config.json, model.safetensors, tokenizer.json,
plan.json, metrics.jsonl, samples.txt, loss.png and checkpoint/.

It is complete and loadable at every moment: a file is written beside the old one, synced, and
renamed over it. Everything read from it is data, never code.
"""

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from .config import GPTConfig, TextConfig, TrainConfig, UserError, from_dict, to_dict
from .model import GPT, count_parameters
from .tokenizer import Tokenizer, load_tokenizer

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
PLAN = "plan.json"
METRICS, SAMPLES, PICTURE = "metrics.jsonl", "samples.txt", "loss.png"
CHECKPOINT, LOCK = "checkpoint", ".lock"
# What a run did whose config.json does not say so, because there was no other way yet.
_EARLIER = {"split": "end", "token_vectors": "random"}


@dataclass(frozen=True)
class RunConfig:
    """What `config.json` holds: the model, how it was trained, and on what."""

    model: GPTConfig
    training: TrainConfig
    text: TextConfig
    fingerprint: str = ""  # of the text, to know it again
    launch: str = ""  # of torchrun, which began it and may have to start its processes again

    def to_json(self) -> str:
        """The file's text."""
        parts = {
            "model": to_dict(self.model),
            "training": to_dict(self.training),
            "text": to_dict(self.text),
            "fingerprint": self.fingerprint,
            "launch": self.launch,
        }
        return json.dumps(parts, indent=2) + "\n"


@dataclass(frozen=True)
class LoadedRun:
    """A trained model with its tokenizer, as read from a run folder."""

    folder: Path
    config: RunConfig
    model: GPT
    tokenizer: Tokenizer


def load_run(folder: str | Path, device: torch.device | str = "cpu") -> LoadedRun:
    """Read a run folder.

    Raises:
        UserError: if the folder is missing, is no run, or holds a damaged file, naming it.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"no such run: {folder}")
    config = read_config(folder)
    tokenizer = load_tokenizer(_existing(folder, TOKENIZER))
    if tokenizer.vocab_size != config.model.vocab_size:
        raise UserError(
            f"{folder / TOKENIZER} has {tokenizer.vocab_size} tokens "
            f"but {CONFIG} says vocab_size {config.model.vocab_size}"
        )
    weights = _existing(folder, WEIGHTS)
    check_size(weights, config.model)
    model = GPT(config.model)
    load_weights(model, weights)
    return LoadedRun(folder, config, model.to(device).eval(), tokenizer)


def check_size(weights: Path, config: GPTConfig) -> None:
    """Refuse weights that cannot belong to `config`, before memory is taken for a model.

    Raises:
        UserError: if the file is damaged or holds another number of parameters.
    """
    expected = count_parameters(config)
    try:
        with safe_open(weights, "pt") as file:
            slices = [file.get_slice(name) for name in file.keys()]  # noqa: SIM118
            sizes = [math.prod(part.get_shape()) for part in slices]
            types = {part.get_dtype() for part in slices}
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{weights} is damaged: {error}") from None
    if not types <= {"F64", "F32", "F16", "BF16"}:
        raise UserError(f"{weights} is damaged: weights of type {', '.join(sorted(types))}")
    if sum(sizes) != expected:
        raise UserError(
            f"{weights} does not fit {CONFIG}: it holds {sum(sizes):,} parameters, "
            f"the model has {expected:,}"
        )


def save_weights(model: GPT, path: Path) -> None:
    """Write the parameters as safetensors; a tied head is the embedding and is left out."""
    state = {
        name: tensor.detach().contiguous().cpu() for name, tensor in model.state_dict().items()
    }
    if model.config.tied_head:
        del state["head.weight"]
    write_tensors(state, path)


def load_weights(model: GPT, path: Path) -> None:
    """Read parameters that `save_weights` wrote into a model of the same config.

    Raises:
        UserError: if the file is damaged or belongs to a model of another shape.
    """
    state = read_tensors(path)
    if model.config.tied_head and "token_embedding.weight" in state:
        state["head.weight"] = state["token_embedding.weight"]
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        first = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        raise UserError(f"{path} does not fit {CONFIG}: {first}") from None


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file.

    Raises:
        UserError: if it is missing or damaged.
    """
    try:
        return load_file(path)
    except FileNotFoundError:
        raise UserError(f"no such file: {path}") from None
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise UserError(f"{path} is damaged: {error}") from None


def write_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Write tensors as safetensors, marked as torch's for other readers, whole or not at all."""
    replace(path, lambda new: save_file(tensors, new, {"format": "pt"}))


def write_text(text: str, path: Path) -> None:
    """Write a text file, whole or not at all."""
    replace(path, lambda new: new.write_text(text, encoding="utf-8"))


def replace(
    path: Path, write: Callable[[Path], Any], make_room: Callable[[], None] = lambda: None
) -> None:
    """Let `write` fill a new file, sync it to disk and rename it to `path`.

    Args:
        path: the file to replace.
        write: is given the name to write to.
        make_room: called when the new file is whole and on disk, before it is renamed.

    Raises:
        OSError: if it cannot be written; what was there stays as it was.
    """
    new = path.with_name(f".new-{path.name}")
    try:
        write(new)
        with open(new, "rb+") as file:
            os.fsync(file.fileno())
        make_room()
        new.replace(path)
        sync_folder(path.parent)
    except SafetensorError as error:  # how safetensors reports a full disk
        raise OSError(str(error)) from None
    finally:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make a renaming last through a crash of the machine, where the system can do that."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from training in `folder` at the same time.

    The lock is the operating system's, which lets go of it when the process ends, however.

    Raises:
        UserError: if another process is training there.
    """
    try:
        with FileLock(folder / LOCK, timeout=0):
            yield
    except Timeout:
        raise UserError(
            f"another process is training in {folder}; wait for it or use --out"
        ) from None


def newest_run(runs: str | Path = "runs") -> Path:
    """The run whose weights were written last.

    Raises:
        UserError: if there is none yet.
    """
    weights = [f for f in Path(runs).glob(f"*/{WEIGHTS}") if (f.parent / CONFIG).exists()]
    if not weights:
        raise UserError(f"no run in {runs}/ yet; train one first: python train.py my.txt")
    return max(weights, key=lambda file: file.stat().st_mtime).parent


def free_name(name: str, runs: str | Path = "runs") -> Path:
    """`runs/name`, or the first of name-2, name-3, ... that does not exist."""
    folder, number = Path(runs) / name, 1
    while folder.exists():
        number += 1
        folder = Path(runs) / f"{name}-{number}"
    return folder


def read_config(folder: Path) -> RunConfig:
    """What a run folder's config.json says.

    Raises:
        UserError: if it is missing or damaged, naming the field.
    """
    path = _existing(folder, CONFIG)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        model, training, text = data["model"], data["training"], _EARLIER | data["text"]
        names = {name: str(data.get(name, "")) for name in ("fingerprint", "launch")}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, OSError):
        raise UserError(f"{path} is damaged or not a run's") from None
    try:
        return RunConfig(
            from_dict(GPTConfig, model),
            from_dict(TrainConfig, training),
            from_dict(TextConfig, text),
            **names,
        )
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _existing(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise UserError(f"{folder} is not a run: it has no {name}")
    return path
