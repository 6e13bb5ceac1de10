"""Who gets in with a browser."""

from typing import Any

import pytest

from tests.browser import new_context, two_frames
from tests.patience import PATIENCE

from .opened import Opened, Program, real_program

pytestmark = pytest.mark.studio


def test_the_token_is_gone_from_the_address_and_a_reload_stays_in(
    page: Any, program: Opened
) -> None:
    page.get_by_role("button", name="Close the studio").wait_for()
    assert page.url == f"{program.url}/"
    page.reload()
    page.get_by_role("button", name="Close the studio").wait_for()
    assert page.get_by_text("not logged in").count() == 0


def test_another_browser_is_not_let_in_without_the_token(
    page: Any, program: Opened, browser: Any
) -> None:
    other = new_context(browser, locale="en-US").new_page()
    other.goto(program.url)
    other.get_by_text("This window is not logged in.").wait_for()
    assert not other.get_by_role("button", name="Close the studio").is_visible()
    other.context.close()


@real_program
def test_the_studio_closes_after_a_second_press(page: Any, program: Program) -> None:
    page.get_by_role("button", name="Close the studio").click()
    page.get_by_role("button", name="Press again to close; learning goes on").click()
    page.get_by_role("heading", name="The studio is closed.").wait_for()
    assert program.process.wait(PATIENCE) == 0


def test_a_window_with_the_login_of_an_earlier_studio_says_so_without_reloading_on_and_on(
    page: Any, program: Opened
) -> None:
    page.goto("about:blank")  # where it hears of nothing
    program.kill()
    program.start()
    loads: list[Any] = []

    def is_second(load: Any) -> bool:
        loads.append(load)
        return len(loads) == 2

    with page.expect_event("domcontentloaded", is_second):  # the second has no key any more
        page.goto(program.url, wait_until="commit")
    page.get_by_text("This window is not logged in.").wait_for()

    page.evaluate("window.isTheSame = true")
    other = page.context.new_page()
    other.goto(program.url)  # which takes longer than it would take to load this one again
    other.get_by_text("This window is not logged in.").wait_for()
    assert page.evaluate("window.isTheSame") is True
    assert page.evaluate("localStorage.getItem('minigpt-studio-key')") is None

    other.goto(program.address)
    other.reload()
    page.get_by_label("Choose files").wait_for()
    assert page.get_by_text("not logged in").count() == 0


def test_a_window_asks_once_a_second_and_in_the_background_less_often(
    page: Any, program: Opened
) -> None:
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url) if "/api/state" in sent.url else None)
    page.clock.install()
    page.goto(program.url)

    def is_asked_within(milliseconds: int) -> bool:
        asked.clear()
        with page.expect_response("**/api/state?*"):
            page.clock.fast_forward(milliseconds)
        return len(asked) == 1

    page.get_by_text("Your models will appear here.").wait_for()
    assert is_asked_within(1_100) and is_asked_within(1_100)
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true})")
    assert is_asked_within(1_100)  # the look that was due already
    asked.clear()
    page.clock.fast_forward(9_000)
    assert asked == []
    assert is_asked_within(1_100)


def test_a_screen_that_comes_after_the_studio_has_closed_is_not_shown(
    page: Any, program: Opened
) -> None:
    kept: dict[str, Any] = {}  # what the studio answered, for when it is closed
    held: list[Any] = []

    def keep(route: Any) -> None:
        kept[route.request.url] = route.fetch()
        route.fulfill(response=kept[route.request.url])

    def hold_one(route: Any) -> None:
        if route.request.url.endswith("/home/cards.js"):
            held.append(route)
        else:
            route.fulfill(response=kept[route.request.url])

    page.route("**/static/**", keep)
    page.reload()
    page.get_by_text("Your models will appear here.").wait_for()
    page.unroute("**/static/**")
    page.route("**/static/**", hold_one)
    with page.expect_request("**/home/cards.js"):
        page.reload(wait_until="commit")
    page.get_by_role("button", name="Close the studio").click()
    page.get_by_role("button", name="Press again to close; learning goes on").click()
    closed = page.get_by_role("heading", name="The studio is closed.")
    closed.wait_for()
    (route,) = held
    route.fulfill(response=kept[route.request.url])
    page.get_by_text("To come back, start minigpt studio again.").first.wait_for()
    page.evaluate("import('/static/studio/window/screens/home.js').then(() => {})")  # it has come
    two_frames(page)
    assert closed.is_visible()
