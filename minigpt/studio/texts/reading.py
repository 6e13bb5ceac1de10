"""A program: `python -m minigpt.studio.texts.reading FOLDER` reads the files of a text as a
training would, and writes what it finds to reading.json in the folder, the first time at once.

It ends itself after two minutes, and takes no more than a gigabyte of memory where the system can
see to that: a file can be made so that it is never read to its end. torch is not loaded.

reading.json has

    of              the files and settings that were read
    is_done, share  how much has been read, from 0 to 1
    at              the name of the file that is read now; null before the first, and afterwards
    documents, size, characters         how many, in bytes of UTF-8, and in characters
    is_dialogue, speakers               who speaks, the most frequent first, if it is conversations
    lines           how the text begins, as the model sees it
    left_out        the name, kind and message of whatever was left out: of all files, and of the
                    first ones in archives
    more_left_out   how many more files in archives were left out
    notes           the name and message of what else a person should know of a file
    problem         the kind and message of what stands against a training, and the name of the file
                    if it is one; or null
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from ... import UserError
from ...config import ReadingConfig
from ...data.corpus import Corpus
from ...data.readers.document import Report
from ...data.readers.kinds import check_is_text
from ...data.source import Source, check_text_field
from ...devices.memory import is_out_of_memory
from ...system.platforms import is_windows
from .. import settings
from .folder import (
    READING_FILE,
    WORKING,
    chosen_settings,
    is_done,
    kept_files,
    reading_of,
    write_json,
    write_problem,
)

MOST_SECONDS = 120.0
_MOST_MEMORY = 1 << 30  # bytes
_FEWEST_CHARACTERS = 1_000  # nobody learns a language from so little
_LINES = 12
_LONGEST_LINE = 200  # characters
_MOST_SPEAKERS = 50
_MOST_INSIDE = 200  # files in archives that are named: a text has 2,000 files, these have no limit
_SECONDS_BETWEEN = 0.5  # from one writing of the share to the next

Found = dict[str, Any]


def main(arguments: Sequence[str]) -> None:
    """Read the files of a text in a process that can be spared."""
    folder = Path(arguments[0])
    os.umask(0o077)
    _limit_memory()
    progress = _Progress(folder)
    _end_in_time(progress)
    read(folder, progress)


def read(folder: Path, progress: "_Progress | None" = None) -> None:
    """Read the files of a text, unless that has been done; reading.json then has what was found."""
    with FileLock(folder / WORKING):
        of = reading_of(folder)
        if not is_done(folder / READING_FILE, of):
            _read(folder, of, progress or _Progress(folder))


def _nothing(of: Found) -> Found:
    """What is known before anything is read."""
    unknown = ("at", "documents", "size", "characters", "is_dialogue", "problem")
    lists: Found = {"speakers": [], "lines": [], "left_out": [], "notes": []}
    nothing = {"of": of, "is_done": False, "share": 0.0, "more_left_out": 0}
    return {**nothing, **dict.fromkeys(unknown), **lists}


def _limit_memory() -> None:
    """Limit memory and time, so that no file can use up the machine. Not every system can do
    that."""
    if is_windows():
        return
    import resource

    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))
    with contextlib.suppress(ValueError, OSError):
        seconds = int(MOST_SECONDS) + 10  # of a thread that lets no other one run
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def _end_in_time(progress: "_Progress") -> None:
    """End this program when its time is over."""

    def end() -> None:
        with contextlib.suppress(OSError):
            minutes = f"{MOST_SECONDS / 60:g} minutes"
            progress.fail("too_slow", f"was still being read after {minutes}")
        os._exit(1)

    timer = threading.Timer(MOST_SECONDS, end)
    timer.daemon = True
    timer.start()


def _read(folder: Path, of: Found, progress: "_Progress") -> None:
    """Read the files and write what was found."""
    path = folder / READING_FILE
    write_json(_nothing(of), path)
    try:
        write_json(_found(folder, of, progress), path)
    except UserError as error:
        write_problem(path, of, error.kind, settings.for_window(str(error)))
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        progress.fail("too_large", "needs too much memory")


def _found(folder: Path, of: Found, progress: "_Progress") -> Found:
    """All that reading.json tells. UserError if a setting is wrong."""
    config = ReadingConfig(**settings.reading_fields(chosen_settings(folder)))
    files = kept_files(folder)
    found = _nothing(of)
    texts = []
    for file in files:
        try:
            check_is_text(file, config)
            texts.append(file)
        except UserError as error:
            _leave_out(found, file, error)
    if not texts:
        return _refused(found)
    check_text_field(texts, config)

    progress.begin(found)
    try:
        corpus, reports = Corpus(tuple(texts), config).readable(progress.watch)
    except UserError as error:  # there is no other file
        _leave_out(found, texts[0], error)
        return _refused(found)

    for report in reports:
        _add_report(found, report)
    if not any(report.characters for report in reports):
        return _refused(found)
    _add_text(found, corpus)
    return found | {"is_done": True, "share": 1.0}


class _Progress:
    """Writes to reading.json, now and then, which file is read and how much of all has been."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._found: Found = {}
        self._file: Path | None = None  # that is read now
        self._next = 0.0

    def begin(self, found: Found) -> None:
        """The files are read from now on, one after the other; `found` is what is known before."""
        self._found = found
        self._next = time.monotonic() + _SECONDS_BETWEEN

    def watch(self, file: Path, share: float) -> None:
        """A file is being read, and this share of all has been."""
        self._file = file
        if time.monotonic() < self._next:
            return
        now = {"at": file.name, "share": round(share, 3)}
        write_json(self._found | now, self._folder / READING_FILE)
        self._next = time.monotonic() + _SECONDS_BETWEEN

    def fail(self, kind: str, reason: str) -> None:
        """Write that the file which is being read cannot be read. The text can then not be trained
        on, since a training would read this file, too."""
        found = self._found or _nothing(reading_of(self._folder))
        name = "This text" if self._file is None else self._file.name
        why = {"name": name, "kind": kind, "message": f"{name} {reason}. Remove it."}
        if self._file is not None:
            found["left_out"].append(why)
        write_json(found | {"is_done": True, "problem": why}, self._folder / READING_FILE)


