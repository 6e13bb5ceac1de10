"""What a run is doing, from its folder alone: a training that goes on without the studio, and one
that was begun in a terminal, are seen like any other.

What the files of a run say is read again only when one of them has changed, so that a look at fifty
runs takes a few milliseconds. Weights are never read, only the header of their file.
"""

import contextlib
import json
import os
import shutil
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ...config.checked import is_utf8
from ...data.readers.content import FileVersion, version_of
from ...runs.folder import CONFIG, COUNTING, LOCK
from ...runs.journal import ALIVE, HELD, JOB, JOURNAL, ROWS, SECONDS_SILENT
from ...system.json_objects import without_halves
from ..answers import print_mistake
from ..problems import OTHER, problem
from .facts import Facts, Row, read_facts, signature_of
from .jobs import TrainingJob, last_line
from .times import CLOCK, elapsed_of, end_of, minutes_of, share_of, time_of

WAITING = "waiting"
READING = "reading"
MEASURING = "measuring"
LEARNING = "learning"
STOPPING = "stopping"
STOPPED = "stopped"
DONE = "done"
DIED = "died"
FAILED = "failed"
GONE = "gone"
ACTIVE = (READING, MEASURING, LEARNING, STOPPING)

_PHASES = {"reading": READING, "planning": MEASURING, "tokens": MEASURING, "training": LEARNING}
_STARTING = 45.0  # seconds that a process has to begin, on a busy computer


