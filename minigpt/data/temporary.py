"""Temporary copies of texts that can be read only once: standard input, documents from Python.

A copy is a file in a folder of its own, which goes when its process ends. A process that is killed
leaves it.
"""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

_FILES = {"stdin": "stdin.txt", "documents": "documents.jsonl"}  # by the kind of copy
_FOLDER = re.compile(r"minigpt-(stdin|documents)-\w+")
_LOCK = ".lock"  # held as long as the copy is needed


@contextlib.contextmanager
def temporary_folder(kind: str) -> Iterator[Path]:
    """A folder for temporary files of one kind, which is locked as long as it is needed."""
    with (
        tempfile.TemporaryDirectory(
            prefix=f"minigpt-{kind}-", ignore_cleanup_errors=True
        ) as folder,
        FileLock(Path(folder) / _LOCK, thread_local=False),
    ):
        yield Path(folder)


@contextlib.contextmanager
def temporary_copy(kind: str) -> Iterator[Path]:
    """A place for a copy of "stdin" or of "documents"."""
    with temporary_folder(kind) as folder:
        yield folder / _FILES[kind]


def kind_of(file: Path) -> str | None:
    """Of which kind a temporary copy is; None for another file."""
    folder = _FOLDER.fullmatch(file.parent.name)
    return folder[1] if folder else None


def left_copies() -> list[Path]:
    """The copies that killed processes of this user have left; links do not count."""
    found = []
    for folder in Path(tempfile.gettempdir()).iterdir():
        kind = _FOLDER.fullmatch(folder.name)
        if kind is None or not _is_left(folder):
            continue
        file = folder / _FILES[kind[1]]
        with contextlib.suppress(OSError):
            if _holds_alone(folder, file):
                found.append(file)
    return found


def remove_left(kind: str) -> None:
    """Remove the folders of a kind that killed processes of this user have left."""
    for folder in Path(tempfile.gettempdir()).glob(f"minigpt-{kind}-*"):
        if (folder / _LOCK).exists() and _is_left(folder):  # else it has just been made
            shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    """Whether a folder is of this user, and nobody needs it any more."""
    lock = folder / _LOCK
    if folder.is_symlink() or not folder.is_dir() or lock.is_symlink():
        return False
    try:
        if not _is_own(folder):
            return False
        if lock.exists():  # else it was made before there were locks
            with FileLock(lock, timeout=0):
                pass
    except OSError:  # in use, or not to be read
        return False
    return True


def _is_own(folder: Path) -> bool:
    """Whether a folder is this user's: anybody may make one where temporary files are."""
    return not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()


def _holds_alone(folder: Path, file: Path) -> bool:
    """Whether a folder holds a file, perhaps a lock, and nothing else. Neither may be a link: some
    versions of filelock would empty the file that a lock leads to."""
    held = [*folder.iterdir()]
    is_alone = {one.name for one in held} <= {file.name, _LOCK}
    return is_alone and file.is_file() and not any(one.is_symlink() for one in held)


def remove_copy(file: Path) -> None:
    """Remove a copy and its folder."""
    shutil.rmtree(file.parent, ignore_errors=True)
