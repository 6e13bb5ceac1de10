"""A run that is done: its page, its files, what it copies, and that all of it can be deleted."""

import hashlib
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minigpt.studio.downloads import Downloads
from minigpt.system.json_objects import read_lines
from tests.browser import axe_finds, two_frames

from .keys import Keys
from .learners import ask_for, letters_of, rows, shown, until, wait_for_end
from .opened import Opened
from .pages import is_too_wide

pytestmark = pytest.mark.studio


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a studio in which one text was learned."""
    folder = tmp_path_factory.mktemp("learned")
    ask_for(folder, "diary", steps=60)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("MINIGPT_CACHE", str(folder / "cache"))
        studio = Opened(folder)
        wait_for_end(folder / "runs" / "diary")
        studio.kill()
    return folder


@pytest.fixture
def folder(tmp_path: Path, learned: Path) -> Path:
    """A copy of what was learned."""
    shutil.copytree(learned, tmp_path / "studio", symlinks=True)
    return tmp_path / "studio"


@pytest.fixture(scope="module")
def pages() -> dict[tuple[str, ...], bytes]:
    """The pages that were made, by the words that asked for them."""
    return {}


@pytest.fixture(autouse=True)
def page_is_made_once(pages: dict[tuple[str, ...], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of the run, of which each test has a copy, is the same for all until it learns
    more."""
    make = Downloads._child

    async def make_or_copy(making: Downloads, *words: str) -> bytes:
        if words[0] != "page":
            return await make(making, *words)
        out = Path(words[1].removeprefix("--out="))
        weights = making._workspace.root / words[-1] / "model.safetensors"
        wanted = (hashlib.sha256(weights.read_bytes()).hexdigest(), *words[2:])
        if wanted not in pages:
            await make(making, *words)
            pages[wanted] = out.read_bytes()
        out.write_bytes(pages[wanted])
        return b""

    monkeypatch.setattr(Downloads, "_child", make_or_copy)


@pytest.fixture
def done(page: Any, program: Opened) -> Any:
    """The window of the run."""
    page.goto(f"{program.url}/run/diary")
    page.get_by_text(re.compile(r"Done after \d+:\d\d\.")).wait_for()
    return page


def test_the_page_opens_in_a_frame_without_rights_and_writes(done: Any, program: Opened) -> None:
    frame = done.frame_locator(".page iframe")
    frame.get_by_role("button", name="Write", exact=True).wait_for()
    assert "allow-same-origin" not in done.locator(".page iframe").get_attribute("sandbox")

    inside = next(one for one in done.frames if one.url.startswith(f"{program.url}/t/"))
    text = inside.evaluate(
        "(async () => { await minigpt.ready; return minigpt.generate('The', 5) })()"
    )
    assert text is not None
    assert inside.evaluate("origin") == "null"
    assert frame.get_by_role("button", name="Copy link").count() == 0  # it would open nothing


def test_the_page_has_the_theme_of_the_window_and_no_button_of_its_own(done: Any) -> None:
    frame = done.frame_locator(".page iframe")
    for name in ("Dark", "Light"):
        done.get_by_role("button", name=name).click()
        frame.locator(f"html[data-theme={name.lower()}] #title").wait_for()
    assert not frame.locator("#theme").is_visible()


def test_it_says_whether_it_is_better_than_counting(done: Any, program: Opened) -> None:
    run = program.folder / "runs" / "diary"
    evaluated = rows(run, "metrics.jsonl")
    best = letters_of(run, min(row["val_bits_per_byte"] for row in evaluated))
    counting = letters_of(run, evaluated[-1]["counting_bits_per_byte"])
    assert f"chooses among {best} letters, a table of counts among {counting}" in shown(
        done, ".verdict"
    )


def test_axe_finds_nothing_with_everything_open(done: Any) -> None:
    for name in ("Take it elsewhere", "Use it from programs", "Childhood", "Delete all"):
        done.get_by_role("button", name=name).click()
    done.get_by_role("button", name="Delete all of it").wait_for()
    done.get_by_role("heading", name="What it wrote last").wait_for()
    for width in (390, 800, 1280):
        done.set_viewport_size({"width": width, "height": 800})
        two_frames(done)
        assert not is_too_wide(done)
    for theme in ("Dark", "Light"):
        assert axe_finds(done) == []
        done.get_by_role("button", name=theme).click()
    command = done.locator(".command pre").first.inner_text()
    assert command == "minigpt serve runs/diary"


