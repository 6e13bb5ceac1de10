"""The folder of a run, `runs/<name>/`, and a trained model by any name.

Training writes the folder, everything else reads it. It can be loaded at every moment: a new file
is written beside the old one, synced, and renamed over it.
"""

import contextlib
import dataclasses
import json
import math
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open

from . import UserError
from .config import (
    GPT_NAME,
    GPTConfig,
    InferenceConfig,
    TextConfig,
    TrainConfig,
    count_parameters,
    from_dict,
)
from .data.corpus import read_again
from .data.readers import title
from .generation.numpy_gpt import NumpyGPT, Weights
from .generation.writer import Writer
from .interop.hub import PREFIX, hub_folder
from .interop.huggingface import is_huggingface_folder, read_folder
from .interop.safetensors_files import read_weights, write_tensors
from .tokenizer import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    import torch

    from .model import GPT

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
LAST, PREVIOUS = "last.safetensors", "previous.safetensors"  # in the folder of checkpoints
PLAN, METRICS, SAMPLES, PICTURE = "plan.json", "metrics.jsonl", "samples.txt", "loss.png"
CHECKPOINT, LOCK = "checkpoint", ".lock"
LAUNCH = ".torchrun"  # which torchrun processes began the run, to find it again when they restart
_BEGINNING = {CONFIG, PLAN, TOKENIZER, WEIGHTS}  # the files of a run before its first step
_FORMAT = 7  # of config.json: another number whenever what a run holds changes its name or meaning
# What a weights file says of itself. One key of its metadata holds all: the library writes several
# in random order, and the same training is to end with the same file.
_ABOUT = "minigpt"
_BITS = ("train_bits_per_byte", "val_bits_per_byte")
_FIGURES = ("step", "seconds", "done", "train_loss", "val_loss", "tokens_per_second", *_BITS)
_COUNTING = "counting_bits_per_byte"  # what counting gives; older runs do not have it

# With `--init`: fields that may differ from the model's, and fields that come with the model.
_FREE = {"context_length", "dropout", "attention_dropout"}
_FIXED = {"tokenizer", "vocab_size", "embedding_init"}

_WORTH_A_GPU = 50_000_000  # parameters: with fewer, a text is written before torch is loaded


@dataclass(frozen=True)
class RunConfig:
    """What `config.json` holds: the model, how it was trained, and on what."""

    model: GPTConfig
    training: TrainConfig
    text: TextConfig
    fingerprint: str = ""  # of the text, to notice when it has changed
    knows_documents: bool = False  # whether there were enough of them to learn how one begins
    alphabet: str = ""  # the bytes of the text, in hexadecimal; empty if they are not known

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps({"format": _FORMAT, **dataclasses.asdict(self)}, indent=2) + "\n"


@dataclass(frozen=True)
class FoundModel:
    """A model with its tokenizer, the folder that they were found in, and its settings if a run."""

    folder: Path
    glass: NumpyGPT
    tokenizer: Tokenizer
    config: RunConfig | None = None

    @cached_property
    def model(self) -> "GPT":
        """The torch model, made when it is first asked for."""
        from .generation.torch_gpt import torch_of

        return torch_of(self.glass)


# Reading


def load(run: str | Path, device: str = "auto", **settings: Any) -> Writer:
    """The writer of a run such as "runs/fables", of a folder in the Hugging Face layout, or of a
    model of the hub such as "hf:gpt2"; UserError if it is damaged or not one of ours.

    `settings` are fields of :class:`minigpt.InferenceConfig`. With device "auto" a large model
    uses a GPU where there is one. On a CPU the glass engine writes, elsewhere torch.
    """
    config = InferenceConfig(device=device, **settings)
    asks_for_torch = config.device not in ("auto", "cpu") or config.precision != "float32"
    chosen = choose_device(config.device) if asks_for_torch else None
    found = find_model(run)
    c = found.config
    start = (c.knows_documents, c.alphabet, partial(read_again, c.text, c.fingerprint)) if c else ()
    parameters = sum(array.size for array in found.glass.weights.values())
    if config.device == "auto" and parameters >= _WORTH_A_GPU and has_gpu():
        chosen = choose_device()
    if chosen is None:
        return Writer(found.glass, found.tokenizer, *start)
    import torch

    from .generation.torch_gpt import engine_of

    model = found.model.to(chosen, getattr(torch, config.precision))
    return Writer(engine_of(model), found.tokenizer, *start)


def find_model(name: str | Path) -> FoundModel:
    """Read a run, a folder in the Hugging Face layout, or a model of the hub such as "hf:gpt2"."""
    folder = hub_folder(str(name)) if str(name).startswith(PREFIX) else Path(name)
    if is_huggingface_folder(folder):
        config, weights, tokenizer = read_folder(folder)
        return FoundModel(folder, _glass(config, weights, folder), tokenizer)
    return load_run(folder)


