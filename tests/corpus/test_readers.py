"""Each kind of source is read: its text stays, the marks and the publisher's words go."""

from pathlib import Path

import pytest

from data.base.corpus.document import Document
from data.base.corpus.readers import READERS

from . import samples
from .samples import END, REPLY, STORY, put, put_zip

pytestmark = pytest.mark.figures


def read(kind: str, file: Path) -> list[Document]:
    return list(READERS[kind](file))


def paragraphs(kind: str, file: Path) -> list[str]:
    (document,) = read(kind, file)
    return document.paragraphs


def test_a_book_of_gutenberg_is_its_chapters_without_header_licence_and_notes(
    tmp_path: Path,
) -> None:
    first, second, third = read("gutenberg", put(tmp_path / "b.txt", samples.GUTENBERG))
    assert first.paragraphs == ["CHAPTER I", STORY, "The river is wide,\nThe river is deep,"]
    assert second.paragraphs == ["CHAPTER II", REPLY]
    assert third.paragraphs == ["CHAPTER III", END]


def test_an_old_book_of_gutenberg_loses_its_small_print_its_glossary_and_the_numbers_of_lines(
    tmp_path: Path,
) -> None:
    assert paragraphs("gutenberg", put(tmp_path / "b.txt", samples.OLD_GUTENBERG)) == [
        "BAKER. Row faster.",
        "The river is wide,\nThe river is deep,",
        STORY,
        REPLY,
    ]


def test_a_book_of_gutenberg_in_latin_1_is_read(tmp_path: Path) -> None:
    file = tmp_path / "b.txt"
    file.write_bytes("The café was closed.".encode("latin-1"))
    assert paragraphs("gutenberg", file) == ["The café was closed."]


def test_a_chapter_of_standard_ebooks_keeps_its_verse_and_loses_the_marks_of_notes_and_verses(
    tmp_path: Path,
) -> None:
    assert paragraphs("standard-ebooks", put(tmp_path / "chapter-1.xhtml", samples.EBOOK)) == [
        "I",
        STORY,
        "The river is wide,\nthe river is deep.",
        REPLY,
        "Baker. Row faster.",
        "He rows.",
    ]


def test_an_imprint_of_standard_ebooks_is_not_read(tmp_path: Path) -> None:
    assert read("standard-ebooks", put(tmp_path / "imprint.xhtml", samples.IMPRINT)) == []


def test_a_module_of_openstax_loses_its_aims_pictures_and_exercises(tmp_path: Path) -> None:
    assert paragraphs("openstax", put(tmp_path / "index.cnxml", samples.CNXML)) == [
        "Ferries",
        STORY,
        "- Oars are long.\n- Rudders are short.",
        "The thaw",
        END,
    ]


def test_markdown_loses_its_marks_code_tables_and_what_introduces_them(tmp_path: Path) -> None:
    assert paragraphs("markdown", put(tmp_path / "ferry.md", samples.MARKDOWN)) == [
        "How a ferry works",
        f"{STORY} See the manual and oars.",
        "The oars are greased first.",
        "- The left oar is long.\n- The right oar is longer.",
        END,
    ]


def test_restructured_text_loses_its_fields_directives_and_code(tmp_path: Path) -> None:
    assert paragraphs("rst", put(tmp_path / "pep-9999.rst", samples.RST)) == [
        "Abstract",
        f"{STORY} It follows 8 and a manual, see oars.",
        "- The left oar is long.",
    ]


def test_a_story_book_is_read_only_if_its_licence_is_free(tmp_path: Path) -> None:
    free = put(tmp_path / "free.md", samples.STORYBOOK)
    bound = put(tmp_path / "bound.md", samples.STORYBOOK.replace("CC-BY", "CC-BY-NC"))
    assert paragraphs("storybook", free) == ["The ferryman", STORY, END]
    assert read("storybook", bound) == []


def test_questions_on_illnesses_keep_their_answers_without_tables_of_symptoms(
    tmp_path: Path,
) -> None:
    assert paragraphs("medquad", put(tmp_path / "1.xml", samples.MEDQUAD)) == [
        "What is Wet feet?",
        STORY,
        "- Water is cold.\n- Boots are dear.",
        "What are the symptoms?",
        "Cold toes.",
    ]


def test_each_text_of_a_zip_file_is_a_document(tmp_path: Path) -> None:
    texts = {"in/b.txt": END, "in/a.txt": f"{STORY}\n\n{REPLY}\n", "in/README": "Not read."}
    first, second = read("zip", put_zip(tmp_path / "in.zip", texts))
    assert first.paragraphs == [STORY, REPLY]
    assert second.paragraphs == [END]


def test_a_meeting_is_followed_by_the_questions_about_it(tmp_path: Path) -> None:
    meeting, questions = read("qmsum", put(tmp_path / "m.json", samples.QMSUM))
    assert meeting.dialogue and not questions.dialogue
    assert meeting.paragraphs == ["Grad A: Um, the boat's late.", "Prof B: Then we wait."]
    assert questions.paragraphs[2:] == ["Who was late?", "The boat."]


@pytest.mark.parametrize(
    ("kind", "text", "turns"),
    [
        ("taskmaster", samples.TASKMASTER, ["User: A tea, please.", "Assistant: Here you are."]),
        (
            "aci-bench",
            samples.ACI_BENCH,
            ["Doctor: hi, how is the knee?", "Patient: it's better, but i don't row."],
        ),
        (
            "mts-dialog",
            samples.MTS_DIALOG,
            ["Doctor: Does it hurt?", "Guest family: Only when he rows."],
        ),
        (
            "spacelog",
            samples.SPACELOG,
            [
                "Launch Control: LIFT-OFF.",
                "Commander: The clock is running, and the DSKY is lit.",
                "Capcom: Houston, Roger.",
            ],
        ),
    ],
)
def test_a_dialogue_is_turns_with_their_speakers(
    tmp_path: Path, kind: str, text: str, turns: list[str]
) -> None:
    (document,) = read(kind, put(tmp_path / "talk", text))
    assert document == Document(turns, dialogue=True)
