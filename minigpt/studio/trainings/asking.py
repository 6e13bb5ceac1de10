"""A training is asked for, stopped and gone on with. All of it is in the folder of its run, so that
a studio that is opened again finds what another one has begun: its request is `journal/job.json`.

The studio alone writes requests; a run that was trained in a terminal has none until somebody goes
on with it here.
"""

import contextlib
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ... import UserError
from ...measure.counting import COUNTING
from ...runs.begin import remove_unbegun
from ...runs.folder import AT_ONCE, JOB, JOURNAL, STOP
from ...runs.state import DONE, RunFacts, RunState, facts_of, is_training, state_of
from ...system.atomic import write_text
from ...system.json_objects import read_object
from ..answers import Refusal, print_mistake
from ..settings import options
from ..texts.folder import FILES, kept_files
from ..workspace import Workspace, safe_name

_MOST_MINUTES = 60 * 24 * 7  # a week
_ELSE = "run"
_LONGEST_IN_BYTES = 200  # of 255 that a name may have


@dataclass(frozen=True)
class TrainingJob:
    """One request. Times are seconds since 1970."""

    asked: float
    is_waiting: bool  # in line
    minutes: float | None = None  # of the whole training; None: as the run has them already
    text: dict[str, Any] | None = None  # its id, name, files, size, characters and beginning
    settings: dict[str, Any] = field(default_factory=dict)
    goes_on: bool = False  # with the run that is there
    max_epochs: float | None = None  # of one that goes on
    started: float | None = None  # when its process was, the last time
    began_before: float | None = None  # what the run said then of the training before
    stop: str | None = None  # "stop" or "now", once that was asked for
    stop_began: float | None = None  # what the run said then of the training that is to stop

    def waiting(self, **changes: Any) -> "TrainingJob":
        """The same in line again."""
        return replace(self, is_waiting=True, stop=None, **changes)


def read_job(run: Path) -> TrainingJob | None:
    """The request of a run; None if there is none, or it is damaged."""
    try:
        job = TrainingJob(**read_object(run / JOURNAL / JOB))
        numbers = [job.asked, job.minutes, job.max_epochs]
        numbers += [job.started, job.began_before, job.stop_began]
        return job if all(isinstance(number or 0.0, int | float) for number in numbers) else None
    except TypeError:
        return None


def write_job(run: Path, job: TrainingJob) -> None:
    """Write down a request, whole or not at all. FileNotFoundError if the run was moved."""
    (run / JOURNAL).mkdir(exist_ok=True)
    write_text(json.dumps(asdict(job), indent=2) + "\n", run / JOURNAL / JOB)


def ask(
    workspace: Workspace,
    *,
    text: dict[str, Any],
    name: str,
    minutes: float,
    settings: dict[str, Any],
) -> Path:
    """Put a training of a text into the line; returns the folder of its run, whose name is like
    `name` and taken by no other."""
    job = TrainingJob(
        asked=time.time(),
        is_waiting=True,
        minutes=_checked(minutes),
        text=text,
        settings=settings,
    )
    run = free_run(workspace, name)
    try:
        write_job(run, job)
    except OSError:  # the disk is full
        remove_unbegun(run)
        raise
    return run


def start_command(workspace: Workspace, run: Path, job: TrainingJob) -> list[str]:
    """The words after minigpt that train a run, in the folder of the studio."""
    out = str(run.relative_to(workspace.root))
    words = ["train", "--out", out]
    if job.goes_on:
        words.append("--resume")
        if job.minutes is not None:
            words.append(f"--minutes={job.minutes:g}")
        if job.max_epochs is not None:
            words.append(f"--max-epochs={job.max_epochs:g}")
        return words

    if "steps" not in job.settings:
        words.append(f"--minutes={job.minutes:g}")
    text = workspace.texts / Path(str((job.text or {}).get("id"))).name
    files = kept_files(text)
    learned = files[0] if len(files) == 1 else text / FILES  # the run names its text after it
    return [*words, *options(job.settings), "--", str(learned.relative_to(workspace.root))]


def stop(run: Path, *, at_once: bool = False) -> None:
    """End a training, which saves what it has learned first unless that is not wanted."""
    job = read_job(run)
    if job is not None and job.is_waiting:
        leave_line(run)
        return
    if not is_learning(run):
        raise Refusal(409, f"{run.name} is not learning.", kind="not_learning", name=run.name)

    how = AT_ONCE if at_once else "stop"
    if job is not None:  # a process that has just begun would remove the file
        began = facts_of(run).said.get("began")
        with contextlib.suppress(OSError):  # the disk is full: the file has to do
            write_job(run, replace(job, stop=how, stop_began=began))
    write_stop(run, how)


def write_stop(run: Path, how: str) -> None:
    """Make the file that ends a training, whole: with the word "now" in it, or without. On a full
    disk it may be empty, and ends the training all the same."""
    file = run / JOURNAL / STOP
    word = f"{how}\n"
    try:
        write_text(word, file)
    except OSError:
        file.unlink(missing_ok=True)
        file.touch()
        with contextlib.suppress(OSError):
            file.write_text(word, encoding="utf-8")


def leave_line(run: Path) -> None:
    """Take a training out of the line. What has learned nothing yet is gone then, and the minutes
    for which a run was to go on are forgotten."""
    job = read_job(run)
    if job is None or not job.is_waiting:
        message = f"{run.name} does not wait in line."
        raise Refusal(409, message, kind="not_waiting", name=run.name)
    if job.goes_on:
        write_job(run, replace(job, is_waiting=False, minutes=None, max_epochs=None))
        return
    with contextlib.suppress(UserError):  # a terminal trains it
        remove_unbegun(run)  # first: a full disk has no room for a request
    if read_job(run) is not None:  # it was begun in a terminal
        write_job(run, replace(job, is_waiting=False))


