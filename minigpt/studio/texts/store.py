"""The texts that were dropped: their files as they arrive, are added to and removed. Nothing here
reads what is in them.

A file is announced with its name and size before its bytes come. It is kept under a name that is
safe on every system; the name that it was sent with is only shown.
"""

import contextlib
import shutil
import threading
import unicodedata
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from ...system.json_objects import read_object
from ...system.platforms import rename
from ..answers import Refusal
from ..workspace import Workspace, new_id, safe_name
from .folder import (
    ABOUT,
    ARRIVING,
    FILES,
    make_folder,
    open_new,
    statuses,
    write_json,
)

_MOST_BYTES = 2_000_000_000  # of a file, and of all files of a text together
_MOST_FILES = 2_000  # of a text
_LEAST_FREE = 500_000_000  # bytes that stay free on the disk
_BLOCK = 1 << 20  # bytes that are written at a time
_MOST_SHOWN = 200  # characters of a name
_MOST_NAME_BYTES = 200  # of a name that is kept: some systems store 255
_TALES = "tales.txt"

_changing = threading.Lock()  # one thread at a time reads, changes and writes text.json


# A text


def create(workspace: Workspace, names: Any, sizes: Any) -> str:
    """Make a text of files with these names and sizes, which are to come; its id."""
    announced = _checked(names, sizes)
    make_folder(workspace.texts)
    text = new_id()
    folder = workspace.texts / text
    about: dict[str, Any] = {"name": _name_of(announced[0][0]), "is_complete": False, "files": []}
    _announce(about, announced, workspace.texts)

    for path in (folder, folder / FILES, folder / ARRIVING):
        make_folder(path)
    write_json(about, folder / ABOUT)
    return text


def create_tales(workspace: Workspace) -> str:
    """Make a text of the tales that come with minigpt."""
    from ...data.files import TALES, find_files

    (source,) = find_files((TALES,))
    text = create(workspace, [_TALES], [source.stat().st_size])
    folder = workspace.texts / text
    with open(source, "rb") as tales, open(open_new(folder / FILES / _TALES), "wb") as copy:
        shutil.copyfileobj(tales, copy)
    complete(folder)
    return text


def add(folder: Path, names: Any, sizes: Any) -> int:
    """Announce more files of a text; the number of the first."""
    announced = _checked(names, sizes)
    with _about(folder) as about:
        first = len(about["files"])
        _announce(about, announced, folder)
        about["is_complete"] = False
    return first


def complete(folder: Path) -> None:
    """Take a text to be complete: it can be read. A Refusal of status 409 if a file is still to
    come, or there is none."""
    with _about(folder) as about:
        missing = [file for file in _there(about) if not (folder / FILES / file["kept"]).exists()]
        if missing:
            raise Refusal(409, f"{missing[0]['name']} has not arrived yet.")
        if not _there(about):
            raise Refusal(409, "There is no file in this text.")
        about["is_complete"] = True


def remove_file(folder: Path, number: int) -> None:
    """Remove a file of a text, whether or not it has arrived."""
    with _about(folder) as about:
        file = _file(about, number)
        file["is_removed"] = True
        about["is_complete"] = about["is_complete"] and bool(_there(about))
        (folder / FILES / file["kept"]).unlink(missing_ok=True)


def delete(folder: Path) -> None:
    """Delete a text."""
    with _changing:
        # What cannot be deleted at once, on Windows, is no text any more: text.json goes first.
        (folder / ABOUT).unlink(missing_ok=True)
        shutil.rmtree(folder)


def restore(workspace: Workspace) -> None:
    """Bring the texts in order that an earlier studio has left: files that have not arrived are
    forgotten, and a text of which nothing has arrived is deleted."""
    for folder in text_folders(workspace):
        text = describe_text(folder)
        if text["is_complete"]:
            continue
        if not any(file["has_arrived"] for file in text["files"]):
            delete(folder)
            continue

        shutil.rmtree(folder / ARRIVING)
        make_folder(folder / ARRIVING)
        with _about(folder) as about:
            for file in text["files"]:
                about["files"][file["number"]]["is_removed"] = not file["has_arrived"]
            about["is_complete"] = True


def text_folders(workspace: Workspace) -> list[Path]:
    """The folders of all texts, the newest first."""
    changed: dict[Path, float] = {}
    for path in workspace.texts.glob(f"*/{ABOUT}"):
        with contextlib.suppress(OSError):  # it was deleted just now
            changed[path.parent] = path.stat().st_mtime
    return sorted(changed, key=lambda folder: changed[folder], reverse=True)


def describe_text(folder: Path) -> dict[str, Any]:
    """A text: its id, name, size, when it was changed, how many files it has, whether it is
    complete, and each file with its number, name, kept name, size and whether it has arrived."""
    about = read_object(folder / ABOUT)
    if not about:
        raise Refusal(404, "This text is not here any more.", kind="text_gone")

    there = statuses(folder)
    files = []
    for number, file in enumerate(about["files"]):
        if file["is_removed"]:
            continue
        status = there.get(file["kept"])
        size = file["size"] if status is None else status.st_size
        shown = {"number": number, "name": file["name"], "kept": file["kept"]}
        files.append({**shown, "size": size, "has_arrived": status is not None})
    return {
        "id": folder.name,
        "name": about["name"],
        "size": sum(file["size"] for file in files if file["has_arrived"]),
        "changed": (folder / ABOUT).stat().st_mtime,
        "files": files,
        "is_complete": about["is_complete"],
    }


