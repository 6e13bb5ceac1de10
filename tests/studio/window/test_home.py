"""The home screen in a browser: how a text comes in, and all that is there."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from minigpt.runs.folder import JOB, JOURNAL
from minigpt.studio.texts import upload
from minigpt.studio.texts.work import TextWork
from minigpt.studio.workspace import Workspace
from tests.browser import axe_finds
from tests.hostile import EVIL_NAME as EVIL
from tests.studio.by_hand import TEXT, a_job, make_run

from .keys import Keys
from .opened import Opened
from .pages import STORY, drop, is_too_wide

pytestmark = pytest.mark.studio


def _finished(runs: Path, name: str, **text: Any) -> None:
    """A run that has ended."""
    job = a_job(text={**TEXT, **text})
    make_run(runs, name, job=job, phase="training", how="finished", steps=2, evaluations=2)


def _card(page: Any, name: str) -> Any:
    return page.locator("li.model").filter(has=page.get_by_role("heading", name=name, exact=True))


def _choose(page: Any, name: str, item: str) -> None:
    """Choose an item of the menu of a model."""
    page.get_by_role("button", name=f"More about {name}", exact=True).click()
    _card(page, name).get_by_role("button", name=item).click()


# How a text comes in


def all_asked(page: Any) -> list[str]:
    """The kinds of all questions that the browser asks from now on; each is answered with yes."""
    asked: list[str] = []

    def answer(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", answer)
    page.locator("h1").click()  # a browser asks only where somebody has pressed something
    return asked


def test_a_file_is_taken_in_without_a_question(page: Any) -> None:
    asked = all_asked(page)
    page.locator("input[type=file]").first.set_input_files(
        {"name": "diary.txt", "mimeType": "text/plain", "buffer": STORY.encode()}
    )
    page.wait_for_url("**/text/*")
    assert asked == []


def press_space_to_choose(page: Any, file: Path) -> None:
    """Open the dialog for files by the keyboard, and choose this file. Chromium without a screen
    overlooks the key once in a hundred times, on a busy machine."""
    from playwright.sync_api import TimeoutError as TookTooLong

    for last in (False, False, True):
        try:
            with page.expect_file_chooser(timeout=10_000) as chooser:
                page.keyboard.press("Space")
        except TookTooLong:
            if last:
                raise
        else:
            chooser.value.set_files(file)
            return


def test_by_keyboard_alone_from_the_first_control_to_start_learning(
    page: Any, tmp_path: Path
) -> None:
    text = tmp_path / "diary.txt"
    text.write_text(STORY)
    page.get_by_text("Your models will appear here.").wait_for()
    keys = Keys(page)

    page.locator("main").focus()
    keys.press("Tab")
    assert page.evaluate("document.activeElement.type") == "file"
    press_space_to_choose(page, text)

    page.get_by_role("button", name="Start learning").wait_for()
    keys.tab_to("input[name=minutes]")
    for _ in range(4):
        keys.press("ArrowLeft")
    assert page.get_by_label("½ min").is_checked()
    keys.tab_to("#name")
    keys.press("Control+A")
    keys.type("my diary")
    keys.tab_to("button[type=submit]")
    keys.press("Enter")

    page.wait_for_url("**/run/my%20diary")
    job = json.loads((tmp_path / "runs/my diary/journal/job.json").read_text())
    assert (job["minutes"], job["text"]["name"]) == (0.5, "diary")


def test_a_text_is_pasted_by_its_button_and_anywhere_by_keys(page: Any) -> None:
    page.get_by_role("button", name="Paste text").click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_label("Your text").evaluate("e => e === document.activeElement")
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")

    page.evaluate(
        """text => {
            const clipboardData = new DataTransfer();
            clipboardData.setData("text/plain", text);
            const made = new ClipboardEvent("paste", { clipboardData, bubbles: true });
            document.body.dispatchEvent(made);
        }""",
        STORY,
    )
    assert dialog.get_by_label("Your text").input_value() == STORY
    dialog.get_by_role("button", name="Use this text").click()
    page.wait_for_url("**/text/*")
    page.get_by_role("heading", level=1, name=" ".join(STORY.split()[:4])).wait_for()


def test_a_text_that_was_typed_stays_in_its_dialog_until_it_has_come(
    page: Any, tmp_path: Path
) -> None:
    coming: list[Any] = []

    def hold(route: Any) -> None:
        coming.append(route)

    page.route("**/files?name=one.txt", hold)
    (tmp_path / "one.txt").write_text(STORY)
    page.get_by_label("Choose files").set_input_files(tmp_path / "one.txt")
    page.get_by_text("Copying one.txt").wait_for()
    page.get_by_role("button", name="Paste text").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Your text").fill(STORY)
    use = dialog.get_by_role("button", name="Use this text")
    use.click()
    dialog.get_by_text("Other files are on their way.").wait_for()
    coming[0].continue_()
    page.get_by_text("Copying one.txt").wait_for(state="hidden")

    full = {"message": "The disk is full.", "field": None}
    page.route("**/files?name=*", lambda route: route.fulfill(status=507, json=full), times=1)
    use.click()
    dialog.get_by_text("Nothing new can be saved. Free some space.").wait_for()
    use.click()
    page.get_by_role("heading", level=1, name=" ".join(STORY.split()[:4])).wait_for()


def test_files_are_dropped_anywhere(page: Any) -> None:
    page.get_by_role("heading", name="Drop a text here").wait_for()
    page.evaluate(
        """text => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File([text], "one.txt"));
            dataTransfer.items.add(new File([text], "two.txt"));
            const options = { dataTransfer, bubbles: true, cancelable: true };
            document.body.dispatchEvent(new DragEvent("drop", options));
        }""",
        STORY,
    )
    page.wait_for_url("**/text/*")
    page.get_by_role("button", name="Remove one.txt").wait_for()
    page.get_by_role("button", name="Remove two.txt").wait_for()


def test_the_fairy_tales_are_taken_with_one_press(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TextWork, "keep_going", lambda *_: None)  # they are long
    page.get_by_role("button", name="Use fairy tales").click()
    page.get_by_role("heading", level=1, name="tales").wait_for()


def test_of_an_upload_that_is_cancelled_nothing_stays(page: Any, tmp_path: Path) -> None:
    page.route("**/files?name=two.txt", lambda route: None)  # it never comes
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text(STORY)
    page.get_by_label("Choose files").set_input_files([tmp_path / "one.txt", tmp_path / "two.txt"])
    page.get_by_text("Copying 2 of 2, two.txt: 50%").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Copying 2 of 2").wait_for(state="hidden")
    assert list((tmp_path / "texts").iterdir()) == []


def test_a_file_that_cannot_be_opened_is_named_and_the_others_are_kept(
    page: Any, tmp_path: Path
) -> None:
    page.route("**/files?name=one.txt", lambda route: route.abort())
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text(STORY)
    page.get_by_label("Choose files").set_input_files([tmp_path / "one.txt", tmp_path / "two.txt"])
    page.get_by_text("could not be opened on this computer: one.txt").wait_for()
    page.get_by_role("button", name="Go on without them").click()
    page.get_by_role("button", name="Remove two.txt").wait_for()
    assert page.get_by_role("button", name="Remove one.txt").count() == 0


def test_each_file_that_is_refused_is_named_with_the_reason_and_the_others_are_kept(
    page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "_MOST_BYTES", 2 * len(STORY.encode()))
    large = [f"large{i}.txt" for i in range(10)]
    for name in large:
        (tmp_path / name).write_text(STORY * 3)
    for name in ("one.txt", "two.txt", "three.txt"):
        (tmp_path / name).write_text(STORY)
    files = [tmp_path / name for name in (*large, "one.txt", "two.txt", "three.txt")]
    page.get_by_label("Choose files").set_input_files(files)

    page.get_by_text("Not copied: large0.txt, large1.txt").get_by_text("and 3 more").wait_for()
    assert page.get_by_role("alert").locator("p").count() == 1
    page.get_by_role("button", name="Go on without them").click()
    for name in ("one.txt", "two.txt"):
        page.get_by_role("button", name=f"Remove {name}").wait_for()
    assert page.get_by_role("button", name="Remove three.txt").count() == 0


def test_a_folder_is_taken_with_all_that_is_in_it_but_what_is_hidden(
    page: Any, tmp_path: Path
) -> None:
    diary = tmp_path / "diary"
    (diary / "2024").mkdir(parents=True)
    for i in range(30):
        (diary / "2024" / f"{i}.txt").write_text(STORY)
    (diary / ".hidden").write_text("secret")
    page.get_by_label("Choose a folder").set_input_files(diary)
    page.get_by_role("heading", level=1, name="diary").wait_for()
    page.locator("summary").get_by_text("30 files").click()
    page.get_by_role("button", name="Remove diary/2024/7.txt").wait_for()


def test_what_cannot_be_opened_in_a_dropped_folder_is_named_and_the_rest_is_kept(page: Any) -> None:
    page.get_by_role("heading", name="Drop a text here").wait_for()
    page.evaluate(
        """text => {
            const refuse = (_, reject) => reject(new DOMException("locked", "NotReadableError"));
            const folder = (fullPath, readEntries) => ({
                isDirectory: true,
                fullPath,
                createReader: () => ({ readEntries }),
            });
            const file = (fullPath, open) => ({ isFile: true, fullPath, file: open });

            const inside = [
                file("/diary/bad.txt", refuse),
                folder("/diary/2024", refuse),
                file("/diary/good.txt", (resolve) => resolve(new File([text], "good.txt"))),
            ];
            const diary = folder("/diary", (resolve) => resolve(inside.splice(0)));
            const items = [{ webkitGetAsEntry: () => diary }];
            const dataTransfer = { getData: () => "", files: [], items };

            const drop = new Event("drop", { bubbles: true, cancelable: true });
            document.body.dispatchEvent(Object.assign(drop, { dataTransfer }));
        }""",
        STORY,
    )
    named = "could not be opened on this computer: diary/bad.txt, diary/2024"
    page.get_by_text(named).wait_for()
    page.get_by_role("button", name="Go on without them").click()
    page.get_by_role("button", name="Remove diary/good.txt").wait_for()


def test_on_a_full_disk_no_other_file_is_sent(page: Any, tmp_path: Path) -> None:
    answer = {"message": "The disk is full.", "field": None}
    page.route("**/files?name=two.txt", lambda route: route.fulfill(status=507, json=answer))
    files = [tmp_path / name for name in ("one.txt", "two.txt", "three.txt")]
    for file in files:
        file.write_text(STORY)
    page.get_by_label("Choose files").set_input_files(files)
    page.get_by_text("Not copied: two.txt, three.txt").wait_for()
    page.get_by_role("button", name="Go on without them").click()
    page.get_by_role("button", name="Remove one.txt").wait_for()


@pytest.mark.parametrize("refused", ["**/api/texts", "**/files?name=one.txt"])
def test_a_full_disk_is_said(refused: str, page: Any, tmp_path: Path) -> None:
    answer = {"message": "The disk is full.", "field": None}
    page.route(refused, lambda route: route.fulfill(status=507, json=answer))
    (tmp_path / "one.txt").write_text(STORY)
    page.get_by_label("Choose files").set_input_files(tmp_path / "one.txt")
    page.get_by_text("Nothing new can be saved. Free some space.").wait_for()
    assert page.get_by_role("button", name="Go on without them").count() == 0


# What is there


def test_runs_that_come_and_go_are_seen_in_each_tab_without_a_reload(
    page: Any, tmp_path: Path
) -> None:
    page.get_by_text("Your models will appear here.").wait_for()
    other = page.context.new_page()
    other.goto(page.url)
    other.get_by_text("Your models will appear here.").wait_for()

    _finished(tmp_path / "runs", "diary", beginning="It rained")
    make_run(tmp_path / "runs", "novel", phase="training", is_alive=True, steps=2)
    for tab in (page, other):
        _card(tab, "diary").get_by_text("“It rained…”").wait_for()
        _card(tab, "diary").get_by_text("chooses among 4.0 letters, today, done").wait_for()
        _card(tab, "novel").get_by_text("learning").wait_for()
        tab.get_by_role("link", name="Learning: novel").wait_for()

    shutil.rmtree(tmp_path / "runs" / "diary")
    for tab in (page, other):
        _card(tab, "diary").wait_for(state="detached")


def test_a_model_is_renamed_deleted_put_back_and_deleted_for_good(
    page: Any, tmp_path: Path
) -> None:
    _finished(tmp_path / "runs", "diary")
    _choose(page, "diary", "Rename")
    page.get_by_role("dialog").get_by_label("Name").fill("my year")
    page.keyboard.press("Enter")
    _card(page, "my year").get_by_text("done").wait_for()

    _choose(page, "my year", "Delete")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    _choose(page, "my year", "Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Put back my year").click()
    page.get_by_role("button", name="Put back").wait_for(state="detached")
    _card(page, "my year").get_by_text("done").wait_for()

    _choose(page, "my year", "Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Empty").click()
    page.get_by_role("dialog").get_by_role("button", name="Empty").click()
    page.get_by_role("heading", name="Bin", exact=True).wait_for(state="hidden")
    assert Keys(page).is_at("Your models")  # what had the focus is gone
    assert list((tmp_path / "runs").glob("*/journal")) == []


def test_what_becomes_of_a_model_that_waits_is_said_before_it_is_deleted_or_the_studio_closed(
    page: Any, program: Opened
) -> None:
    runs = program.folder / "runs"
    make_run(runs, "learns", job=a_job(), phase="training", is_alive=True)
    make_run(runs, "waits", job=a_job(is_waiting=True, started=None))
    _choose(page, "waits", "Delete")
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("It has learned nothing yet: it leaves the line and cannot be").wait_for()
    dialog.get_by_role("button", name="Cancel").click()

    page.set_viewport_size({"width": 390, "height": 800})
    page.get_by_role("button", name="Close the studio").click()
    sure = page.get_by_role("button", name="Press again to close; learning goes on, the line waits")
    sure.wait_for()
    assert not is_too_wide(page)
    sure.click()
    page.get_by_text("What waits in line starts only when the studio is open.").wait_for()


def test_what_cannot_be_deleted_from_the_bin_is_named(page: Any, program: Opened) -> None:
    bin = Workspace(program.folder).bin
    broken = make_run(bin, "broken", job=a_job())
    (broken / "mine.txt").write_text("mine")
    page.get_by_role("button", name="Put back broken").wait_for()
    (broken / JOURNAL / JOB).write_text("damaged")
    page.get_by_role("button", name="Empty").click()
    page.get_by_role("dialog").get_by_role("button", name="Empty").click()
    page.get_by_text("Not deleted: runs/.bin/broken is not a run.").wait_for()
    assert broken.exists()


def test_a_model_is_downloaded_without_a_question_while_files_are_on_their_way(
    page: Any, tmp_path: Path
) -> None:
    asked = all_asked(page)
    _finished(tmp_path / "runs", "diary")
    page.route("**/files?name=one.txt", lambda route: None)  # it never comes
    (tmp_path / "one.txt").write_text(STORY)
    page.get_by_label("Choose files").set_input_files(tmp_path / "one.txt")
    page.get_by_text("Copying one.txt").wait_for()
    page.get_by_role("button", name="More about diary").click()
    with page.expect_download() as download:
        _card(page, "diary").get_by_role("button", name="Download").click()
    assert "diary" in download.value.suggested_filename
    assert asked == []


def test_a_text_that_was_dropped_and_left_is_found_again(page: Any, tmp_path: Path) -> None:
    drop(page, tmp_path, {"notes.txt": STORY.encode()})
    page.get_by_role("link", name="minigpt studio").click()
    page.get_by_role("heading", name="Not learned yet").wait_for()
    _card(page, "notes").get_by_text("ready to be learned").wait_for()
    page.get_by_role("link", name="Open notes").click()
    page.get_by_role("heading", level=1, name="notes").wait_for()


def test_names_and_beginnings_with_html_in_them_are_text(page: Any, tmp_path: Path) -> None:
    _finished(tmp_path / "runs", EVIL, beginning=EVIL)
    _card(page, EVIL).get_by_text(f"“{EVIL}…”").wait_for()
    page.get_by_role("button", name=f"More about {EVIL}").click()
    _card(page, EVIL).get_by_role("button", name="Delete").click()
    page.get_by_role("heading", name=f"Delete {EVIL}?").wait_for()
    assert page.locator("img").count() == 0


# The window


def test_a_studio_that_is_killed_is_missed_and_an_old_tab_takes_the_new_login(
    page: Any, program: Opened, tmp_path: Path
) -> None:
    _finished(tmp_path / "runs", "diary")
    _card(page, "diary").wait_for()
    program.kill()
    page.get_by_text("The studio is closed. Learning goes on.").wait_for()
    page.get_by_role("button", name="Use fairy tales").click()
    page.get_by_text("The studio does not answer.").wait_for()

    program.start()
    page.get_by_text("This window is not logged in.").wait_for()
    page.context.new_page().goto(program.address)
    _card(page, "diary").wait_for()


def test_axe_finds_nothing_and_nothing_scrolls_sideways(page: Any, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    _finished(runs, "a-very-long-name-" * 4, beginning="Donaudampfschifffahrt" * 9)
    make_run(runs, "novel", phase="training", is_alive=True, steps=2)
    make_run(runs, "waits", job=a_job(is_waiting=True))
    make_run(runs, "poems", phase="training", steps=2, has_checkpoint=True)
    _card(page, "poems").wait_for()
    _choose(page, "poems", "Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Put back poems").wait_for()

    for theme in ("Dark", "Light"):
        for width in (390, 800, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            page.get_by_role("button", name="More about novel").click()
            assert not is_too_wide(page)
            if width == 390:
                assert axe_finds(page) == []
            page.keyboard.press("Escape")
        page.get_by_role("button", name=theme).click()

    page.get_by_role("button", name="Paste text").click()
    assert axe_finds(page) == []


def test_the_window_follows_the_system_until_a_theme_is_chosen(page: Any) -> None:
    for system in ("dark", "light"):
        page.emulate_media(color_scheme=system)
        page.locator(f"html[data-theme={system}]").wait_for()
    page.get_by_role("button", name="Dark").click()
    page.reload()
    page.get_by_role("button", name="Light").wait_for()
    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_a_training_that_somebody_cancelled_has_not_failed(page: Any, program: Opened) -> None:
    make_run(program.folder / "runs", job=a_job(), phase="planning", how="stopped")
    _card(page, "diary").get_by_text("today, stopped before it had learned anything").wait_for()
