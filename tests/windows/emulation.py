"""Windows, as far as Linux can play it: a file system that refuses what that of Windows refuses.

A file that any process has open or mapped is not replaced, removed or moved, nor is a folder that
holds one; a name that Windows keeps for itself is not made; there are no symbolic links. Python
tells an audit hook of each such operation before it is done, and the hook refuses it. Which files
are open is read from /proc.
"""

import contextlib
import errno
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from minigpt.system import platforms as system

_NEVER_A_NAME = re.compile(r'.*[<>:"|?*\x00-\x1f].*|.*[ .]|(?i:con|prn|aux|nul|com\d|lpt\d)(\..*)?')
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class WindowsFiles:
    """The file system below a folder; elsewhere nothing is refused."""

    def __init__(self) -> None:
        self.refused: list[str] = []  # what was, as "os.rename runs/my/model.safetensors"
        self._root: Path | None = None
        self._is_looking = False  # the hook's own look at the files is no operation to refuse
        sys.addaudithook(self._hear)  # which cannot be taken away again

    @contextlib.contextmanager
    def below(self, root: Path) -> Iterator[None]:
        """Inside, the files below this folder are on Windows."""
        self.refused.clear()
        self._root = root.resolve()
        try:
            yield
        finally:
            self._root = None

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        if self._root is None or self._is_looking:
            return
        self._is_looking = True
        try:
            self._check(event, given)
        except OSError as error:
            self.refused.append(f"{event} {error.filename}")
            raise
        finally:
            self._is_looking = False

    def _check(self, event: str, given: tuple[Any, ...]) -> None:
        if event == "os.rename":
            source, target, *folders = given
            self._check_closed(source, folders[0])
            self._check_closed(target, folders[1])
            self._check_name(target, folders[1])
            if os.path.isdir(target):  # neither os.rename nor os.replace takes the place of one
                raise PermissionError(errno.EACCES, "Access is denied", os.fspath(target))
        elif event in ("os.remove", "os.rmdir"):
            self._check_closed(given[0], given[1])
        elif event == "os.mkdir":
            self._check_name(given[0], given[2])
        elif event == "open" and isinstance(given[0], str | bytes | os.PathLike):
            if given[2] & _WRITES and given[2] & os.O_TMPFILE != os.O_TMPFILE:
                self._check_name(given[0], -1)
            if given[2] & os.O_TRUNC:
                self._check_not_mapped(given[0])
        elif event == "os.symlink" and self._place(given[1], given[2]) is not None:
            raise PermissionError(errno.EPERM, "A required privilege is not held", given[1])

    def _place(self, path: Any, folder: int) -> Path | None:
        """Where a path leads, if that is below the root; `folder` is a descriptor or -1."""
        base = Path(os.readlink(f"/proc/self/fd/{folder}")) if folder != -1 else Path.cwd()
        place = base / os.fsdecode(path)
        place = place.parent.resolve() / place.name
        return place if self._root is not None and place.is_relative_to(self._root) else None

    def _check_closed(self, path: Any, folder: int) -> None:
        place = self._place(path, folder)
        if place is None:
            return
        for used in files_in_use(place):
            if used.is_relative_to(place):
                message = "The process cannot access the file because it is being used"
                raise PermissionError(errno.EACCES, message, str(place))

    def _check_not_mapped(self, path: Any) -> None:
        place = self._place(path, -1)
        if place is not None and place in files_in_use(place, only_mapped=True):
            raise OSError(errno.EINVAL, "a user-mapped section is open", str(place))

    def _check_name(self, path: Any, folder: int) -> None:
        place = self._place(path, folder)
        if place is not None and _NEVER_A_NAME.fullmatch(place.name):
            raise OSError(errno.EINVAL, "The filename is incorrect", str(place))


def files_in_use(place: Path, only_mapped: bool = False) -> set[Path]:
    """Which of a file, or of those in a folder, this process and those that it has started have
    open or mapped; or is their current folder."""
    names: set[str] = set()
    for process in _processes(Path("/proc/self")):
        with contextlib.suppress(OSError):  # it has ended
            maps = (process / "maps").read_text(encoding="utf-8", errors="replace")
            names.update(re.findall(re.escape(str(place)) + "[^\n]*", maps))
            if not only_mapped:
                links = [process / "cwd", *(process / "fd").iterdir()]
                names.update(map(_target, links))
    return {Path(name) for name in names if name.startswith(str(place)) and os.path.exists(name)}


def _processes(process: Path) -> Iterator[Path]:
    """A process and those that it has started, below /proc."""
    yield process
    for thread in (process / "task").iterdir():
        with contextlib.suppress(OSError):
            for number in (thread / "children").read_text(encoding="utf-8").split():
                yield from _processes(Path("/proc", number))


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:  # it has been closed
        return ""


@contextlib.contextmanager
def windows(files: WindowsFiles, root: Path) -> Iterator[None]:
    """Inside, this process takes the system for Windows, and the files below a folder are there."""
    before = system._NAME
    system._NAME = "nt"
    try:
        with files.below(root):
            yield
    finally:
        system._NAME = before