def test_on_a_phone_the_page_opens_over_the_whole_window(page: Any, program: Opened) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{program.url}/run/diary")
    page.get_by_role("button", name="Write, and see it think").click()
    page.frame_locator(".page iframe").get_by_role("button", name="Write", exact=True).wait_for()
    page.get_by_role("button", name="Close the page").press("Enter")
    page.get_by_role("button", name="Save as one file").wait_for()
    assert page.evaluate("document.activeElement.id") == "see-it-think"


def test_it_is_saved_as_one_file_and_taken_elsewhere(done: Any, tmp_path: Path) -> None:
    with done.expect_download() as saved:
        done.get_by_role("button", name="Save as one file").click()
    assert saved.value.suggested_filename == "diary.html"
    saved.value.save_as(tmp_path / "diary.html")
    assert b"<html" in (tmp_path / "diary.html").read_bytes()

    done.get_by_role("button", name="Take it elsewhere").click()
    with done.expect_download() as saved:
        done.get_by_role("button", name="For Ollama and llama.cpp").click()
    saved.value.save_as(tmp_path / "gguf.zip")
    with zipfile.ZipFile(tmp_path / "gguf.zip") as archive:
        assert any(name.endswith(".gguf") for name in archive.namelist())


def test_how_much_it_copies_is_found_out_when_somebody_asks(done: Any) -> None:
    ask = done.get_by_role("button", name=re.compile("Does it copy|Measure again"))
    ask.click()
    said = done.get_by_text(
        re.compile(r"Copied: \d+\.\d%. Of a page of yours that it never saw: \d+\.\d%")
    )
    said.wait_for()
    done.reload()
    said.wait_for()


def test_it_learns_more_minutes(done: Any, program: Opened) -> None:
    run = program.folder / "runs" / "diary"
    before = rows(run, "steps.jsonl")[-1]["step"]
    done.get_by_role("button", name="Learn 5 minutes more").click()
    done.get_by_role("button", name="Stop and keep").wait_for()
    until(lambda: rows(run, "steps.jsonl")[-1]["step"] > before)
    assert "Expected" in shown(done, ".legend")
    done.get_by_role("button", name="Stop and keep").click()
    done.locator(".head").get_by_text("Nothing is lost.").wait_for()


def test_everything_that_came_from_the_text_is_deleted(done: Any, program: Opened) -> None:
    done.get_by_role("button", name="Delete all that came from my text").click()
    parts = done.locator(".actions .part li")
    done.get_by_text("The model diary").wait_for()
    assert any("copy of the text story" in part for part in parts.all_inner_texts())
    sure = done.get_by_role("button", name="Delete all of it")
    bottom = sure.evaluate("e => e.getBoundingClientRect().bottom")
    assert bottom <= done.evaluate("innerHeight")  # it has come into view

    shutil.copytree(program.folder / "runs/diary", program.folder / "runs/later")
    sure.click()
    done.get_by_text("This list has changed, so nothing is deleted yet.").wait_for()
    done.get_by_text("The model later").wait_for()
    sure.click()
    done.wait_for_url(f"{program.url}/")
    done.get_by_text("Deleted.").wait_for()
    done.reload()
    done.get_by_role("heading", name="Your models").wait_for()
    assert done.get_by_text("Deleted.").count() == 0
    left = [path for path in program.folder.rglob("*") if path.is_file()]
    of_the_studio = [path for path in left if path.name.startswith(".studio")]
    locks = [path for path in left if path.suffix == ".lock" and path.stat().st_size == 0]
    assert {*left} - {*of_the_studio, *locks} == set()


def test_its_childhood_is_that_of_the_file(done: Any, program: Opened) -> None:
    texts = list(read_lines(program.folder / "runs/diary/journal/samples.jsonl"))
    done.get_by_role("button", name="Childhood").click()
    done.get_by_role("button", name="Birth").click()
    assert shown(done, ".writes .written") == " ".join(texts[0]["text"].split())
    done.get_by_role("button", name="Now").click()
    assert shown(done, ".writes .written") == " ".join(texts[-1]["text"].split())


