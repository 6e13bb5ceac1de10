"""The studio without a network, in a folder of the test, and a window of it that is logged in."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minigpt.studio.context import Studio
from minigpt.studio.routes import make_app
from minigpt.studio.workspace import Workspace

from ..patience import PATIENCE

PORT = 8765
HOST = f"localhost:{PORT}"


class Answer:
    """What a request was answered."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Window:
    """What sends requests as the studio's own window does; `headers` replace those that it sends,
    and one that is None is left out."""

    def __init__(self, studio: Studio, port: int = PORT):
        self.studio = studio
        self.app = make_app(studio, port)
        self.host = HOST if port == PORT else "localhost"  # as a browser names it
        self.login: dict[str, str] = {}
        self._loop = asyncio.Runner()

    def enter(self, token: str) -> Answer:
        """Log in, if the token is good."""
        answer = self.post("/api/enter", {"token": token})
        if answer.status == 200:
            cookie = answer.headers["set-cookie"].partition(";")[0]
            self.login = {"cookie": cookie, "x-studio-key": answer.json["key"]}
        return answer

    def get(self, path: str, **headers: str | None) -> Answer:
        return self._run(self._send("GET", path, b"", headers))

    def post(self, path: str, body: Any = None, **headers: str | None) -> Answer:
        """Send an object, or bytes as they are."""
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        sent = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        return self._run(self._send("POST", path, sent, {"content_type": kind, **headers}))

    def _run(self, sending: Any) -> Answer:
        return self._loop.run(asyncio.wait_for(sending, PATIENCE))

    async def _send(
        self, method: str, path: str, body: bytes, headers: dict[str, str | None]
    ) -> Answer:
        usual: dict[str, str | None] = {"host": self.host, **self.login}
        if method == "POST":
            usual["origin"] = f"http://{self.host}"
        usual |= {name.replace("_", "-"): value for name, value in headers.items()}
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": query.encode(),
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", PORT),
            "http_version": "1.1",
            "headers": [(k.encode(), v.encode()) for k, v in usual.items() if v is not None],
        }
        incoming = [{"type": "http.request", "body": body, "more_body": False}]
        outgoing: list[Any] = []

        async def receive() -> Any:
            if not incoming:
                await asyncio.sleep(3600)
            return incoming.pop()

        async def send(message: Any) -> None:
            outgoing.append(message)

        await self.app(scope, receive, send)
        answered = {k.decode(): v.decode() for k, v in outgoing[0]["headers"]}
        sent = b"".join(message.get("body", b"") for message in outgoing[1:])
        return Answer(outgoing[0]["status"], answered, sent)


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Window]:
    """A window of a studio in an empty folder, logged in."""
    studio = Studio(Workspace(tmp_path), close=lambda: None)
    with studio.running():
        found = Window(studio)
        assert found.enter(studio.logins.token).status == 200
        yield found
