"""Texts that runs write: by children, whose output is passed on as it comes.

What is typed goes to the standard input of a child and never becomes a part of its command line.
"""

import asyncio
import codecs
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ...config import SampleConfig, check_fields
from ..children import ChildError, read_child
from ..errors import Refusal
from ..problems import problem
from ..texts.chosen import checked_sampling, options
from ..workspace import Workspace
from .events import has_left, send_body

_SECONDS = 60.0  # that a text may take
_MOST_CHARACTERS = 100_000  # of a prompt
_LONGEST_NAME = 200  # of who answers

Row = dict[str, Any]


@dataclass(frozen=True)
class GenerateCommand:
    """The command by which a run, or counting in its text, writes."""

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


def checked_command(run: str, sent: Row, *, is_counting: bool = False) -> GenerateCommand:
    """The command that writes what is asked for, from {"prompt", "settings", "seed"}. The settings
    are fields of SampleConfig, and "as": who answers, or the voice; without it the prompt is
    continued.

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
    seed = sent.get("seed")
    if seed is not None:
        check_fields(SampleConfig, {"seed": seed})
        chosen["seed"] = seed

    words = options(chosen)
    words.append("--plain" if answerer is None else f"--as={answerer}")
    if is_counting:
        words.append("--counting")
    return GenerateCommand(run, prompt, words)


class WrittenText(Response):
    """The answer to a request to write: a JSON object on each line, as soon as it is written.

    ``{"side": 0, "text": "..."}`` for each piece of the text of a command, its beginning too, and
    ``{"side": 0, "end": true, "problem": null}`` when it has ended. It is cut off when the client
    leaves, or after a minute.
    """

    media_type = "application/x-ndjson"

    def __init__(
        self, workspace: Workspace, commands: Sequence[GenerateCommand], turns: asyncio.Semaphore
    ):
        """`turns` says how many children may write at once; others wait until one has ended."""
        super().__init__()
        del self.headers["content-length"]
        self._workspace = workspace
        self._commands = commands
        self._turns = turns

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what the children write. Refusal if the only one fails before it has begun."""
        rows: asyncio.Queue[Row] = asyncio.Queue(maxsize=64)
        writing = [
            asyncio.create_task(self._write(side, command, rows))
            for side, command in enumerate(self._commands)
        ]
        leaving = asyncio.create_task(has_left(receive))
        try:
            await self._send(rows, leaving, send)
        finally:
            for task in (*writing, leaving):
                task.cancel()
            await asyncio.gather(*writing, leaving, return_exceptions=True)

    async def _send(
        self, rows: "asyncio.Queue[Row]", leaving: "asyncio.Task[None]", send: Send
    ) -> None:
        has_begun = False
        running = len(self._commands)
        while running:
            next_row = asyncio.create_task(rows.get())
            await asyncio.wait({next_row, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                next_row.cancel()
                return
            row = next_row.result()

            if row.get("end"):
                running -= 1
                if not has_begun and not running and row["problem"] is not None:
                    raise Refusal(409, row["problem"]["message"])
            if not has_begun:
                has_begun = True
                start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
                await send(start)
            line = json.dumps(row, ensure_ascii=False) + "\n"
            await send_body(send, line.encode(), more_body=True)
        await send_body(send, b"", more_body=False)

    async def _write(self, side: int, command: GenerateCommand, rows: "asyncio.Queue[Row]") -> None:
        """Let a child write, and pass on what it writes as rows."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        wrong = None
        async with self._turns:
            try:
                root = self._workspace.root
                written = read_child(command.arguments, root, sent=command.sent, seconds=_SECONDS)
                async for part in written:
                    if text := decoder.decode(part):
                        await rows.put({"side": side, "text": text})
            except ChildError as error:
                wrong = problem(error.message)
            except OSError as error:
                wrong = problem(error.strerror or "It could not be started.")
        await rows.put({"side": side, "end": True, "problem": wrong})
