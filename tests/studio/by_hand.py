"""Folders of runs as a training leaves them, written by hand."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from minigpt.runs.folder import (
    CHECKPOINT,
    CONFIG,
    JOURNAL,
    LAST,
    LOCK,
    LOG,
    METRICS,
    SAMPLES,
    STATE,
    STEPS,
    STOP,
    WEIGHTS,
)
from minigpt.runs.weights import metadata_of
from minigpt.studio.trainings.asking import TrainingJob, write_job
from minigpt.system.json_objects import lines_of
from minigpt.system.safetensors_files import write_tensors

NOW = time.time()
BEGAN = NOW - 60.0
TEXT = {"id": "0123456789ab", "name": "diary", "size": 3000, "characters": 1500, "beginning": "It"}
_HELD: dict[Path, FileLock] = {}  # the locks of runs that are trained


def a_job(**changes: Any) -> TrainingJob:
    """A request that was started a minute ago."""
    usual = {"asked": BEGAN - 5, "is_waiting": False, "minutes": 2.0, "text": TEXT}
    return TrainingJob(**{**usual, "started": BEGAN, **changes})


def make_run(
    runs: Path,
    name: str = "diary",
    *,
    job: TrainingJob | None = None,
    phase: str | None = None,
    how: str | None = None,
    problem: dict[str, Any] | None = None,
    said: dict[str, Any] | None = None,
    is_alive: bool = False,
    stop: str | None = None,
    steps: int = 0,
    evaluations: int = 0,
    has_checkpoint: bool = False,
    log: str | None = None,
) -> Path:
    """A folder in `runs`. Its training has come to a `phase`, and ended if it says `how`; `said` is
    what else it says. One that `is_alive` lives until a run of the name is made again. A step takes
    ten seconds."""
    run = runs / name
    if run in _HELD:
        _HELD.pop(run).release()
    (run / JOURNAL).mkdir(parents=True, exist_ok=True)
    if job is not None:
        write_job(run, job)
    if phase is not None or how is not None:
        has_learned = phase == "training" and steps > 0
        told = {
            "began": BEGAN,
            "time": NOW if phase == "training" else None,
            "phase": phase if how is None else "failed" if how == "failed" else "ended",
            "how": how,
            "problem": problem,
            "seconds_left": 60.0 if phase == "training" else None,
            "step": steps if has_learned else None,
            "seconds": 10.0 * steps if has_learned else None,
            **(said or {}),
        }
        (run / JOURNAL / STATE).write_text(json.dumps(told))
    if is_alive:
        _HELD[run] = FileLock(run / LOCK)
        _HELD[run].acquire()
    if stop is not None:
        (run / JOURNAL / STOP).write_text(stop)
    if log is not None:
        (run / JOURNAL / LOG).write_text(log)

    if phase == "training":
        write_config(run)
    if steps:
        (run / STEPS).write_text(lines_of(a_step(n) for n in range(1, steps + 1)))
    if evaluations:
        (run / METRICS).write_text(lines_of(an_evaluation(n) for n in range(1, evaluations + 1)))
        write_weights(run, bits=3.0 - evaluations)
        (run / JOURNAL / SAMPLES).write_text(lines_of([a_sample(0)]))
    if has_checkpoint:
        (run / CHECKPOINT).mkdir(exist_ok=True)
        (run / CHECKPOINT / LAST).write_bytes(b"weights")
    return run


def a_step(number: int) -> dict[str, Any]:
    seconds = 10.0 * number
    return {"step": number, "seconds": seconds, "loss": 2.0, "bits_per_byte": 2.0, "done": 0.1}


def an_evaluation(number: int) -> dict[str, Any]:
    return {
        "step": number,
        "seconds": 10.0 * number,
        "done": 0.1,
        "train_loss": 2.0,
        "val_loss": 3.0 - number,
        "train_bits_per_byte": 2.0,
        "val_bits_per_byte": 3.0 - number,
        "counting_bits_per_byte": 1.5,
        "tokens_per_second": 100.0,
    }


def a_sample(step: int) -> dict[str, Any]:
    return {"step": step, "seconds": 1.0 + step, "beginning": "It", "text": "It rained."}


def write_config(run: Path, file: str = "texts/0123456789ab/files", **training: Any) -> None:
    origin = {"text": {"files": [file]}, "fingerprint": "f"}
    config = {"format": 8, "model": {}, "training": {"minutes": 2.0, **training}, "origin": origin}
    (run / CONFIG).write_text(json.dumps(config))


def write_weights(run: Path, bits: float = 2.0) -> None:
    best = {"val_loss": bits, "val_bits_per_byte": bits, "step": 1}
    tensors = {"weight": np.zeros((3, 5), np.float32)}
    write_tensors(tensors, run / WEIGHTS, metadata_of({"best": best}))