def model_name(name: str | Path) -> str:
    """What a model found by `name` is called: its folder's name, or the hub's without its owner."""
    return Path(str(name).removeprefix(PREFIX)).resolve().name


def load_run(folder: str | Path) -> FoundModel:
    """Read a run; what is missing or damaged is named."""
    folder = Path(folder)
    if not folder.is_dir():
        newest = ", ".join(map(str, all_runs()[:5])) or "none yet"
        hint = f"newest runs: {newest}; a model of the hub is named hf:NAME"
        raise UserError(f"no such run: {folder} ({hint})")
    config = read_config(folder)
    check_is_gpt(folder)
    tokenizer = load_tokenizer(_existing(folder, TOKENIZER))
    if (found := tokenizer.vocab_size) != (said := config.model.vocab_size):
        problem = f"{found} tokens but {CONFIG} says vocab_size {said}"
        raise UserError(f"{folder / TOKENIZER} has {problem}")
    weights = read_weights(path := _existing(folder, WEIGHTS))
    return FoundModel(folder, _glass(config.model, weights, path), tokenizer, config)


def _glass(config: GPTConfig, weights: Weights, place: Path) -> NumpyGPT:
    try:
        return NumpyGPT(config, weights)
    except UserError as error:
        raise UserError(f"{place} does not fit {CONFIG}: {error}") from None


def read_config(folder: Path) -> RunConfig:
    """The settings of a run; what is wrong with them is named."""
    path = _existing(folder, CONFIG)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        model, training, text = data["model"], data["training"], data["text"]
        if data.get("format") != _FORMAT:
            raise UserError("written by another version of minigpt; train again")
        return RunConfig(
            from_dict(GPTConfig, model),
            from_dict(TrainConfig, training),
            from_dict(TextConfig, text),
            str(data["fingerprint"]),
            bool(data["knows_documents"]),
            bytes.fromhex(data["alphabet"]).hex(),
        )
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError, OSError):
        raise UserError(f"{path} is damaged or not a run's") from None


