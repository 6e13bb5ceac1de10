"""A trained model by any name: a run, a step of one, the base, a folder of another program, a model
of the hub; and the writer of any of them.
"""

import contextlib
import difflib
import os
import warnings
from functools import partial
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

from .. import UserError
from ..config import InferenceConfig, SampleConfig, TextConfig
from ..data.files import Say
from ..devices.choice import find_device, has_gpu, this_gpu
from ..generation.numpy_gpt import WORTH_A_GPU
from ..generation.writer import Writer
from ..interop.hub import PREFIX, hub_folder, is_huggingface_folder
from ..tokenizer import TokenizerLike
from .base import BASE, find_base
from .folder import CONFIG, WEIGHTS, RunConfig, kept_steps, listed, read_config, read_usual
from .listing import all_runs, newest_run
from .read_model import FoundModel, load_run, make_glass, tokenizer_of, weights_file
from .weights import load_weights

if TYPE_CHECKING:
    from torch import nn

    from ..data.corpus import Part


def load(
    run: str | Path,
    device: str = "auto",
    *,
    model: "nn.Module | None" = None,
    tokenizer: TokenizerLike | None = None,
    **settings: Any,
) -> Writer:
    """The writer of a trained model. With device "auto" a large model uses a GPU of NVIDIA or AMD
    where there is one that computes rightly. On a CPU the glass engine writes, elsewhere torch.

    Args:
        run: a run such as "runs/fables" or, of the runs in ``runs/``, "fables"; "base", the model
            that comes with minigpt; a folder in the Hugging Face layout; or a model of the hub such
            as "hf:gpt2". "runs/fables@120" is the run after step 120, if it has kept its weights.
        device: auto, cpu, cuda, cuda:1 or mps.
        model: for a run of a network that is not a :class:`minigpt.GPT`: such a network, from ids
            ``(b, T)`` to logits ``(b, T, vocab_size)``. It is filled in place with the run's
            weights, and stays on its device. Torch writes with it.
        tokenizer: for a run that was trained with a tokenizer of your own: that tokenizer.
        settings: fields of :class:`minigpt.InferenceConfig`.

    Raises:
        UserError: if there is no such model, it is damaged, or `model` does not fit.
    """
    config = InferenceConfig(device=device, **settings)
    if model is not None:
        return _load_into(model, run, tokenizer, config)

    is_auto = config.device == "auto"
    named = None if is_auto or config.device == "cpu" else find_device(config.device)
    found = find_model(run, tokenizer)
    is_narrow = config.precision != "float32"
    is_large = found.glass.num_parameters >= WORTH_A_GPU
    if is_auto and has_gpu() and (is_large or is_narrow):
        named, problem = this_gpu()
        if problem is not None:
            warnings.warn(problem, stacklevel=2)

    if named is None and not is_narrow:
        return glass_writer(found)
    import torch

    from ..generation.torch_gpt import engine_of

    moved = found.model.to(named or "cpu", getattr(torch, config.precision))
    return Writer(engine_of(moved), found.tokenizer, **_knowledge(found.config, found.usual))


def glass_writer(found: FoundModel, usual: SampleConfig | None = None) -> Writer:
    """A writer with the glass engine. It is sampled as is `usual`, by default as the model's file
    says; who does not sample gives PLAIN, and a damaged file does not matter."""
    if usual is None:
        usual = found.usual
    return Writer(found.glass, found.tokenizer, **_knowledge(found.config, usual))


def _load_into(
    model: "nn.Module", run: str | Path, tokenizer: TokenizerLike | None, machine: InferenceConfig
) -> Writer:
    """Fill a network with the weights of a run; torch writes with it."""
    import torch

    from ..generation.torch_gpt import engine_of

    if not isinstance(model, torch.nn.Module):
        raise UserError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    folder, step = _place_of(run)
    config = read_config(folder)
    chosen = tokenizer_of(folder, tokenizer)
    load_weights(model, weights_file(folder, step))
    if machine.device != "auto":
        model.to(find_device(machine.device))
    if machine.precision != "float32":
        model.to(getattr(torch, machine.precision))
    engine = engine_of(model, config.context_length)
    return Writer(engine, chosen, **_knowledge(config, read_usual(folder)))


def _knowledge(config: RunConfig | None, usual: SampleConfig) -> dict[str, Any]:
    """What a writer knows of how a run is sampled, and of the text that it learned from: arguments
    of a :class:`Writer`."""
    if config is None:
        return {"usual": usual}
    origin = config.origin
    knowledge: dict[str, Any] = {
        "usual": usual,
        "knows_documents": origin.knows_documents,
        "alphabet": origin.alphabet,
        "dialogue": origin.dialogue,
    }
    if origin.text is not None:
        knowledge["read_text"] = partial(_read_again, origin.text, origin.fingerprint)
    return knowledge


def _read_again(text: TextConfig, fingerprint: str) -> "tuple[Part, Part]":
    """The text that a run learned from, and the text that it was validated on."""
    from ..data.source import read_again  # a program that only writes does not wait for it

    return read_again(text, fingerprint)


def beginning(found: FoundModel) -> str | None:
    """The model that the training of a model began with, named without folders, which are private;
    None if it began from nothing, or that is not known."""
    text = found.config.origin.text if found.config else None
    if text is None or text.init is None:
        return None
    if text.init == BASE:
        return "the base of minigpt"
    if text.init.startswith(PREFIX):
        return text.init
    return PureWindowsPath(text.init).name or text.init