def everything_spoken(page: Any) -> Callable[[], list[str]]:
    """A function that returns all that is spoken from now on: an evaluation may follow at once."""
    page.evaluate(
        """() => {
            window.heard = [];
            const spoken = document.querySelector("#spoken");
            const note = () => window.heard.push(spoken.textContent);
            new MutationObserver(note).observe(spoken, { childList: true, characterData: true });
        }"""
    )
    return lambda: list(page.evaluate("window.heard"))


def test_by_keyboard_alone_from_done_to_deleted(done: Any, program: Opened) -> None:
    keys = Keys(done)
    heading = done.locator("h1")

    # The page is in front of the buttons: it is used, and it can be skipped.
    frame = done.frame_locator(".page iframe")
    frame.get_by_role("button", name="Write", exact=True).wait_for()
    inside = next(one for one in done.frames if one.url.startswith(f"{program.url}/t/"))
    openings = inside.locator(".opening")
    if openings.count() > 0:  # it writes on from the first one, until somebody does something
        until(lambda: inside.locator("#text").input_value() != openings.first.text_content())
    keys.tab_to("Write", inside=inside)
    before = inside.locator("#text").input_value()
    keys.press("Enter")
    until(lambda: inside.locator("#text").input_value() != before)
    keys.tab_to("[data-key=Chances]", inside=inside)
    keys.press("ArrowLeft")
    keys.press("Enter")
    inside.locator(".box[aria-current=true]:not([data-view=draw])").first.wait_for()
    keys.tab_to("Close the studio", back=True)
    keys.press("Tab")
    assert keys.is_at("Open its text")
    keys.press("Tab")
    assert keys.is_at("Skip the page")
    keys.press("Enter")
    keys.press("Tab")
    assert keys.is_at("Learn 5 minutes more")

    # What opens stays where it was opened.
    for name in ("Take it elsewhere", "Use it from programs", "Childhood"):
        keys.tab_to(name)
        keys.press("Space")
        assert keys.is_at(name)
        assert keys.at().count('aria-expanded="true"') == 1
    with done.expect_download():
        keys.tab_to("Save as one file", back=True)
        keys.press("Enter")
    done.get_by_text("Downloads the file").wait_for(state="hidden")
    assert keys.is_at("Save as one file")

    # It learns more, and is watched meanwhile.
    heard = everything_spoken(done)
    keys.tab_to("Learn 5 minutes more", back=True)
    keys.press("Enter")
    done.get_by_role("button", name="Stop and keep").wait_for()
    until(lambda: any("Going on from" in words for words in heard()))
    assert heading.evaluate("e => e === document.activeElement")
    keys.tab_to("Birth")
    keys.press("Enter")
    keys.tab_to("[type=range]")
    before = shown(done, ".writes .written")
    keys.press("End")
    assert shown(done, ".writes .written") != before
    keys.tab_to("The same in numbers")
    keys.press("Enter")
    done.locator(".curve table").wait_for()
    keys.press("Tab")
    assert keys.is_at("[role=region]")
    done.evaluate("document.activeElement.dataset.isOld = true")
    until(lambda: "old" not in keys.at())
    assert keys.is_at("[role=region]")  # though it was made anew
    done.locator(".try button.main:enabled").wait_for()
    heard = everything_spoken(done)
    keys.tab_to("How the text begins")
    keys.press("Control+A")
    keys.type("The old king")
    keys.press("Enter")
    until(lambda: any(re.match("The old king.{20}", words, re.S) for words in heard()))
    keys.tab_to("select[aria-label=Head]")
    keys.press("ArrowDown")
    done.get_by_text("head 1.1 looks most at").wait_for()

    keys.tab_to("Stop and keep", back=True)
    keys.press("Enter")
    done.locator("#spoken").get_by_text("Nothing is lost.").wait_for()
    assert heading.evaluate("e => e === document.activeElement")
    keys.press("Tab")
    assert keys.is_at("Go on")

    # All of it is deleted.
    keys.tab_to("Delete all that came from my text")
    keys.press("Enter")
    done.get_by_text("The model diary").wait_for()
    keys.press("Tab")
    assert keys.is_at("Delete all of it")
    keys.press("Enter")
    done.wait_for_url(f"{program.url}/")
    done.get_by_text("Deleted.").wait_for()
    assert keys.is_at("Deleted.")
    assert not (program.folder / "runs/diary").exists()
