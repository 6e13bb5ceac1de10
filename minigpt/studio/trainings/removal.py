"""Runs are renamed, put into the bin and back, and removed for good; so is all that came from one
text.

Nothing is removed but what minigpt has written, and links are not followed. What is removed for
good is named first.
"""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ... import UserError
from ...data.token_files import find_prepared, remove_prepared
from ...runs.folder import read_raw_config
from ...runs.state import facts_of, state_of
from ...system.json_objects import read_object
from ...system.platforms import rename
from ..answers import Refusal
from ..texts import upload
from ..texts.folder import ABOUT
from ..workspace import TEXT_ID, Workspace, is_one_name
from .asking import (
    free_folder,
    is_busy,
    is_learning,
    leave_line,
    read_job,
    run_name,
)
from .shown import runs_in, text_id_of

_SECONDS_TO_LEAVE = 15.0  # that a process takes after it has told its end

# One run


def rename_run(workspace: Workspace, run: Path, name: str) -> Path:
    """Give a run another name, or one like it that is free; returns its folder."""
    _check_is_idle(run)
    new = free_folder(workspace, run, workspace.runs, run_name(name))
    rename(run, new)
    return new


def put_into_bin(workspace: Workspace, run: Path) -> None:
    """Move a run into the bin. One that waits leaves the line."""
    _check_is_idle(run)
    job = read_job(run)
    if job is not None and job.is_waiting:
        with contextlib.suppress(OSError):  # the disk is full; put back, it would wait again
            leave_line(run)
        if not run.exists():  # it had learned nothing
            return
    workspace.bin.mkdir(exist_ok=True)
    rename(run, free_folder(workspace, run, workspace.bin, run.name))


def put_back(workspace: Workspace, name: str) -> Path:
    """Move a run out of the bin; returns its folder."""
    run = folder_in_bin(workspace, name)
    workspace.runs.mkdir(exist_ok=True)
    back = free_folder(workspace, run, workspace.runs, name)
    rename(run, back)
    return back


def folder_in_bin(workspace: Workspace, name: str) -> Path:
    """The folder of a run in the bin. A Refusal of status 404 if there is none."""
    run = workspace.bin / name
    if not is_one_name(name) or run.is_symlink() or not run.is_dir():
        raise Refusal(404, "This model is not in the bin any more.", kind="bin_gone")
    return run


def empty_bin(workspace: Workspace) -> list[str]:
    """Remove the runs in the bin, and what the cache holds of their texts. Files of somebody else
    stay, and so does a folder that cannot be removed: why, for each of these."""
    problems = []
    for run in runs_in(workspace.bin):
        try:
            _remove([run])
        except (UserError, OSError) as error:
            shown = run.relative_to(workspace.root).as_posix()
            problems.append(str(error).replace(str(run), shown))
    with contextlib.suppress(OSError):  # not empty, or not there
        workspace.bin.rmdir()
    return problems


def _remove(runs: Sequence[Path]) -> None:
    """Remove runs for good. UserError if a process trains one of them; nothing is removed then."""
    from ...runs.delete import runs_to_delete  # the studio opens sooner without

    with runs_to_delete(runs) as found:
        for remains in found:
            remains.delete()


def wait_for_processes(runs: Sequence[Path]) -> None:
    """Wait a little until the processes have left that have told how the trainings of these runs
    ended. Whoever moves or removes runs waits before the line is paused, which stands still
    then."""
    end = time.monotonic() + _SECONDS_TO_LEAVE
    while time.monotonic() < end and any(is_busy(run) and not is_learning(run) for run in runs):
        time.sleep(0.1)


def _check_is_idle(run: Path) -> None:
    """Refuse a run that a process trains now, or has not left yet."""
    if is_learning(run) or state_of(run).is_active:  # one that waits may be trained by a terminal
        message = f"{run.name} is learning. Stop that first."
        raise Refusal(409, message, kind="run_learning", name=run.name)
    if is_busy(run):
        message = f"The training of {run.name} is still ending. Try again in a moment."
        raise Refusal(409, message, kind="run_ending", name=run.name)


# All that came from a text


@dataclass
class Everything:
    """All that came from one text, and the text itself."""

    text: Path | None  # its folder, if it is there
    runs: list[Path] = field(default_factory=list)  # those in the bin too
    prepared: list[Path] = field(default_factory=list)  # folders of the cache

    def parts(self, workspace: Workspace) -> list[dict[str, Any]]:
        """What would be removed: the kind, name and size of each part."""
        from ...runs.delete import size_of  # the studio opens sooner without

        found = []
        if self.text is not None:
            name = read_object(self.text / ABOUT).get("name") or self.text.name
            found.append({"kind": "text", "name": str(name), "size": size_of([self.text])})
        for run in sorted(self.runs):
            kind = "bin" if run.parent == workspace.bin else "run"
            found.append({"kind": kind, "name": run.name, "size": size_of([run])})
        if self.prepared:
            found.append({"kind": "cache", "name": "", "size": size_of(self.prepared)})
        return found

    def remove(self) -> None:
        """Remove all of it. The text goes last: if this is interrupted, it can be done again.

        Raises:
            Refusal: if one of the runs is learning; nothing is removed then.
        """
        for run in self.runs:
            _check_is_idle(run)
        for run in self.runs:
            job = read_job(run)
            if job is not None and job.is_waiting:
                with contextlib.suppress(OSError):  # the disk is full; it goes all the same
                    leave_line(run)
        _remove([run for run in self.runs if run.exists()])
        for folder in self.prepared:
            remove_prepared(folder)
        if self.text is not None:
            upload.delete(self.text)


def everything_of_run(workspace: Workspace, run: Path) -> Everything:
    """All that came from the text of a run: of one that was begun in a terminal, the runs that have
    learned from the same text. Its files elsewhere stay where they are."""
    text, fingerprint = _origin(run)
    runs = [*runs_in(workspace.runs), *runs_in(workspace.bin)]
    origins = {one: _origin(one) for one in [*runs, run]}
    if text is not None:
        of_it = [one for one, origin in origins.items() if origin[0] == text]
    elif fingerprint is not None:
        of_it = [one for one, origin in origins.items() if origin[1] == fingerprint]
    else:
        of_it = [run]

    read = {origins[one][1] or "" for one in of_it}
    prepared = {folder for fingerprint in read for folder in find_prepared(fingerprint)}
    return Everything(_folder_of(workspace, text), of_it, sorted(prepared))


def _folder_of(workspace: Workspace, text: str | None) -> Path | None:
    """The folder of a text of the studio, if it is there. What has another name is not ours."""
    if text is None or not TEXT_ID.fullmatch(text):
        return None
    folder = workspace.texts / text
    return folder if folder.is_dir() and not folder.is_symlink() else None


def _origin(run: Path) -> tuple[str | None, str | None]:
    """The text of the studio that a run learns from, and the fingerprint of what it has read."""
    job = read_job(run)
    origin = read_raw_config(run).get("origin") or {}
    fingerprint = origin.get("fingerprint") or None
    if job is not None and job.text is not None:
        text = str(job.text.get("id") or "") or None
        return text, fingerprint or facts_of(run).said.get("fingerprint")
    return text_id_of((origin.get("text") or {}).get("files") or ()), fingerprint
