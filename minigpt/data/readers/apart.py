"""Libraries that read PDF and parquet run in a process of their own.

A file can be made so that such a library never ends, fills the memory or crashes. Then its process
is ended, and one line says so. The process gets the file as its standard input and prints lines of
JSON. Its standard error is a pipe in which nothing ever comes: when that ends, the program that
reads the lines is gone, however it was ended, and the process ends too.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from .content import Content
from .document import Refused, Unreadable

MOST_SECONDS = 60  # for a page of a PDF, or a few rows
MOST_MEMORY = 4 << 30  # bytes
_PACKAGE = Path(__file__).parents[3]  # the folder that holds minigpt
_ERROR = "error"  # the field of a line with what went wrong


def read_apart(module: str, content: Content, *arguments: str) -> Iterator[Any]:
    """What a module beside this one prints of a content: the value of each line.

    Raises Unreadable or Refused if it fails, takes too long for a line or needs too much memory."""
    memory = content.limit(MOST_MEMORY)
    command = [sys.executable, "-P", "-m", f"{__package__}.{module}", str(memory), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(_PACKAGE), "PYTHONUTF8": "1"}

    with content.seekable() as stream, _pipe_without_end() as waiting:
        os.lseek(stream.fileno(), 0, os.SEEK_SET)
        process = subprocess.Popen(
            command,
            stdin=stream,
            stdout=subprocess.PIPE,
            stderr=waiting,
            env=environment,
        )
        try:
            yield from _values(process, content)
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@contextlib.contextmanager
def _pipe_without_end() -> Iterator[int]:
    """A pipe to read from, whose other end stays open as long as this process lives, or until it is
    not needed any more."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


def _values(process: subprocess.Popen[bytes], content: Content) -> Iterator[Any]:
    """The values of the lines, each of which has to come in time."""
    assert process.stdout is not None
    seconds = content.limit(MOST_SECONDS)
    while True:
        late = threading.Event()
        timer = threading.Timer(seconds, _end, (process, late))
        timer.daemon = True
        timer.start()
        line = process.stdout.readline()
        timer.cancel()
        if late.is_set():
            remedy = "if you trust it, use --raise-limits 10"
            reason = f"takes more than {seconds} seconds a page; {remedy}"
            raise Refused(content.source, reason, "too_large")
        if not line:
            break
        yield _value(line, content)

    if process.wait() != 0:
        raise Unreadable(
            content.source, "its reader needs too much memory, or crashed", "too_large"
        )


def _end(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    process.kill()


def _value(line: bytes, content: Content) -> Any:
    """The value in a line of output. If the line holds an error instead, that is raised."""
    try:
        value = json.loads(line)
    except ValueError:  # the process was ended in the middle of the line
        raise Unreadable(content.source, "its reader crashed") from None
    if isinstance(value, dict) and _ERROR in value:
        if value.get("is_refused"):
            raise Refused(content.source, value[_ERROR], value["kind"])
        raise Unreadable(content.source, value[_ERROR])
    return value


# In the other process


class CannotRead(Exception):
    """What is wrong with a file, in words for a person, and its `kind`, as Refused has one."""

    def __init__(self, reason: str, kind: str):
        self.kind = kind
        super().__init__(reason)


def answer(values: Iterable[Any]) -> None:
    """Print values as lines of JSON, or the error that ends them. The memory is limited, where the
    system can do that, to the number of bytes that is the first argument."""
    _end_with_reader()
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        memory = int(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    print_lines(values, sys.stdout.buffer)


def _end_with_reader() -> None:
    """End this process when the one that reads what it prints is gone."""
    pipe = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)  # for what a library says
    os.close(nowhere)

    def wait() -> None:
        os.read(pipe, 1)  # until its end
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def print_lines(values: Iterable[Any], output: IO[bytes]) -> None:
    """Write values as lines of JSON, or the error that ends them."""
    try:
        for value in values:
            _print(value, output)
    except CannotRead as error:
        _print({_ERROR: str(error), "is_refused": True, "kind": error.kind}, output)
    except MemoryError:
        _print({_ERROR: "its reader needs too much memory"}, output)
    except Exception as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        _print({_ERROR: f"it is damaged ({reason})"}, output)


def _print(value: Any, output: IO[bytes]) -> None:
    text = json.dumps(value, default=lambda other: None)  # a cell may be a date or bytes
    output.write(text.encode() + b"\n")
    output.flush()
