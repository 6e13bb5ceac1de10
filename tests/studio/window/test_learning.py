"""A run while it learns: watched, looked back at, written with, stopped and gone on with."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from minigpt.system.json_objects import lines_of, read_object
from tests.browser import axe_finds, two_frames

from ..by_hand import BEGAN, TEXT, a_job, make_run, write_config, write_weights
from ..dropped import dropped
from .learners import LONG, ask_for, letters_of, rows, shown, until, wait_for_end
from .opened import Opened
from .pages import STORY, is_too_wide

pytestmark = pytest.mark.studio

SAMPLES = "journal/samples.jsonl"


def evaluations_of(page: Any) -> int:
    return int(page.locator(".curve circle.validation").count() - 1)  # one is in the legend


def said_of_the_last_evaluation(page: Any, run: Path) -> str:
    """What the window says of the last evaluation in its curve, as the files have it."""
    evaluation = rows(run, "metrics.jsonl")[evaluations_of(page) - 1]
    letters = letters_of(run, evaluation["val_bits_per_byte"])
    return f"Unseen pages: chooses among {letters} letters"


def test_a_training_is_watched_written_with_stopped_and_gone_on_with(
    page: Any, program: Opened
) -> None:
    run = ask_for(program.folder, "diary", LONG)
    page.goto(f"{program.url}/run/diary")
    page.get_by_role("heading", name="What it writes now").wait_for()
    head = page.locator(".head")
    stop = head.get_by_role("button", name="Stop and keep")
    stop.wait_for()

    # What is on the screen is what the files say.
    page.get_by_role("slider").wait_for()  # there are two texts
    page.locator(".curve .now").get_by_text("Unseen pages").wait_for()
    first = rows(run, SAMPLES)[0]
    assert shown(page, ".writes .written b") == " ".join(first["beginning"].split())
    page.get_by_text(re.compile(r"\d+ steps")).wait_for()
    until(lambda: shown(page, ".curve .now") == said_of_the_last_evaluation(page, run))
    assert axe_finds(page) == []

    # Somebody who looks back is left alone by newer texts.
    page.get_by_role("button", name="Birth").click()
    assert "before its first step" in shown(page, ".moment")
    before = shown(page, ".writes .written")
    count = len(rows(run, SAMPLES))
    until(lambda: len(rows(run, SAMPLES)) > count + 1)
    page.get_by_text("newer text").wait_for()
    assert shown(page, ".writes .written") == before
    page.get_by_role("button", name="Now").click()
    page.get_by_role("heading", name="What it writes now").wait_for()

    # It writes with the weights that were saved last.
    page.get_by_label("How the text begins").fill("The old king")
    page.get_by_role("button", name="Write").click()
    page.locator(".try .written").filter(has_text=re.compile("^The old king.{20}", re.S)).wait_for()

    # The studio is killed: learning goes on, the values stay, and it comes back by itself.
    program.kill()
    page.get_by_text("The studio is closed. Learning goes on.").wait_for()
    assert shown(page, ".curve .now").startswith("Unseen pages")
    steps = len(rows(run, "steps.jsonl"))
    until(lambda: len(rows(run, "steps.jsonl")) > steps)
    program.start()
    page.goto(program.address)
    page.get_by_role("button", name="Close the studio").wait_for()
    page.goto(f"{program.url}/run/diary")

    stop.click()
    head.get_by_text(re.compile(r"Stopped after \d+:\d\d\. Nothing is lost\.")).wait_for()
    page.reload()
    head.get_by_text(re.compile(r"Stopped after \d+:\d\d\. Nothing is lost\.")).wait_for()
    assert axe_finds(page) == []
    step = rows(run, "steps.jsonl")[-1]["step"]

    page.get_by_role("button", name="Go on").click()
    head.get_by_text(re.compile(r"Going on from \d+:\d\d")).wait_for()
    until(lambda: rows(run, "steps.jsonl")[-1]["step"] > step)
    stop.click()
    page.locator(".head").get_by_text("Nothing is lost.").wait_for()


# States that are rare, of runs written by hand

OUT_OF_MEMORY = "out of memory: 9 GB were asked for"
STATES: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "waiting": (
        {"job": a_job(is_waiting=True, started=None)},
        "next in line",
        ["Leave the line"],
    ),
    "reading": (
        {"job": a_job(), "phase": "reading", "is_alive": True},
        "Reading diary",
        ["Cancel"],
    ),
    "measuring": (
        {"job": a_job(), "phase": "planning", "is_alive": True},
        "Measuring, and choosing the settings: a few seconds",
        ["Cancel"],
    ),
    "stopping": (
        {
            "job": a_job(stop="stop"),
            "phase": "training",
            "steps": 3,
            "is_alive": True,
            "stop": "stop",
        },
        "Saving what it has learned",
        [],
    ),
    "died": (
        {"job": a_job(), "phase": "training", "steps": 3, "evaluations": 1, "has_checkpoint": True}
        | {"log": "Killed\n"},
        "Ended unexpectedly. At most 30 seconds are lost.",
        ["Go on", "Details"],
    ),
    "failed": (
        {"job": a_job(), "phase": "tokens"}
        | {"how": "failed", "problem": {"kind": "memory", "message": OUT_OF_MEMORY}},
        "There was not enough memory.",
        ["Try again", "Details"],
    ),
    "cancelled": (
        {"job": a_job(), "phase": "planning", "how": "stopped"},
        "It was stopped before it had learned anything.",
        ["Try again"],
    ),
    "stopped": (
        {"job": a_job(), "phase": "training", "steps": 3, "has_checkpoint": True}
        | {"evaluations": 1, "how": "stopped"},
        "Stopped after 0:30. Nothing is lost.",
        ["Go on", "Write"],
    ),
    "stopped by a full disk": (
        {"job": a_job(), "phase": "training", "steps": 3, "has_checkpoint": True, "evaluations": 1}
        | {"how": "failed", "problem": {"kind": "disk_full", "message": "no space left"}},
        "The disk was full. Free some space.",
        ["Go on", "Write", "Details"],
    ),
    "done, and could not go on": (
        {"job": a_job(), "phase": "training", "steps": 3, "has_checkpoint": True, "evaluations": 1}
        | {"how": "finished", "problem": {"kind": "text_changed", "message": "another text"}},
        "The text has changed since.",
        ["Details"],
    ),
}


@pytest.mark.parametrize("state", STATES)
def test_each_state_has_its_words_and_buttons_and_a_reload_shows_the_same(
    state: str, page: Any, program: Opened
) -> None:
    made, words, buttons = STATES[state]
    if state == "waiting":  # behind one that learns
        make_run(program.folder / "runs", "busy", job=a_job(), phase="training", is_alive=True)
    make_run(program.folder / "runs", **made)
    page.goto(f"{program.url}/run/diary")
    page.locator(".head").get_by_text(words).wait_for()
    page.reload()
    page.locator(".head").get_by_text(words).wait_for()
    assert page.locator(".head button").all_inner_texts() == buttons
    for width in (1280, 800, 390):
        page.set_viewport_size({"width": width, "height": 800})
        two_frames(page)
        assert not is_too_wide(page)
        smallest = page.evaluate(
            "Math.min(...[...document.querySelectorAll('main button')]"
            ".filter((b) => b.offsetHeight).map((b) => b.getBoundingClientRect().height), 99)"
        )
        assert smallest >= 44
    assert axe_finds(page) == []


def test_a_model_from_elsewhere_offers_nothing_that_it_cannot_do(
    page: Any, program: Opened
) -> None:
    """It has no checkpoint, and no text of its childhood; here on Windows."""
    runs = program.folder / "runs"
    run = make_run(runs, "my novel", phase="training", steps=3, evaluations=1, how="finished")
    (run / SAMPLES).unlink()
    (evaluated,) = rows(run, "metrics.jsonl")
    del evaluated["counting_bits_per_byte"]
    (run / "metrics.jsonl").write_text(lines_of([evaluated]))

    page.add_init_script(
        "Object.defineProperty(navigator, 'userAgent', { get: () => 'Windows NT 10.0' })"
    )
    page.set_viewport_size({"width": 390, "height": 800})  # where no page is made at once
    page.goto(f"{program.url}/run/my novel")
    page.get_by_role("button", name="Childhood").click()
    assert shown(page, ".writes .written") == "There is no text from the time when it learned."
    assert not page.get_by_role("button", name="Learn 5 minutes more").is_visible()
    page.get_by_text("The same in numbers").click()
    assert "" in page.locator(".curve tbody tr").last.locator("th, td").all_inner_texts()
    assert "NaN" not in page.locator("main").inner_text()
    page.get_by_role("button", name="Use it from programs").click()
    serve, ask = page.locator(".command pre").all_inner_texts()
    assert serve == 'minigpt serve "runs/my novel"'
    assert '-d "{""model"":""my novel""' in ask

    make_run(runs, "failed", **{**STATES["failed"][0], "job": None})
    page.goto(f"{program.url}/run/failed")
    page.locator(".head").get_by_role("button", name="Details").wait_for()
    assert page.get_by_role("button", name="Try again").count() == 0


def test_whoever_clears_the_line_writes_from_nothing(page: Any, program: Opened) -> None:
    make_run(program.folder / "runs", job=a_job(), phase="training", steps=3, is_alive=True)
    page.goto(f"{program.url}/run/diary")
    line = page.get_by_label("How the text begins")
    line.wait_for()
    assert line.input_value() == TEXT["beginning"]
    line.fill("")
    line.press("Tab")
    make_run(program.folder / "runs", phase="training", steps=4, is_alive=True)
    page.get_by_text("4 steps").wait_for()  # it is drawn anew
    assert line.input_value() == ""


def test_the_text_is_said_to_be_cut_after_all_is_measured(page: Any, program: Opened) -> None:
    said = {"share": 0.4}
    make_run(program.folder / "runs", job=a_job(), phase="tokens", said=said, is_alive=True)
    page.goto(f"{program.url}/run/diary")
    page.locator(".head").get_by_text("Cutting the text into pieces: 40%").wait_for()


def test_a_run_whose_folder_is_gone_is_said_to_be(page: Any, program: Opened) -> None:
    run = make_run(program.folder / "runs", **STATES["stopped"][0])
    page.goto(f"{program.url}/run/diary")
    page.locator(".head").get_by_text("Nothing is lost.").wait_for()
    shutil.rmtree(run)
    page.locator(".head").get_by_text("Somebody moved or deleted this model.").wait_for()
    page.locator(".head").get_by_role("link", name="Home").click()
    page.wait_for_url(f"{program.url}/")


def test_a_training_that_saves_for_long_can_be_stopped_at_once(page: Any, program: Opened) -> None:
    run = make_run(program.folder / "runs", **STATES["stopping"][0])
    page.clock.install()
    page.goto(f"{program.url}/run/diary")
    page.locator(".head").get_by_text("Saving what it has learned").wait_for()
    assert page.get_by_role("button", name="Stop at once").count() == 0
    page.clock.fast_forward(32_000)
    page.get_by_role("button", name="Stop at once").click()
    until(lambda: (run / "journal" / "stop").read_text().strip() == "now")


def test_the_clock_ends_at_the_planned_time(page: Any, program: Opened) -> None:
    job = a_job(started=BEGAN - 140, minutes=2.0)  # at least 200 seconds ago
    make_run(program.folder / "runs", job=job, phase="training", is_alive=True)
    page.goto(f"{program.url}/run/diary")
    page.locator(".head .clock").get_by_text("2:00 of 2:00").wait_for()
    page.locator("#learning").wait_for(state="hidden")  # the screen itself says so
    page.goto(program.url)
    page.locator("#learning", has_text="Learning: diary").wait_for()


def test_a_failure_shows_its_message_and_leads_to_its_text(page: Any, program: Opened) -> None:
    text = dropped(program.folder, {"diary.txt": STORY})
    failed = {**STATES["failed"][0], "job": a_job(text={**TEXT, "id": text.name})}
    make_run(program.folder / "runs", **failed)
    page.goto(f"{program.url}/run/diary")
    page.get_by_role("button", name="Details").press("Enter")
    assert page.locator(".details").inner_text() == OUT_OF_MEMORY
    page.get_by_role("link", name="Open its text").click()
    page.get_by_role("button", name="Start learning").wait_for()


def no_page(route: Any) -> None:
    """Answer that a page cannot be made."""
    route.fulfill(status=409, json={"message": "There is no page.", "field": None})


def test_a_page_over_the_whole_window_leaves_it_where_the_run_learns_on(
    page: Any, program: Opened
) -> None:
    page.route("**/page", no_page)
    runs = program.folder / "runs"
    learned = STATES["stopped"][0]
    run = make_run(runs, **learned)
    page.goto(f"{program.url}/run/diary")
    page.get_by_role("button", name="Write, and see it think").click()
    page.get_by_role("button", name="Close the page").wait_for()
    make_run(runs, **{**learned, "how": None, "is_alive": True})
    page.get_by_role("button", name="Stop and keep").click()
    until((run / "journal" / "stop").exists)


def test_the_page_of_a_model_that_was_copied_without_its_journal_is_made(
    page: Any, program: Opened
) -> None:
    page.route("**/page", no_page)
    run = program.folder / "runs" / "diary"
    run.mkdir(parents=True)
    write_config(run)
    write_weights(run)
    page.goto(f"{program.url}/run/diary")
    page.locator(".page").get_by_text("There is no page.").wait_for()


def test_words_that_are_not_in_the_text_are_underlined_and_the_head_is_chosen(
    page: Any, program: Opened
) -> None:
    run = make_run(program.folder / "runs", **STATES["stopped"][0])
    sample = {
        "beginning": "The rain",
        "text": "The rain had stopped, <b>and</b> the crozzle's gone. Gone!",
        "words": 8,
        "known": 6,
        "unknown": ["crozzle's", "b"],
        "tokens": ["The", "␣rain"],
    }
    first = {**sample, "step": 0, "seconds": 1.0, "looks": [[[0.5, 0.5], [0.9, 0.1]]]}
    last = {**sample, "step": 3, "seconds": 30.0, "looks": [[[0.5, 0.5], [0.2, 0.8]]]}
    (run / SAMPLES).write_text(lines_of([first, last]))

    page.goto(f"{program.url}/run/diary")
    page.get_by_text("6 of 8 words occur in your text.").wait_for()
    assert shown(page, ".writes .written") == sample["text"]
    assert page.locator(".unknown").all_inner_texts() == ["b", "b", "crozzle's"]
    assert "head 1.2 looks most at rain itself: 80%" in shown(page, ".looks")
    page.get_by_label("Head").select_option("1.1")
    assert "head 1.1 looks most at The: 50%" in shown(page, ".looks")


def test_the_curve_has_the_numbers_of_the_files_and_each_line_its_sentence(
    page: Any, program: Opened
) -> None:
    run = make_run(program.folder / "runs", **{**STATES["stopped"][0], "evaluations": 2})
    evaluated = rows(run, "metrics.jsonl")
    evaluated[-1]["val_right"] = 0.4
    (run / "metrics.jsonl").write_text(lines_of(evaluated))
    (run / "plan.json").write_text(json.dumps({"bits_per_byte": 1.25}))

    page.goto(f"{program.url}/run/diary")
    page.get_by_text("Its first guess is right for 4 pieces in 10.").wait_for()
    assert shown(page, ".curve .now") == "Unseen pages: chooses among 4.0 letters"  # 2 bytes each
    legend = shown(page, ".legend")
    assert "Expected: 5.7 letters. Where such runs usually end." in legend
    assert "Counting: 8.0 letters. A table of which piece followed which four." in legend
    page.get_by_text("The same in numbers").click()
    cells = page.locator(".curve tbody tr").last.locator("th, td").all_inner_texts()
    assert cells == ["0:20", "2", "4.0", "16.0", "8.0", "1.000"]


def test_the_first_steps_are_seen_whole_however_far_above_the_expected_end(
    page: Any, program: Opened
) -> None:
    run = make_run(program.folder / "runs", **{**STATES["stopped"][0], "evaluations": 0})
    steps = [{**row, "bits_per_byte": 8.0 / row["step"]} for row in rows(run, "steps.jsonl")]
    (run / "steps.jsonl").write_text(lines_of(steps))
    (run / "plan.json").write_text(json.dumps({"bits_per_byte": 0.4}))
    page.goto(f"{program.url}/run/diary")
    page.locator(".curve line.expected").first.wait_for(state="attached")
    points = page.locator(".curve polyline.training").get_attribute("points").split()
    heights = [float(point.split(",")[1]) for point in points]
    assert len(heights) > 1 and heights[0] < heights[1]


def test_its_childhood_is_played_without_movement_for_those_who_want_none(
    page: Any, program: Opened
) -> None:
    run = make_run(program.folder / "runs", **STATES["stopped"][0])
    texts = [
        {"step": n, "seconds": n, "beginning": "It", "text": f"It {n}", "words": 0, "known": 0}
        for n in range(40)
    ]
    evaluation = {**texts[-1], "is_evaluation": True, "beginning": "", "text": "of an evaluation"}
    (run / SAMPLES).write_text(lines_of([texts[0], evaluation, *texts[1:], evaluation]))
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{program.url}/run/diary")
    page.get_by_role("button", name="Play").click()
    assert shown(page, ".writes .written") == "It 0"
    page.locator(".writes .written").filter(has_text=re.compile("^It 6$")).wait_for()
    page.get_by_role("button", name="Stop", exact=True).click()
    slider = page.get_by_role("slider")
    slider.press("ArrowRight")
    assert shown(page, ".writes .written") == "It 7"
    assert slider.get_attribute("aria-valuetext") == "after 0:07, step 7"


def test_a_training_that_is_stopped_before_its_first_step_keeps_the_studio_whole(
    page: Any, program: Opened
) -> None:
    run = ask_for(program.folder, "diary", LONG)
    until(lambda: read_object(run / "journal/state.json").get("phase") == "training")
    (run / "journal" / "stop").write_text("stop")
    wait_for_end(run)
    page.goto(program.url)
    page.get_by_role("heading", name="diary", exact=True).wait_for()
    page.goto(f"{program.url}/run/diary")
    page.locator(".head").get_by_role("button", name="Go on").wait_for()
