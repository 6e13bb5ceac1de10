"""The folder of a run while it is trained, and the one object that writes it: settings, best
weights, checkpoints, and what callbacks add. `runs/` names the files, and reads them.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import nn

from .. import UserError
from ..config import TrainConfig
from ..data.batches import Dataset
from ..model import GPT
from ..runs.begin import begin_run, make_room, remove_untrained
from ..runs.folder import (
    BEST,
    CHECKPOINT,
    CONFIG,
    EXPECTED,
    WEIGHTS,
    RunConfig,
    has_checkpoint,
    read_config,
)
from ..runs.journal import Journal
from ..runs.weights import read_best, save_weights
from ..system.atomic import write_text
from ..system.errors import kind_of_error
from ..system.networks import tensors_of, unwrapped
from ..system.platforms import is_windows, quote_path, rename, why_not_written
from . import distributed
from .checkpoint import Learner, TrainingState, load_checkpoint, save_checkpoint
from .interruption import Interrupted
from .loss import check_weights
from .messages import say
from .weights import Weights

_TOLD = ("step", "seconds", "train_bits_per_byte", "val_bits_per_byte")  # to the journal
_AT_END = 20.0  # seconds of the minutes in which it evaluates and saves, and does not learn
_SAVING_SHARE = 0.05  # of the time may go into checkpoints


class RunFolder:
    """The folder of a run, which a training or its callbacks write into; without a path nothing is
    written, and the best weights stay in memory.

    Rank 0 writes, and its errors reach all ranks. A file that cannot be written does not end the
    training: the problem is told, and writing is tried again.

    Args:
        path: of the folder.
        journal: of the run, if it is open already.

    Attributes:
        path: of the folder; None if nothing is written.
        journal: while the folder is held, on rank 0: what other programs are told.
    """

    def __init__(self, path: str | Path | None = None, journal: Journal | None = None):
        self.path = None if path is None else Path(path)
        self.journal = journal
        self._unwritten: dict[str, dict[str, str]] = {}  # what could not be written, and why
        self._best: Weights | None = None  # the best weights as long as they are not in the folder
        # When it is due, in seconds of training: first after a single step, so that whatever ends
        # the training then, it can be resumed.
        self._next_checkpoint = 0.0

    # The journal

    def tell(self, phase: str | None = None, **more: Any) -> None:
        """Tell whoever reads the journal what the training does: see :meth:`Journal.tell`."""
        if self.journal is not None:
            self.journal.tell(phase, **more)

    def tell_figures(
        self, event: str, figures: Mapping[str, Any], state: TrainingState, minutes: float | None
    ) -> None:
        """Tell the journal how far the training is, how good the model is, and how good it is
        expected to become. `minutes` is how long a training by time may take."""
        left = figures.get("seconds_left")  # by its speed
        if minutes is not None:
            in_minutes = 60 * minutes - figures["seconds"]
            if left is None or left > in_minutes - _AT_END:
                left = in_minutes

        told: dict[str, Any] = {
            "share": figures["done"],
            "seconds_left": left,
            EXPECTED: figures.get(EXPECTED),
        }
        if event == "on_start":
            self.tell("training", **told)
            return
        told |= {name: figures[name] for name in _TOLD if name in figures}
        told["best_bits_per_byte"] = state.best_bits_per_byte
        self.tell(None, **told, goes_on_from=None)

    # From the first file to the last

    @contextlib.contextmanager
    def begun(
        self,
        model: nn.Module,
        dataset: Dataset,
        config: TrainConfig,
        context_length: int,
        files: Mapping[str, str],
    ) -> Iterator[None]:
        """Within, the folder holds a new run, untrained but whole. One that fails before its first
        checkpoint has learned nothing, and is removed. `files` are further texts by name."""
        if self.path is None:
            yield
            return

        gpt = unwrapped(model)
        if isinstance(gpt, GPT):
            settings = RunConfig(gpt.config, config, dataset.origin)
        else:
            settings = RunConfig(None, config, dataset.origin, context_length=context_length)
        tokenizer = dataset.tokenizer

        distributed.on_main(make_room, self.path, is_locked=self.journal is not None)
        try:
            with self.held():  # else another process could take the place while files are made
                distributed.on_main(begin_run, self.path, settings, model, tokenizer, files=files)
                yield
        except BaseException:
            if distributed.is_main():
                with contextlib.suppress(OSError, UserError):  # the first error is the one to tell
                    remove_untrained(self.path, is_locked=self.journal is not None)
            raise

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Within, no other process can train in the folder, and its journal is open. Rank 0 opens
        it for all unless the caller has; the others have none."""
        assert self.path is not None
        is_own = self.journal is None
        with contextlib.ExitStack() as stack:
            if is_own:
                distributed.on_main(self._open_journal, stack)
            if self.journal is not None:
                self.journal.is_watched = True
            try:
                yield
            except Interrupted:
                if self.journal is not None:
                    self.journal.end("interrupted")
                raise
            finally:
                if is_own:
                    self.journal = None  # it is closed; who goes on opens another

    def _open_journal(self, stack: contextlib.ExitStack) -> None:
        assert self.path is not None
        self.journal = stack.enter_context(Journal(self.path))

    def resume(self, learner: Learner, config: TrainConfig, dataset: Dataset) -> TrainingState:
        """Return to the last checkpoint that is whole; the state that it says. From now on the run
        is unfinished, and trained by this config.

        Raises:
            UserError: if no checkpoint fits, or the text is not the one that the run began with.
        """
        assert self.path is not None
        distributed.on_main(_check_same_text, self.path, dataset)
        state, problems = load_checkpoint(self.path, learner)
        for problem in problems:
            say(f"{problem}; going back to the one before it")

        # The weights in the folder may be newer than the state.
        best = distributed.on_main(_find_best, self.path)
        state.best_loss = best.get("val_loss")
        state.best_bits_per_byte = best.get("val_bits_per_byte")
        state.best_step = int(best.get("step", 0))

        if state.finished:
            state.finished = False
            self.save_checkpoint(learner, state, config)
        distributed.on_main(_update_settings, self.path, config)
        return state

    # Any file

    def write(
        self,
        what: str,
        write: Callable[[Path], object],
        otherwise: str = "the old file stays as it was",
        *,
        is_tried_again: bool = True,
    ) -> bool:
        """Call `write` with the path of the folder; whether that succeeded. If it raises OSError, a
        line says that `what` could not be written, and what is the case `otherwise`, unless the
        whole folder is gone. Without a folder `write` is not called. Only rank 0 calls this."""
        if self.path is None:
            return False
        try:
            write(self.path)
        except OSError as error:
            if self.is_gone():  # which ends the training
                return False
            why = why_not_written(error, self.path)
            problem = f"could not write {what} to {self.path}: {why}"
            say(f"{problem}; {otherwise}")
            if is_tried_again:
                self._unwritten[what] = {"kind": kind_of_error(error), "message": problem}
                self._tell_problem()
            return False

        if self._unwritten.pop(what, None) is not None:
            self._tell_problem()
        return True

    def _tell_problem(self) -> None:
        """Tell the journal of the first file that could not be written, or that all are."""
        self.tell(problem=next(iter(self._unwritten.values()), None))

    def is_gone(self) -> bool:
        """Whether somebody has moved or deleted the folder."""
        return self.path is not None and not self.path.is_dir()

    def gone(self) -> UserError:
        """The error for a folder that is gone."""
        what = "somebody has moved or deleted it, and nothing can be saved"
        return UserError(f"{self.path} is gone: {what}", kind="folder_gone")

    # The best weights

    def keep_best(
        self, model: nn.Module, state: TrainingState, loss: float, bits_per_byte: float
    ) -> None:
        """Keep the weights that a model has now as the best, and note how good they are.

        Weights that cannot be written, since the disk is full or another program has the file open,
        stay in memory, and writing them is tried again whenever something is saved.
        """
        state.best_loss = loss
        state.best_bits_per_byte = bits_per_byte
        state.best_step = state.step

        self._best = None
        if not self._write_best(model, state):
            # Copies in main memory: the model will lose them, and a GPU may have no room for both.
            own = tensors_of(model)
            self._best = Weights({name: t.to("cpu", copy=True) for name, t in own.items()})

    def write_best_again(self, model: nn.Module, state: TrainingState) -> bool:
        """Write the best weights that could not be written before; whether the best weights are
        where they belong now."""
        if self.path is None or self._best is None:
            return True
        with self._best.in_place(model):
            is_written = self._write_best(model, state)
        if is_written:
            self._best = None
        return is_written

    def _write_best(self, model: nn.Module, state: TrainingState) -> bool:
        write = partial(_save_best, model, state)
        return distributed.on_main(self.write, "the best weights", write)

    def put_best_aside(self, model: nn.Module, state: TrainingState) -> None:
        """Write best weights that are not where they belong into a file beside the checkpoint,
        where a resumed training finds them."""
        if self.path is None or self._best is None:
            return
        aside = f"{CHECKPOINT}/{BEST}"
        with self._best.in_place(model), contextlib.suppress(OSError):  # the first has been told
            distributed.on_main(_save_best, model, state, self.path, name=aside)

    def check_end(self, model: nn.Module, state: TrainingState) -> None:
        """Raise a UserError if a training ends without its folder, or if the best weights are not
        where they belong; if possible, they are put aside first."""
        if distributed.on_main(self.is_gone):
            raise self.gone()
        if self.path is None or self._best is None:
            return
        self.put_best_aside(model, state)

        problem = f"the best weights could not be written to {self.path / WEIGHTS}"
        kind = next((why["kind"] for why in self._unwritten.values()), "not_written")
        remedy = _remedy(kind, self.path)
        if not has_checkpoint(self.path):
            problem += ", and neither could a checkpoint"
            remedy = f"{_preparation(kind)}, then train again"
        raise UserError(f"{problem}; {remedy}", kind=kind)

    def load_best(self, model: nn.Module) -> None:
        """Give a model the best weights."""
        best = self._best
        if best is None:
            assert self.path is not None
            read = load_file(self.path / WEIGHTS) if distributed.is_main() else {}
            best = Weights(distributed.broadcast(read))
        best.put_into(model)

    # Checkpoints

    def is_checkpoint_due(self, state: TrainingState) -> bool:
        """Whether it is time for one."""
        return self.path is not None and state.step > 0 and state.seconds >= self._next_checkpoint

    def save_checkpoint(self, learner: Learner, state: TrainingState, config: TrainConfig) -> bool:
        """Write a checkpoint; whether that succeeded. The next is due after as many seconds as the
        config says, or later where writing takes long."""
        if self.path is None:
            return False

        start = time.monotonic()
        check_weights(learner.model)
        write = partial(save_checkpoint, learner=learner, state=state)
        is_written = distributed.on_main(self.write, "the checkpoint", write)

        took = distributed.of_main(time.monotonic() - start)
        interval = max(config.checkpoint_seconds, took / _SAVING_SHARE)
        self._next_checkpoint = state.seconds + took + interval
        return is_written


