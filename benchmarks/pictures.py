"""The pictures of README and docs/page.md: screenshots of a run's page in Chromium.

python benchmarks/pictures.py     `make chromium .venv/dev` installs what it needs

It writes docs/page-light.png (why a word was written) and docs/page-dark.png (attention). Take them
again when the page changes; the run is the one that `benchmarks/results.py --measure plays` leaves.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from measuring import chromium_place

from minigpt.page.build import build_page
from minigpt.runs.find import find_model

DOCS = Path(__file__).resolve().parent.parent / "docs"
OPENING = """TORELLO.
I love you, lady.

VERIDIANA.
Prove it, sir.

TORELLO.
"""
LINK = f"#look=sheet&prompt={quote(OPENING)}&temperature=0.7&seed=3&maxNewTokens=80"
SIZE = {"width": 1440, "height": 860}
WORD = 0.71  # the chosen word, as a share of the text
CHOOSE = """(share) => {
  const sheet = document.querySelector("textarea");
  const word = sheet.value.indexOf(" ", share * sheet.value.length);
  sheet.setSelectionRange(word, word);
}"""


def main() -> None:
    """Write both pictures."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    run_of_plays = DOCS.parent / "benchmarks/results/plays"
    parser.add_argument("run", nargs="?", default=run_of_plays, help="a run of the plays")
    run = parser.parse_args().run

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder, "page.html")
        file.write_text(build_page(find_model(run), "plays"), encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=chromium_place(), args=["--no-sandbox"]
        )

        page = written_page(browser, file, "light")
        page.locator("#question-why").click()
        wait_for_answers(page)
        page.screenshot(path=DOCS / "page-light.png")

        page = written_page(browser, file, "dark")
        page.locator("#map [data-view=attention]").nth(1).click()
        wait_for_answers(page)
        page.screenshot(path=DOCS / "page-dark.png")
        browser.close()


def written_page(browser: Any, file: Path, scheme: str) -> Any:
    """The page after it has written a text, with a word inside chosen, and why it was written."""
    page = browser.new_page(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")
    page.goto(f"{file.as_uri()}{LINK}")
    page.evaluate("minigpt.ready")
    page.get_by_role("button", name="Write", exact=True).click()
    page.wait_for_timeout(300)
    wait_for_answers(page)

    page.focus("textarea")
    page.evaluate(CHOOSE, WORD)
    page.wait_for_timeout(300)
    wait_for_answers(page)
    return page


def wait_for_answers(page: Any) -> None:
    """Wait until nothing is written and every view has its numbers."""
    page.wait_for_timeout(500)
    while page.locator("[aria-busy=true]:visible").count():
        page.wait_for_timeout(100)


if __name__ == "__main__":
    main()
