"""What differs between operating systems: how a shell wants words quoted, which names cannot be
those of files, whether a file that is open can be replaced, and how long the computer has slept.
"""

import os
import re
import shlex
import sys
import time
from pathlib import Path, PurePath, PureWindowsPath

_NAME = os.name
_PLAIN_WORD = re.compile(r"[\w.:/\\=+-][\w.:/\\=+@-]*")  # no shell of Windows changes such a word
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]) *(\..*)?", re.IGNORECASE)
_NEVER_IN_NAMES = re.compile(r'[<>:"|?*\x00-\x1f]')
_PATIENCE = 1.0  # seconds
_NOT_LOADED = (126, 127, 1114)  # errors of Windows: a library, or one that it needs, is missing
MISSING_LIBRARY = "it needs the Visual C++ Redistributable of Microsoft"
_LONGEST_PATH = 259  # characters, unless the user has switched this limit off


def is_windows() -> bool:
    """Whether this is Windows: a file cannot be replaced or removed there while it is open."""
    return _NAME == "nt"


def quote(word: str) -> str:
    """A word of a command, to be copied into a shell.

    On Windows a word that needs quotes gets double ones, the only ones that both cmd.exe and
    PowerShell know, and a double quote inside it is doubled. One of the two shells still replaces a
    variable in a word, such as %x% or $x: no way to prevent that works in both. Elsewhere a word
    that no terminal shows as it is, such as one with an escape character, has its bytes written
    out.
    """
    if not is_windows():
        return shlex.quote(word) if word.isprintable() else _bytes_written_out(word)
    if _PLAIN_WORD.fullmatch(word):
        return word
    quoted = word.replace('"', '""')
    backslashes = len(quoted) - len(quoted.rstrip("\\"))  # before a quote, two stand for one
    return '"' + quoted + backslashes * "\\" + '"'


def _bytes_written_out(word: str) -> str:
    """A word in the quotes in which bash and zsh read \\xe9 as a byte."""
    written = ""
    for byte in os.fsencode(word):
        is_plain = 32 <= byte < 127 and chr(byte) not in "'\\"
        written += chr(byte) if is_plain else f"\\x{byte:02x}"
    return f"$'{written}'"


def quote_path(path: Path) -> str:
    """A path, quoted like a word, that no command takes for an option."""
    return quote(f"./{path}" if str(path).startswith("-") else str(path))


def how_to_install(extra: str) -> str:
    """The command that installs what a part of minigpt needs."""
    return f'pip install "minigpt-text[{extra}]"'


def end_of_input() -> str:
    """The keys that end what is typed."""
    return "Ctrl-Z and Enter" if is_windows() else "Ctrl-D"


def name_problem(path: str | PurePath) -> str | None:
    """Why Windows would not make a file or a folder with this path: a name in it is not allowed
    there. None if all are, or on another system."""
    if not is_windows():
        return None
    path = PureWindowsPath(str(path))  # a path of another system is split differently
    for name in path.relative_to(path.anchor).parts:
        if name in (".", ".."):
            continue
        if _DEVICE.fullmatch(name):
            return f"Windows keeps the name {name} for itself"
        if found := _NEVER_IN_NAMES.search(name):
            return f"a name on Windows cannot hold {found[0]!r}, as {name!r} does"
        if name.endswith((" ", ".")):
            return f"a name on Windows cannot end in a dot or a space, as {name!r} does"
    return None


def is_missing_library(error: OSError) -> bool:
    """Whether a compiled library could not be loaded on Windows. Of the packages that minigpt
    needs, only torch does not bring along every library that it needs itself."""
    return getattr(error, "winerror", None) in _NOT_LOADED


def rename(path: Path, name: Path) -> None:
    """Give a file or a folder another name. A file replaces the file that has that name.

    Windows refuses this while a program has one of the two files open. A virus scanner, the search
    index or a backup reads a new file for a moment, so renaming is tried again for a second.
    """
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            path.replace(name)
            return
        except PermissionError:
            if not is_windows() or time.monotonic() >= end:
                raise
            time.sleep(_PATIENCE / 20)


def why_not_written(error: OSError, path: Path) -> str:
    """The reason of an error of the system in words; Windows does not say that a path is too long,
    or that a file is open."""
    reason = error.strerror or str(error)
    if not is_windows():
        return reason
    if len(str(path.absolute())) > _LONGEST_PATH:
        return f"{reason}: the path has more than {_LONGEST_PATH} characters; choose a shorter one"
    if isinstance(error, PermissionError):
        return f"{reason}; perhaps another program has it open"
    return reason


def seconds_asleep() -> float:
    """How long the computer has slept since some moment: by how much a clock that goes on while it
    sleeps is ahead of one that stands still. Setting the time of day moves neither."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
    if sys.platform == "darwin":
        return time.clock_gettime(time.CLOCK_MONOTONIC) - time.clock_gettime(time.CLOCK_UPTIME_RAW)
    if sys.platform == "win32":
        import ctypes

        awake = ctypes.c_ulonglong()  # in units of 100 nanoseconds
        ctypes.windll.kernel32.QueryUnbiasedInterruptTime(ctypes.byref(awake))
        return time.monotonic() - awake.value / 1e7
    return 0.0
