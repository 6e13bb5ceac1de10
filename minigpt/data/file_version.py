"""Whether a file was written to since it was last looked at."""

import os
from pathlib import Path

FileVersion = tuple[int, int]  # when a file was last written to, in nanoseconds, and its size


def version_of(file: str | Path) -> FileVersion | None:
    """A value that changes when the file is written to; None if there is no file."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):  # ValueError: no file can have such a name
        return None
    return status.st_mtime_ns, status.st_size
