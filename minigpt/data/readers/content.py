"""The bytes of a file, or of a member of an archive, unpacked from gzip or zstandard.

What is unpacked has limits (docs/documents.md): a few kilobytes may else fill memory and disk.
"""

import codecs
import contextlib
import gzip
import io
import json
import os
import re
import stat
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, BinaryIO

from ... import UserError
from ...config import ReadingConfig
from ...system.platforms import how_to_install
from .document import Refused, Unreadable

BLOCK = 1 << 20  # bytes read at a time
MOST_UNPACKED = 1 << 30  # bytes of all that an archive or a document holds
MOST_WHOLE = 100 << 20  # bytes of a file, or a part of a document, that is read whole
MOST_TIMES = 200  # times its packed size that a file may be when it is unpacked ...
ALWAYS_UNPACKED = 10 << 20  # ... but this many bytes are always allowed

HEAD = 1 << 16  # bytes by which a file is known
# How an object begins, or a list of rows; [Note] begins a text.
_JSON = re.compile(r"\s*(?:\{\s*\"|\[\s*(?:\{|null\b))")
_GZIP = b"\x1f\x8b"  # how such a file begins: RFC 1952
_ZSTANDARD = b"\x28\xb5\x2f\xfd"  # RFC 8878
_MARKS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OF_LIBRARIES = ("ZstdError", "LZMAError")  # errors of damage; some Pythons have none of these
DAMAGED = (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError)

FileVersion = tuple[int, int]  # when a file was last written to, in nanoseconds, and its size


