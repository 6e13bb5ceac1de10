"""What a run is for: what it writes, its page, a folder for other programs, a copy of the run, and
how much of the text it copies.

Children do all of it. What a run writes is passed on as it comes; files are made in the folder of
the tickets, where the browser fetches them.
"""

import asyncio
import codecs
import contextlib
import errno
import json
import logging
import os
import shutil
import zipfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..runs.folder import KEPT, LOCK
from ..runs.state import keep_copied
from ..system.atomic import is_unfinished
from ..system.json_objects import to_json
from .answers import Refusal
from .children import ChildError, read_child
from .settings import checked_sampling, options
from .tickets import Tickets
from .trainings.asking import read_job
from .workspace import Workspace

_log = logging.getLogger(__name__)

EXPORTS = ("hf", "gguf")
_SECONDS_TO_MAKE = 900.0  # that a file may take
_SECONDS_TO_WRITE = 60.0  # that a text may take
_MOST_CHARACTERS = 100_000  # of a prompt
_LONGEST_NAME = 200  # of who answers

Row = dict[str, Any]


# Texts


@dataclass(frozen=True)
class GenerateCommand:
    """The command by which a run writes."""

    run: str  # the folder, as seen from the studio's
    prompt: str
    options: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> list[str]:
        """The words after minigpt; the prompt is its standard input."""
        return ["generate", "-", f"--run={self.run}", *self.options]

    @property
    def sent(self) -> bytes:
        """The prompt; of a last line end, one is dropped by the command."""
        return self.prompt.encode("utf-8", errors="replace") + b"\n"


def checked_command(run: str, sent: Row) -> GenerateCommand:
    """The command that writes what is asked for, from {"prompt", "settings"}. The settings are
    fields of SampleConfig, and "as": who answers; without it the prompt is continued.

    Raises:
        Refusal, UserError: if one of them is wrong.
    """
    prompt = sent.get("prompt", "")
    if not isinstance(prompt, str) or len(prompt) > _MOST_CHARACTERS:
        most = f"{_MOST_CHARACTERS:,}"
        raise Refusal(400, f"The beginning must be a text of at most {most} characters.", "prompt")
    settings = {} if sent.get("settings") is None else sent["settings"]
    if not isinstance(settings, dict):
        raise Refusal(400, "The settings must be an object.", "settings")
    answerer = settings.get("as")
    if answerer is not None and (not isinstance(answerer, str) or len(answerer) > _LONGEST_NAME):
        raise Refusal(400, "Who answers must be a name.", "as")
    chosen = checked_sampling({name: settings[name] for name in settings if name != "as"})

    words = options(chosen)
    words.append("--plain" if answerer is None else f"--as={answerer}")
    return GenerateCommand(run, prompt, words)


class WrittenText(Response):
    """The answer to a request to write: a JSON object on each line, as soon as it is written.

    ``{"text": "..."}`` for each piece of the text, its beginning too, and
    ``{"end": true, "problem": null}`` when it has ended. It is cut off when the client leaves, or
    after a minute.
    """

    media_type = "application/x-ndjson"

    def __init__(self, workspace: Workspace, command: GenerateCommand, turns: asyncio.Semaphore):
        """`turns` says how many children may write at once; others wait until one has ended."""
        super().__init__()
        del self.headers["content-length"]
        self._workspace = workspace
        self._command = command
        self._turns = turns

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what the child writes. Refusal if it fails before it has begun."""
        rows: asyncio.Queue[Row] = asyncio.Queue(maxsize=64)
        writing = asyncio.create_task(self._write(rows))
        leaving = asyncio.create_task(_has_left(receive))
        try:
            await self._send(rows, leaving, send)
        finally:
            for task in (writing, leaving):
                task.cancel()
            await asyncio.gather(writing, leaving, return_exceptions=True)

    async def _send(
        self, rows: "asyncio.Queue[Row]", leaving: "asyncio.Task[None]", send: Send
    ) -> None:
        has_begun = False
        has_ended = False
        while not has_ended:
            next_row = asyncio.create_task(rows.get())
            await asyncio.wait({next_row, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                next_row.cancel()
                return
            row = next_row.result()
            has_ended = "end" in row

            if not has_begun:
                if has_ended and row["problem"] is not None:
                    raise Refusal(409, row["problem"]["message"])
                has_begun = True
                start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
                await send(start)
            line = to_json(row) + "\n"
            body = {"type": "http.response.body", "body": line.encode()}
            await send({**body, "more_body": not has_ended})

    async def _write(self, rows: "asyncio.Queue[Row]") -> None:
        """Let the child write, and pass on what it writes as rows."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        command = self._command
        wrong = None

        async with self._turns:
            try:
                root = self._workspace.root
                child = read_child(
                    command.arguments, root, sent=command.sent, seconds=_SECONDS_TO_WRITE
                )
                async with contextlib.aclosing(child) as parts:
                    async for part in parts:
                        if text := decoder.decode(part):
                            await rows.put({"text": text})
            except ChildError as error:
                wrong = error.message
            except OSError as error:
                wrong = error.strerror or "It could not be started."
            except Exception as error:  # whoever waits for an end gets one
                _log.exception("a text")
                wrong = f"{type(error).__name__}: {error}"

        problem = None if wrong is None else {"kind": "other", "message": wrong}
        await rows.put({"end": True, "problem": problem})


async def _has_left(receive: Receive) -> None:
    """Wait until the client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass


# Files


class Making:
    """Makes files of runs, a few at a time."""

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
