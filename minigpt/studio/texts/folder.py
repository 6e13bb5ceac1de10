"""What lies in texts/ID, and how it is written: by the studio, and by the two programs that it
starts there.

    text.json       what the text is called
    files/          the files, under safe names
    names.jsonl     the names with which they were sent, in the order in which they came
    .arriving-...   the file that is just being received
    settings.json   the settings that somebody chose
    reading.json    what reading.py has found in the files
    plans.json      what planning.py expects of trainings on them

Everything is for this account alone.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from ...system.atomic import replace
from ...system.json_objects import read_object, to_json
from ..settings import reading_fields

ABOUT = "text.json"
FILES = "files"
NAMES = "names.jsonl"
SETTINGS_FILE = "settings.json"
READING_FILE = "reading.json"
PLANS_FILE = "plans.json"
WORKING = ".working"  # locked while a program reads or plans

_FOLDER_MODE = 0o700
_FILE_MODE = 0o600


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, unless it is there."""
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=_FOLDER_MODE, exist_ok=True)


def open_new(path: Path) -> int:
    """Make a file, to be written; its descriptor. FileExistsError if there is one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return os.open(path, flags, _FILE_MODE)


def write_json(value: dict[str, Any], path: Path) -> None:
    """Write a file whole or not at all."""

    def write(new: Path) -> None:
        with open(open_new(new), "w", encoding="utf-8") as file:
            file.write(to_json(value))

    replace(path, write)


def append_row(row: dict[str, Any], path: Path) -> None:
    """Add a row to a file, which is made if it is not there. Half a row before it stays alone."""
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _FILE_MODE)
    with open(opened, "a", encoding="utf-8") as file:
        file.write(f"\n{to_json(row)}\n")


def kept_files(folder: Path) -> list[Path]:
    """The files that have arrived, in the order in which a training reads them."""
    try:
        return sorted(path for path in (folder / FILES).iterdir() if path.is_file())
    except OSError:
        return []


def chosen_settings(folder: Path) -> dict[str, Any]:
    """The settings that somebody chose, by their names."""
    return read_object(folder / SETTINGS_FILE)


# What a reading or plans were made of: they are made again when it changes


def statuses(folder: Path) -> dict[str, os.stat_result]:
    """The size of each file that has arrived, when it was written to and so on, by its name."""
    try:
        with os.scandir(folder / FILES) as entries:
            return {entry.name: entry.stat() for entry in entries}
    except OSError:
        return {}


def version_of_files(folder: Path) -> str:
    """A text that changes when a file comes, goes or is written to."""
    found = sorted(statuses(folder).items())
    versions = [(name, status.st_size, status.st_mtime_ns) for name, status in found]
    return hashlib.sha256(json.dumps(versions).encode()).hexdigest()


def reading_of(folder: Path) -> dict[str, Any]:
    """What reading.json was made of: the files, and the chosen fields of a ReadingConfig."""
    fields = reading_fields(chosen_settings(folder))
    return {"files": version_of_files(folder), "settings": fields}


def plans_of(folder: Path) -> dict[str, Any]:
    """What plans.json was made of: the files, and all settings."""
    return {"files": version_of_files(folder), "settings": chosen_settings(folder)}


def reading_now(folder: Path) -> dict[str, Any] | None:
    """What reading.json holds; None if it is of other files or settings than there are now."""
    found = read_object(folder / READING_FILE)
    return found if found.get("of") == reading_of(folder) else None


def plans_now(folder: Path) -> dict[str, Any] | None:
    """What plans.json holds; None if it is for other files or settings than there are now."""
    found = read_object(folder / PLANS_FILE)
    return found if found.get("of") == plans_of(folder) else None


def is_readable(reading: dict[str, Any] | None) -> bool:
    """Whether a text was read and can be trained on."""
    return reading is not None and bool(reading["is_done"]) and reading["problem"] is None


def is_done(path: Path, of: dict[str, Any]) -> bool:
    """Whether a reading.json or plans.json is whole, and was made of just this."""
    found = read_object(path)
    return found.get("of") == of and bool(found.get("is_done"))


def write_problem(path: Path, of: dict[str, Any], kind: str, message: str) -> None:
    """Add to a reading.json or plans.json why it will never be whole. What it holds stays."""
    found = read_object(path)
    if found.get("of") != of:
        found = {"of": of}
    problem = {"kind": kind, "message": message}
    write_json({**found, "is_done": True, "problem": problem}, path)
