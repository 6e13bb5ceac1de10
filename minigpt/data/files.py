"""From the names of files, folders and patterns to the files of text that they name."""

import atexit
import contextlib
import difflib
import glob
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from .. import UserError
from ..config import PLAYS, TALES, ReadingConfig
from ..system.platforms import quote
from .readers.content import BLOCK
from .readers.document import STANDARD_INPUT, Refused, Unreadable
from .readers.kinds import check_is_text
from .temporary import temporary_copy

_RUN = "since it is a run or a model"
_ANY_FOLDERS = re.compile(r"(?:^|(?<=/))\*\*(?:/|$)")  # in a pattern: ** by itself
_RUN_HOLDS = {"config.json", "model.safetensors"}  # as does a model of transformers

Say = Callable[[str], object]  # gets the lines that a person should read


def find_files(
    names: tuple[str, ...],
    say: Say = lambda line: None,
    reading: ReadingConfig | None = None,
) -> tuple[Path, ...]:
    """The files that `names` mean: files, folders to search, glob patterns, "-" for stdin."""
    reading = reading or ReadingConfig()
    found: list[Path] = []
    for name in names:
        if name == STANDARD_INPUT and sys.stdin is not None:  # it may be closed
            found.append(_copy_of_standard_input())
        elif os.path.isdir(name):
            found += _Search(name, reading).texts(f"{glob.escape(name)}/**/*", say)
        elif exists(name):
            found.append(Path(name))
        elif glob.has_magic(name) and (texts := _Search(name, reading).texts(name, say)):
            found += texts
        elif name in (PLAYS, TALES):
            found.append(_text_of_ours(name))
        else:
            raise UserError(f"no such file: {name}{_hint(name)}", kind="text_gone")
    return tuple(found)


def _text_of_ours(name: str) -> Path:
    """A text that comes with minigpt: in an installed package, or in a checkout."""
    package = Path(__file__).parents[1]
    packed = package / Path(name).name
    return packed if packed.exists() else package.parent / name


def exists(name: str) -> bool:
    """Whether there is a file or a folder; UserError if there is no permission to look."""
    try:
        os.stat(name)
        return True
    except PermissionError as error:
        raise UserError(f"cannot read {name}: {error.strerror}", kind="damaged") from None
    except (OSError, ValueError):  # a name may be too long, or hold a NUL
        return False


def identity(file: Path) -> Hashable:
    """What two names of one file have in common, links too."""
    try:
        status = file.stat()
    except OSError:
        return str(file.resolve())
    return status.st_dev, status.st_ino


def each_once(files: Iterable[Path]) -> tuple[Path, ...]:
    """The files, each by its first name."""
    found: dict[Hashable, Path] = {}
    for file in files:
        found.setdefault(identity(file), file)
    return tuple(found.values())


def _copy_of_standard_input() -> Path:
    """A temporary file, since a text is read several times and standard input can be read once."""
    copies = contextlib.ExitStack()
    file = copies.enter_context(temporary_copy("stdin"))
    atexit.register(copies.close)
    with open(file, "wb") as copy:
        _copy_standard_input(copy)
    return file


def _copy_standard_input(copy: BinaryIO) -> None:
    """Copy blocks as they come, so that a signal has its effect between two of them."""
    standard_input: Any = sys.stdin.buffer
    while block := standard_input.read1(BLOCK):
        copy.write(block)


class _Search:
    """The search of a folder or by a pattern, `place`; it remembers what it has left out."""

    def __init__(self, place: str, reading: ReadingConfig):
        self.place = place
        self._reading = reading
        self._left_out: dict[str, list[str]] = {}  # names by reasons

    def texts(self, pattern: str, say: Say) -> tuple[Path, ...]:
        """The files that hold text, whatever their names, each once; `say` is told what is left
        out. A pattern may match no file; UserError if it matches some, but none is text."""
        matches = {Path(name) for name in self._matches(pattern) if os.path.isfile(name)}
        files = each_once(sorted(matches))
        texts = tuple(filter(self._is_text, files))

        for reason, names in self._left_out.items():
            listed = ", ".join(names[:3])
            if len(names) > 3:
                listed += f" and {len(names) - 3} more"
            say(f"left out of {self.place}, {reason}: {listed}")

        if texts:
            return texts
        if files or self._left_out or os.path.isdir(self.place):
            raise UserError(f"there is no text in {self.place}", kind="empty")
        return ()  # nothing matches the pattern

    def _leave_out(self, reason: str, name: str) -> None:
        names = self._left_out.setdefault(reason, [])
        if name not in names:
            names.append(name)

    def _is_text(self, file: Path) -> bool:
        try:
            check_is_text(file, self._reading)
            return True
        except Unreadable as error:
            self._leave_out(f"since it cannot be read ({error.reason})", file.name)
        except Refused as error:
            self._leave_out(f"since it {error.reason}", file.name)
        return False

    def _matches(self, pattern: str) -> Iterator[str]:
        """What glob finds; but where links lead back to a folder, that is searched only once."""
        any_folders = _ANY_FOLDERS.search(pattern)
        if any_folders is None:
            for folder in glob.glob(os.path.dirname(pattern) or "."):
                self._check_readable(folder)
            yield from glob.glob(pattern)
            return

        above = pattern[: any_folders.start()]
        below = pattern[any_folders.end() :]
        for top in glob.glob(above) if above else ["."]:
            for folder in self._folders(top):
                inside = os.path.join(folder, "")
                if not above:
                    inside = inside.removeprefix("./")
                yield from self._matches(glob.escape(inside) + (below or "*"))

    def _folders(self, top: str) -> Iterator[str]:
        """A folder and those in it, to any depth, each once; hidden ones and runs are left out."""
        seen: set[Hashable] = set()
        # Links to folders wait until the end: so a folder is known by its own name if it has one.
        tops = deque([top])
        while tops:
            next_top = tops.popleft()
            for folder, inside, files in os.walk(next_top, onerror=self._leave_out_folder):
                itself = identity(Path(folder))
                is_run = set(files) >= _RUN_HOLDS
                if is_run:
                    self._leave_out(_RUN, folder)
                if itself in seen or is_run:
                    inside.clear()  # so that os.walk goes no deeper
                    continue

                seen.add(itself)
                inside[:] = sorted(name for name in inside if not name.startswith("."))
                for name in inside:
                    path = os.path.join(folder, name)
                    if os.path.islink(path):
                        tops.append(path)
                yield folder

    def _check_readable(self, folder: str) -> None:
        """Leave out a folder that cannot be read, about which glob says nothing."""
        if not os.path.isdir(folder):
            return
        try:
            os.scandir(folder).close()
        except OSError as error:
            self._leave_out_folder(error)

    def _leave_out_folder(self, error: OSError) -> None:
        if Path(error.filename) == Path(self.place):
            raise UserError(f"cannot read {self.place}: {error.strerror}", kind="damaged")
        self._leave_out(f"since it cannot be read ({error.strerror})", str(error.filename))


def _hint(name: str) -> str:
    """Which file might have been meant: one with a space in its name, or one spelled alike."""
    path = Path(name)
    try:
        others = [file.name for file in path.parent.iterdir()]
    except OSError:
        return ""

    near = []
    if name:
        near = [other for other in others if other.startswith(f"{path.name} ")]
    if not near:
        near = difflib.get_close_matches(path.name, others, n=1, cutoff=0.75)
    if not near:
        return ""
    meant = str(path.with_name(near[0]))
    return f"; did you mean {quote(meant)}?"
