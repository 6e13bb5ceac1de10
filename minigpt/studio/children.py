"""Programs that the studio starts, since it loads no torch itself: a training goes on without it,
any other one ends with it."""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import minigpt

from ..system.platforms import is_windows

_SECONDS_TO_LEAVE = 5.0  # for a child that was told to end, before it is killed


def module_command(module: str, arguments: Sequence[str]) -> list[str]:
    """The command that runs a module of the package, such as "minigpt" or
    "minigpt.studio.texts.reading", with the Python of the studio."""
    # With -P nothing in the folder where it starts takes the place of a module.
    return [sys.executable, "-P", "-m", module, *arguments]


def environment() -> dict[str, str]:
    """The studio's environment, in which a child finds this package even if it is not installed."""
    source = str(Path(minigpt.__file__).parent.parent)
    paths = [source, os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def start_detached(module: str, arguments: Sequence[str], folder: Path, log: Path) -> int:
    """Start a module of the package that goes on when the studio ends. It runs in `folder` and
    prints to the end of the file `log`. Returns its process number."""
    apart: dict[str, object] = {"start_new_session": True}
    if is_windows():
        flags = (
            "CREATE_NEW_PROCESS_GROUP",  # Ctrl-C in the studio's window is not for it
            "CREATE_NO_WINDOW",
            "CREATE_BREAKAWAY_FROM_JOB",  # it outlives a terminal that ends all that it has started
        )
        apart = {"creationflags": sum(getattr(subprocess, flag, 0) for flag in flags)}

    with open(log, "ab") as printed:
        child = subprocess.Popen(
            module_command(module, arguments),
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            **apart,  # type: ignore[call-overload]
        )
    _forget(child)
    return child.pid


def _forget(child: "subprocess.Popen[bytes]") -> None:
    """Let nobody wait for a child, and still leave no zombie of it."""
    threading.Thread(target=child.wait, daemon=True).start()


class Children:
    """The programs that end with the studio."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._changing = threading.Lock()

    def start(
        self, module: str, arguments: Sequence[str], folder: Path
    ) -> "subprocess.Popen[bytes]":
        """Start a module of the package in a folder. What it prints is lost: it tells what it does
        in files."""
        child = subprocess.Popen(
            module_command(module, arguments),
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=not is_windows(),  # Ctrl-C is for the studio, which then ends it
        )
        with self._changing:
            self._running = {other for other in self._running if other.poll() is None} | {child}
        return child

    def end_all(self) -> None:
        """End those that still run."""
        for child in self._running:
            with contextlib.suppress(OSError):
                child.terminate()
        for child in self._running:
            end_child(child)
        self._running = set()


def end_child(child: "subprocess.Popen[bytes]") -> None:
    """End a child: at once if it does not leave by itself."""
    with contextlib.suppress(OSError):
        child.terminate()
    try:
        child.wait(_SECONDS_TO_LEAVE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


class ChildError(Exception):
    """A child that was read has failed.

    Attributes:
        status: its exit status; 2 if the message is for the user.
        message: the last line that it printed to standard error, without "error: ".
    """

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status
        self.message = message


async def read_child(
    arguments: Sequence[str], folder: Path, *, sent: bytes = b"", seconds: float = 60.0
) -> AsyncGenerator[bytes, None]:
    """Run a command of minigpt in a folder and yield what it prints, as it comes.

    `sent` is the standard input of the command. The command is ended when this generator is closed,
    or after `seconds`. ChildError if it fails.
    """
    child = await asyncio.create_subprocess_exec(
        *module_command("minigpt", arguments),
        cwd=folder,
        env=environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=not is_windows(),
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    problems = asyncio.create_task(child.stderr.read())
    # Each wait has its own timeout: a timeout around all of them would also cancel the caller,
    # while it handles a part.
    now = asyncio.get_running_loop().time
    latest = now() + seconds
    try:
        with contextlib.suppress(ConnectionError):  # the command may not read all of it
            child.stdin.write(sent)
            async with asyncio.timeout_at(latest):
                await child.stdin.drain()
        child.stdin.close()
        while True:
            async with asyncio.timeout_at(latest):
                part = await child.stdout.read(1 << 16)
            if not part:
                break
            yield part
            if now() > latest:  # what has come already is read without a wait
                raise TimeoutError
        async with asyncio.timeout_at(latest):
            status = await child.wait()
            printed = (await problems).decode("utf-8", errors="replace")
    except TimeoutError:
        raise ChildError(1, "It took too long, and was ended.") from None
    finally:
        if child.returncode is None:
            child.kill()
        await child.stdout.read()  # asyncio ends a child only when all that it printed is read
        await child.wait()
        problems.cancel()

    if status != 0:
        lines = printed.strip().splitlines() or ["It ended without a word."]
        raise ChildError(status, lines[-1].removeprefix("error: "))
