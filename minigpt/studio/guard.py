"""Who may ask the studio for what: each request comes by here first.

The studio listens to this machine alone, and still others can send it requests: web pages that are
open in the same browser, programs of other accounts. So a request must address this machine by its
own name (against DNS rebinding), come from no other origin, and what is behind /api answers only
to a login: a cookie and a key, both of 256 random bits, which a window gets for a token.

Two kinds of token: the printed one lasts as long as the studio. One that was handed to a browser on
its command line, where other accounts can read it, works once; whoever uses it a second time is
refused and ends the login that it has opened.
"""

import contextlib
import hmac
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..serve.settings import LOOPBACK

KEY_HEADER = "x-studio-key"
CONTENT_TYPES = ("application/json", "application/octet-stream")  # no form can send them
_USUAL_PORT = 80  # of http
_OPEN = "/api/enter"  # the one path behind /api that needs no login
_MOST_LOGINS = 32
_POLICY = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Login:
    """What a window sends with each request."""

    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32))


class Logins:
    """The tokens that open a window, and the windows that are open; all new at each start.

    Attributes:
        token: the lasting token, which is printed.
    """

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)
        self._once: set[str] = set()
        self._used: dict[str, Login] = {}
        self._logins: dict[str, Login] = {}  # by their cookies, the oldest first

    def token_for_once(self) -> str:
        """A new token that works once."""
        token = secrets.token_urlsafe(32)
        self._once.add(token)
        return token

    def enter(self, token: str) -> Login | None:
        """A new login for a token, or None if that opens nothing (any more)."""
        if token in self._used:
            self._logins.pop(self._used[token].cookie, None)
            return None
        is_once = token in self._once
        if not is_once and not _is_same(token, self.token):
            return None

        login = Login()
        if is_once:
            self._once.remove(token)
            self._used[token] = login
        self._logins[login.cookie] = login
        if len(self._logins) > _MOST_LOGINS:
            del self._logins[next(iter(self._logins))]
        return login

    def find(self, cookie: str, key: str) -> Login | None:
        """The login of a cookie and a key, or None if they do not belong together."""
        login = self._logins.get(cookie)
        if login is None or not _is_same(key, login.key):
            return None
        return login


def _is_same(given: str, known: str) -> bool:
    """Whether two secrets are equal, found out in a time that says nothing."""
    return hmac.compare_digest(given.encode(errors="surrogatepass"), known.encode())


def cookie_name(port: int) -> str:
    """The name of the cookie of the studio at a port: all ports of a machine share their
    cookies."""
    return f"minigpt-studio-{port}"


class Guard:
    """An ASGI app that passes on to another one the requests that are allowed.

    A request with a login has it in ``scope["state"]["login"]``.

    Args:
        app: what is guarded.
        logins: who may come in.
        port: the port that the studio listens at.
    """

    def __init__(self, app: ASGIApp, logins: Logins, port: int):
        self._app = app
        self._logins = logins
        self._hosts = {f"{name}:{port}" for name in LOOPBACK}
        if port == _USUAL_PORT:  # which browsers leave out
            self._hosts.update(LOOPBACK)
        self._cookie = cookie_name(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                for name, value in _POLICY.items():
                    sent.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope, headers)
        if refusal is not None:
            status, message = refusal
            answer = JSONResponse({"message": message, "field": None}, status)
            await answer(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """The status and the words with which a request is refused, or None."""
        host = headers.get("host", "").lower()
        if host not in self._hosts:
            return 403, "This address is not the studio's."

        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host}":
            return 403, "Another web page may not use the studio."
        is_api = scope["path"].startswith("/api")
        site = headers.get("sec-fetch-site", "same-origin")
        if is_api and site != "same-origin":
            return 403, "Another web page may not use the studio."

        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "The studio knows GET and POST."
        if scope["method"] == "POST":
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind not in CONTENT_TYPES:
                return 415, f"The body must be sent as {' or '.join(CONTENT_TYPES)}."

        if is_api and scope["path"] != _OPEN:
            login = self._logins.find(self._sent_cookie(headers), headers.get(KEY_HEADER, ""))
            if login is None:
                return 401, "This window is not logged in. Open the address that was printed."
            scope.setdefault("state", {})["login"] = login
        return None

    def _sent_cookie(self, headers: Headers) -> str:
        cookies = SimpleCookie()
        with contextlib.suppress(CookieError):
            cookies.load(headers.get("cookie", ""))
        found = cookies.get(self._cookie)
        return "" if found is None else found.value
