"""What the window is told of runs: what each is doing, as its files and its request say. What rows
its files have got is in `rows.py`.

A training that goes on without the studio, and one that was begun in a terminal, are seen like any
other.
"""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any

from ...config import EARLY_UNTIL
from ...config.checked import is_utf8
from ...data.readers.content import FileVersion, version_of
from ...data.temporary import kind_of
from ...runs.base import BASE
from ...runs.folder import (
    CONFIG,
    COPIED,
    COUNTING_BITS,
    JOB,
    JOURNAL,
    STATE,
    WEIGHTS,
)
from ...runs.state import (
    ACTIVE,
    FAILED,
    MEASURING,
    READING,
    STOPPING,
    RunFacts,
    facts_of,
    read_texts,
)
from ...system.json_objects import read_object, without_halves
from ..answers import print_mistake
from ..workspace import TEXT_ID
from .asking import TrainingJob, read_job, state_asked

WAITING = "waiting"
GONE = "gone"

Told = dict[str, Any]
_UNKNOWN: Told = {
    "name": None,
    "state": None,
    "text": None,
    "bits": None,
    "letters": None,
    "counting_letters": None,
    "elapsed": None,
    "goes_on_from": None,
    "minutes": None,
    "ends_at": None,
    "phase": None,
    "changed": None,
    "step": None,
    "share": None,
    "slept": False,
    "parameters": None,
    "problem": None,
    "place": None,
    "starts_in": None,
    "is_dialogue": False,
    "begins_with_base": False,
    "speakers": [],
    "has_learned": False,
    "has_checkpoint": False,
    "has_request": False,
    "copied": None,
    "curve": None,
}


def told_of(folder: Path, now: float | None = None) -> Told:
    """What a run is doing, as the window gets it; of a folder that is not there "gone". One whose
    files are not what the studio expects has failed, so that the others are still shown."""
    if not is_utf8(folder.name):  # no address can name it
        wrong = _problem("The name of its folder is not UTF-8. Rename the folder.")
        name = without_halves(folder.name)
        return {**_UNKNOWN, "name": name, "state": FAILED, "problem": wrong}
    if not folder.is_dir():
        return {**_UNKNOWN, "name": folder.name, "state": GONE}
    try:
        found = _told_of(folder, time.time() if now is None else now)
        json.dumps(found, allow_nan=False)  # as it will be sent
        return found
    except Exception as error:
        print_mistake(error)
        wrong = _problem(f"{type(error).__name__}: {error}")
        return {**_UNKNOWN, "name": folder.name, "state": FAILED, "problem": wrong}


def told_of_all(runs: Path, now: float | None = None) -> list[Told]:
    """All runs in a folder, those that wait or train too, the newest first. Of those that wait,
    their place in line and in how many seconds they start."""
    now = time.time() if now is None else now
    found = {run: told_of(run, now) for run in runs_in(runs)}
    jobs = {run: read_job(run) for run, told in found.items() if told["state"] == WAITING}
    asked = {run: job.asked for run, job in jobs.items() if job is not None}

    starts_in = _time_left(found.values(), now)
    for place, run in enumerate(sorted(asked, key=asked.__getitem__), start=1):
        told = found[run]
        told["place"] = place
        told["starts_in"] = None if starts_in is None else round(starts_in)
        if told["minutes"] is None:  # it ends by its steps
            starts_in = None
        elif starts_in is not None:
            starts_in += max(60 * told["minutes"] - (told["elapsed"] or 0.0), 0.0)
    return sorted(found.values(), key=lambda told: told["changed"] or 0.0, reverse=True)


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
    signs = (f"{JOURNAL}/{JOB}", f"{JOURNAL}/{STATE}", CONFIG)
    return [run for run in folders if any(os.path.isfile(f"{run}/{sign}") for sign in signs)]