# Parts of a run that is resumed


def _check_same_text(folder: Path, dataset: Dataset) -> None:
    """Refuse to continue a run with another text than it began with, where both are known."""
    began_with = read_config(folder).origin.fingerprint
    now = dataset.origin.fingerprint
    if began_with and now and began_with != now:
        raise UserError(f"{folder} learned from another text", kind="text_changed")


def _update_settings(folder: Path, config: TrainConfig) -> None:
    """Write down how a run is trained from now on."""
    settings = replace(read_config(folder), training=config)
    write_text(settings.to_json(), folder / CONFIG)


def _find_best(folder: Path) -> dict[str, float]:
    """How good the best weights of a run are, once they are where they belong: an earlier training
    may have had to put them aside."""
    aside = folder / CHECKPOINT / BEST
    if aside.exists():
        try:
            rename(aside, folder / WEIGHTS)
        except OSError as error:
            reason = why_not_written(error, aside)
            problem = f"the best weights could not be moved from {aside} to {folder / WEIGHTS}"
            kind = kind_of_error(error)
            remedy = _remedy(kind, folder)
            raise UserError(f"{problem}: {reason}; {remedy}", kind=kind) from None
    return read_best(folder / WEIGHTS) or {}


# How the best weights are written, and what is said if they cannot be


def _save_best(model: nn.Module, state: TrainingState, folder: Path, name: str = WEIGHTS) -> None:
    """Write the weights of a model, of which the state says how good they are."""
    assert state.best_loss is not None and state.best_bits_per_byte is not None
    best = {
        "val_loss": state.best_loss,
        "val_bits_per_byte": state.best_bits_per_byte,
        "step": state.best_step,
    }
    save_weights(model, folder / name, best=best)


def _remedy(kind: str, folder: Path) -> str:
    """What to do where a file could not be written, by the kind of the error."""
    return f"{_preparation(kind)}, then continue with --resume --out {quote_path(folder)}"


def _preparation(kind: str) -> str:
    """What to do before it is tried again."""
    if kind == "disk_full":
        return "make room there"
    if kind == "no_permission":
        others = "end the programs that have it open, or " if is_windows() else ""
        return f"{others}allow writing there"
    return "see to it that such a file can be written there"