# The bytes of a file


async def receive(folder: Path, number: int, parts: AsyncIterator[bytes]) -> str:
    """Store the bytes of a file that was announced, as they come; the name under which it is kept.

    If they end too early, or are more than were announced, or the disk is full, nothing is left of
    them.
    """
    file = _file(read_object(folder / ABOUT), number)
    kept = folder / FILES / file["kept"]
    if kept.exists():
        raise Refusal(409, f"{file['name']} has arrived before.")

    arriving = folder / ARRIVING / str(number)
    try:
        opened = await run_in_threadpool(open_new, arriving)
    except FileExistsError:
        raise Refusal(409, f"{file['name']} is arriving already.") from None
    try:
        size = await _store(parts, opened, arriving.parent, file["size"])
        if size < file["size"]:
            message = f"{file['name']} ended too early. Add it again."
            raise Refusal(400, message, kind="broken_file", name=file["name"])
        await run_in_threadpool(_keep, folder, number, arriving)
    finally:
        arriving.unlink(missing_ok=True)
    return str(file["kept"])


async def _store(parts: AsyncIterator[bytes], opened: int, disk: Path, most: int) -> int:
    """Write the parts into an open file, a megabyte at a time; how many bytes they were."""
    size = 0
    block = bytearray()
    with open(opened, "wb", buffering=0) as file:
        async for part in parts:
            size += len(part)
            if size > most:
                raise Refusal(413, "More came than was announced. Add the file again.")
            block += part
            if len(block) >= _BLOCK:
                await run_in_threadpool(_write, file, bytes(block), disk)
                block.clear()
        await run_in_threadpool(_write, file, bytes(block), disk)
    return size


def _write(file: Any, block: bytes, disk: Path) -> None:
    _check_free(disk, len(block))
    left = memoryview(block)
    while left:
        left = left[file.write(left) :]


def _keep(folder: Path, number: int, arriving: Path) -> None:
    """Let a file that has arrived be part of the text, unless it was removed meanwhile."""
    with _changing:
        file = _file(read_object(folder / ABOUT), number)
        rename(arriving, folder / FILES / file["kept"])


# What is announced


def _checked(names: Any, sizes: Any) -> list[tuple[str, int]]:
    """The names and sizes that were sent, as pairs."""
    if not _is_list_of(names, str) or not names:
        raise Refusal(400, "Send the names of the files as a list.", "names")
    if not _is_list_of(sizes, int) or min(sizes, default=0) < 0 or len(sizes) != len(names):
        raise Refusal(400, "Send the size of each file, in bytes.", "sizes")
    return list(zip(names, sizes, strict=True))


def _is_list_of(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


def _announce(about: dict[str, Any], announced: Sequence[tuple[str, int]], disk: Path) -> None:
    """Add files to what is known of a text, if they are not too many, and fit on the disk."""
    there = _there(about)
    if len(there) + len(announced) > _MOST_FILES:
        most = f"{_MOST_FILES:,}"
        raise Refusal(413, f"A text can have {most} files.", "names", kind="many_files", most=most)

    coming = sum(size for _, size in announced)
    together = coming + sum(file["size"] for file in there)
    if together > _MOST_BYTES:
        most = f"{_MOST_BYTES / 1e6:,g} MB"
        message = f"A text can have {most}, and these files have more."
        raise Refusal(413, message, "sizes", kind="large_text", most=most)
    _check_free(disk, coming)

    taken = {_key(file["kept"]) for file in about["files"]}
    for name, size in announced:
        kept = _free_name(name, taken)
        taken.add(_key(kept))
        shown = "".join(c for c in name if c.isprintable())[:_MOST_SHOWN] or kept
        file = {"name": shown, "kept": kept, "size": size, "is_removed": False}
        about["files"].append(file)


def _check_free(disk: Path, coming: int) -> None:
    if shutil.disk_usage(disk).free < coming + _LEAST_FREE:
        raise Refusal(507, "The disk is full. Free some space.")


def _free_name(name: str, taken: set[str]) -> str:
    """A safe name that no other file of the text has: "notes (2).txt" where "notes.txt" is."""
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


# text.json


@contextlib.contextmanager
def _about(folder: Path) -> Iterator[dict[str, Any]]:
    """What is known of a text, to be changed; it is stored afterwards, unless there is an error."""
    with _changing:
        about = read_object(folder / ABOUT)
        if not about:
            raise Refusal(404, "This text is not here any more.", kind="text_gone")
        yield about
        write_json(about, folder / ABOUT)


def _there(about: dict[str, Any]) -> list[dict[str, Any]]:
    """The files that were not removed."""
    return [file for file in about["files"] if not file["is_removed"]]


def _file(about: dict[str, Any], number: int) -> dict[str, Any]:
    """The file of a number. A Refusal of status 404 if there is none, or it was removed."""
    files: list[dict[str, Any]] = about.get("files", [])
    if not 0 <= number < len(files) or files[number]["is_removed"]:
        raise Refusal(404, "There is no such file in this text.")
    return files[number]
