"""What a run is called that somebody names in the window: a name that every system has, that no
other run has, and that means the same in every command.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

from ...measure.counting import COUNTING
from ..workspace import Workspace, safe_name

_ELSE = "run"
_LONGEST_IN_BYTES = 200  # of 255 that a name may have


def run_name(shown: str) -> str:
    """A safe name that is as near as possible to one that was typed. What follows an @ in the name
    of a run would be a step of it, and what begins with a dash an option."""
    from ...runs.base import BASE  # the studio opens sooner without

    name = safe_name(shown, _ELSE).replace("@", "_").lstrip("-. ")
    while len(name.encode()) > _LONGEST_IN_BYTES:
        name = name[:-1].strip(" .")
    if name.casefold() in (BASE, COUNTING):  # which mean something to commands
        name = f"{_ELSE} {name}"
    return name or _ELSE


def free_run(workspace: Workspace, name: str) -> Path:
    """A new folder in `runs/` that is called like `name`."""
    workspace.runs.mkdir(parents=True, exist_ok=True)
    for run in _like(workspace, workspace.runs, run_name(name)):
        try:
            run.mkdir()
        except FileExistsError:  # another request has just made it
            continue
        return run
    raise AssertionError("there is always another number")


def free_folder(workspace: Workspace, run: Path, into: Path, name: str) -> Path:
    """Where a run can be moved to in `runs/` or the bin, to be called like `name`."""
    return next(_like(workspace, into, name, but=run))


def _like(workspace: Workspace, into: Path, name: str, but: Path | None = None) -> Iterator[Path]:
    """Folders called `name`, name-2, name-3 and so on, without the names of runs, also those in the
    bin; the run `but` does not count. Some systems take large and small letters for the same."""
    there = [path for path in (*_inside(workspace.runs), *_inside(workspace.bin)) if path != but]
    taken = {path.name.casefold() for path in there}
    for number in itertools.count(1):
        candidate = name if number == 1 else f"{name}-{number}"
        if candidate.casefold() not in taken:
            yield into / candidate


def _inside(folder: Path) -> list[Path]:
    return [*folder.iterdir()] if folder.is_dir() else []
