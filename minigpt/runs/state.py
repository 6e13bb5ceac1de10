"""What a run is doing and what has become of it, from its folder alone: the one place that reads
what a training says (see `journal.py`), for the list of runs, for --resume and for the studio.

What the files of a run say is read again only when one of them has changed, so that a look at fifty
runs takes a few milliseconds. Of weights only the header of their file is read.
"""

import contextlib
import json
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from safetensors import SafetensorError, safe_open

from .. import UserError
from ..data.readers.content import FileVersion, version_of
from ..system.atomic import write_text
from ..system.json_objects import read_lines, read_object, to_json
from ..system.shown import plural
from .folder import (
    CHECKPOINT,
    CONFIG,
    COPIED,
    JOURNAL,
    LAST,
    LOCK,
    LOG,
    METRICS,
    PLAN,
    PREVIOUS,
    SAMPLES,
    STATE,
    STOP,
    WEIGHTS,
    has_checkpoint,
    kept_row,
    read_metrics,
    read_plan,
    read_raw_config,
)
from .weights import count_weights, read_best

READING = "reading"
MEASURING = "measuring"
LEARNING = "learning"
STOPPING = "stopping"
STOPPED = "stopped"
DONE = "done"
DIED = "died"
FAILED = "failed"
ACTIVE = (READING, MEASURING, LEARNING, STOPPING)

ENDS = ("ended", "failed")  # the last phases of a training
_PHASES = {"reading": READING, "planning": MEASURING, "tokens": MEASURING}  # else it is learning
_STARTING = 45.0  # seconds that a process has to begin, on a busy computer
_FILES = (
    CONFIG,
    PLAN,
    METRICS,
    WEIGHTS,
    f"{CHECKPOINT}/{LAST}",
    f"{CHECKPOINT}/{PREVIOUS}",
    f"{JOURNAL}/{STATE}",
    f"{JOURNAL}/{STOP}",
    f"{JOURNAL}/{COPIED}",
)
_NUMBERS = (
    "began", "time", "share", "step", "seconds", "seconds_left", "slept", "goes_on_from",
    "expected_bits_per_byte", "train_bits_per_byte", "val_bits_per_byte", "best_bits_per_byte",
)  # fmt: skip

Problem = dict[str, Any]  # its kind, None if that is not known, and its message
Versions = tuple[FileVersion | None, ...]


@dataclass(frozen=True, eq=False)
class RunFacts:
    """What the files of a run say; another object whenever one of them has changed."""

    said: dict[str, Any]  # by its training, the last time; docs/runs.md has the fields
    config: dict[str, Any]
    plan: dict[str, Any]
    evaluation: dict[str, Any]  # the last one; empty if there is none
    bits_per_byte: float | None  # of the weights that are kept, on the validation text
    parameters: int | None
    has_checkpoint: bool
    saved: dict[str, float]  # the step and seconds of its last checkpoint, as far as it tells them
    has_learned: bool  # whether an evaluation has chosen its weights
    is_finished: bool  # its training has come to its end
    is_stop_asked: bool
    changed: float | None  # when a file changed last, in seconds since 1970

    @property
    def seconds(self) -> float | None:
        """How long it has learned."""
        known = (self.said.get("seconds"), self.evaluation.get("seconds"))
        return max((seconds for seconds in known if seconds), default=None)

    @property
    def goes_on_from(self) -> float | None:
        """How long it has learned where it is continued."""
        if not self.has_checkpoint:
            return None
        return self.saved.get("seconds", self.seconds)


@dataclass(frozen=True)
class RunState:
    """What a run is doing."""

    state: str  # one of the words above
    problem: Problem | None
    facts: RunFacts
    said: dict[str, Any]  # by the training that goes on; empty until it speaks
    began: float | None  # when the training began that goes on; None if none does
    goes_on_from: float | None  # the seconds of learning before, until its first new step
    share: float | None  # of the phase that goes on, from 0 to 1

    @property
    def is_active(self) -> bool:
        """Whether a process trains it."""
        return self.state in ACTIVE

    def elapsed(self, now: float) -> float | None:
        """The seconds that the training has taken at a moment; None if that is not known."""
        said = self.said
        if not self.is_active:
            return self.facts.seconds
        if self.goes_on_from is not None:
            return self.goes_on_from
        if said.get("seconds") is not None and said["time"] is not None:
            return said["seconds"] + max(now - said["time"], 0.0)
        return None if self.began is None else max(now - self.began, 0.0)

    def ends_at(self, now: float, minutes: float | None) -> int | None:
        """When the training is expected to end, in whole seconds since 1970, if it may take so many
        minutes; None before its first step if only a number of steps ends it."""
        said = self.said
        if not self.is_active or self.began is None:
            return None
        if said.get("seconds_left") is not None and said["time"] is not None:
            end = said["time"] + said["seconds_left"]
        elif minutes is not None:
            end = self.began + 60 * minutes - (self.goes_on_from or 0.0)
        else:
            return None
        return round(max(end, now))


