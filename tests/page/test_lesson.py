"""The dice of docs/lesson.md and its worksheet: the table follows from the sentences, and what is
said of them is right."""

import re
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import pytest

from ..browser import new_context

DOCS = Path(__file__).parents[2] / "docs"
LESSON = (DOCS / "lesson.md").read_text(encoding="utf-8")
WORKSHEET = (DOCS / "worksheet.html").read_text(encoding="utf-8")
SENTENCES = re.findall(r"^\d\. (.* \.)$", LESSON, re.M)
BEGINNING = "●"


def followers(width: int) -> dict[tuple[str, ...], list[str]]:
    """What follows so many words, in the order of the sentences."""
    found = defaultdict(list)
    for sentence in SENTENCES:
        words = [BEGINNING, *sentence.split()]
        for i in range(width, len(words)):
            found[tuple(words[i - width : i])].append(words[i])
    return found


def test_the_table_of_the_dice_is_that_of_the_sentences() -> None:
    after = LESSON[LESSON.index("| after | 1 |") :]
    rows = re.findall(r"^\| (\S+) \|((?: [a-z.]* \|| \|)+)$", after, re.M)
    table = {(word,): cells.replace("|", " ").split() for word, cells in rows}
    assert len(SENTENCES) == 6 and len(table) == 10
    assert {word: cells for word, cells in table.items() if cells} == followers(1)


def test_the_worksheet_has_the_same_sentences_words_and_first_rows() -> None:
    assert re.findall(r"<li>(.*)</li>", WORKSHEET) == SENTENCES
    table = re.findall(r"<tr><th>(\S+)</th>((?:<td>[a-z.]*</td>){6})</tr>", WORKSHEET)
    assert [(word,) for word, _ in table] == list(followers(1))
    for word, cells in table:
        given = re.findall(r"<td>([a-z.]+)</td>", cells)
        assert given == followers(1)[word,][: len(given)]


def test_what_is_said_of_the_dice_is_right() -> None:
    pairs = followers(2)
    open_pairs = [pair for pair, words in pairs.items() if len(set(words)) > 1]
    said = re.search(r"Of the (\d+) pairs of neighbours only\s+(\d+) are", LESSON)
    assert said is not None
    assert [int(number) for number in said.groups()] == [len(pairs), len(open_pairs)]

    words = [BEGINNING, *"the cat sees the dog .".split()]
    chances = [
        Fraction(followers(1)[word,].count(after), len(followers(1)[word,]))
        for word, after in pairwise(words)
    ]
    assert round(1 / prod(chances)) == 778 and "about 1 in 778" in LESSON


@pytest.mark.page
def test_the_worksheet_is_one_page_of_paper(chromium: Any) -> None:
    page = new_context(chromium).new_page()
    page.goto((DOCS / "worksheet.html").as_uri())
    printed = page.pdf(prefer_css_page_size=True)
    page.context.close()
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    assert re.search(rb"/MediaBox \[0 0 59[45]\.[0-9]+ 84[12]\.", printed)  # A4, in points
