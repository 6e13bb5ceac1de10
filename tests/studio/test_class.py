"""A class: pupils come in, train one after the other, and see only what is theirs.

MINIGPT_PUPILS=20 makes the class of real trainings so large.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from minigpt.studio.app import Studio
from minigpt.studio.workspace import Workspace

from ..conftest import TINY, some_text
from .conftest import Window
from .pupils import Person

PUPILS = int(os.environ.get("MINIGPT_PUPILS", "6"))
FEW = {**TINY, "init": "none", "steps": 4, "eval_tokens": 200, "num_workers": 1}
STARTED = [sys.executable, "-m", "minigpt", "studio", "--no-browser", "--port", "0"]


class School:
    """A studio with a class in a folder, and its teacher."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.process = subprocess.Popen(
            [*STARTED, "--class", "6b", "--class-port", "0"],
            cwd=folder,
            env=os.environ | {"MINIGPT_CACHE": str(folder / "cache")},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        address, _, token = self.process.stdout.readline().split()[-1].partition("#")
        lines = [self.process.stdout.readline() for _ in range(2)]
        of_class = next(line for line in lines if line.startswith("class 6b: "))
        self.code = of_class.split()[-1]
        self.port = int(of_class.split()[2].rstrip("/,").rpartition(":")[2])
        self.teacher = Person(int(address.rstrip("/").rpartition(":")[2]))
        self.teacher.enter(token)

    def pupil(self, name: str) -> Person:
        """Somebody who has joined and was admitted."""
        person = Person(self.port)
        person.join(self.code, name)
        self.teacher.post("/api/class/admit", {"pupil": name})
        return person


@pytest.fixture
def school(tmp_path: Path) -> Iterator[School]:
    found = School(tmp_path)
    yield found
    found.process.kill()
    found.process.communicate()


def test_nobody_sees_what_is_another_ones(school: School) -> None:
    ada, bob = school.pupil("Ada"), school.pupil("Bob")
    text = ada.drop("diary.txt", some_text().encode(), **FEW)
    assert [one["id"] for one in ada.get("/api/state")["texts"]] == [text]
    assert bob.get("/api/state")["texts"] == []
    assert bob.ask("GET", f"/api/texts/{text}")[0] == 404
    assert bob.ask("POST", "/api/runs", {"text": text, "name": "x", "minutes": 1})[0] == 404
    assert school.teacher.get("/api/state")["texts"] == []
    assert (school.folder / "classes" / "6b" / "Ada" / "texts" / text).is_dir()

    mixed = Person(school.port)
    mixed.login = {"cookie": ada.login["cookie"], "x-studio-key": bob.login["x-studio-key"]}
    assert mixed.ask("GET", "/api/state")[0] == 401
    teacher = Person(school.port)
    teacher.login = school.teacher.login
    assert teacher.ask("GET", "/api/state")[0] == 401


def test_what_is_the_owners_is_not_there_for_pupils(school: School) -> None:
    ada = school.pupil("Ada")
    for path in ("/api/class", "/api/runs/x/nothing"):
        assert ada.ask("GET", path)[0] == 404
    for path in (
        "/api/close",
        "/api/token",
        "/api/enter",
        "/api/class/end",
        "/api/empty-bin",
        "/api/runs/x/export",
        "/api/runs/x/download",
    ):
        assert ada.ask("POST", path)[0] == 404


def test_a_pupils_text_and_training_have_limits(school: School) -> None:
    ada = school.pupil("Ada")
    status, answer = ada.ask("POST", "/api/texts", {"names": ["a"], "sizes": [5_000_001]})
    assert (status, answer["message"][:4]) == (413, "A te")
    text = ada.drop("diary.txt", some_text().encode(), **FEW)
    most = ada.get(f"/api/texts/{text}")["most_minutes"]
    assert most == 5.0
    too_long = {"text": text, "name": "diary", "minutes": most + 0.5}
    assert ada.ask("POST", "/api/runs", too_long)[0] == 400


