"""The journal of a run, `journal/` in its folder: how a training tells other programs what it does,
and how they end it.

    journal.jsonl   a row for each phase: when it began, its name, how far it is; and how it ended
    samples.jsonl   what the model writes, from before its first step on
    copied.json     how much of what it writes at the end is in its text word for word
    alive           touched every two seconds while the training goes on
    stop            whoever makes this file ends the training

A program that starts a training may make the folder before, with files of its own in it.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..system.atomic import whole_name, write_text
from ..system.errors import kind_of_error
from ..system.json_objects import lines_of, read_lines, to_json

JOURNAL = "journal"  # a folder, which holds
ROWS = "journal.jsonl"
TEXTS = "samples.jsonl"
COPIED = "copied.json"
ALIVE = "alive"
STOP = "stop"
JOURNAL_FILES = (ROWS, TEXTS, COPIED, ALIVE, STOP)
JOB = "job.json"  # and what the studio adds: what a run is to learn, and for how long;
LOG = "log.txt"  # what the training prints;
HELD = "job.lock"  # held by its process, from beginning to end
STUDIO_FILES = (JOB, LOG, HELD)
AT_ONCE = "now"  # what `stop` holds if nothing is to be saved any more

SECONDS_ALIVE = 2.0  # from one touch of `alive` to the next
SECONDS_SILENT = 10.0  # without a touch, after which a training is taken to have ended
_SECONDS_BETWEEN_SHARES = 1.0
_SLEPT = 15.0  # seconds without a touch, after which the computer has slept
_STOPPED_AT_ONCE = 1  # the exit status


class Journal:
    """Open while a training goes on: keeps `alive` young and looks for `stop`.

    What cannot be written is left out, since no training should fail because of its journal.

    Attributes:
        is_stop_asked: whether `stop` has been made since the journal was opened.
        is_watched: whether the training looks at `is_stop_asked` by itself. Until it does, `stop`
            interrupts the program as SIGTERM does.
    """

    def __init__(self, run: Path):
        self.is_stop_asked = False
        self.is_watched = False
        self._run = run
        self._folder = run / JOURNAL
        self._has_ended = False
        self._next_share = 0.0  # when a share may be told again, by time.monotonic
        self._unwritten = dict.fromkeys((ROWS, TEXTS), b"")  # since the disk is full
        self._adding = threading.Lock()
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="journal", daemon=True)

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            (self._folder / STOP).unlink(missing_ok=True)
        self._touch()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_closing.set()
        self._thread.join()

        if error is None:
            self.end("finished")
        elif isinstance(error, KeyboardInterrupt | SystemExit):
            self.end("interrupted")
        else:
            self.end("failed", kind_of_error(error), str(error) or type(error).__name__)

        with contextlib.suppress(OSError):
            (self._folder / ALIVE).unlink(missing_ok=True)

    def tell(self, phase: str, **more: Any) -> None:
        """Add a row to journal.jsonl: a phase begins, or something happens meanwhile."""
        self._next_share = time.monotonic() + _SECONDS_BETWEEN_SHARES
        self._add(ROWS, {"time": round(time.time(), 3), "phase": phase, **more})

    def tell_share(self, phase: str, share: float) -> None:
        """Add a row that says which share of a phase is done, unless a row was added within the
        last second."""
        if time.monotonic() >= self._next_share:
            self.tell(phase, share=round(min(share, 1.0), 3))

    def end(self, how: str, kind: str | None = None, message: str = "") -> None:
        """Add the last row, unless that is there. `how` is "finished", "interrupted", "stopped" or
        "failed", which has the kind of the error, see system/errors.py."""
        if self._has_ended:
            return
        self._has_ended = True
        if how == "interrupted" and self.is_stop_asked:
            how = "stopped"
        self.tell("end", how=how, kind=kind, message=message)

    def add_text(self, row: dict[str, Any]) -> None:
        """Add a row to samples.jsonl."""
        self._add(TEXTS, row)

    def drop_texts_after(self, step: int) -> None:
        """Leave only the rows of samples.jsonl up to a step, to which a training has gone back."""
        path = self._folder / TEXTS
        kept = [row for row in read_texts(self._run) if row["step"] <= step]
        with contextlib.suppress(OSError):
            if path.exists():
                write_text(lines_of(kept), path)

    def _add(self, name: str, row: dict[str, Any]) -> None:
        with self._adding:
            self._unwritten[name] += lines_of([row]).encode()
            self._write(name)

    def _write(self, name: str) -> None:
        """Write what waits for a file, or a part of it if the disk becomes full."""
        with (
            contextlib.suppress(OSError),
            open(self._folder / name, "ab", buffering=0) as file,
        ):
            written = file.write(self._unwritten[name])
            self._unwritten[name] = self._unwritten[name][written:]

    def _touch(self) -> None:
        with contextlib.suppress(OSError):
            (self._folder / ALIVE).touch()

    def _write_rest(self) -> None:
        """Write what could not be written before."""
        with self._adding:
            for name in [name for name, rest in self._unwritten.items() if rest]:
                self._write(name)

    def _watch(self) -> None:
        """Until the journal is closed: touch `alive`, look for `stop`, notice a sleep."""
        last = time.time()
        while not self._is_closing.wait(SECONDS_ALIVE):
            asleep = time.time() - last - SECONDS_ALIVE
            last = time.time()
            if asleep > _SLEPT:
                self.tell("slept", seconds=round(asleep, 1))
            self._touch()
            self._write_rest()
            self._look_for_stop()

    def _look_for_stop(self) -> None:
        try:
            how = (self._folder / STOP).read_text(encoding="utf-8", errors="replace")
        except OSError:  # there is none
            return

        if how.strip() == AT_ONCE:
            self.is_stop_asked = True
            self.end("interrupted")
            os._exit(_STOPPED_AT_ONCE)
        if not self.is_stop_asked:
            self.is_stop_asked = True
            if not self.is_watched:
                signal.raise_signal(signal.SIGTERM)


@contextlib.contextmanager
def telling_failure(run: Path | None) -> Iterator[None]:
    """Within, a run is continued. An error before its journal is open is written into the journal
    all the same, unless another process is training the run."""
    begun = time.time()
    try:
        yield
    except Exception as error:
        kind = kind_of_error(error)
        if run is not None and kind != "busy" and has_journal(run):
            is_told = any(
                row["phase"] == "end" and row.get("time", 0) >= begun for row in read_phases(run)
            )
            if not is_told:
                Journal(run).end("failed", kind, str(error))
        raise


def read_texts(run: Path) -> list[dict[str, Any]]:
    """The rows of samples.jsonl in a run's journal, those that are whole."""
    return [row for row in read_lines(run / JOURNAL / TEXTS) if {"step", "text"} <= row.keys()]


