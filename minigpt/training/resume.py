"""What `train --resume` does from start to end, and what it says on the way."""

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import UserError, __version__
from ..config import TrainConfig
from ..data.batches import Dataset
from ..data.corpus import STANDARD_INPUT, Source, spooled_from
from ..data.token_cache import prepare
from ..model import GPT
from ..runs import CONFIG, TOKENIZER, WEIGHTS, RunConfig, newest_run, read_config, write_text
from ..tokenizer import load_tokenizer
from .checkpoint import TrainingState, read_state
from .processes import Processes, joined
from .report import described, extent, progress_bar, say
from .training_run import compile_resolved, locked_for_all, source_for_all, train_run


def resume_run(
    out: str | Path | None,
    training: dict[str, Any],
    started: float,
    files: tuple[str, ...] = (),
) -> Path:
    """Continue a run from its checkpoint, with some of its training settings changed.

    Args:
        out: the run's folder, or None for the newest.
        training: fields of TrainConfig to change, such as minutes.
        started: when the command began, in time.monotonic's seconds.
        files: without `out`, the newest run on these files is continued.

    Raises:
        UserError: if there is no such run, nothing is left to do, or its text has changed.
        Interrupted: when training was interrupted and has saved its state.
    """
    with joined() as processes:
        folder = processes.by_first(lambda: _run_to_resume(out, files))
        return resume(processes, folder, training, started)


def _run_to_resume(out: str | Path | None, files: tuple[str, ...]) -> Path:
    if out is not None or not files:
        return Path(out) if out is not None else newest_run()
    if (found := newest_run_of(files)) is not None:
        return found
    raise UserError(f"no run in runs/ was trained on {', '.join(files)}")


def resume(processes: Processes, folder: Path, training: dict[str, Any], started: float) -> Path:
    """What :func:`resume_run` does with the run in a folder."""
    old = processes.by_first(lambda: read_config(folder))
    if "minutes" in training:  # more time is worth as many evaluations as usual
        evaluations = max(old.training.num_evals, TrainConfig.num_evals)
        training = {"steps": None, "num_evals": evaluations, **training}
    new = compile_resolved(replace(old.training, **training), old.model, processes)
    config = replace(old, training=new)
    processes.check_batch(config.training.batch_size)
    state = processes.by_first(lambda: read_state(folder))
    if state.finished and not _has_more(config.training, old.training, state):
        raise UserError(
            f"{folder} has had its time ({extent(state)}); "
            "give it more with a larger --minutes or --steps"
        )
    names = (*config.text.files, *config.text.validation)
    if STANDARD_INPUT in names or any(map(spooled_from, names)):
        what = "standard input" if STANDARD_INPUT in names else "documents given in Python"
        raise UserError(f"{folder} learned from {what}, which cannot be read again")
    source = processes.together(lambda: source_for_all(config.text, processes))
    say(f"minigpt {__version__}: continuing {folder} on {described(source)}")
    dataset = processes.by_node(lambda: _same_tokens(folder, config, source))
    with locked_for_all(folder, processes):
        processes.by_first(lambda: write_text(config.to_json(), folder / CONFIG))
        gpt = GPT(config.model)
        train_run(gpt, dataset, config, folder, started - state.seconds, processes, resume=True)
    return folder


def _same_tokens(folder: Path, config: RunConfig, source: Source) -> Dataset:
    """The text of a run, with the tokenizer of the run."""
    if source.fingerprint != config.fingerprint:
        raise UserError(f"the text of {folder} has changed since; train anew")
    tokenizer = load_tokenizer(folder / TOKENIZER)
    wanted = tokenizer if config.text.init else None
    dataset = prepare(source, config.text, tokenizer=wanted, say=say, progress=progress_bar)
    if dataset.tokenizer.to_json() != tokenizer.to_json():  # learned anew, by another version
        dataset = prepare(source, config.text, tokenizer=tokenizer, say=say, progress=progress_bar)
    return dataset


def _has_more(new: TrainConfig, old: TrainConfig, state: TrainingState) -> bool:
    """Whether a finished training is to be continued: there are more steps or minutes now."""
    if new.steps is not None:
        return new.steps > state.step
    return old.steps is not None or new.minutes > old.minutes


def newest_run_of(files: tuple[str, ...]) -> Path | None:
    """The run in runs/ that was trained last on these files."""
    found: dict[float, Path] = {}
    for weights in Path("runs").glob(f"*/{WEIGHTS}"):
        with contextlib.suppress(UserError):
            if read_config(weights.parent).text.files == files:
                found[weights.stat().st_mtime] = weights.parent
    return found[max(found)] if found else None