def state_of(
    run: Path,
    *,
    started: float | None = None,
    began_before: float | None = None,
    now: float | None = None,
) -> RunState:
    """What a run is doing. `started` is when another program has started a process to train it, if
    one has, and `began_before` what the run said of its beginning until then: it takes a moment
    before the process says anything."""
    now = time.time() if now is None else now
    facts = facts_of(run)
    said = facts.said
    began = said.get("began")
    is_told = bool(said) and (started is None or began != began_before)

    is_young = started is not None and not is_told and abs(now - started) < _STARTING
    has_ended = is_told and said.get("phase") in ENDS  # and may still be leaving
    if not has_ended and (is_training(run) or (is_young and not last_line(run))):
        goes_on_from = said.get("goes_on_from") if is_told else facts.goes_on_from
        phase = said.get("phase") if is_told else None
        state = READING if phase is None else _PHASES.get(phase, LEARNING)
        if facts.is_stop_asked:
            state = STOPPING
        return RunState(
            state=state,
            problem=said.get("problem") if is_told else None,
            facts=facts,
            said=said if is_told else {},
            began=began if is_told else started,
            goes_on_from=goes_on_from if facts.has_checkpoint else None,
            share=said.get("share") if is_told else None,
        )

    state, problem = _ended(run, facts)
    if not is_told and started is not None:  # its process has ended before it said anything
        if not facts.has_checkpoint:
            state = FAILED
        problem = {"kind": None, "message": last_line(run) or "It could not be started."}
    return RunState(state, problem, facts, {}, began=None, goes_on_from=None, share=None)


def _ended(run: Path, facts: RunFacts) -> tuple[str, Problem | None]:
    """How the last training of a run ended, and what went wrong if something did.

    A continuation that fails takes nothing away: a run that was done stays so, and one that has
    learned and can be continued has stopped.
    """
    phase = facts.said.get("phase")
    problem = facts.said.get("problem")
    if not facts.said:  # an older version has trained it
        return (DONE if facts.is_finished or not facts.has_checkpoint else STOPPED), None
    if phase == "failed" and not (facts.has_checkpoint and facts.has_learned):
        return FAILED, problem
    if facts.said.get("how") == "finished" or facts.is_finished:
        return DONE, problem
    if phase == "failed":
        return STOPPED, problem
    if phase == "ended" and facts.has_checkpoint:
        return STOPPED, problem or _loss_of(facts)
    if phase == "ended":
        message = "Stopped before it had learned anything; nothing is kept."
        return FAILED, {"kind": "nothing", "message": message}

    line = last_line(run)
    if facts.has_checkpoint:
        return DIED, {"kind": "died", "message": line}
    return FAILED, {"kind": "died", "message": line or "Ended unexpectedly."}


def _loss_of(facts: RunFacts) -> Problem | None:
    """That a run has made steps after its last checkpoint; None if it has not."""
    step = facts.said.get("step") or 0
    lost = int(step - facts.saved.get("step", step))
    if lost <= 0:
        return None
    return {"kind": "lost", "message": f"Its last {plural(lost, 'step')} were not saved."}


