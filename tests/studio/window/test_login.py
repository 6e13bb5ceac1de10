"""Who gets in with a browser."""

from typing import Any

import pytest

from .conftest import Program

pytestmark = pytest.mark.studio


def test_the_token_is_gone_from_the_address_and_a_reload_stays_in(
    page: Any, program: Program
) -> None:
    page.get_by_role("button", name="Close the studio").wait_for()
    assert page.url == f"{program.url}/"
    page.reload()
    page.get_by_role("button", name="Close the studio").wait_for()
    assert page.get_by_text("not logged in").count() == 0


def test_another_browser_is_not_let_in_without_the_token(
    page: Any, program: Program, browser: Any
) -> None:
    other = browser.new_context(locale="en-US").new_page()
    other.goto(program.url)
    other.get_by_text("This window is not logged in.").wait_for()
    other.context.close()


def test_the_studio_closes_after_a_second_press(page: Any, program: Program) -> None:
    page.get_by_role("button", name="Close the studio").click()
    page.get_by_role("button", name="Press again to close; learning goes on").click()
    page.get_by_role("heading", name="The studio is closed.").wait_for()
    assert program.process.wait(30) == 0
