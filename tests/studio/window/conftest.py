"""The real program, and windows of it in Debian's Chromium: `make test-studio`."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import new_context

STARTED = [sys.executable, "-m", "minigpt", "studio", "--no-browser"]


class Program:
    """A studio in a folder; it can be killed and started again at the same port."""

    def __init__(self, folder: Path, *options: str):
        self.folder = folder
        self.options = options
        self.port = "0"
        self.start()

    def start(self) -> None:
        """Start it; afterwards `address` is the one that it printed."""
        self.process = subprocess.Popen(
            [*STARTED, "--port", self.port, *self.options],
            cwd=self.folder,
            env=os.environ | {"MINIGPT_CACHE": str(self.folder / "cache")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("minigpt studio: "), line
        self.address = line.split()[-1]
        self.url = self.address.partition("#")[0].rstrip("/")
        self.port = self.url.rpartition(":")[2]

    def kill(self) -> str:
        """End it at once; trainings go on. What it has printed besides its address."""
        self.process.kill()
        self.process.wait()
        printed = self.process.stdout
        if printed is None or printed.closed:  # it was killed before
            return ""
        with printed:
            return printed.read()


@pytest.fixture(scope="session")
def browser(request: pytest.FixtureRequest) -> Any:
    """The browser of this process; without one the test is skipped."""
    pytest.importorskip("playwright.sync_api")
    if shutil.which("chromium") is None:
        pytest.skip("Chromium is not here: make chromium")
    return request.getfixturevalue("chromium")


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """A studio in an empty folder."""
    running = Program(tmp_path)
    yield running
    for stop in tmp_path.glob("runs/*/journal"):
        (stop / "stop").write_text("now")
    running.kill()


@pytest.fixture
def page(program: Program, browser: Any) -> Iterator[Any]:
    """A window of the studio, logged in; an error of a script fails the test."""
    context = new_context(browser, locale="en-US")
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto(program.address)
    opened.get_by_role("button", name="Close the studio").wait_for()  # it is logged in
    yield opened
    context.close()
    assert errors == []
