"""The files of texts come, each by one request, and go. Nothing here reads what is in them.

A file is written beside the others, and is one of the text when it is whole. It is kept under a
name that is safe on every system; the name that it was sent with is only shown.
"""

import contextlib
import os
import secrets
import shutil
import threading
import unicodedata
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from ...config import TALES
from ...system.json_objects import read_object
from ...system.platforms import rename
from ..answers import Refusal
from ..workspace import Workspace, safe_name
from .folder import (
    ABOUT,
    FILES,
    NAMES,
    SETTINGS_FILE,
    append_row,
    make_folder,
    open_new,
    statuses,
    write_json,
)

_MOST_BYTES = 2_000_000_000  # of all files of a text together
_MOST_FILES = 2_000  # of a text
_LEAST_FREE = 500_000_000  # bytes that stay free on the disk
_BLOCK = 1 << 20  # bytes that are written at a time
_MOST_SHOWN = 200  # characters of a name
_MOST_NAME_BYTES = 200  # of a name that is kept: some systems store 255
_ARRIVING = ".arriving-"  # begins the name of a file until it is whole

_changing = threading.Lock()  # one thread at a time changes what files a text has


# A text


def create(workspace: Workspace, settings: dict[str, Any], *, are_tales: bool = False) -> Path:
    """Make a text, of the tales that come with minigpt or of files that are to come: it has no name
    until the first is there. Returns its folder; if anything fails, nothing is left of it."""
    tales = _tales() if are_tales else None
    _check_free(workspace.root, tales.stat().st_size if tales else 0)
    make_folder(workspace.texts)
    folder = workspace.texts / secrets.token_hex(6)
    try:
        make_folder(folder)
        make_folder(folder / FILES)
        write_json({"name": ""}, folder / ABOUT)
        write_json(settings, folder / SETTINGS_FILE)
        if tales is not None:
            arriving = _new_name(folder)
            with open(tales, "rb") as source, open(open_new(arriving), "wb") as copy:
                shutil.copyfileobj(source, copy)
            _keep(folder, tales.name, arriving)
    except OSError:  # nothing may be written here, or no more
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def _tales() -> Path:
    from ...data.files import find_files

    (tales,) = find_files((TALES,))
    return tales


def remove_file(folder: Path, kept: str) -> None:
    """Remove a file of a text, by the name under which it is kept. A Refusal of status 404 if there
    is none."""
    with _changing:
        if kept not in statuses(folder):
            raise Refusal(404, "There is no such file in this text.")
        (folder / FILES / kept).unlink()


def delete(folder: Path) -> None:
    """Delete a text."""
    with _changing:
        # What cannot be deleted at once, on Windows, is no text any more: text.json goes first.
        (folder / ABOUT).unlink(missing_ok=True)
        shutil.rmtree(folder)


def remove_half(workspace: Workspace) -> None:
    """Remove what a studio that was killed was just receiving or deleting: the half of a file, a
    text that never had one, and what is left of a text. What cannot be removed, such as a file that
    another program has open on Windows, is left to the next studio."""
    for folder in workspace.text_folders():
        with contextlib.suppress(OSError):
            _remove_half_of(folder)


def _remove_half_of(folder: Path) -> None:
    for half in folder.glob(f"{_ARRIVING}*"):
        half.unlink(missing_ok=True)
    if read_object(folder / ABOUT).get("name") == "" and not statuses(folder):
        delete(folder)
    elif not (folder / ABOUT).exists():
        shutil.rmtree(folder, ignore_errors=True)


# A file that comes


async def receive(folder: Path, name: str, parts: AsyncIterator[bytes], expected: int = 0) -> str:
    """Store the bytes of a file as they come; the name under which it is kept.

    `expected` is how many they will be, if that is known: what has no place is refused at once. If
    they end too early or become too many, or the disk is full, nothing is left of them.
    """
    arriving = _new_name(folder)
    try:
        room = await run_in_threadpool(_check_place, folder, expected)
        await _store(parts, arriving, room)
        return await run_in_threadpool(_keep, folder, name, arriving)
    except FileNotFoundError:  # somebody has deleted the text
        raise _gone() from None
    finally:
        arriving.unlink(missing_ok=True)


