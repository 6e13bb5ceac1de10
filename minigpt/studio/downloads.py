"""What somebody takes along: the page of a run, an archive for other programs, a copy of the run;
and what is told beside them, how much of the text it copies.

Children do all of it. The files are made in the folder of the tickets, where the browser fetches
them.
"""

import asyncio
import contextlib
import errno
import json
import os
import shutil
import zipfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from ..runs.folder import KEPT, LOCK
from ..runs.state import keep_copied
from ..system.atomic import is_unfinished
from .answers import Refusal
from .children import ChildError, read_child
from .tickets import Tickets
from .trainings.asking import read_job
from .workspace import Workspace

EXPORTS = ("hf", "gguf")
_SECONDS_TO_MAKE = 900.0  # that a file may take


class Downloads:
    """Makes the files, a few at a time."""

    def __init__(self, workspace: Workspace, tickets: Tickets, turns: asyncio.Semaphore):
        self._workspace = workspace
        self._tickets = tickets
        self._turns = turns

    async def page(self, run: Path, *, is_shown: bool) -> str:
        """The address of a run's page, to be shown or saved."""
        async with self._folder() as folder:
            file = folder / f"{run.name}.html"
            called = await run_in_threadpool(_name_of_text, run)
            await self._child("page", f"--out={file}", *called, "--", self._name(run))
            return self._tickets.issue(file, file.name, is_shown=is_shown)

    async def export(self, run: Path, kind: Any) -> str:
        """The address of an archive with a run for other programs."""
        if kind not in EXPORTS:
            raise Refusal(400, f"The kind must be one of {', '.join(EXPORTS)}.", "kind")
        async with self._folder() as folder:
            out = folder / f"{run.name}-{kind}"
            await self._child("export", f"--to={kind}", f"--out={out}", "--", self._name(run))
            file = folder / f"{out.name}.zip"
            await run_in_threadpool(_pack, sorted(out.rglob("*")), folder, file)
            return self._tickets.issue(file, file.name)

    async def copy(self, run: Path) -> str:
        """The address of an archive with a run, without what is only needed to go on training."""
        async with self._folder() as folder:
            file = folder / f"{run.name}.zip"
            await run_in_threadpool(_pack, _files_to_copy(run), run.parent, file)
            return self._tickets.issue(file, file.name)

    async def copied(self, run: Path) -> dict[str, Any]:
        """How much of what a run writes is in its text word for word. The figures are kept."""
        printed = await self._child("evaluate", "--copied", "--json", "--", self._name(run))
        figures: dict[str, Any] = json.loads(printed)
        with contextlib.suppress(OSError):  # the run was moved meanwhile, say
            await run_in_threadpool(keep_copied, run, figures)
        return figures

    def _name(self, run: Path) -> str:
        """A run as a command that starts in the studio's folder names it."""
        return run.relative_to(self._workspace.root).as_posix()

    @asynccontextmanager
    async def _folder(self) -> AsyncIterator[Path]:
        """A folder for a ticket, which is removed if there is none in the end."""
        folder = await run_in_threadpool(self._tickets.new_folder)
        try:
            yield folder
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    async def _child(self, *arguments: str) -> bytes:
        """What a command prints. A Refusal if it fails."""
        async with self._turns:
            printed = bytearray()
            try:
                async for part in read_child(
                    arguments, self._workspace.root, seconds=_SECONDS_TO_MAKE
                ):
                    printed += part
            except ChildError as error:
                is_full = os.strerror(errno.ENOSPC) in error.message
                status = 507 if is_full else 409
                raise Refusal(status, error.message) from None
            return bytes(printed)


def _name_of_text(run: Path) -> list[str]:
    """The option that says what the text of a run is called here: the file that it has read may be
    the folder of all of them."""
    text = getattr(read_job(run), "text", None) or {}
    name = text.get("name")
    if not name:
        return []
    count = text.get("files", 1)
    return [f"--text-name={name}" if count == 1 else f"--text-name={name}, {count:,} files"]


def _files_to_copy(run: Path) -> list[Path]:
    """The files of a run with which it can be used elsewhere."""
    held = [*run.iterdir()]
    if not (run / KEPT).is_symlink() and (run / KEPT).is_dir():
        held += (run / KEPT).iterdir()
    return sorted(path for path in held if path.name != LOCK)


def _pack(paths: Sequence[Path], above: Path, archive: Path) -> None:
    """Write an archive of files, named as they lie below `above`; links and what is being written
    are left out."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as packed:
        for path in paths:
            if path.is_file() and not path.is_symlink() and not is_unfinished(path.name):
                packed.write(path, path.relative_to(above).as_posix())
