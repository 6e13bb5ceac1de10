"""Files that are written whole or not at all."""

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from .platforms import name_problem, rename

# The name of an unfinished file; older versions put no number into it.
_UNFINISHED = re.compile(r"\.new-(?:[0-9a-f]{12}-)?(.+)", re.DOTALL)


def write_text(text: str, path: Path, *, is_synced: bool = True) -> None:
    """Write a text file, whole or not at all; the same bytes on every system. One that is not
    synced is written sooner, and may be lost if the machine crashes."""
    write = partial(Path.write_text, data=text, encoding="utf-8", newline="\n")
    replace(path, write, is_synced=is_synced)


def replace(
    path: Path,
    write: Callable[[Path], Any],
    *,
    keep_as: Path | None = None,
    is_synced: bool = True,
) -> None:
    """Let `write` fill a new file, sync it to disk and rename it to `path`. If that fails, the file
    at `path` stays as it was, and OSError with its name is raised. With `keep_as` the file that was
    there is kept by that name: at every moment one of the two is there."""
    problem = name_problem(path)
    if problem is not None:
        raise OSError(errno.EINVAL, problem, str(path))

    new = path.with_name(unfinished_name(path.name))
    try:
        write(new)
        if is_synced:
            with open(new, "rb+") as file:
                os.fsync(file.fileno())

        if keep_as is not None and path.exists():
            rename(path, keep_as)
        rename(new, path)
        if is_synced and os.name == "posix":  # make the renaming outlast a crash of the machine
            descriptor = os.open(path.parent, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
    except OSError as error:
        if str(error.filename) == str(new):  # a name that nobody has chosen
            error.filename = str(path)
        raise
    finally:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)


def unfinished_name(name: str) -> str:
    """What a file is called while it is being written. No one else uses this name, so several
    threads and processes can write the file at once."""
    return f".new-{secrets.token_hex(6)}-{name}"


def is_unfinished(name: str) -> bool:
    """Whether a file has the name of one that is being written."""
    return _UNFINISHED.fullmatch(name) is not None


def whole_name(name: str) -> str:
    """What a file is called once it is whole."""
    found = _UNFINISHED.fullmatch(name)
    return name if found is None else found[1]
