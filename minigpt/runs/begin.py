"""How the folder of a run is made, locked, and removed again while the run has learned nothing; and
which of the files in it are the run's.
"""

import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from .. import UserError
from ..config.checked import is_utf8
from ..system.atomic import is_unfinished, whole_name, write_text
from ..system.errors import kind_of_error
from ..system.platforms import name_problem, rename, why_not_written
from .folder import (
    BEST,
    CHECKPOINT,
    CONFIG,
    DAMAGED,
    FIRST,
    FOLDERS,
    GENERATION,
    JOURNAL,
    JOURNAL_FILES,
    KEPT,
    LAST,
    LOCK,
    METRICS,
    PAGE,
    PICTURE,
    PLAN,
    PREVIOUS,
    STATE,
    STEP_NAME,
    STEPS,
    STUDIO_FILES,
    TOKENIZER,
    WANDB,
    WEIGHTS,
    RunConfig,
)
from .weights import files_begun_with, save_weights

if TYPE_CHECKING:
    from torch import nn

    from ..tokenizer import Tokenizer

# All files that a run can ever have, as patterns of their paths, in the order in which they are
# deleted: what shows that it is a run goes last. The studio has files of its own in the journal.
_IN_CHECKPOINT = (LAST, PREVIOUS, BEST, DAMAGED)
_OF_OLDER_VERSIONS = (".torchrun", "samples.txt")
_ALONE = (TOKENIZER, PLAN, GENERATION, METRICS, STEPS, PICTURE, PAGE, WEIGHTS, CONFIG)
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
_BUILDING = re.compile(r"\.new-[0-9a-f]{32}")  # a folder in which the files of a run are made
_PATIENCE = 1.0  # seconds: who looks whether a run is trained holds its lock for a moment
_HOUR = 3600.0  # seconds: whatever was not written to for so long, nobody is writing


def begin_run(
    out: Path,
    config: RunConfig,
    model: "nn.Module",
    tokenizer: "Tokenizer",
    files: Mapping[str, str] | None = None,
) -> None:
    """Make the files of a run, untrained but whole, in a folder of :func:`make_room` that this
    process has locked.

    `files` are further text files by their names. UserError if the place is not free.
    """
    with new_folder(out, is_locked=True) as folder:
        texts = {**(files or {}), CONFIG: config.to_json(), TOKENIZER: tokenizer.to_run_json()}
        save_weights(model, folder / WEIGHTS, begun_with=[*texts, WEIGHTS])
        for name, text in texts.items():
            write_text(text, folder / name)


def make_room(out: Path, *, is_locked: bool = False) -> None:
    """Make the folder of a new run, to be locked before there is a run in it. UserError if the
    place is not free; `is_locked` says that this process has locked it."""
    check_free(out, is_locked=is_locked)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_written(out, error) from None


@contextlib.contextmanager
def new_folder(out: Path, *, is_locked: bool = False) -> Iterator[Path]:
    """A folder to fill; its files move to `out` if all goes well, and are removed otherwise."""
    check_free(out, is_locked=is_locked)
    is_there = out.is_dir()  # empty: made for a run without a name, or a mount, or a link
    place = out if is_there else next(p for p in out.absolute().parents if p.is_dir())
    building = place / f".new-{secrets.token_hex(16)}"  # a name of its own

    try:
        building.mkdir()
        yield building
        if is_there:
            # The config last: without it the folder is not taken for a run.
            for file in sorted(building.iterdir(), key=lambda file: file.name == CONFIG):
                rename(file, out / file.name)
        else:
            out.parent.mkdir(parents=True, exist_ok=True)
            rename(building, out)
    except OSError as error:
        raise _not_written(out, error) from None
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _not_written(out: Path, error: OSError) -> UserError:
    why = why_not_written(error, out)
    return UserError(f"cannot write {out}: {why}", kind=kind_of_error(error))


def check_free(out: Path, *, is_locked: bool = False) -> None:
    """Refuse to write into a place that holds anything: only a new or an empty folder is free.
    What is left of a training that was killed before its first checkpoint is removed, also if its
    files were still being made, unless this process trains there: `is_locked`."""
    other = "choose another --out"
    if (problem := name_problem(out)) is not None:
        raise UserError(f"{problem}; {other}", kind="setting")
    if not is_utf8(str(out)):  # safetensors opens no such file
        raise UserError(f"the name {str(out)!a} is not UTF-8; {other}", kind="setting")
    if out.is_dir() and not is_locked:
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
    """Whether there is more in a folder than a journal and its lock, which may be there before the
    run."""
    return any(path.name not in (JOURNAL, LOCK) for path in folder.iterdir())


