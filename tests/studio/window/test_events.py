"""A window whose stream of events does not come through asks for what happens instead."""

from typing import Any

import pytest

from minigpt.runs.folder import STEPS
from minigpt.system.json_objects import lines_of

from ..by_hand import END, PHASES, a_job, a_step, make_run
from .opened import Opened

pytestmark = pytest.mark.studio

STREAM = "**/api/events?*"
SILENCE = 8_000  # milliseconds, as in events.js
WAYS = {
    "held back": lambda route: None,
    "cut off": lambda route: route.abort(),
    "refused": lambda route: route.fulfill(status=403, body="Blocked."),
}


@pytest.mark.parametrize("way", WAYS)
def test_without_a_stream_the_window_asks_until_events_come(
    way: str, page: Any, program: Opened
) -> None:
    runs = program.folder / "runs"
    job = a_job()
    stopped: dict[str, Any] = {"job": job, "phases": PHASES, "end": END["stopped"]}
    run = make_run(runs, **stopped, steps=3, evaluations=1, has_checkpoint=True)
    questions: list[str] = []
    page.on("request", lambda sent: questions.append(sent.url.partition("/api/")[2]))
    page.clock.install()
    page.route(STREAM, WAYS[way])
    page.goto(f"{program.url}/run/diary")
    page.get_by_text("3 steps").wait_for()
    if way == "held back":
        page.clock.fast_forward(SILENCE)

    (run / STEPS).write_text(lines_of(a_step(n) for n in range(1, 5)))
    page.get_by_text("4 steps").wait_for()
    make_run(runs, "novel", phases=PHASES, alive=0.0)
    page.get_by_role("link", name="Learning: novel").wait_for()
    assert page.locator("#notice").is_hidden()
    assert questions.count("state") > 0

    page.unroute(STREAM)
    with page.expect_response(STREAM):
        page.clock.fast_forward(120_000)
    questions.clear()
    (run / STEPS).write_text(lines_of(a_step(n) for n in range(1, 6)))
    page.get_by_text("5 steps").wait_for()
    assert "state" not in questions
