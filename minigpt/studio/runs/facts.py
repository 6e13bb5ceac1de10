"""What the files of a run say: its journal, its figures, its settings, the request of its training.

Weights are never read, only the header of their file. What is damaged or not there yet is left out.
"""

import contextlib
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from ... import UserError
from ...config import EARLY_UNTIL
from ...data.readers.content import FileVersion, version_of
from ...data.temporary import kind_of
from ...runs.base import BASE
from ...runs.folder import (
    CHECKPOINT,
    CONFIG,
    LAST,
    METRICS,
    PLAN,
    STEPS,
    WEIGHTS,
    has_checkpoint,
    kept_row,
    read_metrics,
    read_plan,
    read_raw_config,
)
from ...runs.journal import COPIED, JOB, JOURNAL, ROWS, STOP, read_phases, read_texts
from ...runs.weights import count_weights, read_best
from ...system.json_objects import parse_object, read_object
from .jobs import TrainingJob, read_job

_END_OF_STEPS = 4096  # bytes of steps.jsonl that surely hold a whole row
_FILES = (
    f"{JOURNAL}/{JOB}",
    f"{JOURNAL}/{ROWS}",
    f"{JOURNAL}/{STOP}",
    f"{JOURNAL}/{COPIED}",
    f"{CHECKPOINT}/{LAST}",
    CONFIG,
    METRICS,
    PLAN,
    STEPS,
    WEIGHTS,
)

Row = dict[str, Any]
Signature = tuple[FileVersion | None, ...]


@dataclass
class Facts:
    """What the files of a run say."""

    signature: Signature
    job: TrainingJob | None
    phases: list[Row]  # of its journal
    step: Row  # the last one of which there is a row; empty if none
    step_time: float  # when that was written
    evaluation: Row  # the last one
    kept: float | None  # bits per byte, with the weights that are kept
    config: dict[str, Any]
    has_checkpoint: bool
    has_learned: bool  # whether its weights can be written with
    is_stop_asked: bool
    bytes_per_letter: float | None
    shown: dict[str, Any]  # what the window gets as it is


def read_facts(folder: Path, signature: Signature) -> Facts:
    """What the files of a run say, which are as its signature tells."""
    config = read_raw_config(folder)
    plan = read_plan(folder)
    job = read_job(folder)
    phases = read_phases(folder)

    evaluations = read_metrics(folder / METRICS)
    saved = read_best(folder / WEIGHTS)
    bits = kept_row(evaluations).get("val_bits_per_byte")
    if saved is not None and math.isfinite(saved["val_bits_per_byte"]):
        # The evaluation of these weights may have no row. The loss is infinite if the training was
        # stopped before its first evaluation.
        bits = saved["val_bits_per_byte"]

    step, step_time = _last_step(folder / STEPS)
    bytes_per_letter = _bytes_per_letter(folder, job, plan)

    return Facts(
        signature=signature,
        job=job,
        phases=phases,
        step=step,
        step_time=step_time,
        evaluation=evaluations[-1] if evaluations else {},
        kept=bits,
        config=config,
        has_checkpoint=has_checkpoint(folder),
        has_learned=saved is not None,
        is_stop_asked=(folder / JOURNAL / STOP).exists() or bool(job and job.stop),
        bytes_per_letter=bytes_per_letter,
        shown={
            "text": _text(folder, job, config, plan),
            "parameters": _parameters(folder),
            "changed": _changed(signature, job),
            "copied": _copied(folder),
            "curve": _curve(plan, phases, job, config, bytes_per_letter),
            "begins_with_base": _text_settings(config).get("init") == BASE,
            **_speakers(config),
        },
    )


def signature_of(folder: Path) -> Signature:
    """A value that changes whenever one of the files changes from which facts are read."""
    return tuple(version_of(f"{folder}/{name}") for name in _FILES)


# Single facts


def _changed(signature: Signature, job: TrainingJob | None) -> float | None:
    """When a run changed last, in seconds since 1970."""
    times = [version[0] / 1e9 for version in signature if version is not None]
    if times:
        return round(max(times), 1)
    return None if job is None else job.asked


