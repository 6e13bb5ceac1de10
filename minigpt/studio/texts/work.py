"""Texts are read, and planned for, by programs of their own: here they are started, one after the
other for each text, and ended when they take too long.

All that they find is in the text's folder. So whatever was left undone, by a studio that was ended
or by a program that crashed, is found there and done again.
"""

import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..children import Children, end_child
from .folder import (
    PLANS_FILE,
    READING_FILE,
    is_done,
    is_readable,
    kept_files,
    plans_now,
    plans_of,
    reading_now,
    reading_of,
    write_problem,
)

_READ_AT_ONCE = 2  # texts; one alone is planned for, since that measures the computer
_AT_ONCE = 64  # those too that wait until one of these has ended
_SECONDS_TO_READ = 130.0  # a little longer than the program gives itself
_SECONDS_TO_PLAN = 300.0
_SECONDS_TO_END = 10.0  # for the program of a text, before the text is changed all the same


class TextWork:
    """Reads texts and plans for them, in the background."""

    def __init__(self, children: Children, root: Path):
        self._children = children
        self._root = root
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="texts")
        self._reading = threading.Semaphore(_READ_AT_ONCE)
        self._planning = threading.Lock()
        self._changing = threading.Lock()
        self._works: dict[str, _Work] = {}  # by the text's id
        self._is_closed = False

    def keep_going(self, folder: Path) -> None:
        """Have done whatever is to be done for a text."""
        if not _is_something_left(folder):
            return
        with self._changing:
            if folder.name in self._works or self._is_closed:
                return
            work = _Work(folder)
            self._works[folder.name] = work
            self._threads.submit(self._do, work)

    def stop(self, folder: Path) -> None:
        """Have nothing done for a text, before it changes."""
        with self._changing:
            work = self._works.pop(folder.name, None)
        if work is None:
            return

        work.stop()
        # What still waits for its turn runs no program: nobody waits for it.
        if work.running.acquire(timeout=_SECONDS_TO_END):
            work.running.release()

    def close(self) -> None:
        """Have nothing done any more."""
        with self._changing:
            self._is_closed = True
            works = list(self._works.values())
        for work in works:
            work.stop()
        self._threads.shutdown(cancel_futures=True)

    def _do(self, work: "_Work") -> None:
        folder = work.folder
        try:
            with self._reading:
                self._run("reading", work, READING_FILE, reading_of(folder), _SECONDS_TO_READ)
            if not work.is_stopped and is_readable(reading_now(folder)):
                with self._planning:
                    self._run("planning", work, PLANS_FILE, plans_of(folder), _SECONDS_TO_PLAN)
        except OSError:  # the folder is gone, or the disk is full: somebody asks again
            pass
        finally:
            with self._changing:
                if self._works.get(folder.name) is work:  # no newer one, after this was stopped
                    del self._works[folder.name]

    def _run(self, name: str, work: "_Work", file: str, of: Any, seconds: float) -> None:
        """Run a program for a text, unless its file is already whole. If the program fails, the
        problem is written to the file."""
        path = work.folder / file
        with work.running:
            if work.is_stopped or is_done(path, of):
                return
            child = self._children.start(
                f"{__package__}.{name}", [str(work.folder.absolute())], self._root
            )
            is_late = not work.wait_for(child, seconds)
            if work.is_stopped or is_done(path, of):
                return
            if is_late:
                write_problem(path, of, "too_slow", f"The {name} of this text took too long.")
            else:
                write_problem(path, of, "failed", f"The {name} of this text ended unexpectedly.")


class _Work:
    """What is being done for a text."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.is_stopped = False
        self.running = threading.Lock()  # held while a program runs
        self._child: subprocess.Popen[bytes] | None = None

    def wait_for(self, child: "subprocess.Popen[bytes]", seconds: float) -> bool:
        """Whether a child ends by itself in time; else it is ended."""
        self._child = child
        if self.is_stopped:  # while the child was being started
            self.stop()
        try:
            child.wait(seconds)
            return True
        except subprocess.TimeoutExpired:
            end_child(child)
            return False

    def stop(self) -> None:
        """End the child, if there is one, and start no other."""
        self.is_stopped = True
        if self._child is not None:
            end_child(self._child)


def _is_something_left(folder: Path) -> bool:
    """Whether a text is to be read, or planned for."""
    if not kept_files(folder):
        return False
    reading = reading_now(folder)
    if reading is None or not reading["is_done"]:
        return True
    plans = plans_now(folder)
    return is_readable(reading) and (plans is None or not plans["is_done"])
