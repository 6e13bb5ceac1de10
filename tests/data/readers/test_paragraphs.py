"""Paragraphs and headings to documents: what is a chapter, what a verse, how blocks are written."""

from pathlib import Path

import pytest

from minigpt.data.readers.paragraphs import (
    Block,
    TextWithTables,
    chapters,
    documents_of,
    in_one_line,
    joined,
    paragraph_of,
    row_of,
    verses,
)

TEXT = Block("x" * 1000)


def cut(*blocks: Block) -> list[list[str]]:
    """The chapters of some blocks, each as its first letters."""
    return [[block.text[:5] for block in part] for part in chapters(blocks)]


def test_five_headings_of_a_level_are_chapters_and_four_are_not() -> None:
    chapter = [Block("Head", 1), TEXT]
    assert len(chapters(chapter * 5)) == 5
    assert len(chapters(chapter * 4)) == 1


def test_chapters_have_a_thousand_characters_on_average_with_their_headings() -> None:
    for length, count in ((996, 5), (995, 1)):
        assert len(chapters([Block("Head", 1), Block("x" * length)] * 5)) == count


def test_the_highest_level_that_has_enough_long_chapters_counts() -> None:
    part = [Block("Part", 1), *([Block("Chap", 2), TEXT] * 3)]
    assert cut(*part * 2) == [["Part", "Chap", "xxxxx"], *[["Chap", "xxxxx"]] * 2] * 2
    short = [Block("Short", 2), Block("x")] * 12
    assert len(chapters([*short, *([Block("Chap", 6), TEXT] * 6)])) == 7  # and what is before
    assert len(chapters([*([Block("Chap", 7), TEXT] * 6)])) == 1


def test_what_comes_before_the_first_chapter_is_a_part_of_its_own() -> None:
    assert cut(Block("Title"), *([Block("Chap", 1), TEXT] * 5))[0] == ["Title"]
    assert cut(Block("Title", 1), Block("Sub", 3), *([Block("Chap", 2), TEXT] * 5))[0] == [
        "Title", "Sub", "Chap", "xxxxx",
    ]  # fmt: skip


def test_an_empty_line_is_between_paragraphs_and_none_between_lines() -> None:
    line = [Block("a", is_line=True), Block(""), Block("b", is_line=True)]
    assert joined([*line, Block("c"), Block("d"), *line]) == "a\nb\n\nc\n\nd\n\na\nb"
    assert joined([]) == joined([Block("")]) == ""


def test_each_part_with_text_is_a_document_and_knows_its_line() -> None:
    parts = [[Block("a"), Block("b\nc")], [Block("")], [Block(" ")], [Block("d")]]
    found = list(documents_of(parts, Path("a.odt")))
    assert [(document.text, document.line) for document in found] == [("a\n\nb\nc", 1), ("d", 6)]


@pytest.mark.parametrize(
    ("lines", "gaps", "length", "is_verse"),
    [
        (8, 2, 79, True),
        (7, 2, 79, False),  # too few lines
        (8, 1, 79, False),  # an eighth of the lines: a gap by chance
        (8, 5, 79, True),
        (10, 7, 79, False),  # an empty paragraph after nearly each: it is prose
        (8, 2, 80, False),  # too long
    ],
)
def test_short_lines_with_gaps_here_and_there_are_verses(
    lines: int, gaps: int, length: int, is_verse: bool
) -> None:
    written = [Block("x" * length) for _ in range(lines)]
    paragraphs = [*written[:1], *([Block("")] * gaps), *written[1:]]
    found = verses(paragraphs)
    assert len(found) == (2 if is_verse else lines)
    assert "\n".join(block.text for block in found) == "\n".join("x" * length for _ in written)


def test_a_heading_among_verses_stands_for_itself() -> None:
    poem = [Block("I", 2), *([Block("a line")] * 4), Block(""), Block("II", 2),
            *([Block("a line")] * 4), Block("")]  # fmt: skip
    assert verses(poem) == [
        Block("I", 2), Block("\n".join(["a line"] * 4)),
        Block("II", 2), Block("\n".join(["a line"] * 4)),
    ]  # fmt: skip


def test_white_space_is_single_and_a_broken_line_stays_one() -> None:
    assert in_one_line(" a\t b\n\u00adc\u200b ") == "a b c"
    assert paragraph_of(" a  b \n\n \n c\n") == Block("a b\nc")


def test_an_item_has_a_dash_unless_it_is_a_heading_or_empty() -> None:
    assert paragraph_of("a", is_item=True) == Block("- a", is_line=True)
    assert paragraph_of("a", level=2, is_item=True) == Block("a", level=2)
    assert paragraph_of(" ", is_item=True) == Block("")


def test_a_row_is_a_line_with_tabs_unless_one_cell_alone_has_text() -> None:
    a, b, empty = Block("a\nx"), Block("b", 2), Block("")
    assert row_of([[a, b], [], [b, empty], [empty]]) == [Block("a x b\t\tb", is_line=True)]
    assert row_of([[], [a, empty, b]]) == [a, b]
    assert row_of([]) == row_of([[empty]]) == []


def test_what_is_in_a_row_but_in_no_cell_stands_before_the_row() -> None:
    text = TextWithTables(row_of)
    text.begin_cell()
    text.end_row()  # none of them was open
    text.add(Block("one"))
    text.begin_row()
    text.add(Block("before"))
    text.begin_cell()
    text.add(Block("two"))
    text.end_row()
    assert text.found == [Block("one"), Block("before"), Block("two")]
