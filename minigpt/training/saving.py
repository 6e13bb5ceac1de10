"""What a training leaves on disk while it goes on: its best weights, and its checkpoints."""

import contextlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from .. import UserError
from ..model import tensors_of
from ..runs.folder import BEST, CHECKPOINT, WEIGHTS, has_checkpoint
from ..runs.weights import copied_to_save, read_best, save_weights
from ..system.errors import kind_of_error
from ..system.platforms import is_windows, quote_path, rename, why_not_written
from . import distributed
from .checkpoint import Trained, TrainingState, load_checkpoint, save_checkpoint
from .disk import Disk
from .divergence import check_weights
from .messages import say

_SAVING_SHARE = 0.05  # of the time may go into checkpoints


class BestWeights:
    """The weights of the best evaluation so far: in a run's folder, or in memory if there is none.

    Weights that cannot be written, since the disk is full or another program has the file open,
    stay in memory, and writing them is tried again whenever something is saved.

    Attributes:
        are_kept: whether the latest best weights are where they belong.
    """

    def __init__(self, model: nn.Module, disk: Disk):
        self.are_kept = True
        self._disk = disk
        self._model = model
        self._folder = disk.folder
        self._tensors: dict[str, Tensor] = {}  # the weights, if there is no folder
        self._unwritten: Callable[[Path], None] | None = None  # writes weights not written yet

    def keep(self, state: TrainingState, loss: float, bits_per_byte: float) -> None:
        """Keep the weights that the model has now, and note in the state how good they are."""
        best = {"val_loss": loss, "val_bits_per_byte": bits_per_byte, "step": state.step}
        if self._folder is None:
            self._tensors = {n: t.clone() for n, t in tensors_of(self._model).items()}
        else:
            self._unwritten = partial(save_weights, self._model, best=best)
            if not self._write(self._folder / WEIGHTS):
                self._unwritten = copied_to_save(self._model, best)  # the model will lose them
        state.best_loss = loss
        state.best_bits_per_byte = bits_per_byte
        state.best_step = state.step

    def write_again(self) -> None:
        """Write those that could not be written before."""
        if not self.are_kept and self._folder is not None:
            self._write(self._folder / WEIGHTS)

    def _write(self, path: Path) -> bool:
        """Write those that are not written yet; whether that succeeded."""
        assert self._folder is not None and self._unwritten is not None
        save = partial(self._unwritten, path)
        self.are_kept = distributed.on_main(self._disk.write, "the best weights", save)
        if self.are_kept:
            self._unwritten = None
        return self.are_kept

    def note(self, state: TrainingState) -> None:
        """Note in the state how good the weights in the folder are: they may be newer than the
        state. Before, weights that an earlier training had to put aside are moved to where they
        belong; UserError if that fails."""
        assert self._folder is not None
        distributed.on_main(_put_in_place, self._folder)
        best = distributed.on_main(read_best, self._folder / WEIGHTS) or {}
        state.best_loss = best.get("val_loss")
        state.best_bits_per_byte = best.get("val_bits_per_byte")
        state.best_step = int(best.get("step", 0))

    def load(self) -> None:
        """Load the best weights into the model."""
        tensors = self._tensors
        if self._folder is not None:
            read = load_file(self._folder / WEIGHTS) if distributed.is_main() else {}
            tensors = distributed.broadcast(read)
        with torch.no_grad():
            for name, own in tensors_of(self._model).items():
                own.copy_(tensors[name])

    def check(self) -> None:
        """Raise a UserError if the best weights are not where they belong. If possible, they are
        put aside first, where a resumed training finds them."""
        if self.are_kept or self._folder is None:
            return
        self.put_aside()
        problem = f"the best weights could not be written to {self._folder / WEIGHTS}"
        kind = self._disk.kind_of_problem
        remedy = _remedy(kind, self._folder)
        if not has_checkpoint(self._folder):
            problem += ", and neither could a checkpoint"
            remedy = f"{_preparation(kind)}, then train again"
        raise UserError(f"{problem}; {remedy}", kind=kind)

    def put_aside(self) -> None:
        """Write weights that are not where they belong into a file beside the checkpoint."""
        if self._unwritten is None or self._folder is None:
            return
        aside = self._folder / CHECKPOINT / BEST
        with contextlib.suppress(OSError):  # the first error has been told
            distributed.on_main(self._unwritten, aside)


class Checkpoints:
    """The last state of a training, saved now and then; nothing where there is no folder."""

    def __init__(self, trained: Trained, disk: Disk, seconds_between: float):
        self._trained = trained
        self._disk = disk
        self._folder = disk.folder
        self._seconds_between = seconds_between
        self._next = 0.0  # when the next is due, in seconds of training

    def is_due(self, state: TrainingState) -> bool:
        """Whether it is time for one."""
        return self._folder is not None and state.step > 0 and state.seconds >= self._next

    def save(self, state: TrainingState) -> bool:
        """Write one; whether that succeeded."""
        if self._folder is None:
            return False
        start = time.monotonic()
        check_weights(self._trained.model)
        save = partial(save_checkpoint, self._folder, self._trained, state)
        is_written = distributed.on_main(self._disk.write, "the checkpoint", save)
        took = distributed.on_main(lambda: time.monotonic() - start)
        interval = max(self._seconds_between, took / _SAVING_SHARE)
        self._next = state.seconds + took + interval
        return is_written

    def load(self) -> TrainingState:
        """Return to the last one that is whole; UserError if there is none that fits."""
        assert self._folder is not None
        state, problems = load_checkpoint(self._folder, self._trained)
        for problem in problems:
            say(f"{problem}; going back to the one before it")
        return state


def _put_in_place(folder: Path) -> None:
    """Move the best weights of a run, if they were put aside, to where they belong."""
    aside = folder / CHECKPOINT / BEST
    if not aside.exists():
        return
    try:
        rename(aside, folder / WEIGHTS)
    except OSError as error:
        reason = why_not_written(error, aside)
        problem = f"the best weights could not be moved from {aside} to {folder / WEIGHTS}"
        kind = kind_of_error(error)
        remedy = _remedy(kind, folder)
        raise UserError(f"{problem}: {reason}; {remedy}", kind=kind) from None


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
