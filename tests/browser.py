"""Debian's Chromium, driven by playwright: `chromium` is one for all tests of a process."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .patience import PATIENCE

_AXE = Path(__file__).parents[1] / "node_modules/axe-core/axe.min.js"
_TWO_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def chromium_place() -> str | None:
    """Where Chromium is. Its shell without a screen is the same browser without windows around the
    pages, and opens them in a third of the time."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")


@contextmanager
def running_chromium() -> Iterator[Any]:
    """A browser; playwright is imported by those tests alone that need it."""
    from playwright.sync_api import sync_playwright

    place = chromium_place()
    assert place is not None, "Chromium is missing: make chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place, args=["--no-sandbox"])
        yield browser
        browser.close()


def new_context(browser: Any, **options: Any) -> Any:
    """A fresh context, whose cookies and storage are its own. What is waited for in it may take as
    long as anything; whoever opens it closes it."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE * 1000)  # also of going somewhere
    return context


def two_frames(page: Any) -> None:
    """Wait until the page has been drawn anew: what it does in answer to an event, it has done."""
    page.evaluate(_TWO_FRAMES)


def axe_finds(page: Any) -> list[Any]:
    """What axe-core finds on the page as it is now."""
    if page.evaluate("typeof axe") == "undefined":
        assert _AXE.exists(), "axe-core is missing: make test-browser installs it"
        page.evaluate(_AXE.read_text(encoding="utf-8"))
    found: list[Any] = page.evaluate(
        "axe.run({ resultTypes: ['violations'] })"
        ".then(r => r.violations.map(v => [v.id, v.nodes[0].html]))"
    )
    return found
