"""Processes that have torch and minigpt loaded from their first moment.

To load them takes seconds. A server loads them once and forks whoever is asked for; what it forks
becomes what Python would be with the arguments, in a folder, an environment and with streams of its
own. Signals reach it at its `pid`, and it ends as an interpreter does. What a process imports, and
when, cannot be seen in it.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).parent.parent
IS_LINUX = sys.platform == "linux"
LOADED = (  # also by a training or a server, at its first step or its end
    "matplotlib.figure",
    "minigpt.cli",
    "minigpt.generation",
    "minigpt.recipe.run",
    "minigpt.serve.app",
    "minigpt.studio",
    "minigpt.training.reports",
    "tokenizers",
    "torch._dynamo",
    "uvicorn",
)


# In the process of the tests


class Forks:
    """The server. On other systems than Linux each process is started anew."""

    def __init__(self) -> None:
        if not IS_LINUX:
            return
        self._asks, answers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with answers:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "tests.forks", str(answers.fileno())],
                cwd=ROOT,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                pass_fds=[answers.fileno()],
            )

    def start(self, arguments: list[str], **options: Any) -> subprocess.Popen[Any]:
        """As `subprocess.Popen([sys.executable, *arguments], **options)`. Of the options there are
        those of the streams, `cwd`, `env` and `start_new_session`."""
        if IS_LINUX:
            return Forked(self, arguments, **options)
        return subprocess.Popen([sys.executable, *arguments], **options)

    def ask(self, request: dict[str, Any], streams: list[int]) -> None:
        socket.send_fds(self._asks, [json.dumps(request).encode()], streams)

    def close(self) -> None:
        if IS_LINUX:
            self._asks.close()
            self._server.wait()


class Forked(subprocess.Popen[Any]):
    """A process that the server forks."""

    def __init__(self, forks: Forks, arguments: list[str], **options: Any) -> None:
        self._forks = forks
        self._is_leader = options.pop("start_new_session", False)
        super().__init__([sys.executable, *arguments], **options)

    def _execute_child(  # by Popen, with its pipes; a descriptor of -1 is inherited
        self,
        args: list[str],
        executable: Any,
        preexec_fn: Any,
        close_fds: Any,
        pass_fds: Any,
        cwd: str | Path | None,
        env: dict[str, str] | None,
        startupinfo: Any,
        creationflags: Any,
        shell: Any,
        p2cread: int,
        p2cwrite: int,
        c2pread: int,
        c2pwrite: int,
        errread: int,
        errwrite: int,
        *_: Any,
    ) -> None:
        self._told, telling = os.pipe()
        request = {
            "arguments": args[1:],
            "folder": str(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
            "is_leader": self._is_leader,
        }
        try:
            streams = enumerate((p2cread, c2pwrite, errwrite))
            own = [number if stream == -1 else stream for number, stream in streams]
            self._forks.ask(request, [*own, telling])
        finally:
            os.close(telling)
            self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)
        self.pid = int(self._next_line())
        self._child_created = True

    def _next_line(self) -> str:
        line = b""
        while not line.endswith(b"\n"):
            found = os.read(self._told, 1)
            if not found:
                raise RuntimeError("the server of forks has ended")
            line += found
        return line.decode()

    def _internal_poll(self, **_: Any) -> int | None:  # by Popen.poll
        return self._told_within(0)

    def _wait(self, timeout: float | None) -> int:  # by Popen.wait and communicate
        if self._told_within(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def _told_within(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], seconds)[0]:
            self._handle_exitstatus(int(self._next_line()))
            os.close(self._told)
        return self.returncode


# In the server


def forked_request(asked: socket.socket) -> dict[str, Any] | None:
    """What a process that was forked has to do; in the server, None at its end."""
    while True:
        message, received, _, _ = socket.recv_fds(asked, 1 << 20, 4)
        if not message:
            return None
        if os.fork() == 0:  # one that waits for the process that is asked for
            *streams, telling = received
            if (pid := os.fork()) == 0:
                for number, stream in enumerate(streams):
                    os.dup2(stream, number)
                for fd in (*received, asked.fileno()):
                    os.close(fd)
                asked.detach()
                request: dict[str, Any] = json.loads(message)
                return request
            for fd in (0, 1, 2, *streams):
                os.close(fd)
            os.write(telling, f"{pid}\n".encode())
            _, status = os.waitpid(pid, 0)
            os.write(telling, f"{status}\n".encode())
            os._exit(0)
        for fd in received:
            os.close(fd)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass  # one that has nobody to wait for any more


def become(request: dict[str, Any]) -> None:
    """Be as if Python had just started in this folder and environment."""
    if request["is_leader"]:
        os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    tempfile.tempdir = None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = sys.__stdin__ = stream(0, "r")
    sys.stdout = sys.__stdout__ = stream(1, "w")
    sys.stderr = sys.__stderr__ = stream(2, "w", errors="backslashreplace")


def stream(number: int, mode: str, errors: str = "strict") -> TextIO:
    encoding = os.environ.get("PYTHONIOENCODING", "utf-8")
    by_line = 1 if os.isatty(number) or number == 2 else -1
    return open(number, mode, by_line, encoding, errors, closefd=False)


def run(what: str, *more: str) -> None:
    """What `python what *more` runs: -c code, -m module, or a file."""
    if what == "-m":
        sys.argv = [*more]
        runpy.run_module(more[0], run_name="__main__", alter_sys=True)
    elif what == "-c":
        sys.argv = [what, *more[1:]]
        sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(more[0], "<string>", "exec"), sys.modules["__main__"].__dict__)
    else:
        sys.argv = [what, *more]
        runpy.run_path(what, run_name="__main__")


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in LOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # or each collection would copy the memory that all share
    request = forked_request(socket.socket(fileno=int(sys.argv[1])))
    if request is not None:
        become(request)
        run(*request["arguments"])


if __name__ == "__main__":
    main()
