"""Files for the browser to fetch by an address that works once: /t/TICKET."""

import contextlib
import secrets
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from ..data.temporary import remove_left, temporary_folder
from .answers import Refusal

_KIND = "studio"
_SECONDS = 60.0  # that a ticket is good for
# A page of a run has scripts, and it must not have the studio's rights: a sandbox takes its origin.
# Without allow-forms its line to type in would do nothing; its own policy lets no form go anywhere.
_RIGHTS = "allow-scripts allow-forms allow-downloads allow-popups allow-modals"
_SANDBOX = f"sandbox {_RIGHTS}; frame-ancestors 'self'"


@dataclass
class _Waiting:
    path: Path
    name: str
    is_shown: bool
    until: float  # by the monotonic clock, in seconds


class Tickets:
    """The files that wait to be fetched, in a folder of their own that is removed when the studio
    ends. If the studio is killed, the next one removes what is left."""

    def __init__(self) -> None:
        remove_left(_KIND)
        self._open = contextlib.ExitStack()
        self._folder = self._open.enter_context(temporary_folder(_KIND))
        self._waiting: dict[str, _Waiting] = {}

    def new_folder(self) -> Path:
        """An empty folder, in which a file can be made for :meth:`issue`."""
        return Path(tempfile.mkdtemp(dir=self._folder))

    def issue(self, path: Path, name: str, *, is_shown: bool = False) -> str:
        """The address of a file in a folder of :meth:`new_folder`, which is removed with the file
        when this was fetched.

        The browser saves the file under `name`; with `is_shown` it shows the file as a page.
        """
        self._drop_old()
        ticket = secrets.token_urlsafe(32)
        until = time.monotonic() + _SECONDS
        self._waiting[ticket] = _Waiting(path, name, is_shown, until)
        return f"/t/{ticket}"

    async def fetch(self, request: Request) -> Response:
        """The answer to GET /t/TICKET."""
        self._drop_old()
        found = self._waiting.pop(request.path_params["ticket"], None)
        if found is None:
            raise Refusal(404, "This address has been used, or is older than a minute.")

        remove = BackgroundTask(shutil.rmtree, found.path.parent, ignore_errors=True)
        if found.is_shown:
            headers = {"content-security-policy": _SANDBOX}
            return FileResponse(
                found.path, headers=headers, media_type="text/html", background=remove
            )
        kind = "application/octet-stream"
        return FileResponse(found.path, filename=found.name, media_type=kind, background=remove)

    def drop_all(self) -> None:
        """Remove the files that were not fetched yet."""
        for waiting in self._waiting.values():
            shutil.rmtree(waiting.path.parent, ignore_errors=True)
        self._waiting.clear()

    def close(self) -> None:
        """Remove all files."""
        self._waiting.clear()
        self._open.close()

    def _drop_old(self) -> None:
        now = time.monotonic()
        for ticket, waiting in list(self._waiting.items()):
            if waiting.until < now:
                del self._waiting[ticket]
                shutil.rmtree(waiting.path.parent, ignore_errors=True)
