"""The versions of a text: nothing is lost, and two of them are seen side by side."""

from typing import Any

import pytest

from minigpt.runs.found import FoundModel

from .conftest import PROMPT, Open, until, until_read, write
from .test_writing import TEXT, link, press

pytestmark = pytest.mark.page


@pytest.fixture
def page(open_page: Open, found: FoundModel) -> Any:
    page = open_page(found, link=link(maxNewTokens=12, view="branches"), weights="float32")
    until_read(page)
    return page


def test_the_tree_holds_every_version_and_any_can_be_chosen_again(page: Any) -> None:
    assert "one version" in page.inner_text("#panel-branches .sentence")
    first = write(page)
    second = press(page, "Again")
    page.focus("#text")
    page.keyboard.press("Control+Home")
    page.keyboard.type("Now ")
    until_read(page)
    versions = page.locator("#panel-branches .versions li")
    assert versions.count() == 4
    depths = [v.evaluate("e => e.style.getPropertyValue('--depth')") for v in versions.all()]
    assert depths == ["0", "1", "1", "1"]  # the prompt; written twice; the second goes on alone
    page.get_by_role("button", name="Put it on the sheet: Version 2").click()
    until_read(page)
    assert page.evaluate(TEXT) == first
    press(page, "Undo")
    assert page.evaluate(TEXT) == f"Now {second}"
    page.locator("[data-key='version-1']").focus()
    page.keyboard.press("Enter")
    until(page, "document.querySelector('.pair h3').textContent === 'Version 1'")
    page.locator("[data-key='look-1']").focus()
    page.keyboard.press("Enter")
    until_read(page)
    assert page.evaluate(TEXT) == PROMPT


def test_two_versions_side_by_side_mark_what_differs(page: Any) -> None:
    page.fill("#text", "the cat eats dates at home")
    page.wait_for_timeout(60)
    page.fill("#text", "the cat eats eels at home")
    until_read(page)
    page.wait_for_timeout(60)
    columns = page.locator("#panel-branches .pair section")
    page.locator("[data-key='version-1']").click()
    page.wait_for_timeout(60)
    assert columns.first.locator("mark").inner_text()
    press(page, "Undo")
    page.wait_for_timeout(60)
    assert "Version 1" in page.inner_text("#panel-branches .pair")
    titles = columns.locator("h3").all_inner_texts()
    assert titles == ["Version 1", "Version 2, on the sheet"] or "on the sheet" in titles[0]


def test_a_version_in_which_nothing_was_written_is_not_kept(page: Any) -> None:
    page.evaluate("""() => {
        const named = name => [...document.querySelectorAll("#buttons button")]
            .find(button => button.textContent === name);
        named("Write").click();
        named("Stop").click();
    }""")
    until_read(page)
    if page.evaluate(TEXT) == PROMPT:
        assert page.locator("#panel-branches .versions li").count() == 1
