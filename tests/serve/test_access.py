"""Who is let in: by key, by the host that a request addresses, by where it comes from; and where
the server can listen at all."""

import asyncio
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minigpt import UserError
from minigpt.cli import main
from minigpt.serve.settings import ServeConfig

from ..hostile import STRANGE_HOSTS
from ..patience import PATIENCE
from .conftest import Local

pytest.importorskip("uvicorn", reason="make installs what these tests need")
from starlette.routing import Route

from minigpt.serve import app
from minigpt.serve import sockets as connections
from minigpt.serve.sockets import listen

ROUTES = {  # what each answers to who is let in
    "/": ("GET", None, 200),
    "/health": ("GET", None, 200),
    "/v1/models": ("GET", None, 200),
    "/v1/models/{name:path}": ("GET", None, 404),
    "/v1/completions": ("POST", {"max_tokens": 1}, 200),
    "/v1/chat/completions": ("POST", {"messages": [{"role": "user", "content": "a"}]}, 200),
}
KEYS = {
    None: 401,
    "": 401,
    "Bearer": 401,
    "Bearer ": 401,
    "Bearer wrong": 401,
    "Bearer sesam": 401,
    "Bearer sesames": 401,
    "Bearer Sesame": 401,
    "Bearer ssame\xe9": 401,
    "sesame": 401,
    "Basic sesame": 401,
    "Bearer sesame": 0,  # let in
    "bearer sesame": 0,
}


@pytest.fixture(scope="module")
def locked(tiny_run: Path) -> Local:
    return Local(tiny_run, key="sesame")


def test_the_table_names_every_route(locked: Local) -> None:
    starlette: Any = locked.app
    found = {route.path for route in starlette.app.routes if isinstance(route, Route)}
    assert found == set(ROUTES)


@pytest.mark.parametrize("path", ROUTES)
def test_only_the_right_key_opens_a_route(locked: Local, path: str) -> None:
    """All but /health, which tells nothing."""
    method, body, usual = ROUTES[path]
    for given, refused in KEYS.items():
        headers = {} if given is None else {"authorization": given}
        status, _, answer = locked.ask(path, body, method=method, headers=headers)
        expected = usual if path == "/health" else refused or usual
        assert status == expected, (path, given, answer)
        assert status != 401 or b"invalid_api_key" in answer


@pytest.mark.parametrize("path", ROUTES)
def test_without_a_key_any_is_as_good_as_none(local: Local, path: str) -> None:
    method, body, usual = ROUTES[path]
    for headers in ({}, {"authorization": "Bearer any"}):
        assert local.ask(path, body, method=method, headers=headers)[0] == usual


HOSTS = {
    "localhost": True,
    "localhost:8000": True,
    "LOCALHOST:1": True,
    "127.0.0.1": True,
    "127.0.0.1:8000": True,
    "[::1]:8000": True,
    "mybox": True,
    "MyBox:8000": True,
    "MYBOX": True,
    "other.example:8000": True,
    "[fe80::1]:8000": True,
    **dict.fromkeys(STRANGE_HOSTS, False),
    "": False,
    ":8000": False,
    "localhost:8000.evil.example": False,
    "localhost:8000:8000": False,
    "127.0.0.10": False,
    "27.0.0.1": False,
    "::1": False,
    "[::2]": False,
    "mybox.evil.example": False,
    "notmybox": False,
    "mybo": False,
    "other.example.evil.example": False,
    "xother.example": False,
    "otherxexample": False,
}


def test_only_names_of_this_machine_are_answered(tiny_run: Path) -> None:
    """Whatever the route, and with the right key too."""
    names = ("MyBox", "Other.Example:8000", "[FE80::1]")
    for key in ("", "sesame"):
        local = Local(tiny_run, key=key, allowed_host=names)
        for host, is_known in HOSTS.items():
            headers = {"host": host, "authorization": f"Bearer {key}"}
            status, _, answer = local.ask("/v1/models", method="GET", headers=headers)
            assert status == (200 if is_known else 400), (host, answer)
        for path, (method, body, usual) in ROUTES.items():
            for host, expected in (("mybox", usual), ("evil.example", 400)):
                headers = {"host": host, "authorization": f"Bearer {key}"}
                assert local.ask(path, body, method=method, headers=headers)[0] == expected


def test_a_name_is_known_only_if_it_was_given(local: Local) -> None:
    for host, is_known in HOSTS.items():
        is_loopback = host.lower().startswith(("localhost", "127", "[::1"))
        status, _, _ = local.ask("/health", method="GET", headers={"host": host})
        assert status == (200 if is_known and is_loopback else 400), host


