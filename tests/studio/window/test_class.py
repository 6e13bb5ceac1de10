"""A class in Chromium: the board, the door, a pupil on a phone, in German; the end of it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..pupils import Person

pytestmark = pytest.mark.studio

STARTED = [sys.executable, "-m", "minigpt", "studio", "--no-browser", "--port", "0"]
AXE = Path(__file__).parents[3] / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture
def teacher(tmp_path: Path, browser: Any) -> Iterator[Any]:
    """The teacher's window at /class, with `code` and `address` of the class."""
    process = subprocess.Popen(
        [*STARTED, "--class", "6b", "--class-port", "0"],
        cwd=tmp_path,
        env=os.environ | {"MINIGPT_CACHE": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(3)]
    (of_class,) = [line for line in lines if line.startswith("class 6b: ")]
    page = browser.new_context(locale="en-US").new_page()
    page.code = of_class.split()[-1]
    page.port = of_class.split()[2].rstrip("/,").rpartition(":")[2]
    page.goto(lines[0].split()[-1])
    page.get_by_role("link", name="Class 6b").click()
    page.get_by_role("heading", name="Class 6b").wait_for()
    yield page
    page.context.close()
    process.kill()
    process.communicate()
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.fixture
def phone(teacher: Any, browser: Any) -> Iterator[Any]:
    """A pupil's window, before it has joined."""
    context = browser.new_context(locale="de-DE", viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{teacher.port}/")
    page.get_by_label("Der Code an der Tafel").wait_for()
    yield page
    context.close()


def join(phone: Any, code: str, name: str) -> None:
    phone.get_by_label("Der Code an der Tafel").fill(code)
    phone.get_by_label("Dein Name in der Klasse").fill(name)
    phone.keyboard.press("Enter")


def accessible(page: Any) -> None:
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run()")["violations"]
    assert [one["id"] for one in found] == []


def test_a_pupil_is_warned_joins_is_admitted_and_is_sent_away(teacher: Any, phone: Any) -> None:
    assert phone.get_by_text("Andere in diesem Netz könnten mitlesen").is_visible()
    accessible(phone)
    join(phone, "BBBBBBBB", "Ada <b>")
    phone.get_by_role("alert").filter(has_text="Das ist nicht der Code dieser Klasse.").wait_for()
    join(phone, teacher.code.lower(), "Ada <b>")
    phone.get_by_role("heading", name="Gleich wirst du eingelassen.").wait_for()
    phone.reload()
    phone.get_by_role("heading", name="Gleich wirst du eingelassen.").wait_for()

    accessible(teacher)
    teacher.get_by_role("button", name="Admit Ada <b>").click()
    phone.get_by_role("heading", name="Zieh einen Text hierher").wait_for()
    teacher.get_by_role("rowheader", name="Ada <b>").wait_for()
    accessible(teacher)
    for name in ("Studio schließen", "Vergleichen", "Papierkorb"):
        assert phone.get_by_role("button", name=name).count() == 0
    width = phone.evaluate("document.documentElement.scrollWidth")
    assert width <= 390

    phone.get_by_role("button", name="Märchen nehmen").click()
    phone.get_by_label("5 min").wait_for()
    assert phone.get_by_role("radio").count() == 5  # none beyond five minutes

    teacher.get_by_role("button", name="Send away Ada <b>").click()
    teacher.get_by_text("Nobody has been admitted yet.").wait_for()
    phone.get_by_text("Du bist nicht mehr in der Klasse.").wait_for()


def test_the_teacher_ends_the_class_and_deletes_it(
    teacher: Any, phone: Any, tmp_path: Path
) -> None:
    join(phone, teacher.code, "Bob")
    teacher.get_by_role("button", name="Admit Bob").click()
    phone.get_by_role("heading", name="Zieh einen Text hierher").wait_for()
    assert (tmp_path / "classes" / "6b" / "Bob").is_dir()

    teacher.get_by_role("button", name="End class", exact=True).click()
    teacher.get_by_role("dialog").get_by_text("stays in the folder").wait_for()
    teacher.get_by_role("button", name="Cancel").click()  # nobody was sent away
    teacher.get_by_role("rowheader", name="Bob").wait_for()
    teacher.get_by_role("button", name="End class and delete everything").click()
    teacher.get_by_role("button", name="Delete everything", exact=True).click()
    teacher.get_by_role("heading", name="everything of it is deleted").wait_for()
    assert not (tmp_path / "classes" / "6b").exists()
    late = Person(int(teacher.port))
    assert late.ask("POST", "/api/join", {"code": teacher.code, "name": "Eve"})[0] == 409