def texts_of_evaluations(run: Path) -> dict[int, str]:
    """What the model wrote after each evaluation, by step; empty if nothing was written down. If an
    evaluation was made again at the same step, its text is the later one."""
    rows = [row for row in read_texts(run) if row.get("is_evaluation")]
    return {int(row["step"]): str(row["text"]) for row in rows}


def read_phases(run: Path) -> list[dict[str, Any]]:
    """The rows of journal.jsonl, those that are whole."""
    return [row for row in read_lines(run / JOURNAL / ROWS) if "phase" in row]


def keep_copied(run: Path, figures: dict[str, Any]) -> None:
    """Write down how much a run copies: the fields of `Copies`. OSError if that fails."""
    text = to_json(figures, indent=2) + "\n"
    (run / JOURNAL).mkdir(exist_ok=True)  # an older run has none
    write_text(text, run / JOURNAL / COPIED)


def has_journal(run: Path) -> bool:
    """Whether there is a journal, with or without its run."""
    return (run / JOURNAL).is_dir()


def is_awaited(run: Path) -> bool:
    """Whether another program has made the journal, which still wants to read how it ended."""
    try:
        return any(whole_name(path.name) not in JOURNAL_FILES for path in (run / JOURNAL).iterdir())
    except OSError:
        return False


def remove_journal(run: Path) -> None:
    """Remove what a training has written into a journal, and the folder if that leaves it empty."""
    remove_from_journal(run, JOURNAL_FILES)
    with contextlib.suppress(OSError):
        (run / JOURNAL).rmdir()


def remove_from_journal(run: Path, names: Iterable[str]) -> None:
    """Remove the files with these names from a journal, whole or unfinished; one that is a link is
    not followed."""
    folder = run / JOURNAL
    if folder.is_symlink() or not folder.is_dir():
        return
    for file in folder.iterdir():
        if whole_name(file.name) in names:
            file.unlink(missing_ok=True)
