"""What happens to a computer while a model learns: the studio is killed, the machine sleeps, the
disk is full, a folder is deleted. Nothing is lost, and the window tells what is."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minigpt.studio.trainings.shown import told_of
from minigpt.system.json_objects import read_object
from tests.browser import new_context
from tests.patience import PATIENCE

from ..person import Person
from .learners import LONG, ask_for, rows, until
from .opened import Program, kill_trainings, real_program, trainings_in
from .pages import STORY, drop

pytestmark = pytest.mark.studio


def processes_of(run: Path) -> list[int]:
    """The processes that train a run."""
    trainings = trainings_in(run.parents[1])
    return [process for process in trainings if f" runs/{run.name} " in trainings[process]]


class Frozen:
    """A training that does not go on meanwhile."""

    def __init__(self, run: Path):
        self._run = run
        self._ids: list[int] = []

    def __enter__(self) -> None:
        until(lambda: processes_of(self._run) != [])
        self._ids = processes_of(self._run)
        for process in self._ids:
            os.kill(process, signal.SIGSTOP)

    def __exit__(self, *_: object) -> None:
        for process in self._ids:
            os.kill(process, signal.SIGCONT)


def state_of(run: Path) -> str:
    return str(told_of(run)["state"])


def reach(run: Path, *states: str) -> None:
    """Wait for one of these states; the looks are close, since some pass quickly."""
    end = time.monotonic() + PATIENCE
    while state_of(run) not in states:
        assert time.monotonic() < end, state_of(run)
        time.sleep(0.005)


def seen(page: Any) -> tuple[str, list[str]]:
    """What a window shows of a run: its state, and its buttons."""
    return page.locator("main").get_attribute("data-state"), page.locator(
        ".head button"
    ).all_inner_texts()


def assert_it_comes_back(program: Program, page: Any) -> None:
    """Kill the studio and start it again: a window that stayed open shows the same."""
    before = seen(page)
    program.kill()
    page.get_by_text("The studio is closed. Learning goes on.").wait_for()
    assert seen(page) == before

    program.start()
    new = page.context.new_page()
    new.goto(program.address)
    new.get_by_role("button", name="Close the studio").wait_for()
    new.close()
    page.locator(f"main[data-state={before[0]}]").wait_for()
    assert seen(page) == before


@real_program
def test_a_studio_that_is_killed_in_any_state_of_a_run_shows_the_same_again(
    page: Any, program: Program
) -> None:
    run = ask_for(program.folder, "diary", LONG)
    ask_for(program.folder, "short", steps=20)
    for states in (("reading",), ("reading", "measuring"), ("learning",)):
        reach(run, states[-1])
        with Frozen(run):
            state = state_of(run)
            page.goto(f"{program.url}/run/diary")
            page.locator(f"main[data-state={state}]").wait_for()
            assert_it_comes_back(program, page)

    page.goto(f"{program.url}/run/short")
    page.locator("main[data-state=waiting]").wait_for()
    assert_it_comes_back(program, page)

    until(lambda: len(rows(run, "metrics.jsonl")) > 0)
    page.goto(f"{program.url}/run/diary")
    with Frozen(run):
        page.get_by_role("button", name="Stop and keep").click()
        page.locator("main[data-state=stopping]").wait_for()
        assert_it_comes_back(program, page)
    page.locator("main[data-state=stopped]").wait_for()
    steps = rows(run, "steps.jsonl")[-1]["step"]
    assert_it_comes_back(program, page)
    assert rows(run, "steps.jsonl")[-1]["step"] == steps

    page.goto(f"{program.url}/run/short")  # its turn has come
    page.locator("main[data-state=done]").wait_for()
    assert_it_comes_back(program, page)


def enter(program: Program) -> Person:
    person = Person(int(program.port))
    person.enter(program.address.partition("#")[2])
    return person


@real_program
def test_a_text_that_was_being_read_or_planned_is_read_and_planned_by_the_next_studio(
    program: Program,
) -> None:
    owner = enter(program)
    data = STORY.encode()
    text = owner.post("/api/texts")["id"]
    owner.post(f"/api/texts/{text}/files?name=a.txt", data)
    for path in ("read", "plan"):
        owner.post(f"/api/texts/{text}/{path}")
        program.kill()
        program.start()
        owner = enter(program)
        owner.wait(lambda owner=owner: owner.get(f"/api/texts/{text}")["state"] == "ready")

    def has_plans() -> bool:
        plans = owner.get(f"/api/texts/{text}")["plans"]
        return plans is not None and len(plans["stops"]) == 12

    owner.wait(has_plans)


@real_program
def test_a_computer_that_sleeps_goes_on_where_it_was(page: Any, program: Program) -> None:
    run = ask_for(program.folder, "diary", LONG)
    waits = ask_for(program.folder, "waits", LONG)
    page.goto(f"{program.url}/run/diary")
    page.locator("main[data-state=learning]").wait_for()
    until(lambda: len(rows(run, "steps.jsonl")) > 0)

    with Frozen(run):
        program.process.send_signal(signal.SIGSTOP)
        state = run / "journal/state.json"
        said = read_object(state)
        an_hour_ago = (said["time"] or time.time()) - 3600.0  # it has slept that long
        state.write_text(json.dumps({**said, "time": an_hour_ago}))
        program.process.send_signal(signal.SIGCONT)
    step = rows(run, "steps.jsonl")[-1]["step"]
    until(lambda: rows(run, "steps.jsonl")[-1]["step"] > step)
    assert state_of(waits) == "waiting"  # nobody took the sleeping one for dead
    assert processes_of(waits) == []
    page.locator("main[data-state=learning]").wait_for()
    page.get_by_role("button", name="Stop and keep").click()
    page.locator("main[data-state=stopped]").wait_for()


# A disk that is full


class Disk:
    """A small disk, in memory."""

    def __init__(self, folder: Path):
        self.folder = folder

    def mount(self, *options: str) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "none", str(self.folder)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def fill(self) -> None:
        """Leave no room; if something is written at that moment, it is tried again."""
        until(lambda: self.mount("remount", f"size={shutil.disk_usage(self.folder).used}"))

    def free(self) -> None:
        assert self.mount("remount", "size=2g")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if shutil.which("mount") is None or os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root can make a small disk")
    made = Disk(tmp_path / "disk")
    made.folder.mkdir()
    if not made.mount("size=2g"):
        pytest.skip("no disk can be made here")
    yield made
    subprocess.run(["umount", "--lazy", str(made.folder)], check=False)


def test_a_full_disk_is_said_and_learning_goes_on_and_is_saved_when_there_is_room(
    browser: Any, disk: Disk, tmp_path: Path
) -> None:
    program = Program(disk.folder)
    page = new_context(browser, locale="en-US").new_page()
    page.goto(program.address)
    page.get_by_text("Your models will appear here.").wait_for()
    run = ask_for(disk.folder, "diary", LONG)
    try:
        page.goto(f"{program.url}/run/diary")
        page.locator("main[data-state=learning]").wait_for()
        until(lambda: len(rows(run, "metrics.jsonl")) > 0)
        disk.fill()
        page.get_by_text("Nothing new can be saved. Free some space.").first.wait_for()
        assert page.locator("main").get_attribute("data-state") == "learning"

        page.goto(program.url)
        (tmp_path / "new.txt").write_text(STORY)
        page.get_by_label("Choose files").set_input_files(tmp_path / "new.txt")
        page.get_by_role("alert").get_by_text("Free some space.").wait_for()
        assert len([*(disk.folder / "texts").iterdir()]) == 1

        disk.free()
        page.goto(f"{program.url}/run/diary")
        page.get_by_role("button", name="Stop and keep").click()
        page.locator("main[data-state=stopped]").wait_for()
        page.get_by_text("Nothing new can be saved.").wait_for(state="hidden")
    finally:
        page.context.close()
        program.kill()
        kill_trainings(disk.folder)


# A folder that is deleted beneath it


@real_program
def test_a_text_that_is_deleted_beneath_its_screen_is_missed(
    page: Any, program: Program, tmp_path_factory: pytest.TempPathFactory
) -> None:
    drop(page, tmp_path_factory.mktemp("desk"), {"diary.txt": STORY.encode()})
    page.get_by_role("button", name="Start learning").wait_for()
    for text in (program.folder / "texts").iterdir():
        shutil.rmtree(text)
    page.get_by_text("This text is not here any more.").wait_for()


@real_program
@pytest.mark.parametrize("removed", ["runs/diary", "texts"])
def test_what_is_deleted_beneath_a_training_is_said(
    removed: str, page: Any, program: Program
) -> None:
    run = ask_for(program.folder, "diary", LONG)
    page.goto(f"{program.url}/run/diary")
    page.locator("main[data-state=learning]").wait_for()
    until(lambda: len(rows(run, "metrics.jsonl")) > 0)
    training = processes_of(run)
    remove(program.folder / removed)

    if removed == "texts":  # it has read all of it
        page.get_by_role("button", name="Stop and keep").click()
        page.locator("main[data-state=stopped]").wait_for()
        return
    page.locator(".head").get_by_text("Somebody moved or deleted this model.").wait_for()
    until(lambda: not any(is_there(process) for process in training))
    assert not run.exists()


def remove(folder: Path) -> None:
    """Delete a folder in which somebody writes."""

    def is_gone() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    until(is_gone)


def is_there(process: int) -> bool:
    return Path(f"/proc/{process}").exists()