def free_space(place: Path) -> int | None:
    """How many bytes are free on the disk of a folder; None if that is not known."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(place).free
    return None


# One run


def _problem(message: str, kind: str | None = None) -> Told:
    """What is wrong with a run, as the window gets it: a message of no kind is shown as it is."""
    return {"kind": kind or "other", "message": message}


def _told_of(folder: Path, now: float) -> Told:
    facts = facts_of(folder)
    job, about = _about(folder, facts, version_of(folder / JOURNAL / JOB))
    is_waiting = job is not None and job.is_waiting
    run = state_asked(folder, job, now)

    state = WAITING if is_waiting else run.state
    if run.is_active and job is not None and job.stop is not None:
        state = STOPPING
    wrong = None
    if run.problem is not None and not is_waiting:
        wrong = _problem(run.problem["message"], run.problem["kind"])

    minutes = _minutes(job, facts, is_asked=state in (WAITING, READING, MEASURING))
    elapsed = facts.seconds if is_waiting else run.elapsed(now)
    counting = facts.evaluation.get(COUNTING_BITS)
    size = about["curve"]["bytes_per_letter"]
    said = facts.said
    return {
        **_UNKNOWN,
        **about,
        "name": folder.name,
        "state": state,
        "bits": facts.bits_per_byte,
        "letters": _letters(facts.bits_per_byte, size),
        "counting_letters": _letters(counting, size),
        "elapsed": None if elapsed is None else round(elapsed, 1),
        "goes_on_from": run.goes_on_from,
        "minutes": minutes,
        "ends_at": None if is_waiting else run.ends_at(now, minutes),
        "phase": None if is_waiting else run.said.get("phase"),
        "step": said.get("step") or facts.evaluation.get("step"),
        "share": run.share if state in (READING, MEASURING) else None,
        "slept": run.is_active and bool(run.said.get("slept")),
        "problem": wrong,
        "has_learned": facts.has_learned,
        "has_checkpoint": facts.has_checkpoint,
        "has_request": job is not None and job.text is not None,
    }


@lru_cache(maxsize=200)  # 30 kB each, and another whenever a file changes
def _about(
    folder: Path, facts: RunFacts, of_job: FileVersion | None
) -> tuple[TrainingJob | None, Told]:
    """The request of a run, and what does not change while its files do not."""
    job = read_job(folder)
    bytes_per_letter = _bytes_per_letter(folder, job, facts)
    config = facts.config
    origin = config.get("origin") or {}
    dialogue = origin.get("dialogue") or {}
    return job, {
        "text": _text(folder, job, facts),
        "parameters": facts.parameters,
        "changed": facts.changed or (None if job is None else job.asked),
        "copied": _copied(folder),
        "curve": _curve(job, facts, bytes_per_letter),
        "begins_with_base": _text_settings(config).get("init") == BASE,
        "is_dialogue": bool(dialogue),
        "speakers": list(map(str, dialogue.get("speakers") or {})),
    }


def _minutes(job: TrainingJob | None, facts: RunFacts, *, is_asked: bool) -> float | None:
    """How long the whole training may take; None if it ends by its steps. What was asked for counts
    until a training takes it over or ends without."""
    has_steps = job is not None and not job.goes_on and "steps" in job.settings
    asked = None if job is None or has_steps else job.minutes
    if asked is not None and (is_asked or not facts.config):
        return asked
    training = facts.config.get("training") or {}
    minutes = training.get("minutes") if training.get("steps") is None else None
    return minutes if isinstance(minutes, int | float) else None


def _letters(bits: Any, bytes_per_letter: float | None) -> float | None:
    """Among how many equally likely letters there is to choose, at so many bits per byte."""
    if not isinstance(bits, int | float) or bytes_per_letter is None:
        return None
    return round(2.0 ** min(bits * bytes_per_letter, 64.0), 4)


def _bytes_per_letter(folder: Path, job: TrainingJob | None, facts: RunFacts) -> float | None:
    """How many bytes a letter of the text takes: counted when it was read or planned for or, where
    it was neither, in what the model has written."""
    text = (job.text if job is not None else None) or {}
    if text.get("characters") and text.get("size"):
        return float(text["size"] / text["characters"])
    planned = (facts.plan.get("text") or {}).get("bytes_per_character")
    if isinstance(planned, int | float) and planned > 0:
        return float(planned)

    written = "".join(str(row.get("text", "")) for row in read_texts(folder)[-8:])
    return len(written.encode(errors="replace")) / len(written) if written else None


def _curve(job: TrainingJob | None, facts: RunFacts, bytes_per_letter: float | None) -> Told:
    """What the picture of the losses is drawn with: where such a run usually ends, in bits per
    byte, the second in which it ends if that is before its minutes are over, and the share of the
    time in which training is made harder."""
    training = facts.config.get("training") or {}
    text = _text_settings(facts.config)
    context = (facts.config.get("model") or {}).get("context_length") or 0
    is_harder = bool(training.get("token_split_prob"))
    is_harder |= (training.get("warmup_context") or context) < context

    has_own_plan = job is None or not job.goes_on  # else it was planned for fewer minutes
    plan = facts.plan if has_own_plan else {}
    expected = facts.said.get("expected_bits_per_byte") or plan.get("bits_per_byte")
    return {
        "expected_bits": expected,
        "ends_early_at": _ends_early_at(plan, training, facts.seconds),
        "harder_until": EARLY_UNTIL if is_harder else None,
        "bytes_per_letter": bytes_per_letter,
        "has_letters": text.get("tokenizer") == "char",
        "evaluations": training.get("num_evals"),
    }


def _ends_early_at(plan: Told, training: Told, seconds: float | None) -> float | None:
    """The second in which a training ends by its plan, before its minutes are over, or the last one
    of a training that is slower; None if it does not, or was continued with other limits."""
    if not plan.get("ends_early"):
        return None
    planned = plan.get("settings") or {}
    limits = [name for name in ("minutes", "steps", "max_epochs") if name in planned]
    if any(planned[name]["value"] != training.get(name) for name in limits):
        return None
    return max(plan["seconds"], seconds or 0.0)


def _copied(folder: Path) -> Told | None:
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


def _text_settings(config: Told) -> Told:
    """The settings of the text that it learns from."""
    settings: Told = (config.get("origin") or {}).get("text") or {}
    return settings


def _text(folder: Path, job: TrainingJob | None, facts: RunFacts) -> Told | None:
    """The text that a run learns from: as it was asked for or, of a run that was begun in a
    terminal, as far as its own files tell."""
    if job is not None and job.text is not None:
        return {name: job.text.get(name) for name in ("id", "name", "size", "beginning")}

    files = _text_settings(facts.config).get("files")
    if not files:
        return None
    texts = read_texts(folder)[:1]
    planned = facts.plan.get("text") or {}
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
            if texts == "texts" and inner == "files" and TEXT_ID.fullmatch(text):
                return text
    return None


# Of all runs


def _time_left(runs: Iterable[Told], now: float) -> float | None:
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
