"""What a training says while it goes on: the files in `journal/` of its run that it keeps, the lock
that it holds, and the file by which other programs end it. `state.py` reads what is said here.

A program that starts a training may make the folder before, with files of its own in it.
"""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..system.atomic import write_text
from ..system.errors import kind_of_error
from ..system.json_objects import lines_of, to_json
from ..system.platforms import seconds_asleep
from .begin import locked
from .folder import AT_ONCE, JOURNAL, SAMPLES, STATE, STOP
from .state import ENDS, facts_of, read_texts

SECONDS = 1.0  # from one look to the next; the state is written as often, if it has changed
_SLEPT = 15.0  # seconds; a shorter sleep of the computer is not told
_STOPPED_AT_ONCE = 1  # the exit status
# Of an earlier sitting, these hold until the one that goes on has made steps of its own.
_KEPT = (
    "step",
    "seconds",
    "expected_bits_per_byte",
    "train_bits_per_byte",
    "val_bits_per_byte",
    "best_bits_per_byte",
    "writes",
)


class Journal:
    """Open while a training goes on: holds the lock of its run, keeps `state.json`, and looks for
    `stop`. What cannot be written is left out, since no training should fail because of it.

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
        self._lock = contextlib.ExitStack()
        self._state: dict[str, Any] = {}
        self._written: dict[str, Any] = {}  # the state that the file holds
        self._phase_since = time.monotonic()
        self._rows = b""  # of samples.jsonl, which could not be written yet
        self._writing = threading.RLock()
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="journal", daemon=True)

    def __enter__(self) -> Self:
        """Raises UserError if another process is training the run."""
        self._lock.enter_context(locked(self._run))
        with contextlib.suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            (self._folder / STOP).unlink(missing_ok=True)

        facts = facts_of(self._run)
        before = facts.said if facts.has_checkpoint else {}
        self._state = {
            "began": time.time(),
            "time": time.time(),
            "phase": None,
            "how": None,
            "problem": None,
            "share": None,
            "seconds_left": None,
            "slept": 0.0,
            "took": {},
            "fingerprint": None,
            "goes_on_from": facts.goes_on_from,
            **{name: before.get(name) for name in _KEPT},
            **facts.saved,
        }
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
            message = str(error) or type(error).__name__
            problem = {"kind": kind_of_error(error), "message": message}
            self.tell("failed", how="failed", problem=problem)
        self._lock.close()

    def tell(self, phase: str | None = None, **more: Any) -> None:
        """Say what the training does: its phase, if that is another, is written at once, and
        anything else within a second. After the end nothing is said any more. `time` is when
        `seconds` and `seconds_left` were so many."""
        with self._writing:
            if self._state["phase"] in ENDS:
                return
            is_new = phase is not None and phase != self._state["phase"]
            if is_new:
                self._note_seconds()
                self._state |= {"phase": phase, "share": None}
            if "seconds" in more or "seconds_left" in more:
                self._state["time"] = time.time()
            self._state |= more
            if is_new:
                self._write()

    def _note_seconds(self) -> None:
        """The phase until now is over, and took so many seconds, or so many more."""
        before = self._phase_since
        self._phase_since = time.monotonic()
        phase = self._state["phase"]
        if phase is not None:
            took = self._state["took"]
            seconds = took.get(phase, 0.0) + self._phase_since - before
            self._state["took"] = took | {phase: round(seconds, 2)}

    def end(self, how: str) -> None:
        """Say how the training ended: "finished", "interrupted", or "stopped" if by `stop`."""
        if how == "interrupted" and self.is_stop_asked:
            how = "stopped"
        self.tell("ended", how=how)

    def add_text(self, row: dict[str, Any]) -> None:
        """Add a row to samples.jsonl."""
        with self._writing:
            self._rows += lines_of([row]).encode()
            self.tell(writes=row["text"])
            self._write()

    def drop_texts_after(self, step: int) -> None:
        """Leave only the rows of samples.jsonl up to a step, to which a training has gone back."""
        path = self._folder / SAMPLES
        kept = [row for row in read_texts(self._run) if row["step"] <= step]
        with contextlib.suppress(OSError):
            if path.exists():
                write_text(lines_of(kept), path)

    def _write(self) -> None:
        """Write what is not in the files yet; of the rows a part, if the disk becomes full."""
        with self._writing:
            if self._rows:
                path = self._folder / SAMPLES
                with contextlib.suppress(OSError), open(path, "ab", buffering=0) as file:
                    self._rows = self._rows[file.write(self._rows) :]

            state = dict(self._state)
            if state != self._written:
                text = to_json(state, indent=2) + "\n"
                with contextlib.suppress(OSError):
                    write_text(text, self._folder / STATE, is_synced=False)
                    self._written = state

    def _watch(self) -> None:
        """Until the journal is closed: write what is new, notice a sleep, look for `stop`."""
        before = seconds_asleep()
        while not self._is_closing.wait(SECONDS):
            now = seconds_asleep()
            asleep = now - before
            before = now
            if asleep > _SLEPT:
                self.tell(slept=round(self._state["slept"] + asleep, 1))
            self._write()

            try:
                how = (self._folder / STOP).read_text(encoding="utf-8", errors="replace")
            except OSError:  # there is none
                continue
            is_new = not self.is_stop_asked
            self.is_stop_asked = True
            if how.strip() == AT_ONCE:
                self.end("interrupted")
                os._exit(_STOPPED_AT_ONCE)
            if is_new and not self.is_watched:
                signal.raise_signal(signal.SIGTERM)
