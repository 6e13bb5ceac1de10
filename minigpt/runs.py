"""The folder of a run: `runs/<name>/` with config.json, model.safetensors, tokenizer.json,
plan.json, metrics.jsonl, samples.txt, loss.png and checkpoint/.

It is complete and loadable at every moment: a file is written beside the old one, synced, and
renamed over it. Everything read from it is data, never code.
"""

import contextlib
import dataclasses
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

from . import UserError
from .config import GPTConfig, InferenceConfig, TextConfig, TrainConfig, from_dict, to_dict
from .generation.precision import in_precision
from .generation.writer import Writer
from .interop.hub import hub_folder, is_hub_name
from .interop.huggingface import is_huggingface_folder, read_folder
from .interop.safetensors_files import read_tensors, write_tensors
from .model import GPT, count_parameters
from .tokenizer import Tokenizer, load_tokenizer

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
PLAN = "plan.json"
METRICS, SAMPLES, PICTURE = "metrics.jsonl", "samples.txt", "loss.png"
CHECKPOINT, LOCK = "checkpoint", ".lock"
_FIGURES = ("step", "seconds", "train_loss", "val_loss", "val_bits_per_byte", "tokens_per_second")
# What a run did whose config.json does not say so, because there was no other way yet.
_EARLIER = {"split": "end", "embedding_init": "random"}


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
    if model.config.tie_embeddings:
        del state["head.weight"]
    replace(path, lambda new: write_tensors(state, new))


def load_weights(model: GPT, path: Path) -> None:
    """Read parameters that `save_weights` wrote into a model of the same config.

    Raises:
        UserError: if the file is damaged or belongs to a model of another shape.
    """
    state = read_tensors(path)
    if model.config.tie_embeddings and "token_embedding.weight" in state:
        state["head.weight"] = state["token_embedding.weight"]
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        first = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        raise UserError(f"{path} does not fit {CONFIG}: {first}") from None


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


def choose_device(name: str = "auto") -> torch.device:
    """The device called `name`; "auto" takes a GPU where there is one.

    Raises:
        UserError: if there is no such device on this machine.
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError):
        raise UserError(f"no device {name!r} on this machine; try --device cpu") from None
    return device


@dataclass(frozen=True)
class FoundModel:
    """A model with its tokenizer, and the folder that they were found in."""

    folder: Path
    model: GPT
    tokenizer: Tokenizer


def find_model(name: str | Path) -> FoundModel:
    """Read a run, a folder in the Hugging Face layout, or a model of the hub such as "gpt2".

    Raises:
        UserError: if there is none of that name, saying where it was looked for; if a file is
            missing or damaged; if the model is of an architecture that ours do not match.
    """
    folder = Path(name)
    if not folder.exists() and is_hub_name(str(name)):
        folder = hub_folder(str(name))
    if is_huggingface_folder(folder):
        return FoundModel(folder, *read_folder(folder))
    run = load_run(folder)
    return FoundModel(folder, run.model, run.tokenizer)


def load(run: str | Path, device: str = "auto", **settings: Any) -> Writer:
    """The writer of a model.

    Args:
        run: a run's folder such as "runs/fables", a folder in the Hugging Face layout, or a
            model of the hub such as "gpt2".
        device: "auto", "cpu", "cuda", ...
        settings: other fields of :class:`~minigpt.InferenceConfig`, such as precision="int8".

    Raises:
        UserError: as :func:`find_model`, or if a setting is out of range.
    """
    config = InferenceConfig(device=device, **settings)
    chosen = choose_device(config.device)
    found = find_model(run)
    model = in_precision(found.model, config.precision).to(chosen)
    return Writer(model, found.tokenizer, config.compile)


_FIXED = {"tokenizer", "vocab_size", "embedding_init"}  # of the text's settings
# What may differ from the model that it began as; nothing else leaves its weights their meaning.
_FREE = ("context_length", "dropout", "attention_dropout")
# A tenth of what suits a model that knows nothing yet.
LEARNING_RATE = TrainConfig.learning_rate / 10


def starting_point(text: dict[str, Any], model: dict[str, Any]) -> FoundModel | None:
    """The model to begin with, or None without `init`.

    Args:
        text: fields of TextConfig that were given.
        model: fields of GPTConfig that were given.

    Raises:
        UserError: if it cannot be read, or something given would change its shape or tokenizer.
    """
    if text.get("init") is None:
        return None
    refused = [*(_FIXED & text.keys()), *(model.keys() - set(_FREE))]
    if refused:
        option = "--" + sorted(refused)[0].replace("_", "-")
        raise UserError(
            f"--init keeps the model's shape, tokenizer and weights; leave out {option}"
        )
    found = find_model(text["init"])
    return dataclasses.replace(found, model=_adapted(found.model, model))


def _adapted(model: GPT, changes: dict[str, Any]) -> GPT:
    """The same weights under a config with these changes."""
    config: GPTConfig = dataclasses.replace(model.config, **changes)
    state = model.state_dict()
    if model.position_embedding is not None:
        learned = model.config.context_length
        if config.context_length > learned:
            raise UserError(
                f"context_length must be at most {learned}, the positions that the model has "
                f"learned, got {config.context_length}"
            )
        positions = state["position_embedding.weight"]
        state["position_embedding.weight"] = positions[: config.context_length]
    adapted = GPT(config)
    adapted.load_state_dict(state)
    return adapted


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics.jsonl; a line that is none, half-written say, is passed over."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    rows = []
    for line in lines:
        try:
            row = json.loads(line)
            figures = [row[name] for name in _FIGURES] + [row.get("train_bits_per_byte", 0.0)]
            if all(map(math.isfinite, figures)):
                rows.append(row)
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            continue
    return rows
