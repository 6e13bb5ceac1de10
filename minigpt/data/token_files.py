"""Texts as tokens on disk: each is a folder of four files in the cache folder, which
docs/token_files.md describes.

token_cache.py makes them, once for each text, and the next run opens what it finds. It needs no
torch: a program that only deletes is not to wait for torch.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from .. import UserError
from ..system.json_objects import read_object
from ..system.platforms import rename

FORMAT = 5
FOLDER = "tokens"  # in the cache folder, which may hold other programs' files
META = "meta.json"
TOKENIZER = "tokenizer.json"
TRAIN = "train.bin"
VALIDATION = "validation.bin"


_NAME = re.compile(r"[0-9a-f]{32}(\.tmp)?")  # of a prepared text, or of one that is being made
_MOST_BYTES = 5e9  # of texts that are kept

Record = dict[str, Any]  # of a file: its size, when it was written, and its checksum


class Tokens:
    """The ids in a file, read when they are asked for: a mapped file would count as memory.

    The file is given by its name, or open.
    """

    def __init__(self, file: Path | IO[bytes], vocab_size: int):
        self.dtype = id_dtype(vocab_size)
        self._file = io.FileIO(file) if isinstance(file, Path) else file
        self._length = os.fstat(self._file.fileno()).st_size // self.dtype.itemsize

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> NDArray[np.unsignedinteger]:
        start, stop, _ = part.indices(self._length)
        size = self.dtype.itemsize * max(stop - start, 0)  # bytes

        self._file.seek(self.dtype.itemsize * start)
        data = self._file.read(size) or b""
        if len(data) != size:
            raise UserError(f"the token cache was cut short: {self._file.name}")
        return np.frombuffer(data, self.dtype)


def id_dtype(vocab_size: int) -> np.dtype[Any]:
    """The type of ids in a file: two bytes while they fit."""
    return np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")


def store(file: Path, blocks: Iterable[bytes]) -> Record:
    """Write a file, sync it to disk, and return the record by which it is known again."""
    digest = hashlib.sha256()
    with open(file, "wb") as out:
        for block in blocks:
            out.write(block)
            digest.update(block)
        out.flush()
        os.fsync(out.fileno())

    status = file.stat()
    return {
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "sha256": digest.hexdigest(),
    }


def store_meta(folder: Path, files: dict[str, Record], dtype: np.dtype[Any], text: str) -> None:
    """Write the last file, with the records of the others and the fingerprint of the text: without
    it a folder is not whole."""
    meta = {"format": FORMAT, "text": text, "dtype": dtype.str, "files": files}
    text = json.dumps(meta, indent=1) + "\n"
    store(folder / META, [text.encode()])


def verify(file: Path, record: Record) -> None:
    """Refuse a file if its size differs; if just its time does, the checksum decides."""
    status = file.stat()
    if status.st_size != record["size"]:
        raise ValueError(f"{file.name} is longer or shorter than it was")

    if status.st_mtime_ns != record["mtime_ns"]:  # a copy, perhaps
        with open(file, "rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        if found != record["sha256"]:
            raise ValueError(f"the checksum of {file.name} does not match")
        with contextlib.suppress(OSError):  # the cache may be another user's
            os.utime(file, ns=(record["mtime_ns"], record["mtime_ns"]))


# Found, and removed


def cache_folder() -> Path:
    """Where token files are kept: $MINIGPT_CACHE, or minigpt in the user's cache folder."""
    if chosen := os.environ.get("MINIGPT_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "minigpt"


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