@pytest.mark.parametrize("name", ["", "http://mybox", "mybox/", "my box", "mybox:x", "fe80::1"])
def test_an_allowed_host_that_no_request_can_name_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="--allowed-host must be a name such as mybox"):
        ServeConfig(allowed_host=(name,))


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.0.0.2", True),
        ("LocalHost", True),
        ("::1", True),
        ("[::1]", True),
        ("", False),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.7", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
    ],
)
def test_beyond_this_machine_a_key_is_required(
    host: str, is_local: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MINIGPT_API_KEY", raising=False)
    config = ServeConfig(host=host)
    assert config.is_local == is_local
    if is_local:
        assert app.read_key(config) == ""
    else:
        with pytest.raises(UserError, match="clients on other machines need a key"):
            app.read_key(config)

    monkeypatch.setenv("MINIGPT_API_KEY", "sesame")
    assert app.read_key(config) == "sesame"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"):
        (tmp_path / "key").write_text("änother\r\n", encoding=encoding)
        config = ServeConfig(host=host, api_key_file=str(tmp_path / "key"))
        assert app.read_key(config) == "änother", encoding
    (tmp_path / "key").write_text("\n")
    with pytest.raises(UserError, match="need a key"):
        app.read_key(ServeConfig(host=host, api_key_file=str(tmp_path / "key")))


# Where it listens


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def told(capsys: pytest.CaptureFixture[str], run: Path, *options: str) -> str:
    """The line that says why a server does not start; nothing is loaded for that."""
    assert main(["serve", str(run), *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("port", ["70000", "65536", "-1"])
def test_a_port_that_there_is_not_is_refused(
    tiny_run: Path, capsys: pytest.CaptureFixture[str], port: str
) -> None:
    line = told(capsys, tiny_run, "--port", port)
    assert "port must be between 0 and 65,535" in line and port in line


def test_a_port_in_use_is_told_in_one_line(
    tiny_run: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    taken: int,
) -> None:
    monkeypatch.setattr(app, "glass_writer", lambda _: 1 / 0)  # not before it is known
    for host in ("127.0.0.1", "localhost"):
        line = told(capsys, tiny_run, "--port", str(taken), "--host", host)
        assert f"cannot listen at {host}, port {taken}: Address already in use" in line


def test_a_port_that_only_root_may_use_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(connections, "_bind", refuse)
    with pytest.raises(UserError, match=r"cannot listen at 127\.0\.0\.1, port 80: Permission"):
        listen("127.0.0.1", 80)


@pytest.mark.parametrize("host", ["nowhere.invalid", "192.0.2.1", "a" * 70 + ".example"])
def test_an_address_that_is_not_this_machine_s_is_refused(host: str) -> None:
    with pytest.raises(UserError, match=f"cannot listen at {host}, port 0: "):
        listen(host, 0)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_port_0_is_one_that_is_free(host: str) -> None:
    """The same for each address of the host, and a client can come before the server is ready."""
    sockets = listen(host, 0)
    ports = {opened.getsockname()[1] for opened in sockets}
    assert len(ports) == 1 and 0 not in ports
    for opened in sockets:
        with socket.create_connection(opened.getsockname()[:2], timeout=PATIENCE):
            pass
        opened.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere 127.0.0.2 is no address")
def test_a_host_of_several_addresses_is_listened_at_on_all_that_there_are(
    monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    """At one port; nowhere if one of them is in use, and none is left open then."""

    def found_at(*addresses: str) -> None:
        def resolve(host: str, port: int, **_: Any) -> list[Any]:
            kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            return [(*kind, (address, port)) for address in addresses]

        monkeypatch.setattr(socket, "getaddrinfo", resolve)

    found_at("192.0.2.1", "127.0.0.2", "127.0.0.1")  # the first is no address of this machine
    sockets = listen("mybox", 0)
    names = [opened.getsockname() for opened in sockets]
    assert [address for address, _ in names] == ["127.0.0.2", "127.0.0.1"]
    assert names[0][1] == names[1][1]
    for opened in sockets:
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)
        opened.close()

    found_at("127.0.0.2", "127.0.0.1")
    for _ in range(2):  # the same error again: the other address was let go
        with pytest.raises(UserError, match="Address already in use"):
            listen("mybox", taken)
    socket.create_server(("127.0.0.2", taken)).close()


def test_an_answer_is_sent_at_once_and_not_when_the_client_has_acknowledged_its_head() -> None:
    """Else each whole answer would take 40 ms more, because the sockets wait for that (Nagle)."""

    async def waits() -> bool:
        opened = asyncio.Queue[bool]()

        def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            opened.put_nowait(not connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        (listening,) = listen("127.0.0.1", 0)
        async with await asyncio.start_server(note, sock=listening):
            _, client = await asyncio.open_connection(*listening.getsockname())
            async with asyncio.timeout(PATIENCE):
                found = await opened.get()
            client.close()
            return found

    assert not asyncio.run(waits())
