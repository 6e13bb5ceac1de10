"""The one object that all routes of the studio work with, from its opening to its end: where
everything lies, what runs, who may come in."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from starlette.requests import Request

from .children import Children
from .downloads import Downloads
from .guard import Logins
from .settings import checked_settings
from .texts.about import texts_in
from .texts.upload import remove_half
from .texts.work import TextWork
from .tickets import Tickets
from .trainings.line import Line
from .trainings.shown import Told, free_space, runs_in, told_of, told_of_all
from .workspace import Workspace

_MEGABYTES = 10_000_000  # what is free is told in so many bytes: it changes all the time


def studio_of(request: Request) -> "Studio":
    """The studio that a request has come to."""
    studio: Studio = request.app.state.studio
    return studio


class Studio:
    """What all handlers of requests get, by :func:`studio_of`.

    Attributes:
        workspace: where everything lies.
        line: the trainings that wait.
        children: the programs that end with the studio.
        text_work: what is read and planned in the background.
        tickets: files for the browser to fetch.
        turns: limit how many children compute at once while somebody waits.
        downloads: makes the files that tickets are for.
        logins: who may come in.
        close: ends the studio; trainings go on.
        is_lesson: whether trainings are begun in lesson mode.
    """

    def __init__(self, workspace: Workspace, close: Callable[[], None], *, is_lesson: bool = False):
        self.workspace = workspace
        self.line = Line(workspace)
        self.children = Children()
        self.text_work = TextWork(self.children, workspace.root)
        self.tickets = Tickets()
        self.turns = asyncio.Semaphore(max(2, os.cpu_count() or 1))
        self.downloads = Downloads(workspace, self.tickets, self.turns)
        self.logins = Logins()
        self.close = close
        self.is_lesson = is_lesson

    def checked_settings(self, sent: Any) -> dict[str, Any]:
        """Settings of a training, from JSON; in a lesson those of a lesson. A UserError if one is
        wrong."""
        if self.is_lesson and isinstance(sent, dict):
            sent = {**sent, "lesson": True}
        return checked_settings(sent)

    def runs(self) -> list[Told]:
        """What all runs are doing."""
        return told_of_all(self.workspace.runs)

    def state(self) -> Told:
        """All runs, texts, and the line."""
        runs = self.runs()
        waiting = sorted((run for run in runs if run["place"]), key=lambda run: run["place"])
        free = free_space(self.workspace.root)
        return {
            "runs": runs,
            "bin": [told_of(run) for run in sorted(runs_in(self.workspace.bin))],
            "texts": texts_in(self.workspace),
            "line": [
                {name: run[name] for name in ("name", "place", "starts_in")} for run in waiting
            ],
            "free": None if free is None else free // _MEGABYTES * _MEGABYTES,
            "folder": self.workspace.root.resolve().name,
        }

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """While the studio is open; afterwards nothing of it is left but what it has stored."""
        remove_half(self.workspace)
        self.line.open()
        try:
            yield
        finally:
            self.line.close()
            self.text_work.close()
            self.children.end_all()
            self.tickets.close()
