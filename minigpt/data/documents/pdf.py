"""A PDF: from the lines of its pages to paragraphs and chapters.

A PDF does not say what a paragraph is. Lines are joined by their lengths and last characters; what
is repeated at the edge of pages is left out; hyphens at the ends of lines are joined.
"""

import importlib.util
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .apart import read_apart
from .blocks import Block, chapters, documents_of, in_one_line
from .content import Content, needs_extra
from .document import Document, Refused, Report

_EDGE = 2  # lines at the top and at the bottom of a page that may be repeated on others
_LEAST_REPEATED = 3  # pages
_LEAST_TEXT = 20  # characters a page, on average, or it is a scan
_PAGE_NUMBER = re.compile(
    r"\W*(?:page|seite|p\.|s\.)?\s*(?:\d{1,4}|[ivxlc]{1,7})(?:\s*(?:/|of|von)\s*\d{1,4})?\W*", re.I
)
_ENTRY_PAGE = re.compile(r"(?:\d{1,4}|[ivxlc]{1,7})$", re.I)  # at the end of such an entry
_ENTRY_END = 40  # characters that tell
_LONGEST_EDGE = 40  # characters of a line that may be a page number
_LONGEST_WORD = 60  # characters
_DOTS = "...."  # before it, however many spaces there are
_ITEM = re.compile(r"(?:[•●▪◦‣∙*–—-]|\(?\d{1,3}[.)]|\(?[a-z]\))\s+\S")
_BULLET = re.compile(r"[•●▪◦‣∙]\s*")
_ENDS = re.compile(r"[.!?:;…][\"'”’»)\]]*$")
_HYPHEN = re.compile(r"(\w+)[-\u00ad\u2010]$")
_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
)
_WITHOUT_LETTER = re.compile(r"\(cid:\d+\)")  # a sign of which the file does not say the letter
_FULL = 0.75  # of the usual length of a line: a shorter one may end a paragraph
_SHORT = 0.5  # of it: a shorter one does, unless the next begins in lower case


class _Line(NamedTuple):
    """A line of a page."""

    text: str
    level: int = 0  # if a chapter begins with it: 1
    ends_box: bool = False  # of lines that stand together
    is_last: bool = False  # on its page


def read_pdf(content: Content, report: Report) -> Iterator[Document]:
    """The chapters of a PDF."""
    if importlib.util.find_spec("pdfminer") is None:
        raise needs_extra(content.source, "PDF (pdfminer.six)")

    values = read_apart("pdf_pages", content)
    outline: list[tuple[int, str]] = next(values, [])
    pages: list[list[_Line]] = []
    characters = 0
    pictures = 0
    for value in values:
        pages.append(_lines(value["boxes"]))
        characters += sum(len(line.text) for line in pages[-1])
        pictures += value["has_picture"]

    if not characters and not pictures:
        raise Refused(content.source, "has no text")
    if characters < _LEAST_TEXT * max(len(pages), 1) and pictures > 0:
        reason = "is a scan: its pages are pictures without text"
        raise Refused(content.source, f"{reason}; recognise it first, for instance with ocrmypdf")
    lines = _without_edges(_with_chapters(pages, outline), report)
    yield from documents_of(chapters(_paragraphs(lines, report)), content.source)


def _lines(boxes: list[list[str]]) -> list[_Line]:
    """The lines of a page."""
    lines = []
    for box in boxes:
        known = [_WITHOUT_LETTER.sub("", text) for text in box]
        texts = [in_one_line(text.translate(_LIGATURES)) for text in known]
        written = [text for text in texts if text]
        lines += [_Line(text) for text in written[:-1]]
        lines += [_Line(text, ends_box=True) for text in written[-1:]]
    return lines


def _with_chapters(pages: list[list[_Line]], outline: list[tuple[int, str]]) -> list[list[_Line]]:
    """The pages; the lines with which the outline's entries begin are headings."""
    for number, title in outline:
        if number >= len(pages):
            continue
        wanted = _letters(title)
        lines = pages[number]
        for place, line in enumerate(lines):
            if wanted and _letters(line.text).endswith(wanted[:60]):
                lines[place] = line._replace(level=1)
                break
    return pages


def _letters(text: str) -> str:
    """The letters of a title, which is written in different ways."""
    return "".join(filter(str.isalpha, text)).lower()


