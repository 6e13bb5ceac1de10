"""The folder of a run, `runs/<name>/`: what its files are called and hold, and how it is begun.

Training writes the folder, everything else reads it. It can be loaded at every moment.
"""

import contextlib
import dataclasses
import json
import math
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from .. import UserError
from ..config import GPT_NAME, GPTConfig, TextConfig, TrainConfig, from_dict
from ..config.checked import is_utf8
from ..data.origin import Origin
from ..system.atomic import is_unfinished, whole_name, write_text
from ..system.errors import kind_of_error
from ..system.json_objects import read_object
from ..system.platforms import name_problem, rename, why_not_written
from .journal import JOURNAL, JOURNAL_FILES, STUDIO_FILES, is_awaited, remove_journal
from .json_lines import read_lines
from .weights import read_beginning, read_network, save_weights

if TYPE_CHECKING:
    from torch import nn

    from ..data.dialogue.dialogue import Dialogue
    from ..tokenizer import Tokenizer

CONFIG = "config.json"
WEIGHTS = "model.safetensors"  # the best by validation
TOKENIZER = "tokenizer.json"
PLAN = "plan.json"
METRICS = "metrics.jsonl"  # a row for each evaluation
STEPS = "steps.jsonl"  # a row for each step, or for some of them
PICTURE = "loss.png"
PAGE = "page.html"  # of `minigpt page`
CHECKPOINT = "checkpoint"  # a folder, which holds
LAST = "last.safetensors"
PREVIOUS = "previous.safetensors"
KEPT = "kept"  # a folder, which holds the weights of single steps
STEP_NAME = "(?:0|[1-9][0-9]{0,14})"  # a pattern of their names, without the ending
FIRST = "0.safetensors"  # in KEPT: the weights before training
DAMAGED = "damaged.safetensors"  # in CHECKPOINT, too: a LAST that could not be read
BEST = "best.safetensors"  # the best weights, if model.safetensors could not be replaced
LOCK = ".lock"
WANDB = "wandb"  # a folder that --log wandb writes where it is offline
FOLDERS = (CHECKPOINT, KEPT, JOURNAL)

# All files that a run can ever have, as patterns of their paths, in the order in which they are
# deleted: what shows that it is a run goes last. The studio has files of its own in the journal.
_IN_CHECKPOINT = (LAST, PREVIOUS, BEST, DAMAGED)
_OF_OLDER_VERSIONS = (".torchrun", "samples.txt")
_ALONE = (TOKENIZER, PLAN, METRICS, STEPS, PICTURE, PAGE, WEIGHTS, CONFIG)
_FILES = tuple(
    re.compile(pattern)
    for pattern in (
        *(re.escape(f"{CHECKPOINT}/{name}") for name in _IN_CHECKPOINT),
        rf"{KEPT}/{STEP_NAME}\.(safetensors|html)",  # weights of steps, and their pages
        *(re.escape(f"{JOURNAL}/{name}") for name in (*JOURNAL_FILES, *STUDIO_FILES)),
        r"events\.out\.tfevents\..*",  # which --log tensorboard writes
        WANDB,
        *map(re.escape, (*_OF_OLDER_VERSIONS, *_ALONE)),
    )
)
_HOUR = 3600.0  # seconds: whatever was not written to for so long, nobody is writing

_FORMAT = 9  # of config.json: another number whenever what a run holds changes its name or meaning
_BITS = ("train_bits_per_byte", "val_bits_per_byte")
_FIGURES = ("step", "seconds", "done", "train_loss", "val_loss", "tokens_per_second", *_BITS)
FIGURES_OF_A_STEP = ("step", "seconds", "loss", "bits_per_byte")
COUNTING = "counting_bits_per_byte"  # what counting gives; older runs do not have it
EXPECTED = "expected_bits_per_byte"  # where such trainings usually end; not in the rows of a file
NEARLY = 0.005  # the part by which a loss may be above the lowest one
INTERPOLATION = "interpolation"  # how far the kept weights lie from the first ones


@dataclass(frozen=True)
class RunConfig:
    """What `config.json` holds: the model, how it was trained, and on what."""

    model: GPTConfig | None  # None: a network of somebody's own, which their program makes
    training: TrainConfig
    origin: Origin = field(default_factory=Origin)
    context_length: int | None = None  # of such a network, in tokens

    @property
    def gpt(self) -> GPTConfig:
        """The config of a `GPT`; UserError if the run is of another network."""
        if self.model is None:
            raise UserError("the run does not describe a GPT")
        return self.model

    @property
    def text(self) -> TextConfig:
        """The text that the tokens come from; UserError if the run does not know it."""
        if self.origin.text is None:
            raise UserError("the run does not say what text it learned from")
        return self.origin.text

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps({"format": _FORMAT, **dataclasses.asdict(self)}, indent=2) + "\n"


