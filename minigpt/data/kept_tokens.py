"""The texts that are kept as tokens in the cache folder: found, and removed.

It needs no torch: a program that only deletes is not to wait for torch.
"""

import contextlib
import re
import shutil
from pathlib import Path

from filelock import FileLock, Timeout

from ..config import cache_folder
from ..system.json_objects import read_object
from ..system.platforms import rename

FOLDER = "tokens"  # in the cache folder, which may hold other programs' files
META = "meta.json"
TOKENIZER = "tokenizer.json"
TRAIN = "train.bin"
VALIDATION = "validation.bin"

_NAME = re.compile(r"[0-9a-f]{32}(\.tmp)?")  # of a prepared text, or of one that is being made
_MOST_BYTES = 5e9  # of texts that are kept


def find_prepared(fingerprint: str) -> list[Path]:
    """The folders in the cache that hold tokens of a text, by any tokenizer, and unfinished folders
    that killed processes have left, whose text nobody knows."""
    place = cache_folder() / FOLDER
    if not place.is_dir():
        return []
    found = []
    for folder in filter(_is_ours, place.iterdir()):
        with (
            contextlib.suppress(Timeout),
            lock_of(folder).acquire(timeout=0),
        ):  # else it is being made
            if folder.suffix == ".tmp" or _is_of_text(folder, fingerprint):
                found.append(folder)
    return found


def remove_prepared(folder: Path) -> None:
    """Remove a prepared text that no process is making; one that has it open can still read it."""
    temporary = folder.with_suffix(".tmp")
    with contextlib.suppress(OSError), lock_of(folder).acquire(timeout=0):
        if folder != temporary and temporary.exists() and _is_ours(temporary):
            shutil.rmtree(temporary)  # of a process that was killed; no folder can take its place
        if folder != temporary:
            rename(folder, temporary)
        shutil.rmtree(temporary)


def evict(made: Path) -> None:
    """Keep the texts used last, up to 5 GB; remove what killed processes left."""
    texts = []
    for folder in filter(_is_ours, made.parent.iterdir()):
        if folder.suffix == ".tmp":
            remove_prepared(folder)
        elif folder != made:
            texts.append(folder)

    size = _size(made)
    for folder in sorted(texts, key=_last_used, reverse=True):
        size += _size(folder)
        if size > _MOST_BYTES:
            remove_prepared(folder)


def lock_of(folder: Path) -> FileLock:
    """The lock of a prepared text, one of 256 in all. Their files stay: another process may be
    waiting for one."""
    return FileLock(folder.with_name(f"{folder.name[:2]}.lock"))


def _is_ours(folder: Path) -> bool:
    """Whether a folder is certainly a prepared text, or one that was not finished: by its name, and
    by all that it holds."""
    if not _NAME.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
        return False

    held = {file.name for file in folder.iterdir()}
    ours = {META, TOKENIZER, TRAIN, VALIDATION}
    is_unfinished = folder.suffix == ".tmp"
    return held <= ours if is_unfinished else held == ours


def _last_used(folder: Path) -> int:
    """When a text was used last, in nanoseconds."""
    return (folder / META).stat().st_mtime_ns


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def _is_of_text(folder: Path, fingerprint: str) -> bool:
    """Whether the tokens in a folder were made of the text with this fingerprint."""
    return bool(read_object(folder / META).get("text") == fingerprint)