def _new_name(folder: Path) -> Path:
    """Where a file is written until it is whole; no other one has this name."""
    return folder / f"{_ARRIVING}{secrets.token_hex(6)}"


def _check_place(folder: Path, coming: int) -> int:
    """How many bytes a file that comes may have. A Refusal if there is no place for `coming`."""
    room = _room(statuses(folder))
    if coming > room:
        raise _too_large()
    _check_free(folder, coming)
    return room


def _room(there: Mapping[str, os.stat_result]) -> int:
    """How many bytes one more file may have. A Refusal if the text has enough files."""
    if len(there) >= _MOST_FILES:
        most = f"{_MOST_FILES:,}"
        raise Refusal(413, f"A text can have {most} files.", kind="many_files", most=most)
    return _MOST_BYTES - sum(status.st_size for status in there.values())


def _too_large() -> Refusal:
    most = f"{_MOST_BYTES / 1e9:g} GB"
    return Refusal(413, f"A text can have {most}, no more.", kind="large_text", most=most)


def _gone() -> Refusal:
    return Refusal(404, "This text is not here any more.", kind="text_gone")


def _check_free(disk: Path, coming: int) -> None:
    if shutil.disk_usage(disk).free < coming + _LEAST_FREE:
        raise Refusal(507, "The disk is full. Free some space.")


async def _store(parts: AsyncIterator[bytes], arriving: Path, room: int) -> None:
    """Write the parts into a new file, a megabyte at a time."""
    size = 0
    block = bytearray()
    opened = await run_in_threadpool(open_new, arriving)
    with open(opened, "wb", buffering=0) as file:
        async for part in parts:
            size += len(part)
            if size > room:
                raise _too_large()
            block += part
            if len(block) >= _BLOCK:
                await run_in_threadpool(_write, file, bytes(block), arriving.parent)
                block.clear()
        await run_in_threadpool(_write, file, bytes(block), arriving.parent)


def _write(file: Any, block: bytes, disk: Path) -> None:
    _check_free(disk, len(block))
    left = memoryview(block)
    while left:
        left = left[file.write(left) :]


def _keep(folder: Path, name: str, arriving: Path) -> str:
    """Let a file that has arrived be one of the text, if there is still a place for it; the name
    under which it is kept."""
    with _changing:
        about = read_object(folder / ABOUT)
        if not about:
            raise _gone()
        there = statuses(folder)
        if arriving.stat().st_size > _room(there):  # others have come meanwhile
            raise _too_large()

        kept = _free_name(name, there)
        shown = "".join(sign for sign in name if sign.isprintable())[:_MOST_SHOWN] or kept
        append_row({"kept": kept, "name": shown}, folder / NAMES)
        if not about["name"]:
            write_json({"name": _name_of(name)}, folder / ABOUT)
        rename(arriving, folder / FILES / kept)
    return kept


# Names


def _free_name(name: str, there: Iterable[str]) -> str:
    """A safe name that no file of the text has: "notes (2).txt" where "notes.txt" is."""
    taken = {_key(other) for other in there}
    first = _shortened(safe_name(unicodedata.normalize("NFC", name), "text"), "")
    kept = first
    number = 2
    while _key(kept) in taken:
        kept = _shortened(first, f" ({number})")
        number += 1
    return kept


def _shortened(name: str, mark: str) -> str:
    """A name with a mark before its ending, no longer than can be stored everywhere."""
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > 10:
        stem, dot, ending = name, "", ""
    end = f"{mark}{dot}{ending}"
    while len(stem + end) > 80 or len((stem + end).encode()) > _MOST_NAME_BYTES:
        stem = stem[:-1]
    return f"{stem.rstrip()}{end}"


def _key(name: str) -> str:
    """What is equal for two names that some systems take for the same."""
    return unicodedata.normalize("NFC", name).casefold()


def _name_of(first: str) -> str:
    """What to call a text: by the folder that was chosen, or the first file without its ending."""
    parts = [part for part in first.replace("\\", "/").split("/") if part.strip(". ")]
    if len(parts) > 1:
        return safe_name(parts[0], "text")
    return safe_name(first, "text").partition(".")[0].strip() or "text"
