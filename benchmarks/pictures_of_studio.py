"""The pictures of docs/studio.md: screenshots of the studio in Chromium.

python benchmarks/pictures_of_studio.py     `make chromium .venv/dev` installs what it needs

It opens the studio in an empty folder, drops the fables, lets it learn for two minutes, and writes
docs/studio-dial.png, docs/studio-learning.png and docs/studio-done.png. Take them again when the
screens change.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measuring import chromium_place

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FABLES = ROOT / "data" / "fables.txt"
WIDTH, HEIGHT = 1280, 800
MOST = 300_000  # milliseconds to wait for something


def main() -> None:
    """Write the pictures."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        command = [sys.executable, "-m", "minigpt", "studio", "--port", "0", "--no-browser"]
        cache = {"MINIGPT_CACHE": f"{folder}/cache"}
        studio = subprocess.Popen(
            command, cwd=folder, env=os.environ | cache, stdout=subprocess.PIPE, text=True
        )
        assert studio.stdout is not None
        address = studio.stdout.readline().split()[-1]
        browser = playwright.chromium.launch(executable_path=chromium_place())
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, locale="en-GB", color_scheme="light"
        )
        try:
            page.goto(address)
            take(page)
        finally:
            browser.close()
            studio.terminate()
            studio.wait()


def take(page: Any) -> None:
    """Go from a text to a model, and take three pictures on the way."""
    page.set_input_files("input[type=file]", FABLES)
    start = page.get_by_role("button", name="Start learning")
    start.wait_for(timeout=MOST)
    page.get_by_role("radio", name="2 min").first.check(force=True)
    shown(page, "As sure as choosing among")
    page.screenshot(path=DOCS / "studio-dial.png")

    start.click()
    shown(page, "Unseen pages: chooses among")
    page.wait_for_timeout(40_000)
    page.screenshot(path=DOCS / "studio-learning.png")

    page.get_by_role("button", name="Learn 5 minutes more").wait_for(timeout=MOST)
    page.wait_for_timeout(10_000)  # the page in its frame
    page.screenshot(path=DOCS / "studio-done.png")


def shown(page: Any, words: str) -> None:
    """Wait until these words can be seen."""
    page.locator(f":text('{words}'):visible").first.wait_for(timeout=MOST)


if __name__ == "__main__":
    main()