def _last_step(path: Path) -> tuple[Row, float]:
    """The last row of steps.jsonl that is whole, and when that was written."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            file.seek(max(status.st_size - _END_OF_STEPS, 0))
            lines = file.read().split(b"\n")[:-1]  # what follows the last line end is no row yet
    except OSError:
        return {}, 0.0
    for line in reversed(lines):
        row = parse_object(line)
        if isinstance(row.get("seconds"), int | float):
            return row, status.st_mtime
    return {}, 0.0


def _bytes_per_letter(folder: Path, job: TrainingJob | None, plan: dict[str, Any]) -> float | None:
    """How many bytes a letter of the text takes: counted when it was read or planned for or, where
    it was neither, in what the model has written."""
    text = (job.text if job is not None else None) or {}
    if text.get("characters") and text.get("size"):
        return float(text["size"] / text["characters"])
    planned = (plan.get("text") or {}).get("bytes_per_character")
    if isinstance(planned, int | float) and planned > 0:
        return float(planned)

    written = "".join(str(row.get("text", "")) for row in read_texts(folder)[-8:])
    return len(written.encode(errors="replace")) / len(written) if written else None


def _parameters(folder: Path) -> int | None:
    with contextlib.suppress(UserError):
        return count_weights(folder / WEIGHTS)
    return None


def _curve(
    plan: dict[str, Any],
    phases: list[Row],
    job: TrainingJob | None,
    config: dict[str, Any],
    bytes_per_letter: float | None,
) -> dict[str, Any]:
    """What the picture of the losses is drawn with: where such a run usually ends, in bits per
    byte, the second in which it ends if that is before its minutes are over, and the share of the
    time in which training is made harder."""
    training = config.get("training") or {}
    text = _text_settings(config)
    context = (config.get("model") or {}).get("context_length") or 0
    is_harder = bool(training.get("token_split_prob"))
    is_harder |= (training.get("warmup_context") or context) < context
    has_own_plan = job is None or not job.goes_on  # else it was planned for fewer minutes
    planned = plan.get("bits_per_byte") if has_own_plan else None
    told = [row for row in phases if row["phase"] == "training"][-1:]
    return {
        "expected_bits": told[0].get("expected_bits_per_byte", planned) if told else planned,
        "ends_early_at": plan.get("seconds") if has_own_plan and plan.get("ends_early") else None,
        "harder_until": EARLY_UNTIL if is_harder else None,
        "bytes_per_letter": bytes_per_letter,
        "has_letters": text.get("tokenizer") == "char",
        "evaluations": training.get("num_evals"),
    }


def _copied(folder: Path) -> dict[str, Any] | None:
    """How much the run copies, and how much an unseen page would; None if that was not measured
    with its present weights."""
    known = version_of(folder / JOURNAL / COPIED)
    weights = version_of(folder / WEIGHTS)
    if known is None or weights is None or known[0] < weights[0]:
        return None
    figures = read_object(folder / JOURNAL / COPIED)
    if not {"share", "usual_share"} <= figures.keys():
        return None
    return {"share": figures["share"], "unseen": figures["usual_share"]}


def _text_settings(config: dict[str, Any]) -> dict[str, Any]:
    """The settings of the text that it learns from."""
    settings: dict[str, Any] = (config.get("origin") or {}).get("text") or {}
    return settings


def _speakers(config: dict[str, Any]) -> dict[str, Any]:
    """Who speaks in the text."""
    origin = config.get("origin") or {}
    dialogue = origin.get("dialogue") or {}
    speakers = dialogue.get("speakers") or {}
    return {
        "is_dialogue": bool(dialogue),
        "speakers": list(map(str, speakers)),
    }


def _text(
    folder: Path, job: TrainingJob | None, config: dict[str, Any], plan: dict[str, Any]
) -> dict[str, Any] | None:
    """The text that a run learns from: as it was asked for or, of a run that was begun in a
    terminal, as far as its own files tell."""
    if job is not None and job.text is not None:
        return {name: job.text.get(name) for name in ("id", "name", "size", "beginning")}

    text = _text_settings(config)
    files = text.get("files")
    if not files:
        return None
    texts = read_texts(folder)[:1]
    planned = plan.get("text") or {}
    sizes = [planned.get("size"), planned.get("validation")]
    return {
        "id": text_id_of(files),
        "name": " ".join(kind_of(Path(str(name))) or str(name) for name in files),
        "size": sum(sizes) if all(isinstance(size, int) for size in sizes) else None,
        "beginning": texts[0].get("beginning") if texts else None,
    }


def text_id_of(files: Iterable[str]) -> str | None:
    """The text of the studio that a run has learned from, by the names of its files."""
    for name in files:
        parts = PurePath(str(name).replace("\\", "/")).parts
        for texts, text, inner in zip(parts, parts[1:], parts[2:], strict=False):
            if texts == "texts" and inner == "files":
                return text
    return None