def _existing(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise UserError(f"{folder} is not a run: it has no {name}")
    return path


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics.jsonl; a line that is not a row, such as half of one, is left out."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    rows = []
    for line in lines:
        with contextlib.suppress(ValueError, TypeError, LookupError, RecursionError, OverflowError):
            row = json.loads(line)
            figures = [row[name] for name in _FIGURES] + [row.get(_COUNTING, 0.0)]
            if all(map(math.isfinite, figures)):
                rows.append(row)
    return rows


class Run(type(Path())):  # type: ignore[misc]  # whatever kind of path this system has
    """The path of a run's folder, which says what is in it where it is printed by itself."""

    def about(self) -> dict[str, Any]:
        """What `minigpt runs` tells of it; UserError if it is damaged."""
        config, rows = read_config(self), read_metrics(self / METRICS)
        written = time.localtime((self / WEIGHTS).stat().st_mtime)
        return {
            "name": str(self),
            "text": " ".join(map(title, config.text.files)),
            "network": read_network(self / WEIGHTS),
            "parameters": count_parameters(config.model),
            "bits_per_byte": min((row["val_bits_per_byte"] for row in rows), default=None),
            _COUNTING: rows[-1].get(_COUNTING) if rows else None,
            "written": time.strftime("%Y-%m-%d %H:%M", written),
            "finished": any(row["done"] == 1 for row in rows[-1:]),
        }

    def __repr__(self) -> str:
        try:
            about = self.about()
        except (UserError, OSError) as error:
            return f"{self}: {error}" if (self / WEIGHTS).exists() else repr(Path(self))

        bits, counting = about["bits_per_byte"], about[_COUNTING]
        loss = "not evaluated" if bits is None else f"{bits:.3f} bits/byte"
        if counting is not None:
            loss += f" (counting {counting:.3f})"
        size = f"{about['parameters'] / 1e6:.2f} M parameters"
        if about["network"] != GPT_NAME:  # what its config says of the size may be wrong
            size = f"a {about['network']}"
        state = "" if about["finished"] else ", not finished"
        return f"{about['name']}: {loss}, {size}, {about['text']}, {about['written']}{state}"


# Which one


def newest_run(runs: str | Path = "runs") -> Path:
    """The run with the newest weights, of those that have learned something."""
    for folder in all_runs(runs):
        if read_best(folder / WEIGHTS) is not None:
            return folder
    raise UserError(f"no run in {runs}/ yet; train one first: python train.py my.txt")


def unfinished_run(text: TextConfig, fingerprint: str, runs: str | Path = "runs") -> Run | None:
    """The newest run in a folder that can be continued: begun on the same files, which have not
    changed since, not finished, and trained by no process now."""
    files = _full_names(text)
    if files is None:
        return None
    for folder in all_runs(runs):
        with contextlib.suppress(UserError, OSError):  # damaged, of another version, or busy
            config = read_config(folder)
            check_is_gpt(folder)
            is_same = config.fingerprint == fingerprint and _full_names(config.text) == files
            if is_same and _is_finished(folder) is False:
                with locked(folder):
                    return folder
    return None


def _full_names(text: TextConfig) -> list[str] | None:
    """The full names of a text's files; None if they cannot be read again, as standard input."""
    names = [*text.files, *text.validation]
    if any(title(name) != name for name in names):
        return None
    return [os.path.abspath(name) for name in names]


def _is_finished(folder: Path) -> bool | None:
    """Whether a run's last checkpoint says that it is finished, without reading its tensors; None
    if there is no checkpoint."""
    for name in (LAST, PREVIOUS):
        with contextlib.suppress(SafetensorError, OSError, ValueError, LookupError, TypeError):
            with safe_open(folder / CHECKPOINT / name, "np") as file:
                state = json.loads(file.metadata()["state"])
            return bool(state["finished"])
    return None


def all_runs(runs: str | Path = "runs") -> list[Run]:
    """The runs in a folder, newest weights first."""
    weights = [f for f in Path(runs).glob(f"[!.]*/{WEIGHTS}") if (f.parent / CONFIG).exists()]
    return [Run(f.parent) for f in sorted(weights, key=lambda f: f.stat().st_mtime, reverse=True)]


def run_of_launch(launch: list[str], out: Path | None, runs: str | Path = "runs") -> Path | None:
    """The run that one of these torchrun processes began: `out`, or in a folder of runs."""
    for folder in all_runs(runs) if out is None else [out]:
        with contextlib.suppress(OSError, ValueError):
            began = (folder / LAUNCH).read_text(encoding="utf-8").splitlines()
            if {*began} & {*launch}:
                return folder
    return None


def free_name(name: str, runs: str | Path = "runs") -> Path:
    """`runs/name`, or the first of name-2, name-3, ... that does not exist."""
    folder, number = Path(runs) / name, 1
    while folder.exists():
        number += 1
        folder = Path(runs) / f"{name}-{number}"
    return folder


def has_gpu() -> bool:
    """Whether this machine has a GPU of NVIDIA or AMD, found out without torch."""
    return shutil.which("nvidia-smi") is not None or Path("/dev/kfd").exists()


def choose_device(name: str = "auto") -> "torch.device":
    """The device called `name`; "auto" takes a GPU where there is one."""
    import torch

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


def starting_point(text: dict[str, Any], model: dict[str, Any]) -> FoundModel | None:
    """The model that `--init` names, or None; a field that would change its shape is refused."""
    if text.get("init") is None:
        return None
    if refused := (_FIXED & text.keys()) | (model.keys() - _FREE):
        kept = "the model's shape, tokenizer and weights"
        raise UserError(f"--init keeps {kept}; leave out --{min(refused).replace('_', '-')}")
    found = find_model(text["init"])
    if not all(np.isfinite(array).all() for array in found.glass.weights.values()):
        raise UserError(f"{text['init']} is damaged: some of its weights are not finite numbers")
    return dataclasses.replace(found, glass=_adapted(found.glass, model))


def _adapted(glass: NumpyGPT, changes: dict[str, Any]) -> NumpyGPT:
    """The same weights under a config with these changes."""
    config: GPTConfig = dataclasses.replace(glass.config, **changes)
    weights, name = dict(glass.weights), "position_embedding.weight"
    if name in weights:
        learned = glass.config.context_length
        if config.context_length > learned:
            raise UserError(
                f"context_length must be at most {learned}, the positions that the model has "
                f"learned, got {config.context_length}"
            )
        weights[name] = weights[name][: config.context_length]
    return NumpyGPT(config, weights)


# Writing


def save_weights(model: "GPT", path: Path, best: dict[str, float] | None = None) -> None:
    """Write the parameters, but for a tied head, with the name of the network's class and the
    figures of its evaluation. So a weights file says by itself what it holds."""
    from .foreign import network_name
    from .generation.torch_gpt import weights_of

    about: dict[str, Any] = {"network": network_name(model)}
    if best:
        about["best"] = best
    metadata = {_ABOUT: json.dumps(about)}
    replace(path, lambda new: write_tensors(weights_of(model), new, metadata))


def check_is_gpt(folder: Path) -> None:
    """Refuse a run of a network that is not exactly a `GPT`, with its name."""
    path = folder / WEIGHTS
    name = read_network(path)
    if name != GPT_NAME:
        raise UserError(
            f"{folder} holds a {name}, and this reads a GPT as it comes with minigpt; make the "
            f"{name} in a program of your own and load its weights with "
            f"safetensors.torch.load_file({str(path)!r})"
        )


def read_network(path: Path) -> str:
    """The name of the network whose weights a file holds; "GPT" if it does not say."""
    name = str(_about(path).get("network", GPT_NAME))
    return name if name.isprintable() else ascii(name)


def read_best(path: Path) -> dict[str, float] | None:
    """The figures that `save_weights` wrote: val_loss, val_bits_per_byte and step; or None."""
    try:
        best = _about(path)["best"]
        return {name: float(best[name]) for name in ("val_loss", "val_bits_per_byte", "step")}
    except (LookupError, TypeError, ValueError, ArithmeticError):
        return None


def _about(path: Path) -> dict[str, Any]:
    """What a weights file says of itself: nothing if it is damaged or not ours. Whoever reads the
    weights will say what is wrong with them."""
    try:
        with safe_open(path, "np") as file:
            about = json.loads((file.metadata() or {})[_ABOUT])
    except (SafetensorError, OSError, ValueError, LookupError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def write_text(text: str, path: Path) -> None:
    """Write a text file, whole or not at all."""
    replace(path, lambda new: new.write_text(text, encoding="utf-8"))


def replace(
    path: Path, write: Callable[[Path], Any], make_room: Callable[[], None] = lambda: None
) -> None:
    """Let `write` fill a new file, sync it to disk and, after `make_room`, rename it to `path`. If
    that fails, the file at `path` stays as it was, and OSError is raised."""
    new = path.with_name(_unfinished(path.name))
    try:
        write(new)
        with open(new, "rb+") as file:
            os.fsync(file.fileno())
        make_room()
        new.replace(path)
        if os.name == "posix":  # make the renaming outlast a crash of the machine
            descriptor = os.open(path.parent, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
    finally:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)


def _unfinished(name: str) -> str:
    """What a file is called while it is being written."""
    return f".new-{name}"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from training in `folder` until this one ends, however it ends."""
    try:
        with FileLock(folder / LOCK, timeout=0):
            yield
    except Timeout:
        busy = f"another process is training in {folder}"
        raise UserError(f"{busy}; wait for it or use --out") from None


def check_free(out: Path) -> None:
    """Refuse to write into a place that holds anything: only a new or an empty folder is free.
    What a training left that was killed before its first checkpoint is removed."""
    other = "choose another --out"
    if is_untrained(out):
        with locked(out):
            remove_untrained(out)
    if (out / CHECKPOINT).is_dir():
        raise UserError(f"{out} already holds a run; {other}, or continue it with --resume")
    place = next(p for p in (out, *out.absolute().parents) if p.is_dir())
    if not os.access(place, os.W_OK):
        raise UserError(f"no permission to write to {place}; {other}")
    if any(out.iterdir()) if out.is_dir() else out.exists() or out.is_symlink():
        raise UserError(f"{out} exists and is not an empty folder; {other}")


def has_checkpoint(folder: Path) -> bool:
    """Whether a run has a checkpoint, whole or damaged."""
    return any((folder / CHECKPOINT / name).exists() for name in (LAST, PREVIOUS))


def is_untrained(folder: Path) -> bool:
    """Whether a folder holds a run that has learned nothing: the files that it began with and no
    others, no checkpoint, and weights that no evaluation has chosen."""
    try:
        held = {file.name for file in folder.iterdir()}
        saved = {file.name for file in (folder / CHECKPOINT).glob("*")}
        if held - {LOCK, LAUNCH, CHECKPOINT} != _BEGINNING or saved - {_unfinished(LAST)}:
            return False
    except OSError:
        return False

    about = _about(folder / WEIGHTS)
    return "network" in about and "best" not in about  # a damaged file says neither


def remove_untrained(folder: Path) -> None:
    """Remove a run that has learned nothing. A folder that holds anything else stays as it is."""
    if not is_untrained(folder):
        return
    for file in (folder / CHECKPOINT).glob("*"):
        file.unlink()
    with contextlib.suppress(FileNotFoundError):
        (folder / CHECKPOINT).rmdir()
    for name in (*_BEGINNING, LAUNCH, LOCK):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it may be a mount, a link or the current folder
        folder.rmdir()


@contextlib.contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder to fill; its files move to `out` if all goes well, and are removed otherwise."""
    check_free(out)
    is_there = out.is_dir()  # empty, and perhaps a mount, a link or the current folder
    place = out if is_there else next(p for p in out.absolute().parents if p.is_dir())
    building = place / f".new-{out.name}-{secrets.token_hex(16)}"  # which nobody else has chosen
    try:
        building.mkdir()
        yield building
        if is_there:
            for file in building.iterdir():
                file.replace(out / file.name)
        else:
            out.parent.mkdir(parents=True, exist_ok=True)
            building.replace(out)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(building, ignore_errors=True)
