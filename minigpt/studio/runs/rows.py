"""The rows that a training adds to the files of its run, from where somebody has read to.

A cursor says how far each file has been read. It is opaque to whoever keeps it: the end of what was
read, and a checksum of the bytes before that, which shows whether the file was written anew.
"""

import contextlib
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...runs.folder import METRICS, STEPS
from ...runs.journal import JOURNAL, ROWS, TEXTS
from ...system.json_objects import parse_object

BEGINNING = ""  # the cursor before all rows
_FILES = {
    f"{JOURNAL}/{ROWS}": "phase",
    STEPS: "step",
    METRICS: "evaluation",
    f"{JOURNAL}/{TEXTS}": "sample",
}
_OWN_EVENTS = ("problem", "solved", "end")  # of the phases
_MOST_STEPS = 1000  # of a whole curve
_MOST_NEW_STEPS = 100  # at a time
_CHECKED = 256  # bytes before the end of what was read

Event = dict[str, Any]  # its "event", and the row as its "data"


@dataclass(frozen=True)
class _Mark:
    """How far a file was read."""

    offset: int = 0
    checksum: int = 0


def rows_after(run: Path, cursor: str) -> tuple[list[Event], str]:
    """The rows after a cursor, as events, and the cursor after them.

    Events are called phase, problem, solved, end, step, evaluation and sample. Where a file was
    written anew, as by a training that has gone back to an earlier step, an event `again` comes
    first: the earlier events that its "of" names no longer count, and all events of the new file
    follow. Of many steps some are left out, never the first and the last.
    """
    marks = _marks(cursor)
    events: list[Event] = []
    after = []
    for (name, event), mark in zip(_FILES.items(), marks, strict=True):
        lines, new, is_anew = _read(run / name, mark)
        if is_anew:
            events.append({"event": "again", "data": {"of": event}})
        if event == "step":
            is_whole = mark.offset == 0 or is_anew
            lines = _thinned(lines, _MOST_STEPS if is_whole else _MOST_NEW_STEPS)
        for line in lines:
            events += _events(event, line)
        after.append(new)
    return events, "-".join(f"{mark.offset:x}.{mark.checksum:x}" for mark in after)


def _marks(cursor: str) -> list[_Mark]:
    """What a cursor says of each file; one that is not ours is the beginning."""
    with contextlib.suppress(ValueError):
        marks = []
        for part in cursor.split("-"):
            offset, checksum = part.split(".")
            marks.append(_Mark(int(offset, 16), int(checksum, 16)))
        if len(marks) == len(_FILES) and all(mark.offset >= 0 for mark in marks):
            return marks
    return [_Mark()] * len(_FILES)


def _read(path: Path, mark: _Mark) -> tuple[list[bytes], _Mark, bool]:
    """The whole lines of a file after a mark, the mark after them, and whether the file was written
    anew, so that they are all of its lines."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            is_anew = size < mark.offset or _checksum(file, mark.offset) != mark.checksum
            start = 0 if is_anew else mark.offset
            file.seek(start)
            lines = file.read(size - start).split(b"\n")[:-1]  # what follows is no row yet
            if not lines and not is_anew:
                return [], mark, False
            end = start + sum(len(line) + 1 for line in lines)
            return lines, _Mark(end, _checksum(file, end)), is_anew
    except OSError:
        return [], _Mark(), mark.offset > 0


def _checksum(file: Any, end: int) -> int:
    """Of the bytes before an offset of a file."""
    start = max(end - _CHECKED, 0)
    file.seek(start)
    return zlib.crc32(file.read(end - start))


def _thinned(lines: list[bytes], most: int) -> list[bytes]:
    """Lines from all over a file, at most so many: the first and the last are among them."""
    if len(lines) <= most:
        return lines
    last = len(lines) - 1
    return [lines[i * last // (most - 1)] for i in range(most)]


def _events(event: str, line: bytes) -> list[Event]:
    """The event of a line; none of one that is no row."""
    row = parse_object(line)
    if not row:
        return []
    if event == "phase" and row.get("phase") in _OWN_EVENTS:
        event = row["phase"]
    return [{"event": event, "data": row}]
