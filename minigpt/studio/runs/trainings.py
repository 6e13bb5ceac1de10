"""A training is asked for, started, stopped, and gone on with. All of it is in the folder of its
run, so that a studio that is opened again finds what another one has begun.
"""

import contextlib
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...runs.folder import CONFIG, WEIGHTS
from ...runs.journal import (
    AT_ONCE,
    JOURNAL,
    JOURNAL_FILES,
    STOP,
    STUDIO_FILES,
    remove_from_journal,
)
from ...system.atomic import write_text
from ..answers import Refusal
from ..settings import options
from ..texts.folder import FILES, kept_files
from ..workspace import Workspace
from .jobs import TrainingJob, read_job, write_job
from .names import free_run
from .states import ACTIVE, DONE, WAITING, Facts, States

PROGRAM = "minigpt.studio.runs.training_process"
_MOST_MINUTES = 60 * 24 * 7  # a week


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
        remove_request(run)
        raise
    return run


def start_command(workspace: Workspace, run: Path, job: TrainingJob) -> list[str]:
    """The arguments of PROGRAM for a training, in the folder of the studio."""
    out = str(run.relative_to(workspace.root))
    words = [out, "train", "--out", out]
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


def stop(states: States, run: Path, *, at_once: bool = False) -> None:
    """End a training, which saves what it has learned first unless that is not wanted."""
    state = states.of(run)["state"]
    if state == WAITING:
        leave_line(run)
        return
    if state not in ACTIVE:
        raise Refusal(409, f"{run.name} is not learning.", kind="not_learning", name=run.name)

    job = read_job(run)
    how = AT_ONCE if at_once else "stop"
    if job is not None:  # a process that has just begun would remove the file
        write_job(run, replace(job, stop=how))
    write_stop(run, how)


def write_stop(run: Path, how: str) -> None:
    """Make the file that ends a training, whole: with the word "now" in it, or without."""
    write_text(f"{how}\n", run / JOURNAL / STOP)


def leave_line(run: Path) -> None:
    """Take a training out of the line. What has learned nothing yet is gone then."""
    job = read_job(run)
    if job is None or not job.is_waiting:
        message = f"{run.name} does not wait in line."
        raise Refusal(409, message, kind="not_waiting", name=run.name)
    write_job(run, replace(job, is_waiting=False))
    if not job.goes_on:
        remove_request(run)


def go_on(workspace: Workspace, states: States, run: Path, minutes: float | None) -> None:
    """Put a training that has ended into the line again: to its planned end or, with `minutes`,
    for so many more. One of which nothing was saved begins anew."""
    state = states.of(run)["state"]
    facts = states.facts(run)
    if facts is None or state in (*ACTIVE, WAITING):
        message = f"{run.name} is learning or waits in line already."
        raise Refusal(409, message, kind="learns_already", name=run.name)
    job = facts.job or TrainingJob(asked=0.0, is_waiting=False)
    now = time.time()

    if not facts.has_checkpoint:
        if job.text is None:
            raise Refusal(409, f"{run.name} has no checkpoint to go on from")
        more = job.minutes if minutes is None else _checked(minutes)
        write_job(run, job.waiting(asked=now, minutes=more, goes_on=False))
        return
    if minutes is None and state == DONE:
        raise Refusal(400, "How many minutes more?", field="minutes")

    limits: dict[str, Any] = {"minutes": None, "max_epochs": None}
    if minutes is not None:
        limits = _more(facts, _checked(minutes))
    write_job(run, job.waiting(asked=now, goes_on=True, **limits))


def _more(facts: Facts, minutes: float) -> dict[str, Any]:
    """The limits of a training that goes on for so many minutes more. Its `max_epochs` is raised,
    too: that may have ended it before its minutes were over."""
    training = facts.config.get("training") or {}
    seconds = max(facts.step.get("seconds", 0.0), facts.evaluation.get("seconds", 0.0), 1.0)
    before = seconds / 60
    if training.get("steps") is None:
        before = max(before, training.get("minutes") or 0.0)

    epochs = training.get("max_epochs")
    if epochs is not None:
        epochs = round(epochs * (seconds + 60 * minutes) / seconds, 2)
    return {"minutes": round(before + minutes, 4), "max_epochs": epochs}


def remove_request(run: Path) -> None:
    """Remove what the studio and its journal have put into a folder that holds no run yet, and the
    folder if that leaves it empty. Nothing else is touched."""
    if (run / CONFIG).exists() or (run / WEIGHTS).exists():
        return
    remove_from_journal(run, (*STUDIO_FILES, *JOURNAL_FILES))
    for folder in (run / JOURNAL, run):
        with contextlib.suppress(OSError):  # somebody has put a file there
            folder.rmdir()


def _checked(minutes: Any) -> float:
    """Minutes that a training may take."""
    is_number = isinstance(minutes, int | float) and not isinstance(minutes, bool)
    if not is_number or not 0 < minutes <= _MOST_MINUTES:
        raise Refusal(400, f"minutes must be above 0 and at most {_MOST_MINUTES:,}", "minutes")
    return float(minutes)