def read_config(folder: Path) -> RunConfig:
    """The settings of a run; what is wrong with them is named."""
    path = existing_file(folder, CONFIG)
    data = read_raw_config(folder)
    try:
        model = data["model"]
        training = data["training"]
        if data.get("format") != _FORMAT:
            raise UserError("written by another version of minigpt; train again")

        origin = data["origin"]
        return RunConfig(
            model=None if model is None else from_dict(GPTConfig, model),
            training=from_dict(TrainConfig, training),
            origin=Origin(
                text=None if origin["text"] is None else from_dict(TextConfig, origin["text"]),
                fingerprint=str(origin["fingerprint"]),
                knows_documents=bool(origin["knows_documents"]),
                alphabet=bytes.fromhex(origin["alphabet"]).hex(),
                dialogue=_read_dialogue(origin.get("dialogue")),
            ),
            context_length=data["context_length"] and int(data["context_length"]),
        )
    except UserError as error:
        raise UserError(f"{path}: {error}", kind="damaged_run") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UserError(f"{path} is damaged or not a run's", kind="damaged_run") from None


def read_raw_config(folder: Path) -> dict[str, Any]:
    """What config.json holds, also of another version; nothing if it is damaged."""
    return read_object(folder / CONFIG)


def read_plan(folder: Path) -> dict[str, Any]:
    """What was measured and chosen before the training; nothing if it had no plan, or a damaged
    one."""
    return read_object(folder / PLAN)


def _read_dialogue(data: Any) -> "Dialogue | None":
    """Who speaks in a run's text; None of an older run, or if the text is not conversations."""
    if data is None:
        return None
    from ..data.dialogue.dialogue import Dialogue  # what only names files does not wait for it
    from ..data.documents.document import Layout

    speakers = {str(name): int(turns) for name, turns in data["speakers"].items()}
    layout = Layout(str(data["layout"]["template"]), bool(data["layout"]["ends_at_name"]))
    before, _, after = layout.template.partition("{text}")
    if "{speaker}" not in before or not after:
        raise ValueError("no template of a turn")
    return Dialogue(speakers, layout)


def check_is_gpt(folder: Path) -> None:
    """Refuse a run of a network that is not exactly a `GPT`, with its name."""
    name = read_network(folder / WEIGHTS)
    if name != GPT_NAME:
        raise UserError(
            f"{folder} holds a network that is not minigpt's GPT: {name}; make that network in a "
            f"program of your own and load it with minigpt.load({str(folder)!r}, model=...)"
        )


