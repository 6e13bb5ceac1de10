"""The command: it opens one studio for a folder, tells its address, and closes."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ..conftest import unix_only
from ..patience import PATIENCE
from .person import Person

pytestmark = pytest.mark.long

STARTED = [sys.executable, "-c", "import sys; from minigpt.cli import main; sys.exit(main())"]


def start(
    folder: Path, *options: str, program: Sequence[str] = STARTED, **environment: str
) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*program, "studio", *options],
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextlib.contextmanager
def studio(
    folder: Path, *options: str, program: Sequence[str] = STARTED
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A studio that is open, and its address."""
    process = start(folder, "--port", "0", "--no-browser", *options, program=program)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("minigpt studio: http://localhost:"), process.communicate()
        yield process, line.split()[-1]
    finally:
        process.kill()
        process.communicate()


def test_a_second_command_opens_the_first_ones_window(tmp_path: Path) -> None:
    """The browser gets a token that works once; the lasting one is for the terminal."""
    with studio(tmp_path) as (first, address):
        door = tmp_path / "runs" / ".studio.json"
        assert json.loads(door.read_text())["address"] == address.partition("#")[0]
        if os.name == "posix":
            assert door.stat().st_mode & 0o777 == 0o600

        second = start(tmp_path, BROWSER="echo %s")
        printed, problems = second.communicate(timeout=PATIENCE)
        assert (second.returncode, problems) == (0, "")
        assert f"The studio is open already: {address}" in printed
        opened = printed.splitlines()[-1]
        assert opened.startswith(address.partition("#")[0])
        assert opened != address

        first.send_signal(signal.SIGTERM)
        assert first.wait(PATIENCE) == 0
        assert not door.exists()


def test_a_studio_that_was_killed_can_be_opened_again(tmp_path: Path) -> None:
    with studio(tmp_path) as (first, _):
        first.kill()
        first.wait()
    with studio(tmp_path) as (_, address):
        assert "#" in address


def test_a_port_that_is_taken_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = start(tmp_path, "--port", str(taken.getsockname()[1]))
        _, problems = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "cannot listen" in problems
    assert len(problems.splitlines()) == 1


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_a_port_that_is_none_is_refused(tmp_path: Path, port: str) -> None:
    process = start(tmp_path, "--port", port)
    _, problems = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "must be between 0 and 65,535" in problems


def test_the_studio_never_loads_torch() -> None:
    code = (
        "import sys\n"
        "import minigpt.studio.opening, minigpt.studio.routes\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@unix_only
def test_a_thousand_idle_connections_leave_room_for_a_window(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= most < 4096:
        pytest.skip("this system allows few open files")
    few = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, {most}))"
    code = f"{few}; import sys; from minigpt.cli import main; sys.exit(main())"
    with (
        studio(tmp_path, program=[sys.executable, "-c", code]) as (_, address),
        contextlib.ExitStack() as idle,
        many_open_files(4096),
    ):
        port = int(address.partition("#")[0].rstrip("/").rpartition(":")[2])
        for _ in range(1000):
            idle.enter_context(socket.create_connection(("localhost", port)))
        person = Person(port)
        person.enter(address.partition("#")[2])
        assert person.get("/api/state")["runs"] == []


@contextlib.contextmanager
def many_open_files(number: int) -> Iterator[None]:
    """Let the tests open so many files meanwhile."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(number, before[0]), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