# Page headers and numbers


def _without_edges(pages: Sequence[list[_Line]], report: Report) -> list[_Line]:
    """The lines of all pages, without those at the edges that are on several, and page numbers."""
    often: Counter[tuple[bool, str]] = Counter()
    for page in pages:
        tops = {(True, _pattern(line)) for line in page[:_EDGE]}
        bottoms = {(False, _pattern(line)) for line in page[-_EDGE:]}
        often.update(tops | bottoms)

    kept = []
    for page in pages:
        begin = _repeated(page, True, often)
        end = len(page) - _repeated(page[begin:][::-1], False, often)
        report.leave_out("page headers and numbers", len(page) - (end - begin))
        lines = page[begin:end]
        if lines:
            lines[-1] = lines[-1]._replace(is_last=True)
        kept += lines
    return kept


def _repeated(lines: Sequence[_Line], is_top: bool, often: Counter[tuple[bool, str]]) -> int:
    """How many lines, from the edge on, are page headers or numbers."""
    for count, line in enumerate(lines[:_EDGE]):
        is_repeated = often[is_top, _pattern(line)] >= _LEAST_REPEATED and not line.level
        is_number = len(line.text) <= _LONGEST_EDGE and _PAGE_NUMBER.fullmatch(line.text)
        if not is_repeated and not is_number:
            return count
    return min(_EDGE, len(lines))


def _pattern(line: _Line) -> str:
    """A line without its page number, which differs from page to page."""
    return re.sub(r"\d+", "#", line.text)


# Paragraphs


def _paragraphs(lines: Sequence[_Line], report: Report) -> list[Block]:
    """Lines joined to paragraphs."""
    written = [line for line in lines if not _is_entry(line)]
    report.leave_out("entries of tables of contents", len(lines) - len(written))
    lines = written
    if not lines:
        return []

    lengths = sorted(len(line.text) for line in lines)
    usual = lengths[len(lengths) * 9 // 10]
    words = Counter(word for line in lines for word in re.findall(r"[\w-]+", line.text.lower()))
    blocks: list[Block] = []
    paragraph: list[_Line] = []
    for line in lines:
        if paragraph and _ends(paragraph[-1], line, usual):
            blocks.append(_joined(paragraph, words))
            paragraph = []
        paragraph.append(line)
    blocks.append(_joined(paragraph, words))
    return blocks


def _is_entry(line: _Line) -> bool:
    """Whether a line is an entry of a table of contents: dots lead to a page number. They may be
    lines of their own."""
    if not line.text.strip(". "):
        return True
    end = line.text[-_ENTRY_END:].replace(" ", "")
    return _ENTRY_PAGE.sub("", end).endswith(_DOTS)


def _ends(line: _Line, following: _Line, usual: int) -> bool:
    """Whether a line is the last of its paragraph."""
    if line.level or following.level or _ITEM.match(following.text):
        return True
    begins_small = following.text[:1].islower()
    if begins_small or _HYPHEN.search(line.text[-_LONGEST_WORD:]):
        return False
    is_short = len(line.text) < _FULL * usual
    is_end = _ENDS.search(line.text[-_ENTRY_END:]) is not None
    if line.is_last:
        return is_end and is_short
    if line.ends_box and (is_end or is_short):
        return True
    return len(line.text) < _SHORT * usual or (is_short and is_end)


def _joined(lines: Sequence[_Line], words: Counter[str]) -> Block:
    """A paragraph of lines, in one. A hyphen at the end of a line stays if the text has the word
    with it elsewhere, and not without."""
    text = lines[0].text
    for line in lines[1:]:
        hyphen = _HYPHEN.search(text[-_LONGEST_WORD:])
        if hyphen is None or not line.text[:1].islower():
            text += f" {line.text}"
            continue
        first = hyphen[1]
        second = re.match(r"\w*", line.text)
        rest = second[0] if second is not None else ""
        with_hyphen = words[f"{first}-{rest}".lower()]
        is_word = with_hyphen > words[f"{first}{rest}".lower()]
        text = f"{text[:-1]}{'-' if is_word else ''}{line.text}"

    is_item = _BULLET.match(text) is not None
    if is_item:
        text = _BULLET.sub("- ", text, count=1)
    return Block(text, lines[0].level, is_line=is_item)
