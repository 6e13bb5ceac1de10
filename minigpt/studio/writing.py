"""What a run writes, passed on as it comes: "Try it". A child of the studio writes it."""

import asyncio
import codecs
import contextlib
import logging
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..system.json_objects import to_json
from .answers import Refusal
from .children import ChildError, read_child
from .settings import checked_sampling, options
from .workspace import Workspace

_log = logging.getLogger(__name__)

_SECONDS_TO_WRITE = 60.0  # that a text may take
_MOST_CHARACTERS = 100_000  # of a prompt
_LONGEST_NAME = 200  # of who answers

Row = dict[str, Any]


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
