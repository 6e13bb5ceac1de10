"""The line of trainings: when nothing in `runs/` trains, the one that has waited longest starts.

A thread looks about once a second. Whatever it has begun goes on without it.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ...runs.folder import AT_ONCE, JOURNAL, LOG, STOP
from ...runs.state import ACTIVE, facts_of
from ..children import start_detached
from ..workspace import Workspace
from .asking import (
    TrainingJob,
    is_busy,
    read_job,
    start_command,
    write_job,
    write_stop,
)
from .shown import runs_in, told_of

_SECONDS = 1.0  # from one look to the next

_log = logging.getLogger(__name__)


class Line:
    """Starts trainings one after the other while it is open."""

    def __init__(self, workspace: Workspace):
        self._workspace = workspace
        self._is_closing = threading.Event()
        self._nudge = threading.Event()
        self._changing = threading.RLock()
        self._thread = threading.Thread(target=self._watch, name="line", daemon=True)

    def open(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Stop looking. What trains goes on."""
        self._is_closing.set()
        self._nudge.set()
        self._thread.join()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is started meanwhile; afterwards the line is looked at at once."""
        with self._changing:
            yield
        self._nudge.set()

    def look(self) -> Path | None:
        """Start the next training if nothing is trained; returns its folder if one was started."""
        with self._changing:
            return self._look()

    def _look(self) -> Path | None:
        waiting: dict[Path, TrainingJob] = {}
        is_free = True
        for run in runs_in(self._workspace.runs):
            job = read_job(run)
            if job is not None and job.is_waiting:
                waiting[run] = job
            if is_busy(run):
                is_free = False
                _repeat_stop(run, job)
            elif job is not None and job.stop is not None and told_of(run)["state"] not in ACTIVE:
                write_job(run, replace(job, stop=None))  # a terminal may go on with it
        if not is_free or not waiting:
            return None

        first = min(waiting, key=lambda run: waiting[run].asked)
        self._start(first, waiting[first])
        return first

    def _start(self, run: Path, job: TrainingJob) -> None:
        """Start a training. That it was started is written down first: a training that was never
        started can be asked for again, but two processes would disturb each other."""
        for name in (STOP, LOG):
            (run / JOURNAL / name).unlink(missing_ok=True)
        began = facts_of(run).said.get("began")
        now = time.time()
        job = replace(job, is_waiting=False, started=now, began_before=began, stop=None)
        write_job(run, job)
        try:
            start_detached(
                "minigpt",
                start_command(self._workspace, run, job),
                folder=self._workspace.root,
                log=run / JOURNAL / LOG,
            )
        except OSError as error:
            text = f"error: it could not be started: {error.strerror or error}\n"
            (run / JOURNAL / LOG).write_text(text, encoding="utf-8")

    def _watch(self) -> None:
        while not self._is_closing.is_set():
            try:
                self.look()
            except OSError:  # the disk is full, say: the next look may go better
                pass
            except Exception:
                _log.exception("the line of trainings")
            self._nudge.wait(_SECONDS)
            self._nudge.clear()


def _repeat_stop(run: Path, job: TrainingJob | None) -> None:
    """Make the file `stop` again, if a process that has just begun has removed it. It is asked of
    one training: another one, which a terminal has begun meanwhile, goes on."""
    if job is None or job.stop is None:
        return
    began = facts_of(run).said.get("began")
    if began not in (None, job.stop_began):
        has_just_begun = job.stop_began == job.began_before  # it was stopped before it said so
        stop = job.stop if has_just_begun else None
        with contextlib.suppress(OSError):  # the disk is full: the file alone may find a place
            write_job(run, replace(job, stop=stop, stop_began=began))
        if stop is None:
            return
    file = run / JOURNAL / STOP
    if not os.path.lexists(file):
        write_stop(run, AT_ONCE if job.stop == AT_ONCE else "stop")
