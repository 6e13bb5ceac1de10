"""How a text begins that a model writes to be shown: at a sentence, not at a heading."""

import pytest

from minigpt.generation.beginnings import first_words, opening_of

NOVEL = """Pride and Prejudice

by Jane Austen

[Illustration]

Contents

Chapter 1. The House at Longbourn
Chapter 2. A Visit

VOLUME I

CHAPTER I. In which nobody has married yet.

It is a truth universally acknowledged, that a single man in
possession of a good fortune, must be in want of a wife.
"""
DIARY = """Part I

At Home

3 May. Rain again.

The journal begins when I was thirteen and knew all the birds.
"""
FABLES = """The Mole Who Counted Steps

Old Tunny the mole kept a count of every step he took. "One," he said.
"""
DIRECTIONS = """ACT I. SCENE I. The quay at Saltmarrow.

[Enter Zacky Mudge with a broom, before the stone Old Wife.]

ZACKY MUDGE.
The sea came up to scrub my floor,
Sweep her out, sweep her home;
She left a dogfish at the door
And took my tortoise comb.

So, wife, hold up thy chin. Two and twenty years have
I washed thy face, and thou never once washed mine.
"""
LETTER = "London, 3 May 1897\n\nDear Sir,\n\nI have the honour to tell you that all is well.\n"
NOTES = "# Metrics\n\n- Purpose\n\nThe purpose of metrics is to inform, and nothing else.\n"
CHINESE = "第一章 风雪\n\n　　那天夜里下着大雪，村子里没有一个人敢出门。老人坐在火边。\n"
ARABIC = "الفصل الأول\n\nكان الرجل يسكن في بيت صغير قرب البحر. ثم جاء.\n"
FRENCH = "Le Moulin\n\n— Bonjour, dit le vieux meunier en entrant dans la salle.\n"
GERMAN = "Kapitel 1\n\n„Wo bist du gewesen?“, fragte die Mutter den Jungen an der Tür.\n"
CODE = """import os

# Reads the file and returns what it holds.
def read(path):
    \"\"\"Return what a file holds.\"\"\"
    with open(path) as file:
        return [line for line in file.read().split("\\n") if line]
"""
SMALL = "went to the shop. then home.\n\nslept until the others came back.\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (NOVEL, "It is a truth"),
        (DIARY, "The journal begins when"),
        (FABLES, "Old Tunny the mole"),
        (DIRECTIONS, "The sea came up"),
        (LETTER, "I have the honour"),
        (NOTES, "The purpose of metrics"),
        ("PART ONE\n\nWhen I was young I had a dog.", "When I was young"),
        ('Tom\n\n"I am not going there," said Tom.', '"I am not going'),
        ("ALICE\n\nALICE was very tired.\n\nSo she was looking for her cat.", "So she was looking"),
        (CHINESE, "那天夜里下着大雪"),
        (ARABIC, "كان الرجل يسكن في"),
        ("กาลครั้งหนึ่งนานมาแล้ว!", "กาลครั้ง"),
        ("— Здравствуй, — сказал он тихо. И ушёл.", "— Здравствуй, — сказал"),
        ("הלכתי לבית הספר עם אבא. ואז חזרנו.", "הלכתי לבית הספר עם"),
        (FRENCH, "— Bonjour, dit le"),
        (GERMAN, "„Wo bist du gewesen?“"),
    ],
)
def test_a_beginning_is_that_of_the_first_sentence(text: str, words: str) -> None:
    assert first_words(text) == words
    assert words in text
    long_lines = text.replace("\n\n", "\0").replace("\n", " ").replace("\0", "\n\n")
    if text != DIRECTIONS:  # the name would stand in the line
        assert first_words(long_lines) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (CODE, "import os"),
        (SMALL, "went to the shop. then"),
        ("--- \n\ntitle of this very long story\n", "title of this very long"),
        ("The Tide's Second Thought\nA Comedy\n\nTHE END", "The Tide's Second"),
        ("01" * 99, "01" * 12),
        ("See https://www.example.org/a/b/c\n", "See"),
        ("a\tb\u3000c", "a\tb\u3000c"),
        ("— Здравствуй, — сказал он. И ушёл.", "— Здравствуй, — сказал"),
        ("— Bonjour, mon ami.", "— Bonjour, mon ami."),
        ("הלכתי לבית הספר.", "הלכתי לבית הספר."),
        ("रात हुई थी।", "रात हुई थी।"),
        ("그는 집에 갔다.", "그는 집에 갔다."),
        ("ที่" * 20, "ที่" * 8),  # each with two marks
        ("\n 😂😂 😂\n", "😂😂 😂"),
        ("\n \n", ""),
    ],
)
def test_without_sentences_it_is_that_of_the_first_line(text: str, words: str) -> None:
    assert first_words(text) == words


@pytest.mark.parametrize(
    "sentence",
    [
        "and so it went on for a while",  # begun before
        "The Adventures of Sherlock Holmes",
        "Chapter 12: The boy who was not there any more",
        "CHAPTER II. In which a bear is seen from afar",
        "He went.",
        "Broken \ufffd letters are not shown to anybody here",
        "",
    ],
)
def test_what_is_no_sentence_has_no_opening(sentence: str) -> None:
    assert opening_of(sentence) is None


def test_spaces_stay_as_the_text_has_them() -> None:
    """A model of characters may know no others."""
    words = "그는\u3000집에\u3000갔다가\u3000다시"
    assert first_words(f"{words}\u3000돌아왔다.") == words


def test_a_large_text_is_looked_through_at_once() -> None:
    assert first_words("THE SAME HEADING\n" * 5_000).startswith("THE SAME")
    assert first_words("word" * 100_000) == "word" * 6
