"""A text in a browser: its files, what was read in them, how long a model may learn from it."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from minigpt.studio.texts.planning import write_plans
from tests.browser import axe_finds, two_frames
from tests.hostile import EVIL_NAME as EVIL
from tests.patience import PATIENCE

from ..dropped import dropped
from .opened import Opened
from .pages import STORY, drop, is_too_wide

pytestmark = pytest.mark.studio

PHOTO = b"\xff\xd8\xff\xe0" + bytes(range(256)) * 8


def test_of_ten_files_the_bad_one_is_left_out_with_its_reason(page: Any, tmp_path: Path) -> None:
    files = {f"part{i}.txt": STORY.encode() for i in range(9)}
    drop(page, tmp_path, files | {"photo.jpg": PHOTO})

    page.get_by_role("heading", name="Left out").wait_for()
    page.get_by_text("photo.jpg is not text.").wait_for()
    page.get_by_text("9 files").click()
    assert page.get_by_role("button", name="Remove part").count() == 9
    page.get_by_role("button", name="Start learning").wait_for()

    page.get_by_role("button", name="Remove photo.jpg").click()
    page.get_by_text("photo.jpg is not text.").wait_for(state="detached")
    page.get_by_role("button", name="Start learning").wait_for()
    page.get_by_role("button", name="Remove part8.txt").wait_for()  # the list is still open


def test_of_many_files_that_are_left_out_more_are_shown_at_each_press(
    page: Any, program: Opened, tmp_path: Path
) -> None:
    files: dict[str, str | bytes] = {f"{n}.jpg": PHOTO for n in range(120)}
    text = dropped(program.folder, files | {"a.txt": STORY})
    page.goto(f"{program.url}/text/{text.name}")
    rows = page.locator("ul:has(button[aria-label='Remove 0.jpg']) li")
    for shown, more in ((8, "112 more"), (108, "12 more")):
        button = page.get_by_role("button", name=more, exact=True)
        button.wait_for()
        assert rows.count() == shown
        button.press("Enter")
    page.get_by_role("button", name="Remove 99.jpg").wait_for()
    assert rows.count() == 120
    assert page.evaluate("document.activeElement.tagName") == "UL"


def test_what_came_of_an_upload_that_broke_off_can_be_used(page: Any, tmp_path: Path) -> None:
    files = [tmp_path / "one.txt", tmp_path / "two.txt"]
    files[0].write_text(STORY)
    files[1].write_text(1_000 * STORY)
    slowly = {
        "offline": False,
        "latency": 0,
        "downloadThroughput": -1,
        "uploadThroughput": len(STORY.encode()),  # bytes a second
    }
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", slowly)
    page.get_by_label("Choose files").set_input_files(files)
    page.get_by_text("Copying 2 of 2").wait_for()

    other = page.context.new_page()
    other.goto(page.url)
    page.close()
    other.get_by_text("one file, today, not read yet").wait_for()
    other.get_by_role("link", name="Open one").click()
    other.get_by_role("button", name="Start learning").wait_for()
    assert other.get_by_role("button", name="Remove one.txt").count() == 1
    assert other.get_by_role("button", name="Remove two.txt").count() == 0


def test_a_text_that_is_too_short_says_so_and_takes_more_files(page: Any, tmp_path: Path) -> None:
    drop(page, tmp_path, {"note.txt": b"It rained. " * 20})
    page.get_by_text("Too short: 220 letters. Add a few pages.").wait_for()
    assert page.get_by_role("button", name="Start learning").count() == 0

    more = tmp_path / "more.txt"
    more.write_text(STORY)
    page.get_by_label("Add files").set_input_files(more)
    page.get_by_role("button", name="Start learning").wait_for()
    page.get_by_role("button", name="Remove more.txt").wait_for()


def test_a_picture_alone_is_refused(page: Any, tmp_path: Path) -> None:
    drop(page, tmp_path, {"photo.jpg": PHOTO})
    page.get_by_text("photo.jpg is not text.").wait_for()
    page.get_by_role("button", name="Remove photo.jpg").press("Enter")
    page.get_by_text("There is no file in this text.").wait_for()
    assert page.get_by_label("Add files").evaluate("e => e === document.activeElement")


def test_what_was_read_and_what_to_expect_is_seen_in_each_tab_and_after_a_reload(
    page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_plan = threading.Event()

    def plan_when_it_may(folder: Path) -> None:
        assert may_plan.wait(PATIENCE)
        write_plans(folder)

    monkeypatch.setattr("minigpt.studio.texts.planning.write_plans", plan_when_it_may)
    drop(page, tmp_path, {"diary.txt": STORY.encode()})
    page.get_by_text("Measuring this computer").wait_for()
    start = page.get_by_role("button", name="Start learning")
    place = start.bounding_box()
    may_plan.set()
    page.locator(".sure").wait_for()
    assert start.bounding_box() == place
    page.get_by_label("20 min").check()
    page.get_by_role("button", name="More").click()
    page.get_by_text("Model: 18 settings").click()
    may_plan.clear()
    page.get_by_label("num layers").fill("2")
    page.get_by_label("num layers").press("Tab")
    page.get_by_text("Model: 18 settings, 1 changed").wait_for()
    page.get_by_text("Measuring this computer").wait_for()
    may_plan.set()

    other = page.context.new_page()
    for tab in (page, other):
        tab.goto(page.url)
        tab.locator(".sure").wait_for()
        assert tab.get_by_label("20 min").is_checked()
        tab.get_by_role("button", name="More").click()
        tab.get_by_text("Model: 18 settings, 1 changed").click()
        assert tab.get_by_label("num layers").input_value() == "2"
        begins = tab.get_by_role("region", name="As the model sees it").inner_text()
        assert begins.startswith(STORY.split("\n")[0][:40])


def test_a_wrong_setting_is_refused_beside_its_field(page: Any, tmp_path: Path) -> None:
    drop(page, tmp_path, {"diary.txt": STORY.encode()})
    page.get_by_role("button", name="More").click()
    page.get_by_text("Training: ").click()
    field = page.get_by_label("learning rate", exact=True)
    field.fill("fast")
    field.press("Tab")
    problem = page.locator("#setting-learning_rate-problem")
    problem.get_by_text("learning_rate").wait_for()
    page.get_by_role("button", name="Start learning").click()
    assert page.url.partition("/text/")[2]  # nothing has begun
    assert page.evaluate("document.activeElement.id") == "setting-learning_rate"


def test_a_setting_that_the_disk_had_no_room_for_is_stored_before_the_training_is_asked_for(
    page: Any, tmp_path: Path
) -> None:
    drop(page, tmp_path, {"diary.txt": STORY.encode()})
    page.get_by_role("button", name="More").click()
    page.get_by_text("Model: ").click()
    full = {"message": "The disk is full.", "field": None}
    page.route("**/plan", lambda route: route.fulfill(status=507, json=full), times=1)
    page.get_by_label("num layers").fill("2")
    page.get_by_label("num layers").press("Tab")
    page.get_by_text("Nothing new can be saved. Free some space.").wait_for()

    page.route("**/api/runs", lambda route: route.fulfill(status=201, json={"name": "diary"}))
    page.get_by_role("button", name="Start learning").click()
    page.wait_for_url("**/run/diary")
    (text,) = (tmp_path / "texts").iterdir()
    assert json.loads((text / "settings.json").read_text()) == {"num_layers": 2}


def test_names_and_texts_with_html_in_them_are_text(page: Any, tmp_path: Path) -> None:
    drop(page, tmp_path, {f"{EVIL}.txt": f"{EVIL}\n{STORY}".encode()})
    page.get_by_role("region", name="As the model sees it").get_by_text(EVIL).wait_for()
    assert page.locator("main img").count() == 0
    page.get_by_role("button", name=f"Remove {EVIL}.txt").wait_for()


def test_a_text_that_is_deleted_in_one_tab_is_gone_in_the_other(page: Any, tmp_path: Path) -> None:
    drop(page, tmp_path, {"diary.txt": STORY.encode()})
    other = page.context.new_page()
    other.goto(page.url)
    other.get_by_role("button", name="Delete this text").click()
    other.get_by_role("dialog").get_by_role("button", name="Delete").click()
    other.wait_for_url("**/")
    page.get_by_role("heading", name="This text is not here any more.").wait_for()
    assert list((tmp_path / "texts").iterdir()) == []


def test_axe_finds_nothing_and_nothing_scrolls_sideways(page: Any, tmp_path: Path) -> None:
    drop(page, tmp_path, {"a-very-long-name-" * 8 + ".txt": STORY.encode(), "photo.jpg": PHOTO})
    page.locator(".sure").wait_for()
    page.get_by_role("button", name="More").click()
    page.get_by_text("Training: ").click()

    for theme in ("Dark", "Light"):
        for width in (390, 800, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            two_frames(page)
            assert not is_too_wide(page)
        assert axe_finds(page) == []
        page.get_by_role("button", name=theme).click()


def test_what_looks_alike_beside_counting_is_told_with_more_digits(
    page: Any, program: Opened, tmp_path: Path
) -> None:
    def answer(route: Any) -> None:
        told = route.fetch().json()
        for stop in (told["plans"] or {}).get("stops", []):
            stop |= {"letters": 1.29, "counting_letters": 1.31}
        route.fulfill(json=told)

    page.route("**/api/texts/*", answer)
    drop(page, tmp_path, {"diary.txt": STORY.encode()})
    page.get_by_text("As sure as choosing among 1.29 letters.").wait_for()
    page.get_by_text("Counting alone chooses among 1.31 letters.").wait_for()
