"""A studio in a folder of the test, and a window of it in Debian's Chromium: `make test-studio`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import chromium_place, new_context

from .opened import Opened, kill_trainings


@pytest.fixture(scope="session")
def browser(request: pytest.FixtureRequest) -> Any:
    """The browser of this process; without one the test is skipped."""
    pytest.importorskip("playwright.sync_api")
    if chromium_place() is None:
        pytest.skip("Chromium is not here: make chromium")
    return request.getfixturevalue("chromium")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the studio."""
    return tmp_path


@pytest.fixture
def program(
    folder: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """A studio; it is one of the real program where a test is marked with `real_program`."""
    monkeypatch.setenv("MINIGPT_CACHE", str(folder / "cache"))
    running = getattr(request, "param", Opened)(folder)
    yield running
    running.kill()
    kill_trainings(folder)


@pytest.fixture
def page(program: Any, browser: Any) -> Iterator[Any]:
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
