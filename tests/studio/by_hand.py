"""Folders of runs as a training leaves them, written by hand."""

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from minigpt.runs.folder import CHECKPOINT, CONFIG, LAST, METRICS, STEPS, WEIGHTS
from minigpt.runs.journal import ALIVE, JOURNAL, LOG, ROWS, STOP, TEXTS
from minigpt.runs.weights import metadata_of
from minigpt.studio.runs.jobs import TrainingJob, write_job
from minigpt.system.json_objects import lines_of
from minigpt.system.safetensors_files import write_tensors

NOW = time.time()
BEGAN = NOW - 60.0
PHASES = ("reading", "planning", "tokens", "training")
TEXT = {"id": "0123456789ab", "name": "diary", "size": 3000, "characters": 1500, "beginning": "It"}
END = {"finished": {"how": "finished"}, "stopped": {"how": "stopped"}}


def a_job(**changes: Any) -> TrainingJob:
    """A request that was started a minute ago."""
    usual = {"asked": BEGAN - 5, "is_waiting": False, "minutes": 2.0, "text": TEXT}
    return TrainingJob(**{**usual, "started": BEGAN, **changes})


def make_run(
    runs: Path,
    name: str = "diary",
    *,
    job: TrainingJob | None = None,
    phases: tuple[str, ...] = (),
    end: dict[str, Any] | None = None,
    alive: float | None = None,
    stop: str | None = None,
    steps: int = 0,
    evaluations: int = 0,
    has_checkpoint: bool = False,
    log: str | None = None,
) -> Path:
    """A folder in `runs`. `phases` are those that began, five seconds after one another; `alive`
    was touched so many seconds ago, or with 0 for as long as the test takes; a step takes ten
    seconds."""
    run = runs / name
    (run / JOURNAL).mkdir(parents=True, exist_ok=True)
    if job is not None:
        write_job(run, job)
    rows: list[dict[str, Any]] = [
        {"time": BEGAN + 5 * i, "phase": phase} for i, phase in enumerate(phases)
    ]
    if end is not None:
        rows.append({"time": NOW - 1, "phase": "end", "message": "", **end})
    if rows:
        (run / JOURNAL / ROWS).write_text(lines_of(rows))
    if alive is not None:
        (run / JOURNAL / ALIVE).touch()
        touched = NOW - alive if alive > 0.0 else time.time() + 3600  # however slow a browser is
        os.utime(run / JOURNAL / ALIVE, (touched, touched))
    if stop is not None:
        (run / JOURNAL / STOP).write_text(stop)
    if log is not None:
        (run / JOURNAL / LOG).write_text(log)

    if "training" in phases:
        write_config(run)
    if steps:
        (run / STEPS).write_text(lines_of(a_step(n) for n in range(1, steps + 1)))
    if evaluations:
        (run / METRICS).write_text(lines_of(an_evaluation(n) for n in range(1, evaluations + 1)))
        write_weights(run, bits=3.0 - evaluations)
        (run / JOURNAL / TEXTS).write_text(lines_of([a_sample(0)]))
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


def write_config(run: Path, **training: Any) -> None:
    origin = {"text": {"files": ["texts/0123456789ab/files"]}, "fingerprint": "f"}
    config = {"format": 8, "model": {}, "training": {"minutes": 2.0, **training}, "origin": origin}
    (run / CONFIG).write_text(json.dumps(config))


def write_weights(run: Path, bits: float = 2.0) -> None:
    best = {"val_loss": bits, "val_bits_per_byte": bits, "step": 1}
    tensors = {"weight": np.zeros((3, 5), np.float32)}
    write_tensors(tensors, run / WEIGHTS, metadata_of({"best": best}))
