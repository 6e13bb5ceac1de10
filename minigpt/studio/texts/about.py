"""What the window is told about a text, from its folder alone."""

import contextlib
from pathlib import Path
from typing import Any

from ...system.json_objects import read_lines, read_object
from ..answers import Refusal
from ..settings import describe_settings
from ..workspace import Workspace
from .folder import (
    ABOUT,
    FILES,
    NAMES,
    chosen_settings,
    is_readable,
    plans_now,
    reading_now,
    statuses,
)

_NOT_WHOLE = ("parts", "inside")  # kinds of what was left out of a file that was read
_OF_READING = (
    "share", "at", "documents", "is_dialogue", "speakers", "lines", "size",
    "characters", "left_out", "more_left_out", "notes", "problem",
)  # fmt: skip
_OF_PLANS = ("share", "phase", "stops", "measured", "problem")
_LISTS = ("speakers", "lines", "left_out", "notes", "stops")

Told = dict[str, Any]


def texts_in(workspace: Workspace) -> list[Told]:
    """All texts as rows of a list, the newest first."""
    found = []
    for folder in workspace.text_folders():
        with contextlib.suppress(Refusal, OSError):  # it was deleted just now
            found.append(row(folder))
    there = [text for text in found if text["name"]]  # else its first file is still on its way
    return sorted(there, key=lambda text: text["changed"], reverse=True)


def row(folder: Path) -> Told:
    """A text as a row of a list: "id", "name", "size" (as the model sees it, once it was read),
    "changed", "files" (how many, without those left out), "state".
    A Refusal of status 404 if it is not there."""
    told, files = _read(folder)
    reading = reading_now(folder)
    told["files"] = _count_of_read(files, reading)
    told["state"] = _state(files, reading)
    if reading is not None and told["state"] == "ready":
        told["size"] = reading["size"]
    return told


def whole_text(folder: Path) -> Told:
    """All of a text: the row, with the files themselves in "files", and what was read, what is
    planned, and the settings. A Refusal of status 404 if it is not there."""
    told, files = _read(folder)
    reading = reading_now(folder)
    problems = _left_out(reading)
    return {
        **told,
        "files": [file | {"problem": problems.get(file["kept"])} for file in files],
        "state": _state(files, reading),
        "reading": _only(reading, _OF_READING),
        "plans": _only(plans_now(folder), _OF_PLANS),
        "settings": describe_settings(chosen_settings(folder)),
    }


def for_run(folder: Path) -> Told:
    """What the request of a training keeps of its text: "id", "name", "files" (how many), "size"
    and "characters" as the model sees it, and "beginning". A Refusal of status 404 if it is not
    there, of 409 if it cannot be learned from."""
    told, files = _read(folder)
    reading = reading_now(folder)
    if reading is None or not is_readable(reading):
        message = "This text cannot be learned from, or is still being read."
        raise Refusal(409, message, kind="text_not_ready")
    return {
        "id": told["id"],
        "name": told["name"],
        "files": _count_of_read(files, reading),
        "size": reading["size"],
        "characters": reading["characters"],
        "beginning": reading["lines"][0],
    }


def _read(folder: Path) -> tuple[Told, list[Told]]:
    """The "id", "name", "size" and time of the last change of a text, and its files, each with the
    name that is shown, the name under which it is kept, and its size."""
    about = read_object(folder / ABOUT)
    if not about:
        raise Refusal(404, "This text is not here any more.", kind="text_gone")

    there = statuses(folder)
    sent = {row.get("kept"): str(row.get("name")) for row in read_lines(folder / NAMES)}
    names = {kept: name for kept, name in sent.items() if kept in there}
    names |= {kept: kept for kept in sorted(there.keys() - names.keys())}
    files = [
        {"name": name, "kept": kept, "size": there[kept].st_size} for kept, name in names.items()
    ]
    told = {
        "id": folder.name,
        "name": about.get("name"),
        "size": sum(file["size"] for file in files),
        "changed": (folder / FILES).stat().st_mtime,
    }
    return told, files


def _left_out(reading: Told | None) -> dict[str, Told]:
    """The files that were left out, by their kept names, and why."""
    return {
        left_out["name"]: {"kind": left_out["kind"], "message": left_out["message"]}
        for left_out in (reading or {}).get("left_out", [])
        if left_out["kind"] not in _NOT_WHOLE
    }


def _count_of_read(files: list[Told], reading: Told | None) -> int:
    """How many files a text has, without those that were left out."""
    left_out = _left_out(reading)
    return len([file for file in files if file["kept"] not in left_out])


def _state(files: list[Told], reading: Told | None) -> str:
    """ "empty", "unread", "reading", "ready" or "refused"."""
    if not files:
        return "empty"
    if reading is None:
        return "unread"
    if not reading["is_done"]:
        return "reading"
    return "refused" if reading["problem"] else "ready"


def _only(found: Told | None, names: tuple[str, ...]) -> Told | None:
    """What a reading or plans hold under these names. A program that ended before it wrote anything
    has found nothing."""
    if found is None:
        return None
    return {name: found.get(name, [] if name in _LISTS else None) for name in names}
