"""The request of a training, `journal/job.json` in the folder of its run: what it is to learn, for
how long, whether it waits in line, and when it was started.

The studio alone writes it; a run that was trained in a terminal has none until somebody goes on
with it here.
"""

import contextlib
import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ...runs.journal import JOB, JOURNAL, LOG
from ...system.atomic import write_text
from ...system.json_objects import read_object


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
    stop: str | None = None  # "stop" or "now", once that was asked for

    def waiting(self, **changes: Any) -> "TrainingJob":
        """The same in line again."""
        return replace(self, is_waiting=True, stop=None, **changes)


def read_job(run: Path) -> TrainingJob | None:
    """The request of a run; None if there is none, or it is damaged."""
    try:
        job = TrainingJob(**read_object(run / JOURNAL / JOB))
        numbers = [job.asked, job.minutes or 0.0, job.max_epochs or 0.0, job.started or 0.0]
        return job if all(isinstance(number, int | float) for number in numbers) else None
    except TypeError:
        return None


def write_job(run: Path, job: TrainingJob) -> None:
    """Write down a request, whole or not at all."""
    (run / JOURNAL).mkdir(parents=True, exist_ok=True)
    write_text(json.dumps(asdict(job), indent=2) + "\n", run / JOURNAL / JOB)


def last_line(run: Path) -> str:
    """The last line that the training has printed, without the word error; empty if none."""
    with contextlib.suppress(OSError), open(run / JOURNAL / LOG, "rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - 4096, 0))
        lines = file.read().decode("utf-8", errors="replace").split("\n")
        printed = [line.strip() for line in lines if line.strip()]
        return printed[-1].removeprefix("error: ") if printed else ""
    return ""
