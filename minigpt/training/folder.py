"""The folder of a run while it is trained: rank 0 begins it and locks it for all."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from torch import nn

from .. import UserError
from ..config import TrainConfig
from ..data.batches import Dataset
from ..model import GPT, unwrapped
from ..runs.folder import CONFIG, RunConfig, begin_run, locked, read_config, remove_untrained
from ..runs.journal import Journal
from ..system.atomic import write_text
from . import distributed
from .interruption import Interrupted


def settings_of_run(
    model: nn.Module, dataset: Dataset, config: TrainConfig, context_length: int
) -> RunConfig:
    """What config.json says of a training."""
    gpt = unwrapped(model)
    if isinstance(gpt, GPT):
        return RunConfig(gpt.config, config, dataset.origin)
    return RunConfig(None, config, dataset.origin, context_length=context_length)


def update_settings(folder: Path, config: TrainConfig) -> None:
    """Write down how a run is trained from now on."""
    settings = replace(read_config(folder), training=config)
    write_text(settings.to_json(), folder / CONFIG)


def check_same_text(folder: Path, dataset: Dataset) -> None:
    """Refuse to continue a run with another text than it began with, where both are known."""
    began_with = read_config(folder).origin.fingerprint
    now = dataset.origin.fingerprint
    if began_with and now and began_with != now:
        raise UserError(f"{folder} learned from another text", kind="text_changed")


@contextlib.contextmanager
def new_run(
    folder: Path,
    config: RunConfig,
    model: nn.Module,
    dataset: Dataset,
    files: Mapping[str, str],
    journal: Journal | None = None,
) -> Iterator[Journal | None]:
    """A new run, untrained but whole, and locked, with its journal. One that fails before its first
    checkpoint has learned nothing, and is removed."""
    begin = partial(begin_run, folder, config, model, dataset.tokenizer, files)
    distributed.on_main(begin)
    try:
        with locked_run(folder), kept_journal(folder, journal) as kept:
            yield kept
    except BaseException:
        if distributed.is_main():
            with contextlib.suppress(OSError, UserError):  # the first error is the one to tell
                remove_untrained(folder)
        raise


@contextlib.contextmanager
def locked_run(folder: Path) -> Iterator[None]:
    """The run's lock, which rank 0 takes for all."""
    with contextlib.ExitStack() as stack:
        distributed.on_main(stack.enter_context, locked(folder))
        yield


@contextlib.contextmanager
def kept_journal(folder: Path, journal: Journal | None) -> Iterator[Journal | None]:
    """The journal of a run that is trained now, which rank 0 opens unless the caller has; the
    others have none."""
    with contextlib.ExitStack() as stack:
        if journal is None and distributed.is_main():
            journal = stack.enter_context(Journal(folder))
        if journal is not None:
            journal.is_watched = True
        try:
            yield journal
        except Interrupted:
            if journal is not None:
                journal.end("interrupted")
            raise
