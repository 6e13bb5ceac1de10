"""The rows that the files of a run have got since a window asked the last time: steps, evaluations,
and texts.
"""

import contextlib
import os
from pathlib import Path
from typing import Any

from ...runs.folder import JOURNAL, METRICS, SAMPLES, STEPS
from ...runs.state import facts_of
from ...system.json_objects import parse_object
from .shown import Told

_ROWS = {"steps": STEPS, "evaluations": METRICS, "samples": f"{JOURNAL}/{SAMPLES}"}
_MOST_STEPS = 1000  # of a whole curve
_MOST_NEW_STEPS = 100  # at a time


def rows_after(run: Path, after: str) -> Told:
    """The rows of a run after those that were told before: {"rows", "anew", "after"}.

    "rows" has lists of "steps", "evaluations" and "samples". "after" is the `after` of the next
    call: when the training began this time, how far each file was read, and which file that was; ""
    is before all rows. The files in "anew" were written anew, as by a training that has gone back
    to an earlier step: these rows are all of theirs, and earlier ones no longer count. Of many
    steps some are left out, never the first and the last.
    """
    began = _milliseconds(facts_of(run).said.get("began"))
    began_then, marks = _marks(after)
    told: Told = {"rows": {}, "anew": [], "after": ""}
    read_to = []
    for (name, file), mark in zip(_ROWS.items(), marks, strict=True):
        lines, new, is_anew = _lines_after(run / file, mark, goes_on=began == began_then)
        if name == "steps":
            is_whole = mark[1] == 0 or is_anew
            lines = _thinned(lines, _MOST_STEPS if is_whole else _MOST_NEW_STEPS)
        told["rows"][name] = [row for row in map(parse_object, lines) if row]
        if is_anew:
            told["anew"].append(name)
        read_to.append(new)
    files = (f"{file:x}.{offset:x}" for file, offset in read_to)
    told["after"] = "-".join([f"{began:x}", *files])
    return told


def _milliseconds(seconds: Any) -> int:
    return int(1000 * seconds) if isinstance(seconds, int | float) else 0


def _marks(after: str) -> tuple[int, list[tuple[int, int]]]:
    """When the training began that had written the rows; and which file was read, by its number in
    the file system, and how far, of each of the three."""
    with contextlib.suppress(ValueError):
        began, *parts = after.split("-")
        marks = []
        for part in parts:
            file, offset = part.split(".")
            marks.append((int(file, 16), int(offset, 16)))
        if len(marks) == len(_ROWS) and all(offset >= 0 for _, offset in marks):
            return int(began, 16), marks
    return 0, [(0, 0)] * len(_ROWS)


def _lines_after(
    path: Path, mark: tuple[int, int], *, goes_on: bool
) -> tuple[list[bytes], tuple[int, int], bool]:
    """The whole lines of a file after a mark, the mark after them, and whether the file was written
    anew since. A training that begins again may do so twice between two looks, and the second file
    have the number of the first."""
    number, offset = mark
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            is_same = goes_on and status.st_ino == number and status.st_size >= offset
            is_anew = offset > 0 and not is_same
            start = 0 if is_anew else offset
            file.seek(start)
            read = file.read()
    except OSError:
        return [], (0, 0), offset > 0
    end = read.rfind(b"\n") + 1  # what follows is no row yet
    return read[:end].split(b"\n")[:-1], (status.st_ino, start + end), is_anew


def _thinned(lines: list[bytes], most: int) -> list[bytes]:
    """Lines from all over a file, at most so many: the first and the last are among them."""
    if len(lines) <= most:
        return lines
    last = len(lines) - 1
    return [lines[i * last // (most - 1)] for i in range(most)]