def find_model(name: str | Path, tokenizer: TokenizerLike | None = None) -> FoundModel:
    """Read a run, the base, a folder in the Hugging Face layout, or a model of the hub, by any name
    that :func:`load` takes. `tokenizer` is the one that a run was trained with, if that is
    somebody's own."""
    folder, step = _place_of(name)
    if is_huggingface_folder(folder):
        from ..interop.huggingface import read_folder  # a run is loaded sooner without

        config, weights, own_tokenizer = read_folder(folder)
        if tokenizer is not None:
            raise UserError(f"{folder} has its own tokenizer; leave the tokenizer out")
        glass = make_glass(config, weights, folder)
        return FoundModel(folder, glass, own_tokenizer)
    return load_run(folder, tokenizer, step=step)


def _place_of(name: str | Path) -> tuple[Path, int | None]:
    """The folder that holds the model of this name, and the step if the name is that of a step."""
    full = full_name(name)
    if full == BASE:
        return find_base(), None
    if str(full).startswith(PREFIX):
        return hub_folder(str(full)), None
    if Path(full).is_dir():
        return Path(full), None
    folder, _, step = str(full).rpartition("@")
    return Path(folder), int(step)


def full_name(
    name: str | Path, *, runs: str | Path = "runs", say: Say = lambda line: None
) -> str | Path:
    """The folder that a name means: the folder of that name or, if it holds no model, the one in
    `runs`. Where both hold a model, `say` is told which is meant. A name of the hub stays as it is,
    and so does "base" where no folder has that name. A name with an @ that no folder has means a
    step of the run before the @: "fables@120" is "runs/fables@120".

    Raises:
        UserError: if there is no such folder, or no such step, or this is no name.
    """
    check_is_name(name)
    if str(name).startswith(PREFIX):
        return name
    try:
        return _full_name_of_folder(Path(name), Path(runs), say)
    except UserError:
        run, at, step = str(name).rpartition("@")
        if not (run and at) or {"/", os.sep} & {*step}:
            raise
    folder = full_name(run, runs=runs, say=say)
    return Path(f"{folder}@{find_kept(Path(folder), step)}")


def check_is_name(name: Any) -> None:
    """Refuse what cannot name a model, such as a writer of it."""
    if not isinstance(name, str | Path):
        given = type(name).__name__
        raise UserError(f"a model is named by a text or a Path, such as 'runs/my', got {given}")
    if str(name) == "":
        raise UserError("the name of the model is empty; name a run, such as runs/my")


def _full_name_of_folder(folder: Path, runs: Path, say: Say) -> str | Path:
    """What :func:`full_name` says of a name without a step."""
    if len(folder.parts) != 1 or folder.anchor or folder.name == "..":
        if folder.is_dir():  # whoever reads it says what it lacks
            return folder
        raise UserError(f"no such run: {folder} ({_meant(folder, runs)})", kind="not_found")

    in_runs = runs / folder
    if _holds_model(folder):
        if _holds_model(in_runs):
            say(f"{folder} means the folder {folder.absolute()}, not {in_runs}")
        return folder
    if in_runs.is_dir():
        return in_runs
    if folder.name == BASE:
        return BASE

    problem = f"no such run: {folder} or {in_runs}"
    if folder.is_dir():
        problem = f"{folder} is not a run, and there is no {in_runs}"
    raise UserError(f"{problem} ({_meant(folder, runs)})", kind="not_found")


def _holds_model(folder: Path) -> bool:
    """Whether a folder is a run or an exported model, whole or not."""
    return any((folder / name).is_file() for name in (CONFIG, WEIGHTS))


def _meant(folder: Path, runs: str | Path) -> str:
    """Which run a wrong name may mean: one with a name like it, or the newest."""
    there = all_runs(runs)
    folders: dict[str, Path | str] = {BASE: BASE}
    folders.update((run.name, run) for run in reversed(there))
    near = difflib.get_close_matches(folder.name, folders, n=1)
    if near:
        return f"did you mean {folders[near[0]]}?"
    newest = ", ".join(map(str, there[:5])) or "none yet"
    return f"newest runs: {newest}; a model of the hub is named hf:NAME"


def model_name(name: str | Path) -> str:
    """What a model found by `name` is called: its folder's name, or the hub's without its owner."""
    return Path(str(name).removeprefix(PREFIX)).resolve().name


def export_name(name: str | Path) -> str:
    """What an export of a model is called: "my-step120" of the step "my@120" of a run, since other
    programs give an @ a meaning of their own. It is in one line, as their files need it."""
    whole = "".join(c if c.isprintable() else "-" for c in model_name(name))
    run, at, step = whole.rpartition("@")
    is_step = at and not Path(name).is_dir()
    return f"{run}-step{step}" if is_step else whole


def newest_run_or_base() -> Path | str:
    """The newest run or, before the first one, "base"; UserError if the base is missing or damaged
    too."""
    try:
        return newest_run()
    except UserError:
        with contextlib.suppress(UserError):
            find_base()
            return BASE
        raise


# A single step of a run, as in "fables@120"


def find_kept(folder: Path, typed: str) -> int:
    """The step that was typed after the @ of a run. If it is not kept, a UserError lists the steps
    that are."""
    steps = kept_steps(folder)
    if not steps:
        raise UserError(f"{folder} has kept no weights of single steps; train with --keep 12")
    if typed in map(str, steps):
        return int(typed)
    asked = typed if typed.isdecimal() else repr(typed)
    raise UserError(f"{folder} has no weights of step {asked}; it has those of {listed(steps)}")


def check_is_whole(name: str | Path) -> None:
    """Refuse the full name of a single step where a whole run is asked for."""
    run, at, _ = str(name).rpartition("@")
    if at and not Path(name).is_dir() and not str(name).startswith(PREFIX):
        raise UserError(f"{name} is one step of a run; name the whole run: {run}")
