"""What the window is told of a text, from its folder alone."""

from pathlib import Path
from typing import Any

from ...system.json_objects import read_object
from .. import settings
from ..answers import Refusal
from . import store
from .folder import (
    PLANS,
    READING,
    chosen_settings,
    plans_of,
    reading_of,
)

_NOT_WHOLE = ("parts", "inside")  # kinds of what was left out of a file that was read
_OF_READING = (
    "share", "at", "documents", "is_dialogue", "speakers", "lines", "size",
    "characters", "left_out", "notes", "problem",
)  # fmt: skip
_OF_PLANS = ("share", "phase", "stops", "measured", "problem")

Told = dict[str, Any]


def row(folder: Path) -> Told:
    """A text as a row of a list: "id", "name", "size" (as the model sees it, once it was read),
    "changed", "files" (how many, without those left out), "state".
    A Refusal of status 404 if it is not there."""
    text = store.describe_text(folder)
    reading = reading_now(folder)
    told = {name: text[name] for name in ("id", "name", "size", "changed")}
    told["files"] = _count_of_read(text, reading)
    told["state"] = _state(text, reading)
    if reading is not None and told["state"] == "ready":
        told["size"] = reading["size"]
    return told


def whole_text(folder: Path) -> Told:
    """All of a text: the row, with the files themselves in "files", and what was read, what is
    planned, and the settings. A Refusal of status 404 if it is not there."""
    text = store.describe_text(folder)
    reading = reading_now(folder)
    plans = plans_now(folder)
    problems = _left_out(reading)
    files = [file | {"problem": problems.get(file["kept"])} for file in text["files"]]
    return {
        **text,
        "files": files,
        "state": _state(text, reading),
        "reading": _only(reading, _OF_READING),
        "plans": _only(plans, _OF_PLANS),
        "settings": settings.describe_settings(chosen_settings(folder)),
    }


def _left_out(reading: Told | None) -> dict[str, Told]:
    """The files that were left out, by their kept names, and why."""
    return {
        left_out["name"]: {"kind": left_out["kind"], "message": left_out["message"]}
        for left_out in (reading or {}).get("left_out", [])
        if left_out["kind"] not in _NOT_WHOLE
    }


def _count_of_read(text: Told, reading: Told | None) -> int:
    """How many files a text has, without those that were left out."""
    left_out = _left_out(reading)
    return len([file for file in text["files"] if file["kept"] not in left_out])


def for_run(folder: Path) -> Told:
    """What the request of a training keeps of its text: "id", "name", "files" (how many), "size"
    and "characters" as the model sees it, and "beginning". A Refusal of status 404 if it is not
    there, of 409 if it cannot be learned from."""
    text = store.describe_text(folder)
    reading = reading_now(folder)
    if reading is None or not text["is_complete"] or not is_readable(reading):
        message = "This text cannot be learned from, or is still being read."
        raise Refusal(409, message, kind="text_not_ready")
    return {
        "id": text["id"],
        "name": text["name"],
        "files": _count_of_read(text, reading),
        "size": reading["size"],
        "characters": reading["characters"],
        "beginning": reading["lines"][0],
    }


def reading_now(folder: Path) -> Told | None:
    """What reading.json holds; None if it is of other files or settings than there are now."""
    fields = settings.reading_fields(chosen_settings(folder))
    found = read_object(folder / READING)
    return found if found.get("of") == reading_of(folder, fields) else None


def plans_now(folder: Path) -> Told | None:
    """What plans.json holds; None if it is for other files or settings than there are now."""
    found = read_object(folder / PLANS)
    return found if found.get("of") == plans_of(folder) else None


def is_readable(reading: Told | None) -> bool:
    """Whether a text was read and can be trained on."""
    return reading is not None and bool(reading["is_done"]) and reading["problem"] is None


def _state(text: Told, reading: Told | None) -> str:
    """ "empty", "receiving", "reading", "ready" or "refused"."""
    if not text["files"]:
        return "empty"
    if not text["is_complete"]:
        return "receiving"
    if reading is None or not reading["is_done"]:
        return "reading"
    return "refused" if reading["problem"] else "ready"


def _only(found: Told | None, names: tuple[str, ...]) -> Told | None:
    return None if found is None else {name: found.get(name) for name in names}
