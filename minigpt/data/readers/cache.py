"""What slow readers have read, kept while the process lives: a text is read several times.

It lies in one temporary file without a name, which is gone with the process.
"""

import atexit
import json
import shutil
import tempfile
import threading
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO

from .document import Document, Layout, Report, Turn

_IN_MEMORY = 1 << 20  # bytes of a text that is being read


class _Cache:
    """The documents of files, each under a key that tells its file from others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._ranges: dict[Hashable, tuple[int, int, Report]] = {}  # begin and end in the file

    def documents(self, key: Hashable, report: Report) -> Iterator[Document] | None:
        """The documents that are kept for a key, if there are; the report is filled in."""
        if key not in self._ranges:
            return None
        begin, end, own = self._ranges[key]
        report.kind = own.kind
        report.left_out = own.left_out
        report.files_left_out = own.files_left_out
        report.notes = own.notes
        return self._lines(begin, end)

    def keep(
        self, key: Hashable, documents: Iterable[Document], report: Report
    ) -> Iterator[Document]:
        """The same documents; when all have been taken they are kept."""
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as own:
            for document in documents:
                own.write(_line(document))
                yield document
            own.seek(0)
            self._append(key, own, report)

    def forget(self) -> None:
        """Keep nothing of what was read so far."""
        with self._lock:
            self._ranges.clear()
            if self._file is not None:
                self._file.truncate(0)

    def _append(self, key: Hashable, own: IO[bytes], report: Report) -> None:
        with self._lock:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115, as long as the process
                atexit.register(self._file.close)
            begin = self._file.seek(0, 2)
            shutil.copyfileobj(own, self._file)
            self._ranges[key] = (begin, self._file.tell(), report)

    def _lines(self, begin: int, end: int) -> Iterator[Document]:
        position = begin
        while position < end:
            with self._lock:
                assert self._file is not None
                self._file.seek(position)
                line = self._file.readline()
                position = self._file.tell()
            yield _document(line)


CACHE = _Cache()


def _line(document: Document) -> bytes:
    """A document as a line of JSON."""
    layout = document.layout and asdict(document.layout)
    values = {**document._asdict(), "source": str(document.source), "layout": layout}
    return json.dumps(values).encode() + b"\n"


def _document(line: bytes) -> Document:
    values = json.loads(line)
    values["source"] = Path(values["source"])
    values["turns"] = tuple(Turn(*turn) for turn in values["turns"])
    if values["layout"] is not None:
        values["layout"] = Layout(**values["layout"])
    return Document(**values)