def version_of(file: str | Path) -> FileVersion | None:
    """A value that changes when the file is written to; None if there is no file."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):  # ValueError: no file can have such a name
        return None
    return status.st_mtime_ns, status.st_size


@dataclass(eq=False)
class Content:
    """The content of a file. It can be opened as often as needed."""

    source: Path
    size: int  # in bytes, as it is packed
    open_packed: Callable[[], AbstractContextManager[IO[bytes]]]  # opens the packed bytes anew
    reading: ReadingConfig
    archive: "Content | None" = None  # that holds it
    unpacked: int = 0  # bytes that it was found to unpack to, with archives in it unpacked too

    @classmethod
    def of_file(cls, file: Path, reading: ReadingConfig) -> "Content":
        """The content of a file on disk; Unreadable if there is none. Refused if it is a pipe, such
        as <(zcat a.gz) in a shell: a text is read several times."""
        try:
            status = file.stat()
        except (OSError, ValueError) as error:
            raise Unreadable(file, getattr(error, "strerror", None) or str(error)) from None
        if stat.S_ISFIFO(status.st_mode):
            raise Refused(
                file, "is a pipe, which can be read once only; send it to -, which is stdin"
            )
        return cls(file, status.st_size, lambda: open(file, "rb"), reading)

    @property
    def name(self) -> str:
        """Its name in lower case, without the ending of a packed file."""
        return self.source.name.lower().removesuffix(".gz").removesuffix(".zst")

    @cached_property
    def head(self) -> bytes:
        """Its first bytes, unpacked."""
        with self.opened() as stream:
            return stream.read(HEAD)

    @cached_property
    def beginning(self) -> str:
        """Its first characters, in UTF-8 or the encoding of its mark."""
        return self.head.decode(marked_encoding(self.head), "replace")

    @contextlib.contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Its bytes as a stream. What is wrong with it is raised as Unreadable, also while it is
        read."""
        try:
            with self.open_packed() as packed:
                begin = packed.read(4)
                packed.seek(0)
                is_packed = begin.startswith((_GZIP, _ZSTANDARD))
                if not is_packed:
                    yield packed  # type: ignore[misc]
                    return
                unpacked: Any = gzip.GzipFile(fileobj=packed)
                if begin.startswith(_ZSTANDARD):
                    unpacked = _zstandard(packed, self.source)
                yield io.BufferedReader(_Limited(unpacked, self), BLOCK)

        except DAMAGED as error:
            raise Unreadable(self.source, reason_of(error)) from None
        except RuntimeError as error:  # of zipfile
            if "password" not in str(error):
                raise
            raise Refused(self.source, "is protected by a password", "locked") from None
        except Exception as error:
            if type(error).__name__ not in _OF_LIBRARIES:
                raise
            raise Unreadable(self.source, reason_of(error)) from None

    @contextlib.contextmanager
    def seekable(self) -> Iterator[BinaryIO]:
        """Its bytes as a file in which a reader may jump: a temporary one, if it is packed."""
        with contextlib.ExitStack() as stack:
            stream = stack.enter_context(self.opened())
            if isinstance(stream, io.BufferedReader) and isinstance(stream.raw, io.FileIO):
                yield stream
                return

            copy = stack.enter_context(tempfile.TemporaryFile())
            self._copy(stream, copy)
            copy.seek(0)
            yield copy

    def _copy(self, stream: BinaryIO, copy: IO[bytes]) -> None:
        """Copy a stream that is not larger than all that may be unpacked."""
        most = self.limit(MOST_UNPACKED)
        size = 0
        while block := stream.read(BLOCK):
            size += len(block)
            if size > most:
                raise self.too_large(most)
            copy.write(block)

    def whole(self) -> bytes:
        """All of its bytes, which must not be too many."""
        most = self.limit(MOST_WHOLE)
        parts = []
        size = 0
        with self.opened() as stream:
            while part := stream.read(BLOCK):
                size += len(part)
                if size > most:
                    raise self.too_large(most)
                parts.append(part)
        return b"".join(parts)

    @cached_property
    def data(self) -> Any:
        """The object, or the list of rows, that it holds in JSON; None if it is neither. UserError
        if it is too large."""
        if _JSON.match(self.beginning) is None:
            return None
        data = self.whole()
        try:
            return json.loads(data.decode(marked_encoding(self.head)))
        except (ValueError, RecursionError):
            return None

    def limit(self, usual: int) -> int:
        """A limit, raised as much as was asked for."""
        return int(usual * self.reading.raise_limits)

    def too_large(self, most: int) -> UserError:
        """The error for content that is larger than `most` bytes."""
        size = f"{most / (1 << 20):,.0f} MB"
        reason = f"is larger than {size} inside; if you trust it, use --raise-limits 10"
        return Refused(self.source, reason, "too_large")

    def unpacks_too_much(self) -> UserError:
        """The error for content that is suspiciously small while it is packed."""
        reason = f"unpacks to more than {self.limit(MOST_TIMES)} times its size"
        remedy = "if you trust it, use --raise-limits 10"
        return Refused(self.source, f"{reason}; {remedy}", "too_large")

    def most_unpacked(self) -> int:
        """How many bytes it may unpack to, by its packed size. A file in an archive may take no
        more than the other files of the archive have left."""
        most = max(self.limit(MOST_TIMES) * self.size, self.limit(ALWAYS_UNPACKED))
        if self.archive is None:
            return most
        return min(most, self.archive.most_unpacked() - self.archive.unpacked)

    def count_unpacked(self, size: int) -> None:
        """Note how many bytes it was found to unpack to, the most of all times it was opened."""
        self.unpacked = max(self.unpacked, size)


def marked_encoding(head: bytes) -> str:
    """The encoding of the mark with which a file begins; UTF-8 if there is none."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    return "utf-8-sig"


class _Limited(io.RawIOBase):
    """The bytes of a packed stream, as long as they are not suspiciously many."""

    def __init__(self, unpacked: IO[bytes], content: Content):
        self._unpacked = unpacked
        self._content = content
        self._most = content.most_unpacked()
        self._size = 0  # of what was read

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._unpacked.read(len(buffer))
        self._size += len(data)
        self._content.count_unpacked(self._size)
        if self._size > self._most:
            raise self._content.unpacks_too_much()
        buffer[: len(data)] = data
        return len(data)


def _zstandard(packed: IO[bytes], source: Path) -> Any:
    """The bytes of a zstandard stream: by the standard library from Python 3.14 on."""
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        raise needs_extra(source, "zstandard", "documents", "no_reader") from None
    return zstd.ZstdFile(packed)


def needs_extra(source: Path, what: str, extra: str, kind: str) -> UserError:
    """The error for a file that a library has to read, which an extra installs."""
    return Refused(source, f"needs a reader of {what}: {how_to_install(extra)}", kind)


def reason_of(error: BaseException) -> str:
    """What the system or a library says of damage, in one line."""
    said = getattr(error, "strerror", None) or str(error) or "it ends too early"
    return " ".join(said.split())
