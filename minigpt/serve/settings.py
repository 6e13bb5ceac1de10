"""The options of `minigpt serve`, and the names by which it is reached. `--help` reads them: no
slow imports here.
"""

import re
from dataclasses import dataclass
from typing import Annotated

from .. import UserError
from ..config import Checked, Count, Limits, Positive, setting

ROLES = ("system", "developer", "user", "assistant", "tool", "function")  # of messages in a chat

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")  # the names of this machine
_USUAL_PORTS = {"http": ":80", "https": ":443"}
_HOST = re.compile(r"(\[[\da-fA-F:.]+\]|[^\s/:@\[\]]+)(:\d+)?")

Port = Annotated[int, Limits("between 0 and 65,535", lambda n: 0 <= n < 1 << 16)]


@dataclass(frozen=True)
class ServeConfig(Checked):
    """How a model is served."""

    host: str = setting(
        "127.0.0.1", "address to listen at; a key is required if other machines reach it"
    )
    port: Port = setting(8000, "port to listen at; 0: any free one")
    api_key_file: str = setting(
        "", "file with the key that clients send; or set MINIGPT_API_KEY", "FILE"
    )
    allowed_host: tuple[str, ...] = setting(
        (), "another name of this machine in URLs, such as mybox; repeatable", "NAME"
    )
    cors_origin: tuple[str, ...] = setting(
        (), "a site whose web pages may use the API, such as https://a.org; repeatable", "URL"
    )
    chat_template: tuple[str, ...] = setting(
        (), "ROLE=WORDS: the words before each message of a role; repeatable", "TEXT"
    )
    answerer: str | None = setting(
        None, "who answers chats, of a model that learned from conversations", "NAME"
    )
    max_batch: Count = setting(32, "texts written at once")
    max_waiting: Count = setting(128, "texts that may wait; further requests get status 429")
    max_tokens: Count = setting(4096, "most tokens that are written for one text")
    max_seconds: Positive = setting(300.0, "most seconds for one request, waiting included")

    def _check(self) -> None:
        known = tuple(f"{role}=" for role in ROLES)
        if not all(words.startswith(known) for words in self.chat_template):
            raise UserError("--chat-template must be ROLE=WORDS, such as 'user=Q: '")
        if self.chat_template and self.answerer is not None:
            raise UserError("--as does nothing beside --chat-template; leave one of them out")
        for name in self.allowed_host:
            if not _HOST.fullmatch(name):
                raise UserError(f"--allowed-host must be a name such as mybox, got {name!r}")

    @property
    def is_local(self) -> bool:
        """Whether only programs on this machine can reach the server."""
        from ipaddress import ip_address

        name = self.host.strip("[]").lower()
        try:
            return name == "localhost" or ip_address(name).is_loopback
        except ValueError:  # another name
            return False

    @property
    def hosts(self) -> set[str]:
        """The names of this machine that a request may address, as :func:`host_name` has them."""
        return {host_name(name) for name in (*LOOPBACK, self.host, *self.allowed_host)}


def host_name(address: str) -> str:
    """The host of an address as in a URL, without its port: ``MyBox:8000`` is ``mybox``."""
    return re.sub(r":\d*$", "", address.lower())


def as_browsers_send(origin: str) -> str:
    """The origin of a site as a browser names it: in small letters, without the usual port."""
    scheme, _, host = origin.lower().rstrip("/").partition("://")
    return f"{scheme}://{host.removesuffix(_USUAL_PORTS.get(scheme, ''))}" if host else origin