def go_on(run: Path, minutes: float | None) -> None:
    """Put a training that has ended into the line again: to its planned end or, with `minutes`,
    for so many more. One of which nothing was saved begins anew."""
    job = read_job(run) or TrainingJob(asked=0.0, is_waiting=False)
    if job.is_waiting or is_learning(run):
        message = f"{run.name} is learning or waits in line already."
        raise Refusal(409, message, kind="learns_already", name=run.name)
    facts = facts_of(run)
    now = time.time()

    if not facts.has_checkpoint:
        if job.text is None:
            raise Refusal(409, f"{run.name} has no checkpoint to go on from")
        more = job.minutes if minutes is None else _checked(minutes)
        write_job(run, job.waiting(asked=now, minutes=more, goes_on=False))
        return
    if minutes is None and state_asked(run, job).state == DONE:
        raise Refusal(400, "How many minutes more?", field="minutes")

    limits: dict[str, Any] = {"minutes": None, "max_epochs": None}
    if minutes is not None:
        limits = _more(facts, _checked(minutes))
    elif _was_not_accepted(job, facts):
        limits = {"minutes": job.minutes, "max_epochs": job.max_epochs}
    write_job(run, job.waiting(asked=now, goes_on=True, **limits))


def _more(facts: RunFacts, minutes: float) -> dict[str, Any]:
    """The limits of a training that goes on for so many minutes more. Its `max_epochs` is raised,
    too: that may have ended it before its minutes were over."""
    training = facts.config.get("training") or {}
    seconds = max(facts.seconds or 0.0, 1.0)
    before = seconds / 60
    if training.get("steps") is None:
        before = max(before, training.get("minutes") or 0.0)

    epochs = training.get("max_epochs")
    if epochs is not None:
        epochs = round(epochs * (seconds + 60 * minutes) / seconds, 2)
    return {"minutes": round(before + minutes, 4), "max_epochs": epochs}


def _was_not_accepted(job: TrainingJob, facts: RunFacts) -> bool:
    """Whether a run was to go on for more minutes, and its training ended before it took them
    over."""
    if not job.goes_on or job.minutes is None:
        return False
    training = facts.config.get("training") or {}
    return training.get("steps") is not None or job.minutes > (training.get("minutes") or 0.0)


def state_asked(run: Path, job: TrainingJob | None, now: float | None = None) -> RunState:
    """What a run is doing, also in the moment before the process says anything that its request has
    started."""
    if job is None or job.is_waiting:
        return state_of(run, now=now)
    return state_of(run, started=job.started, began_before=job.began_before, now=now)


def is_learning(run: Path) -> bool:
    """Whether a training of a run goes on, or is about to begin."""
    job = read_job(run)
    if job is not None and job.is_waiting:
        return False
    return state_asked(run, job).is_active


def is_busy(run: Path) -> bool:
    """Whether a process trains a run, is about to, or has told how it ended but has not left."""
    try:
        return is_training(run) or is_learning(run)
    except Exception as error:  # others can train all the same
        print_mistake(error)
        return False


def _checked(minutes: Any) -> float:
    """Minutes that a training may take."""
    is_number = isinstance(minutes, int | float) and not isinstance(minutes, bool)
    if not is_number or not 0 < minutes <= _MOST_MINUTES:
        raise Refusal(400, f"minutes must be above 0 and at most {_MOST_MINUTES:,}", "minutes")
    return float(minutes)


# Names of runs


def run_name(shown: str) -> str:
    """A safe name that is as near as possible to one that was typed. What follows an @ in the name
    of a run would be a step of it, and what begins with a dash an option."""
    from ...runs.base import BASE  # the studio opens sooner without

    name = safe_name(shown, _ELSE).replace("@", "_").lstrip("-. ")
    while len(name.encode()) > _LONGEST_IN_BYTES:
        name = name[:-1].strip(" .")
    if name.casefold() in (BASE, COUNTING):  # which mean something to commands
        name = f"{_ELSE} {name}"
    return name or _ELSE


def free_run(workspace: Workspace, name: str) -> Path:
    """A new folder in `runs/` that is called like `name`."""
    workspace.runs.mkdir(parents=True, exist_ok=True)
    for run in _like(workspace, workspace.runs, run_name(name)):
        try:
            run.mkdir()
        except FileExistsError:  # another request has just made it
            continue
        return run
    raise AssertionError("there is always another number")


def free_folder(workspace: Workspace, run: Path, into: Path, name: str) -> Path:
    """Where a run can be moved to in `runs/` or the bin, to be called like `name`."""
    return next(_like(workspace, into, name, but=run))


def _like(workspace: Workspace, into: Path, name: str, but: Path | None = None) -> Iterator[Path]:
    """Folders called `name`, name-2, name-3 and so on, without the names of runs, also those in the
    bin; the run `but` does not count. Some systems take large and small letters for the same."""
    there = [path for path in (*_inside(workspace.runs), *_inside(workspace.bin)) if path != but]
    taken = {path.name.casefold() for path in there}
    for number in itertools.count(1):
        candidate = name if number == 1 else f"{name}-{number}"
        if candidate.casefold() not in taken:
            yield into / candidate


def _inside(folder: Path) -> list[Path]:
    return [*folder.iterdir()] if folder.is_dir() else []
