"""Temporary copies of texts that are in no file: standard input, documents from Python.

A copy is a file in a folder of its own, which goes when its process ends. A process that is killed
leaves it.
"""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from .. import UserError
from .readers.chats.datasets import is_conversation
from .readers.document import COPY_FOLDER
from .readers.rows import value_in

_FILES = {"stdin": "stdin.txt", "documents": "documents.jsonl"}  # by the kind of copy
_MAYBE_NAMES = 100  # documents that are checked for being the names of files
LONGEST_NAME = 255  # characters, of a file or a folder
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
    folder = COPY_FOLDER.fullmatch(file.parent.name)
    return folder[1] if folder else None


def left_copies() -> list[Path]:
    """The copies that killed processes of this user have left; links do not count."""
    found = []
    for folder in Path(tempfile.gettempdir()).iterdir():
        kind = COPY_FOLDER.fullmatch(folder.name)
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


# Documents that are in no file


@contextlib.contextmanager
def spooled(documents: Iterable[Any], text_field: str) -> Iterator[Path]:
    """A temporary .jsonl file of documents: texts, or rows of a dataset that hold one or are
    conversations. Its reader says which have no text."""
    with temporary_copy("documents") as file:
        with open(file, "wb") as copy:
            for number, document in enumerate(documents, start=1):
                if isinstance(document, str) and number <= _MAYBE_NAMES:
                    _refuse_name(document, number)
                copy.write(_line_of(_row_of(document, text_field)))
        yield file


def _row_of(document: Any, text_field: str) -> dict[str, Any]:
    """A document as a row: its text, or all of a conversation. Of a row without either only the
    names of its fields are left."""
    if isinstance(document, Mapping) and text_field not in document:
        return dict(document if is_conversation(document) else dict.fromkeys(document))
    text = document if isinstance(document, str) else value_in(document, text_field)
    return {text_field: text if isinstance(text, str) else None}


def _line_of(row: dict[str, Any]) -> bytes:
    """A row as a line in JSON; what JSON does not have is null."""
    try:
        line = json.dumps(row, ensure_ascii=False, default=lambda value: None).encode()
    except UnicodeEncodeError:  # half a surrogate pair
        line = json.dumps(row, default=lambda value: None).encode()
    return line + b"\n"


def _refuse_name(document: str, number: int) -> None:
    """Refuse a document that is the name of a file: a list of names would else be the text."""
    may_be_a_name = 0 < len(document) <= LONGEST_NAME and "\0" not in document
    if may_be_a_name and os.path.isfile(document):
        remedy = "give its name itself, or several as Paths"
        raise UserError(f"document {number} is {document!r}, the name of a file; {remedy}")