def test_who_is_not_admitted_gets_nothing(school: School) -> None:
    eve = Person(school.port)
    assert eve.ask("POST", "/api/join", {"code": "BBBBBBBB", "name": "Eve"})[0] == 403
    eve.join(school.code, "Eve")
    assert eve.get("/api/joined") == {"state": "waiting", "name": "Eve"}
    assert eve.ask("GET", "/api/state")[0] == 401

    told = school.teacher.get("/api/class")
    assert [(one["name"], one["state"]) for one in told["pupils"]] == [("Eve", "waiting")]
    school.teacher.post("/api/class/refuse", {"pupil": "Eve"})
    assert eve.get("/api/joined")["state"] == "refused"
    assert not (school.folder / "classes").exists()


def test_the_teacher_is_told_who_waits_on_every_screen(school: School) -> None:
    assert school.teacher.get("/api/state")["class"] == {"name": "6b", "waiting": 0}
    person = Person(school.port)
    person.join(school.code, "Ada")
    assert school.teacher.get("/api/state")["class"] == {"name": "6b", "waiting": 1}
    school.teacher.post("/api/class/admit", {"pupil": "Ada"})
    assert school.teacher.get("/api/state")["class"] == {"name": "6b", "waiting": 0}


def test_in_a_lesson_all_trainings_are_of_a_lesson(tmp_path: Path) -> None:
    studio = Studio(Workspace(tmp_path), close=lambda: None, is_lesson=True)
    with studio.running():
        window = Window(studio)
        window.enter(studio.logins.token)
        text = window.post("/api/texts", {"names": ["a.txt"], "sizes": [5]}).json["id"]
        chosen = tmp_path / "texts" / text / "settings.json"
        assert json.loads(chosen.read_text()) == {"lesson": True}

        window.post(f"/api/texts/{text}/plan", {"settings": {"dropout": 0.1}})
        assert json.loads(chosen.read_text()) == {"dropout": 0.1, "lesson": True}
        assert window.post(f"/api/texts/{text}/plan", {"settings": {"seed": 3}}).status == 400
        pupil = studio.of_pupil(Workspace(tmp_path / "classes" / "6b" / "Ada"))
        assert pupil.checked_settings({}) == {"lesson": True}


@pytest.mark.studio
def test_pupils_train_watch_and_write_and_the_teacher_deletes_it_all(school: School) -> None:
    names = [f"Pupil {i}" for i in range(PUPILS)]
    pupils = [school.pupil(name) for name in names]
    secret = "The purple walrus sang at noon."
    for pupil, name in zip(pupils, names, strict=True):
        own = f"{secret}\n{some_text(seed=len(name))}"
        text = pupil.drop("mine.txt", own.encode(), **FEW)
        pupil.post("/api/runs", {"text": text, "name": "mine", "minutes": 1})

    def all_are_done() -> bool:
        states = [pupil.state("mine") for pupil in pupils]
        assert sum(state in ("reading", "measuring", "learning") for state in states) <= 1
        assert not {"failed", "died", "gone"} & {*states}
        return {*states} == {"done"}

    Person.wait(all_are_done, seconds=1200)
    told = school.teacher.get("/api/class")
    assert [one["models"] for one in told["pupils"]] == [1] * PUPILS

    for pupil in pupils:
        rows = pupil.get("/api/runs/mine")["rows"]
        assert {"step", "evaluation", "sample"} <= {row["event"] for row in rows}
        settings = {"max_new_tokens": 5}
        assert pupil.post("/api/runs/mine/write", {"prompt": "The", "settings": settings})
        page = pupil.post("/api/runs/mine/page", {"show": True})["address"]
        assert pupil.ask("GET", page)[1].startswith(b"<!doctype html>")

    school.teacher.post("/api/class/end", {"deletes": True})
    assert pupils[0].ask("GET", "/api/state")[0] == 401
    assert not (school.folder / "classes" / "6b").exists()
    left = [path for path in school.folder.rglob("*") if path.is_file()]
    assert not [path for path in left if secret.encode() in path.read_bytes()]
    assert not list((school.folder / "cache").rglob("*.bin"))