def is_training(run: Path) -> bool:
    """Whether a process trains a run: it holds a lock until it ends, however it does."""
    lock = run / LOCK
    if lock.is_symlink() or not lock.is_file():
        return False
    try:
        with FileLock(lock, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False


# What its files say


def facts_of(run: Path) -> RunFacts:
    """What the files of a run say. What is damaged, or not there yet, is left out."""
    versions = tuple(version_of(f"{run}/{name}") for name in _FILES)
    if not any(versions):
        _known.pop(run, None)
    known = _known.get(run)
    if known is not None and known[0] == versions:
        return known[1]

    facts = _read_facts(run, versions)
    _known[run] = (versions, facts)
    return facts


_known: dict[Path, tuple[Versions, RunFacts]] = {}  # of each run what was read last, of which files


def _read_facts(run: Path, versions: Versions) -> RunFacts:
    evaluations = read_metrics(run / METRICS)
    saved = read_best(run / WEIGHTS)
    bits = kept_row(evaluations).get("val_bits_per_byte")
    if saved is not None and math.isfinite(saved["val_bits_per_byte"]):
        # The evaluation of these weights may have no row. The loss is infinite if the training was
        # stopped before its first evaluation.
        bits = saved["val_bits_per_byte"]

    parameters = None
    with contextlib.suppress(UserError):
        parameters = count_weights(run / WEIGHTS)
    times = [version[0] / 1e9 for version in versions if version is not None]
    checkpoint = _read_checkpoint(run)
    counts = {name: checkpoint.get(name) for name in ("step", "seconds")}
    is_finished = checkpoint.get("finished")
    if is_finished is None:  # there is no checkpoint; its last evaluation says so
        is_finished = any(row["done"] == 1 for row in evaluations[-1:])

    return RunFacts(
        said=_read_said(run),
        config=read_raw_config(run),
        plan=read_plan(run),
        evaluation=evaluations[-1] if evaluations else {},
        bits_per_byte=bits,
        parameters=parameters,
        has_checkpoint=has_checkpoint(run),
        saved={name: count for name, count in counts.items() if isinstance(count, int | float)},
        has_learned=saved is not None,
        is_finished=bool(is_finished),
        is_stop_asked=(run / JOURNAL / STOP).exists(),
        changed=round(max(times), 1) if times else None,
    )


def _read_said(run: Path) -> dict[str, Any]:
    """What state.json holds: numbers where there should be some, and nothing if it is damaged."""
    said = read_object(run / JOURNAL / STATE)
    if not said:
        return {}
    for name in _NUMBERS:
        value = said.get(name)
        is_number = isinstance(value, int | float) and math.isfinite(value)
        said[name] = value if is_number else None
    for name in ("phase", "how", "writes", "fingerprint"):
        said[name] = said[name] if isinstance(said.get(name), str) else None
    problem = said.get("problem")
    if isinstance(problem, dict):
        kind = problem.get("kind")
        said["problem"] = {"kind": kind and str(kind), "message": str(problem.get("message") or "")}
    else:
        said["problem"] = None
    return said


def _read_checkpoint(run: Path) -> dict[str, Any]:
    """How far the training had come at the last checkpoint of a run, without reading its tensors;
    empty if there is none."""
    for name in (LAST, PREVIOUS):
        with contextlib.suppress(SafetensorError, OSError, ValueError, LookupError, TypeError):
            with safe_open(run / CHECKPOINT / name, "np") as file:
                state: dict[str, Any] = dict(json.loads(file.metadata()["state"]))
            return state
    return {}


def last_line(run: Path) -> str:
    """The last line that the training has printed for the program that started it, without the word
    error; empty if none."""
    with contextlib.suppress(OSError), open(run / JOURNAL / LOG, "rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - 4096, 0))
        lines = file.read().decode("utf-8", errors="replace").split("\n")
        printed = [line.strip() for line in lines if line.strip()]
        return printed[-1].removeprefix("error: ") if printed else ""
    return ""


# What it wrote


def read_texts(run: Path) -> list[dict[str, Any]]:
    """The rows of samples.jsonl in a run's journal, those that are whole."""
    return [row for row in read_lines(run / JOURNAL / SAMPLES) if {"step", "text"} <= row.keys()]


def texts_of_evaluations(run: Path) -> dict[int, str]:
    """What the model wrote after each evaluation, by step; empty if nothing was written down. If an
    evaluation was made again at the same step, its text is the later one."""
    rows = [row for row in read_texts(run) if row.get("is_evaluation")]
    return {int(row["step"]): str(row["text"]) for row in rows}


def keep_copied(run: Path, figures: dict[str, Any]) -> None:
    """Write down how much a run copies: the fields of `Copies`. OSError if that fails."""
    text = to_json(figures, indent=2) + "\n"
    (run / JOURNAL).mkdir(exist_ok=True)  # an older run has none
    write_text(text, run / JOURNAL / COPIED)
