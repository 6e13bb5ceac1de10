"""Somebody who asks a studio over the network, as its window does."""

import http.client
import json
import time
from typing import Any

from ..patience import PATIENCE


class Person:
    """Somebody's window at a port of this machine."""

    def __init__(self, port: int):
        self.port = port
        self.login: dict[str, str] = {}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and answer of a request; an object is sent as JSON, bytes as they are."""
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        sent = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {"content-type": kind, **self.login} if method == "POST" else self.login
        connection.request(method, path, sent if method == "POST" else None, headers)
        answer = connection.getresponse()
        found = answer.read()
        cookie = answer.headers.get("set-cookie")
        if cookie is not None:
            self.login["cookie"] = cookie.partition(";")[0]
        connection.close()
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return answer.status, json.loads(found) if is_json and found else found

    def get(self, path: str) -> Any:
        """The answer, which must be one."""
        status, found = self.ask("GET", path)
        assert status == 200, found
        return found

    def post(self, path: str, body: Any = None) -> Any:
        """The answer, which must be one."""
        status, found = self.ask("POST", path, body)
        assert status < 300, (path, found)
        return found

    def enter(self, token: str) -> None:
        """Log in."""
        self.login["x-studio-key"] = self.post("/api/enter", {"token": token})["key"]

    def state(self, run: str) -> str:
        """What a run is doing."""
        return str(self.get(f"/api/runs/{run}")["run"]["state"])

    @staticmethod
    def wait(look: Any, seconds: float = PATIENCE) -> None:
        """Look again and again until it is so."""
        end = time.monotonic() + seconds
        while not look():
            assert time.monotonic() < end
            time.sleep(0.1)