# What was left out


def _refused(found: Found) -> Found:
    """Add that there is no text at all, with the reason for the only file, or for all together."""
    left_out = found["left_out"]
    why = {"kind": "nothing", "message": "There is no text in these files. Add others."}
    if len(left_out) == 1:
        why = left_out[0]
    return found | {"is_done": True, "share": 1.0, "problem": why}


def _leave_out(found: Found, file: Path, error: UserError) -> None:
    """Add a file that cannot be read."""
    reason = str(getattr(error, "reason", error)).replace(str(file), file.name)
    words = reason.partition(";")[0]  # what follows is advice for a terminal
    if type(error).__name__ == "Unreadable":
        words = f"cannot be read: {words}"
    if not words.startswith(file.name):
        words = f"{file.name} {words}"
    _add_left_out(found, file.name, error.kind, f"{words}.")


def _add_left_out(found: Found, name: str, kind: str, message: str) -> None:
    found["left_out"].append({"name": name, "kind": kind, "message": message})


def _add_report(found: Found, report: Report) -> None:
    """Add what there is to say of a file."""
    name = report.file.name
    if report.error is not None:
        _leave_out(found, report.file, report.error)
        return
    if report.characters == 0:
        _add_left_out(found, name, "empty", f"{name} holds no text.")
        return

    if report.left_out:
        parts = [f"{what} ({number:,})" for what, number in report.left_out.most_common()]
        _add_left_out(found, name, "parts", ", ".join(parts))
    room = _MOST_INSIDE - sum(one["kind"] == "inside" for one in found["left_out"])
    for member in report.files_left_out[:room]:
        shown = member.replace(str(report.file), name).partition(";")[0]
        _add_left_out(found, name, "inside", shown)
    found["more_left_out"] += len(report.files_left_out[room:])
    for note in report.notes:
        shown = note.replace(str(report.file), name)
        found["notes"].append({"name": name, "message": shown})


# What was read


def _add_text(found: Found, corpus: Corpus) -> None:
    """Add how large the text is, who speaks in it, and how it begins."""
    source = Source(corpus, validation=None)
    dialogue = source.dialogue
    speakers = () if dialogue is None else tuple(dialogue.speakers)
    characters = sum(corpus.scan.lengths)

    found["documents"] = len(corpus.scan.lengths)
    found["size"] = corpus.scan.text_bytes
    found["characters"] = characters
    found["is_dialogue"] = dialogue is not None
    found["speakers"] = list(speakers[:_MOST_SPEAKERS])
    found["lines"] = _first_lines(corpus)
    if characters < _FEWEST_CHARACTERS:
        message = f"Too short: {characters:,} letters. Add a few pages."
        found["problem"] = {"kind": "too_short", "message": message}


def _first_lines(corpus: Corpus) -> list[str]:
    """The first lines that are not empty, those that are too long shortened."""
    lines: list[str] = []
    for piece in corpus.pieces():
        for line in piece.text.split("\n"):
            if line.strip():
                is_long = len(line) > _LONGEST_LINE
                lines.append(line[: _LONGEST_LINE - 1] + "…" if is_long else line)
            if len(lines) == _LINES:
                return lines
    return lines


if __name__ == "__main__":
    main(sys.argv[1:])
