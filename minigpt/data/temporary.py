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
def temporary_copy(kind: str) -> Iterator[Path]:
    """A place for a copy of "stdin" or of "documents"."""
    with (
        tempfile.TemporaryDirectory(prefix=f"minigpt-{kind}-") as folder,
        FileLock(Path(folder) / _LOCK),
    ):
        yield Path(folder) / _FILES[kind]


def kind_of(file: Path) -> str | None:
    """Of which kind a temporary copy is; None for another file."""
    folder = _FOLDER.fullmatch(file.parent.name)
    return folder[1] if folder else None


def left_copies() -> list[Path]:
    """The copies that killed processes of this user have left; links are none."""
    found = []
    for folder in Path(tempfile.gettempdir()).iterdir():
        kind = _FOLDER.fullmatch(folder.name)
        if kind is None or folder.is_symlink() or not folder.is_dir():
            continue
        file = folder / _FILES[kind[1]]
        with contextlib.suppress(OSError):  # in use, or not to be read
            if _is_own(folder) and _holds_alone(folder, file):
                if (folder / _LOCK).exists():  # else it was made before there were locks
                    with FileLock(folder / _LOCK, timeout=0):
                        pass
                found.append(file)
    return found


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
