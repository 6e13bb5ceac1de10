"""A text as tokens on disk: a folder of four files, which docs/token_files.md describes.

token_cache.py writes them, once for each text, and the next run opens what it finds.
"""

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np

from .. import UserError
from ..tokenizer import load_tokenizer
from .batches import Dataset, TokenIds
from .kept_tokens import META, TOKENIZER, TRAIN, VALIDATION

FORMAT = 5

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

    def __getitem__(self, part: slice) -> TokenIds:
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


def open_dataset(folder: Path) -> Dataset:
    """The tokens in a folder, if they are whole; else a UserError."""
    try:
        meta = json.loads((folder / META).read_text(encoding="utf-8"))
        for name in (TOKENIZER, TRAIN, VALIDATION):
            _verify(folder / name, meta["files"][name])

        tokenizer = load_tokenizer(folder / TOKENIZER)
        train = Tokens(folder / TRAIN, tokenizer.vocab_size)
        validation = Tokens(folder / VALIDATION, tokenizer.vocab_size)
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise UserError(f"the token cache {folder} is damaged: {error}") from None

    with contextlib.suppress(OSError):  # the cache may be another user's
        os.utime(folder / META)  # which tells when the text was used last
    return Dataset(tokenizer, train, validation)


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


def _verify(file: Path, record: Record) -> None:
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