class States:
    """Looks at the runs in a folder, and remembers what it has read of them.

    May be used by several threads.
    """

    def __init__(self, runs: Path):
        self._runs = runs
        self._facts: dict[Path, Facts] = {}
        # Runs whose process was seen to be gone, each with the times when its `alive` was touched
        # and when it was started.
        self._ended: dict[Path, tuple[FileVersion | None, float | None]] = {}
        self._lock = threading.Lock()

    def of(self, folder: Path, now: float | None = None) -> dict[str, Any]:
        """What a run is doing, as the window gets it; of a folder that is not there "gone"."""
        with self._lock:
            return self._describe(folder, time.time() if now is None else now)

    def all(self, now: float | None = None) -> list[dict[str, Any]]:
        """All runs, those that wait or train too, the newest first. Of those that wait, their
        place in line and in how many seconds they start."""
        now = time.time() if now is None else now
        with self._lock:
            found = {run: self._describe(run, now) for run in runs_in(self._runs)}
            self._forget(found)
            jobs = {run: self._facts[run].job for run in found if run in self._facts}

        waiting = [run for run, state in found.items() if state["state"] == WAITING]
        starts_in = _time_left(found.values(), now)
        for place, run in enumerate(sorted(waiting, key=lambda run: _asked(jobs[run])), start=1):
            state = found[run]
            state["place"] = place
            state["starts_in"] = None if starts_in is None else round(starts_in)
            if starts_in is not None:
                starts_in += 60 * (state["minutes"] or 0.0) - (state["elapsed"] or 0.0)
        return sorted(found.values(), key=lambda state: state["changed"] or 0.0, reverse=True)

    def is_busy(self, folder: Path) -> bool:
        """Whether a process trains in a folder now."""
        with self._lock:
            try:
                facts = self._read(folder)
                return facts is not None and self._has_process(folder, facts, time.time())
            except Exception as error:  # others can train all the same
                print_mistake(error)
                return False

    def facts(self, folder: Path) -> Facts | None:
        """What the files of a run say; None if it is gone."""
        with self._lock:
            return self._read(folder)

    def _forget(self, there: Iterable[Path]) -> None:
        """Forget the runs in the folder that are gone."""
        for gone in {run for run in self._facts if run.parent == self._runs} - {*there}:
            del self._facts[gone]
            self._ended.pop(gone, None)

    def _describe(self, folder: Path, now: float) -> dict[str, Any]:
        """What a run is doing. One whose files are not what the studio expects has failed, so that
        the others are still shown."""
        if not is_utf8(folder.name):  # no address can name it
            wrong = problem("The name of its folder is not UTF-8. Rename the folder.", OTHER)
            name = without_halves(folder.name)
            return {**_UNKNOWN, "name": name, "state": FAILED, "problem": wrong}
        try:
            found = self._found(folder, now)
            json.dumps(found, allow_nan=False)  # as it will be sent
            return found
        except Exception as error:
            print_mistake(error)
            wrong = problem(f"{type(error).__name__}: {error}", OTHER)
            return {**_UNKNOWN, "name": folder.name, "state": FAILED, "problem": wrong}

    def _found(self, folder: Path, now: float) -> dict[str, Any]:
        facts = self._read(folder)
        if facts is None:
            return {**_UNKNOWN, "name": folder.name, "state": GONE}

        state, wrong = self._state(folder, facts, now)
        elapsed = elapsed_of(facts, now, is_active=state in ACTIVE)
        minutes = minutes_of(facts)
        ends_at = end_of(facts, minutes, now) if state in ACTIVE else None
        counting = facts.evaluation.get(COUNTING)
        size = facts.bytes_per_letter
        return {
            **_UNKNOWN,
            **facts.shown,
            "name": folder.name,
            "state": state,
            "bits": facts.kept,
            "letters": _letters(facts.kept, size),
            "counting_letters": _letters(counting, size),
            "elapsed": None if elapsed is None else round(elapsed, 1),
            "minutes": minutes,
            "ends_at": ends_at,
            "step": facts.step.get("step", facts.evaluation.get("step")),
            "share": share_of(facts) if state in (READING, MEASURING) else None,
            "problem": wrong,
            "has_page": facts.has_learned,
        }

    # What its process does

    def _state(self, folder: Path, facts: Facts, now: float) -> tuple[str, dict[str, str] | None]:
        """The state, and what went wrong if something did."""
        job = facts.job
        if job is not None and job.is_waiting:
            return WAITING, None

        rows = [row for row in facts.phases if row["phase"] in _PHASES or row["phase"] == "end"]
        began = None if job is None else job.started
        of_job = rows if began is None else [row for row in rows if time_of(row) >= began - CLOCK]
        last = of_job[-1] if of_job else None
        if last is not None and last["phase"] == "end":
            return _how_it_ended(last, facts)

        if self._has_process(folder, facts, now):
            wrong = _unsolved(facts.phases)
            if facts.is_stop_asked:
                return STOPPING, wrong
            return READING if last is None else _PHASES[last["phase"]], wrong

        if last is not None:
            return _died(folder, facts)
        if job is not None and job.started is not None:  # it ended before it told anything
            return _not_begun(folder, facts, rows)
        return _of_older_run(facts), None

    def _has_process(self, folder: Path, facts: Facts, now: float) -> bool:
        """Whether a process trains in a folder. Locks are tried only where `alive` says too little,
        and once: what has ended stays so until somebody begins again."""
        job = facts.job
        started = None if job is None else job.started
        touched = version_of(folder / JOURNAL / ALIVE)
        if touched is not None and now - touched[0] / 1e9 < SECONDS_SILENT:
            return True

        held = folder / JOURNAL / HELD
        is_young = started is not None and now - started < _STARTING
        if is_young and not held.exists() and not last_line(folder):
            return True
        key = (touched, started)
        if self._ended.get(folder) == key:
            return False
        if _is_held(held) or _is_held(folder / LOCK):
            return True
        self._ended[folder] = key
        return False

    def _read(self, folder: Path) -> Facts | None:
        """The facts of a run; None if there is no such folder."""
        signature = signature_of(folder)
        known = self._facts.get(folder)
        if known is not None and known.signature == signature:
            return known
        if not folder.is_dir():
            self._facts.pop(folder, None)
            return None
        self._facts[folder] = read_facts(folder, signature)
        return self._facts[folder]


_UNKNOWN: dict[str, Any] = {
    "name": None,
    "state": None,
    "text": None,
    "bits": None,
    "letters": None,
    "counting_letters": None,
    "elapsed": None,
    "minutes": None,
    "ends_at": None,
    "changed": None,
    "step": None,
    "share": None,
    "parameters": None,
    "problem": None,
    "place": None,
    "starts_in": None,
    "is_dialogue": False,
    "begins_with_base": False,
    "speakers": [],
    "has_page": False,
    "copied": None,
    "curve": None,
}


