"""Plays and interviews, and the many other texts in which a word and a colon begin a line."""

from pathlib import Path

import pytest

from minigpt.data.readers.chats.plays import form_of, named_lines, scenes
from minigpt.data.readers.chats.turns import conversations
from minigpt.data.readers.document import Turn


def read(text: str) -> list[list[Turn]]:
    form = form_of(text)
    assert form is not None
    lines = named_lines(text, form)
    return [turns for scene in scenes(lines) for turns in conversations(scene, 8)]


HAMLET = """\
THE TRAGEDY OF HAMLET

Dramatis Personæ

HAMLET, Prince of Denmark.
HORATIO, Friend to Hamlet.

ACT I

SCENE I. Elsinore. A platform before the Castle.

 Enter Barnardo and Francisco, two sentinels.

BARNARDO.
Who's there?

FRANCISCO.
Nay, answer me. Stand and unfold yourself.

BARNARDO.
Long live the King!

FRANCISCO.
Barnardo?

BARNARDO.
He.

 [_Exit Francisco._]

SCENE II. Another part of the platform.

Enter Ghost.

FRANCISCO.
You come most carefully upon your hour.
For this relief much thanks.

BARNARDO.
'Tis now struck twelve. Get thee to bed, Francisco.

FRANCISCO.
'Tis bitter cold,
And I am sick at heart.

THE END
The text of this edition is free.
"""


def test_a_play_with_names_in_capitals_is_read_scene_by_scene() -> None:
    first, second = read(HAMLET)
    assert first == [
        Turn("BARNARDO", "Who's there?"),
        Turn("FRANCISCO", "Nay, answer me. Stand and unfold yourself."),
        Turn("BARNARDO", "Long live the King!"),
        Turn("FRANCISCO", "Barnardo?"),
        Turn("BARNARDO", "He."),
    ]
    assert second[0].text == "You come most carefully upon your hour.\nFor this relief much thanks."
    assert second[-1] == Turn("FRANCISCO", "'Tis bitter cold,\nAnd I am sick at heart.")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Q: Where were you?", "A: At home."),
        ("Anna: Hast du die Katze gefüttert?", "Otto: Zweimal."),
        ("Élise : Où étais-tu ?", "Victor Hugo : Chez moi."),
        ("Анна: Где ты был?", "Отто: Дома."),
        ("小明：你好", "小红：你好吗"),
        ("**Interviewer:** Why?", "**Ada Lovelace:** Why not?"),
        ("Anna (laughing): Really?", "Otto: Really."),
    ],
)
def test_an_interview_is_recognised_in_many_languages(first: str, second: str) -> None:
    (turns,) = read(f"{first}\n\n{second}\n\n" * 6)
    assert len(turns) == 12
    assert len({turn.speaker for turn in turns}) == 2
    assert not any(":" in turn.text or "：" in turn.text for turn in turns)


def test_a_title_with_a_full_stop_belongs_to_the_name() -> None:
    (turns,) = read("MR. ICKY. I know them all.\n\nPETER. Well, Mr. Icky?\n\n" * 6)
    assert turns[0] == Turn("MR. ICKY", "I know them all.")


def test_an_interview_may_have_a_third_voice() -> None:
    talk = "Q. Where were you?\n\nA. At home.\n\n"
    (turns,) = read(f"{talk * 6}THE COURT. Speak up.\n\n{talk * 6}")
    assert len(turns) == 25


def test_an_answer_of_several_paragraphs_is_one_turn() -> None:
    answer = "It was dark.\n\nI could not see the house from the road, and so I went back.\n\n"
    question = "ANNA: And what did you do then, when nobody came to open the door for you?\n\n"
    (turns,) = read(f"{question}OTTO: {answer}" * 6)
    assert len(turns) == 12
    assert turns[1].text.endswith("I went back.")


def test_an_answer_of_one_word_is_not_the_end_of_the_play() -> None:
    (turns,) = read("ANNA:\nShall we go?\n\nOTTO:\nFine.\n\n" * 6)
    assert turns[1] == Turn("OTTO", "Fine.")


PROSE = """\
The house stood at the end of the lane, and nobody had lived in it since the war. On some evenings
the children said that they saw a light in the upper window, and then they ran all the way home.

"""
PASSAGE = "Anna: Who is there?\nOtto: Only I.\nAnna: Come in.\nOtto: I cannot.\nAnna: Why?\n" * 2


RECORDS = (  # of which some have a field twice, or not at all
    "Fox: seen at the lake\n"
    + 3 * f"Bird: {PROSE}\nTree: oak\nWeather: rain\n\nBird: {PROSE}\nTree: elm\nTree: ash\n\n"
    + f"Bird: {PROSE}\nWeather: sun\nWeather: rain later\n\n"
)


@pytest.mark.parametrize(
    "text",
    [
        PROSE * 15 + PASSAGE + PROSE * 15,
        "Title: Emma\nAuthor: Austen\nYear: 1815\n\n" * 20,
        "Name: Anna\nPhone: 123\n\nName: Otto\nPhone: 456\n\n" * 10,
        "INFO: started\nWARNING: slow\nINFO: done\n" * 20,
        "".join(f"{day}: we went to the lake.\n"
                for day in ("Monday", "Tuesday", "Wednesday", "Thursday") * 6),
        "".join(f"Word{n}: what it means\n" for n in range(40)),
        "def add(a, b):\n    # Add.\n\n    # Args:\n    #     a: b.\n    # Returns:\n    #     b.\n"
        "    return a + b\n\n" * 10,
        "CHAPTER I.\nIt began.\n\nCHAPTER II.\nIt went on.\n\n" * 8,
        "I. One\n\nII. Two\n\nI. Three\n\nII. Four\n\n" * 8,
        "Serves 4.\n\nFlour: 200 g\nSugar: 100 g\nButter: 100 g\n\n" * 8,
        "From: anna@a.org\nTo: otto@a.org\nSubject: Cat\n\nDear Otto, all is well.\n\n" * 8,
        RECORDS,
        "What: the fork\nWhy: it pricks.\n\n" * 8,
        "THE CROW IS GIVEN WITHOUT A WARRANTY THAT IS\nIMPLIED. WHATEVER ELSE IT MAY BE IS\n"
        "DISCLAIMED. THE FOX IS NOT GIVEN AT ALL.\n\n" * 6,
    ],
)  # fmt: skip
def test_prose_records_logs_and_code_are_no_plays(text: str) -> None:
    assert form_of(text) is None


@pytest.mark.parametrize(
    "name", ["data/tales.txt", "README.md", "docs/training.md", "CHANGELOG.md"]
)
def test_no_text_of_this_project_is_a_play(name: str) -> None:
    text = (Path(__file__).parents[3] / name).read_text(encoding="utf-8")
    assert form_of(text[:400_000]) is None