def is_untrained(folder: Path) -> bool:
    """Whether a folder holds a run that has learned nothing: only the files and the weights that it
    began with, which no evaluation has chosen, and the losses of its first steps, but no
    checkpoint. If the process was killed while it made these files, some of them are missing, or
    all: then there is only its journal."""
    try:
        building = _building(folder)
        beginning = _beginning(folder, building)
        if beginning is None:
            return False
        unfinished = {file for file in files_of(folder) if is_unfinished(file.name)}
        held = {file.name for file in folder.iterdir() if file not in unfinished}
        saved = {*(folder / CHECKPOINT).glob("*")} - unfinished
        kept = {*(folder / KEPT).glob("*")} - unfinished
    except OSError:
        return False
    others = held - {LOCK, STEPS, *FOLDERS} - {made.name for made in building}
    is_beginning = others <= beginning if building else others == beginning
    return is_beginning and not saved and kept <= {folder / KEPT / FIRST}


def _building(folder: Path) -> list[Path]:
    """The folders in which files were made that were to move into this one: see `new_folder`."""
    named = [path for path in folder.iterdir() if _BUILDING.fullmatch(path.name)]
    return [path for path in named if path.is_dir() and not path.is_symlink()]


def _beginning(folder: Path, building: Sequence[Path]) -> set[str] | None:
    """The names of the files that a run begins with; None if the folder holds no such run. The
    weights name them, which are the first to be made; until then, no file has moved."""
    if (folder / WEIGHTS).exists():
        return files_begun_with(folder / WEIGHTS)
    for place in building:
        names = files_begun_with(place / WEIGHTS)
        if names is not None:
            return names
    has_begun = bool(building) or (folder / JOURNAL / STATE).exists()
    return set() if has_begun else None


def remove_untrained(folder: Path, *, is_locked: bool = False) -> None:
    """Remove a run that has learned nothing. A folder that holds anything else stays as it is, and
    so does a journal that another program has made. UserError if another process is training in it;
    `is_locked` says that this one is.
    """
    if not is_untrained(folder):
        return
    with contextlib.nullcontext() if is_locked else locked(folder):
        if not is_untrained(folder):  # another process has trained it meanwhile
            return
        building = _building(folder)
        beginning = _beginning(folder, building) or set()

        for inner in (folder / CHECKPOINT, folder / KEPT):
            for file in inner.glob("*"):
                file.unlink()
            with contextlib.suppress(FileNotFoundError):
                inner.rmdir()
        if not _is_awaited(folder):
            _remove_from_journal(folder, JOURNAL_FILES)
            with contextlib.suppress(OSError):
                (folder / JOURNAL).rmdir()
        for name in (*beginning, STEPS):
            (folder / name).unlink(missing_ok=True)
        for made in building:  # last: it may hold the weights, which name the files
            shutil.rmtree(made)

    if not is_locked:
        with contextlib.suppress(OSError):  # it may be a mount, a link or the current folder
            (folder / LOCK).unlink(missing_ok=True)  # Windows removes no file that is open
            folder.rmdir()


def _is_awaited(run: Path) -> bool:
    """Whether another program has made the journal, which still wants to read how it ended."""
    try:
        return any(whole_name(path.name) not in JOURNAL_FILES for path in (run / JOURNAL).iterdir())
    except OSError:
        return False


def remove_unbegun(run: Path) -> None:
    """Remove what a program has put into a folder for a training that never began: its journal, and
    the folder if that leaves it empty. Nothing else is touched, and nothing at all where there is a
    run. UserError if a process is training there."""
    with locked(run):
        if (run / CONFIG).exists() or (run / WEIGHTS).exists():
            return
        _remove_from_journal(run, (*STUDIO_FILES, *JOURNAL_FILES))
    (run / LOCK).unlink(missing_ok=True)
    for folder in (run / JOURNAL, run):
        with contextlib.suppress(OSError):  # somebody has put a file there
            folder.rmdir()


def _remove_from_journal(run: Path, names: Iterable[str]) -> None:
    """Remove the files with these names from a journal, whole or unfinished; one that is a link is
    not followed."""
    folder = run / JOURNAL
    if folder.is_symlink() or not folder.is_dir():
        return
    for file in folder.iterdir():
        if whole_name(file.name) in names:
            file.unlink(missing_ok=True)


# While it is trained


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from training in `folder` until this one ends, however it ends.
    Unfinished files that killed processes have left are removed."""
    try:
        with FileLock(folder / LOCK, timeout=_PATIENCE):
            _remove_leftovers(folder)
            yield
    except Timeout:
        busy = f"another process is training in {folder}"
        raise UserError(f"{busy}; wait for it or use --out", kind="busy") from None


# Its files


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