def runs_in(runs: Path) -> list[Path]:
    """The folders that hold a run, or the request or the journal of one; hidden ones and links are
    left out."""
    try:
        with os.scandir(runs) as entries:
            names = [
                entry.name
                for entry in entries
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []
    folders = [runs / name for name in names]
    signs = (f"{JOURNAL}/{JOB}", f"{JOURNAL}/{ROWS}", CONFIG)
    return [run for run in folders if any(os.path.isfile(f"{run}/{sign}") for sign in signs)]


def free_space(place: Path) -> int | None:
    """How many bytes are free on the disk of a folder; None if that is not known."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(place).free
    return None


def is_too_little(free: int | None, least: int) -> bool:
    """Whether fewer bytes are free than are needed, as far as that is known."""
    return free is not None and free < least


# What goes wrong, and how a training ended


def _unsolved(rows: list[Row]) -> dict[str, str] | None:
    """The last problem of a training, such as a full disk, unless it was solved later."""
    for row in reversed(rows):
        if row["phase"] in ("solved", "end"):
            return None
        if row["phase"] == "problem":
            return problem(str(row.get("message") or ""), row.get("kind"))
    return None


def _how_it_ended(row: Row, facts: Facts) -> tuple[str, dict[str, str] | None]:
    """The state after the last row of a journal."""
    how = row.get("how")
    if how == "finished":
        return DONE, None
    if how == "failed":
        return FAILED, problem(str(row.get("message") or ""), row.get("kind"))
    if facts.has_checkpoint:
        return STOPPED, None
    return FAILED, problem("Stopped before it had learned anything; nothing is kept.", "nothing")


def _died(folder: Path, facts: Facts) -> tuple[str, dict[str, str] | None]:
    """The state of a training whose process is gone, and did not say why."""
    if facts.has_checkpoint:
        return DIED, problem(last_line(folder), "died")
    return FAILED, problem(last_line(folder) or "Ended unexpectedly.", "died")


def _not_begun(folder: Path, facts: Facts, earlier: list[Row]) -> tuple[str, dict[str, str] | None]:
    """The state of a run whose process ended before it told anything in the journal, and what this
    process printed last. A run that was to go on has the state that it had before."""
    wrong = problem(last_line(folder) or "It could not be started.")
    if earlier and earlier[-1]["phase"] == "end" and facts.has_checkpoint:
        return _how_it_ended(earlier[-1], facts)[0], wrong
    if earlier and facts.has_checkpoint:
        return DIED, wrong
    return FAILED, wrong


def _of_older_run(facts: Facts) -> str:
    """The state of a run without a journal, which an older version has trained."""
    if facts.evaluation.get("done") == 1 or not facts.has_checkpoint:
        return DONE
    return STOPPED


# Of all runs


def _time_left(runs: Iterable[dict[str, Any]], now: float) -> float | None:
    """In how many seconds nothing trains any more; None if that is not known."""
    left = 0.0
    for run in runs:
        if run["state"] not in ACTIVE:
            continue
        if run["ends_at"] is not None:
            left = max(left, run["ends_at"] - now)
        elif run["minutes"] is not None:
            left = max(left, 60 * run["minutes"] - (run["elapsed"] or 0.0))
        else:
            return None
    return left


def _asked(job: TrainingJob | None) -> float:
    return 0.0 if job is None else job.asked


def _letters(bits: Any, bytes_per_letter: float | None) -> float | None:
    """Among how many equally likely letters there is to choose, at so many bits per byte."""
    if not isinstance(bits, int | float) or bytes_per_letter is None:
        return None
    return round(2.0 ** min(bits * bytes_per_letter, 64.0), 4)


def _is_held(lock: Path) -> bool:
    """Whether a process holds a lock."""
    if lock.is_symlink() or not lock.is_file():
        return False
    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False