def existing_file(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise UserError(f"{folder} is not a run: it has no {name}", kind="damaged_run")
    return path


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics.jsonl; a line that is not a row, such as half of one, is left out."""
    return _read_rows(path, _FIGURES)


def read_steps(path: Path) -> list[dict[str, Any]]:
    """The rows of a steps.jsonl, read as :func:`read_metrics` reads."""
    return _read_rows(path, FIGURES_OF_A_STEP)


def _read_rows(path: Path, names: tuple[str, ...]) -> list[dict[str, Any]]:
    rows = []
    for row in read_lines(path):
        with contextlib.suppress(TypeError, LookupError, OverflowError):
            figures = [row[name] for name in names] + [row.get(COUNTING, 0.0)]
            if all(map(math.isfinite, figures)):
                rows.append(row)
    return rows


def is_kept(loss: float, best: float | None, *, is_on_line: bool) -> bool:
    """Whether evaluated weights are kept in the place of those with the loss `best`.

    The last weights of a training that began with a model (`is_on_line`) are also kept if their
    loss is only nearly the lowest: the longer a model has trained, the more it writes as its text
    does.
    """
    if best is None:
        return True
    return loss < (best * (1.0 + NEARLY) if is_on_line else best)


def kept_row(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The evaluation in a metrics.jsonl whose weights are kept; empty if there is none."""
    kept: dict[str, Any] = {}
    for row in rows:
        if is_kept(row["val_loss"], kept.get("val_loss"), is_on_line=INTERPOLATION in row):
            kept = row
    return kept


def files_of(folder: Path) -> list[Path]:
    """All files of a run, whole or unfinished, in the order in which they can be deleted: the
    folder is a run until the last file is gone. The folder of wandb counts as a file. Links do not
    count, and are not followed."""
    places = [folder, *(folder / name for name in FOLDERS)]
    held = [file for place in places if not place.is_symlink() for file in place.glob("*")]
    files = [f for f in held if (f.is_file() or f.name == WANDB) and not f.is_symlink()]
    ranked = [(_rank(file.relative_to(folder)), file) for file in files]
    return [file for rank, file in sorted(ranked) if rank < len(_FILES)]


def _rank(path: Path) -> int:
    """The index of a file of a run in `_FILES`; the length of `_FILES` for any other file."""
    whole = path.with_name(whole_name(path.name)).as_posix()
    ranks = (rank for rank, pattern in enumerate(_FILES) if pattern.fullmatch(whole))
    return next(ranks, len(_FILES))


def _remove_leftovers(folder: Path) -> None:
    """Remove the unfinished files of a run that is locked. Pages and the journal are written
    without the lock, too: of those only old files are removed."""
    for file in files_of(folder):
        if not is_unfinished(file.name):
            continue
        with contextlib.suppress(OSError):
            is_for_all = file.suffix == ".html" or file.parent.name == JOURNAL
            if not is_for_all or time.time() - file.stat().st_mtime > _HOUR:
                file.unlink()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from training in `folder` until this one ends, however it ends.
    Unfinished files that killed processes have left are removed."""
    try:
        with FileLock(folder / LOCK, timeout=0):
            _remove_leftovers(folder)
            yield
    except Timeout:
        busy = f"another process is training in {folder}"
        raise UserError(f"{busy}; wait for it or use --out", kind="busy") from None


def check_free(out: Path) -> None:
    """Refuse to write into a place that holds anything: only a new or an empty folder is free.
    What is left of a training that was killed before its first checkpoint is removed."""
    other = "choose another --out"
    if (problem := name_problem(out)) is not None:
        raise UserError(f"{problem}; {other}", kind="setting")
    if not is_utf8(str(out)):  # safetensors opens no such file
        raise UserError(f"the name {str(out)!a} is not UTF-8; {other}", kind="setting")
    remove_untrained(out)
    if (out / CHECKPOINT).is_dir():
        raise UserError(
            f"{out} already holds a run; {other}, or continue it with --resume",
            kind="folder_taken",
        )
    place = next(p for p in (out, *out.absolute().parents) if p.is_dir())
    if not os.access(place, os.W_OK):
        raise UserError(f"no permission to write to {place}; {other}", kind="no_permission")
    if _holds_anything(out) if out.is_dir() else out.exists() or out.is_symlink():
        raise UserError(f"{out} exists and is not an empty folder; {other}", kind="folder_taken")


def _holds_anything(folder: Path) -> bool:
    """Whether there is more in a folder than a journal, which may be there before its run."""
    return any(path.name != JOURNAL for path in folder.iterdir())


def has_checkpoint(folder: Path) -> bool:
    """Whether a run has a checkpoint, whole or damaged."""
    return any((folder / CHECKPOINT / name).exists() for name in (LAST, PREVIOUS))


def is_untrained(folder: Path) -> bool:
    """Whether a folder holds a run that has learned nothing: only the files and the weights that it
    began with, which no evaluation has chosen, and the losses of its first steps, but no
    checkpoint."""
    beginning = read_beginning(folder / WEIGHTS)
    if beginning is None:
        return False
    try:
        unfinished = {file for file in files_of(folder) if is_unfinished(file.name)}
        held = {file.name for file in folder.iterdir() if file not in unfinished}
        saved = {*(folder / CHECKPOINT).glob("*")} - unfinished
        kept = {*(folder / KEPT).glob("*")} - unfinished
    except OSError:
        return False
    others = held - {LOCK, STEPS, *FOLDERS}
    return others == beginning and not saved and kept <= {folder / KEPT / FIRST}


def remove_untrained(folder: Path) -> None:
    """Remove a run that has learned nothing. A folder that holds anything else stays as it is, and
    so does a journal that another program has made. UserError if another process is training in it.
    """
    if not is_untrained(folder):
        return
    with locked(folder):
        if not is_untrained(folder):  # another process has trained it meanwhile
            return
        beginning = read_beginning(folder / WEIGHTS) or set()

        for inner in (folder / CHECKPOINT, folder / KEPT):
            for file in inner.glob("*"):
                file.unlink()
            with contextlib.suppress(FileNotFoundError):
                inner.rmdir()
        if not is_awaited(folder):
            remove_journal(folder)
        for name in (*beginning, STEPS):
            (folder / name).unlink(missing_ok=True)

    (folder / LOCK).unlink(missing_ok=True)  # not earlier: Windows removes no file that is open
    with contextlib.suppress(OSError):  # it may be a mount, a link or the current folder
        folder.rmdir()


def begin_run(
    out: Path,
    config: RunConfig,
    model: "nn.Module",
    tokenizer: "Tokenizer",
    files: Mapping[str, str] | None = None,
) -> None:
    """Make a folder that holds a run: untrained, but whole.

    `files` are further text files by their names. UserError if the place is not free.
    """
    texts = {**(files or {}), CONFIG: config.to_json(), TOKENIZER: tokenizer.to_run_json()}
    with new_folder(out) as folder:
        save_weights(model, folder / WEIGHTS, begun_with=[*texts, WEIGHTS])
        for name, text in texts.items():
            write_text(text, folder / name)


@contextlib.contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder to fill; its files move to `out` if all goes well, and are removed otherwise."""
    check_free(out)
    is_there = out.is_dir()  # empty, and perhaps a mount, a link or the current folder
    place = out if is_there else next(p for p in out.absolute().parents if p.is_dir())
    building = place / f".new-{secrets.token_hex(16)}"  # a name of its own
    try:
        building.mkdir()
        yield building
        if is_there:
            for file in building.iterdir():
                rename(file, out / file.name)
        else:
            out.parent.mkdir(parents=True, exist_ok=True)
            rename(building, out)
    except OSError as error:
        raise UserError(
            f"cannot write {out}: {why_not_written(error, out)}", kind=kind_of_error(error)
        ) from None
    finally:
        shutil.rmtree(building, ignore_errors=True)
