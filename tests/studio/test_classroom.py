"""Who comes into a class: with the code, a name of their own, and the teacher's word."""

from pathlib import Path

import pytest

from minigpt.studio.errors import Refusal
from minigpt.studio.school.classroom import ADMITTED, Classroom, Pupil


@pytest.fixture
def classroom(tmp_path: Path) -> Classroom:
    return Classroom("6b", tmp_path / "classes" / "6b")


def refusal(classroom: Classroom, code: str, name: str, address: str = "1") -> int:
    with pytest.raises(Refusal) as refused:
        classroom.join(code, name, address)
    return refused.value.status


def is_in(classroom: Classroom, pupil: Pupil) -> bool:
    return classroom.find(pupil.login.cookie, pupil.login.key) is pupil


def test_only_the_teacher_lets_somebody_in(classroom: Classroom) -> None:
    pupil = classroom.join(classroom.code, "Ada", "1")
    assert not is_in(classroom, pupil)
    assert not classroom.folder.exists()

    classroom.admit(pupil.folder)
    assert is_in(classroom, pupil)
    assert classroom.workspace(pupil).runs.is_dir()
    classroom.refuse(pupil.folder)
    assert not is_in(classroom, pupil)


def test_the_code_may_be_typed_in_small_letters(classroom: Classroom) -> None:
    assert classroom.join(f" {classroom.code.lower()} ", "Ada", "1").name == "Ada"


def test_a_code_can_be_tried_five_times_a_minute(
    classroom: Classroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("minigpt.studio.school.classroom.time.monotonic", lambda: now)
    for _ in range(5):
        assert refusal(classroom, "AAAAAAAA", "Eve") == 403
    assert refusal(classroom, classroom.code, "Eve") == 429
    assert classroom.join(classroom.code, "Ada", "another address").name == "Ada"

    now = 61.0
    assert classroom.join(classroom.code, "Bob", "1").name == "Bob"


def test_many_addresses_together_have_few_tries_too(classroom: Classroom) -> None:
    tries = [refusal(classroom, "AAAAAAAA", "Eve", str(i)) for i in range(70)]
    assert tries.count(403) == 60


@pytest.mark.parametrize("name", ["Ada", "ADA", " Ada ", "x/Ada"])
def test_a_name_is_given_once(classroom: Classroom, name: str) -> None:
    classroom.join(classroom.code, "Ada", "1")
    assert refusal(classroom, classroom.code, name) == 409


@pytest.mark.parametrize("name", ["", "  ", "..", "/"])
def test_a_name_of_which_no_folder_can_be_made_is_refused(classroom: Classroom, name: str) -> None:
    assert refusal(classroom, classroom.code, name) == 400


def test_folders_of_pupils_lie_in_that_of_the_class(classroom: Classroom) -> None:
    pupil = classroom.join(classroom.code, "../../CON", "1")
    classroom.admit(pupil.folder)
    assert classroom.workspace(pupil).root.parent == classroom.folder


def test_somebody_who_was_sent_away_may_come_again_and_must_be_admitted_again(
    classroom: Classroom,
) -> None:
    first = classroom.join(classroom.code, "Ada", "1")
    classroom.admit(first.folder)
    classroom.refuse(first.folder)
    again = classroom.join(classroom.code, "Ada", "1")
    assert not is_in(classroom, again)
    assert classroom.has_been_here(again)
    classroom.admit(again.folder)
    assert is_in(classroom, again)
    assert not is_in(classroom, first)


def test_a_class_has_forty_places(classroom: Classroom) -> None:
    for i in range(40):
        classroom.join(classroom.code, f"Pupil {i}", "1")
    assert refusal(classroom, classroom.code, "One more") == 409


def test_the_end_sends_all_away_and_deletes_only_if_asked_to(classroom: Classroom) -> None:
    pupil = classroom.join(classroom.code, "Ada", "1")
    classroom.admit(pupil.folder)
    assert pupil.state == ADMITTED
    classroom.end()
    assert not is_in(classroom, pupil)
    assert refusal(classroom, classroom.code, "Bob") == 409
    assert classroom.folder.is_dir()
    classroom.delete()
    assert not classroom.folder.exists()
    classroom.delete()  # nothing is there any more
