"""What is bad in a document goes, with its reason; what is good stays."""

from collections import Counter

import pytest

from data.base.corpus import prose, speech
from data.base.corpus.document import Document

from .samples import END, REPLY, STORY

pytestmark = pytest.mark.figures


@pytest.mark.parametrize(
    ("kind", "bad", "reason"),
    [
        ("modern", 'The boat is <div class="b"> long.', "left-over markup"),
        ("modern", "2019 12 14 2020 13 15 2021 14 16 boats", "numbers"),
        ("modern", "Anna Berg, Carl Dorn, Emma Frey, Georg Hahn. " * 5, "names, references"),
        ("modern", "el barco no ha llegado todavia porque nadie rema bien. " * 4, "language"),
        ("modern", "Set the_oars and the_boat with row() or steer() now.", "identifiers"),
        ("modern", "Figure 12: a boat on the river.", "captions"),
        ("modern", "- Explain how a boat is rowed.", "aims of a lesson"),
        (
            "modern",
            "a boat that is long and narrow and a river that is wide " * 3,
            "without an end",
        ),
        ("books", "* This is what the editor thinks of boats.", "notes and lists of an edition"),
        ("books", "XII. THE THAW 214", "notes and lists of an edition"),
        ("books", "The Ferryman's Return $1.50", "prices"),
        ("books", "Visit https://example.org for more.", "addresses"),
    ],
)
def test_a_bad_paragraph_is_dropped_for_a_reason(kind: str, bad: str, reason: str) -> None:
    dropped: Counter[str] = Counter()
    cleaned = prose.clean(Document([STORY, bad, REPLY, END]), kind, dropped)
    assert cleaned == Document([STORY, REPLY, END])
    (found,) = dropped
    assert reason in found


@pytest.mark.parametrize("kind", ["books", "modern"])
def test_nothing_is_dropped_from_plain_prose_with_headings_lists_and_verse(kind: str) -> None:
    good = [
        "The thaw",
        STORY,
        "[He goes.]",
        "- The left oar is long, and it is the better one.\n- The right oar floats.",
        "The river is wide,\nthe river is deep,",
        "He waited . . . and rowed 40 loaves to GitHub's office in 1926, in a .txt file.",
        REPLY,
        END,
    ]
    dropped: Counter[str] = Counter()
    assert prose.clean(Document(good), kind, dropped) == Document(good)
    assert not dropped


def test_a_sentence_with_an_address_goes_and_its_paragraph_stays() -> None:
    with_address = f"{STORY} Look at www.example.org for more. {END}"
    cleaned = prose.clean(Document([with_address, REPLY]), "modern", Counter())
    assert cleaned is not None
    assert "example" not in cleaned.paragraphs[0]
    assert cleaned.paragraphs[0].startswith(STORY) and cleaned.paragraphs[0].endswith(END)


def test_headings_that_no_text_follows_go() -> None:
    with_headings = Document(["Ferries", "Oars", "The boat", STORY, REPLY, "See also"])
    cleaned = prose.clean(with_headings, "modern", Counter())
    assert cleaned == Document(["Ferries", "The boat", STORY, REPLY])


@pytest.mark.parametrize(
    ("paragraphs", "reason"),
    [
        ([STORY[:100]], "too short"),
        (["- a boat\n- an oar\n- a rope\n- a cap\n- a pole" for _ in range(20)], "a list"),
        (["Lesson Objectives: to row.", STORY, REPLY, END], "the plan of a lesson"),
        ([STORY, REPLY, *["2019 12 14 2020 13 15"] * 60], "most of it dropped"),
    ],
)
def test_a_bad_document_is_dropped_for_a_reason(paragraphs: list[str], reason: str) -> None:
    dropped: Counter[str] = Counter()
    assert prose.clean(Document(paragraphs), "modern", dropped) is None
    assert dropped[f"document: {reason}"] == 1


def talk(*said: str) -> Document:
    """Two people in turn."""
    names = ("Grad A", "Prof B")
    turns = [f"{names[i % 2]}: {words}" for i, words in enumerate(said)]
    return Document(turns, dialogue=True)


def test_a_rough_transcript_becomes_readable() -> None:
    rough = talk(
        "Um, I I th think, uh, the the word - level boat is late. " + STORY,
        "Mm-hmm.",
        "So that that is, um, the boat.",
        "Uh, yeah, it's it's d deep. Uh, I know that.",
        "Yeah.",
    )
    dropped: Counter[str] = Counter()
    cleaned = speech.clean(rough, dropped)
    assert cleaned is not None
    assert cleaned.paragraphs == [
        f"Grad A: I think the word-level boat is late. {STORY} So that that is the boat.",
        "Prof B: Yeah, it's deep. I know that.",
    ]
    assert dropped["turn: nothing said"] == 2


def test_a_clean_talk_keeps_its_words() -> None:
    clean = talk(STORY, "He had had no luck, and it was very very cold.", END)
    assert speech.clean(clean, Counter()) == clean


def test_turns_of_numbers_and_talks_without_punctuation_marks_are_dropped() -> None:
    dropped: Counter[str] = Counter()
    with_numbers = speech.clean(talk(STORY, "Noun 49 is 00014 and 00371.", END), dropped)
    assert with_numbers == Document([f"Grad A: {STORY}", f"Grad A: {END}"], dialogue=True)
    assert speech.clean(talk("i have a boat and it is long " * 20), dropped) is None
    assert dropped["turn: numbers, switches"] == 1
    assert dropped["document: speech without punctuation marks"] == 1
