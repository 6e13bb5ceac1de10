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
from .boilerplate import is_heading_of_contents
from .content import Content, needs_extra
from .document import Document, Refused, Report

_EDGE = 2  # heights at the top and at the bottom of a page whose lines may be repeated on others
_LEAST_REPEATED = 3  # pages
_LEAST_TEXT = 20  # characters a page, on average, or it is a scan
_PAGE_NUMBER = re.compile(
    r"\W*(?:page|seite|p\.|s\.)?\s*(?:\d{1,4}|[ivxlc]{1,7})(?:\s*(?:/|of|von)\s*\d{1,4})?\W*", re.I
)
_ENTRY_PAGE = re.compile(r"(?:\d{1,4}|[ivxlc]{1,7})$", re.I)  # at the end of such an entry
_ENTRY_END = 40  # characters that tell
_LONGEST_EDGE = 40  # characters of a line that may be a page number
_LONGEST_HEADER = (
    80  # characters of what may stand beside one, or of a title in a table of contents
)
_FEWEST_ENTRIES = 5  # of a table of contents on a page ...
_FEWEST_BELOW_HEADING = 3  # ... that has its heading
_LONGEST_WORD = 60  # characters
_DOTS = "...."  # before it, however many spaces there are
_ITEM = re.compile(r"(?:[•●▪◦‣∙*–—-]|\(?\d{1,3}[.)]|\(?[a-z]\))\s+\S")
_BULLET = re.compile(r"[•●▪◦‣∙]\s*")
_ENDS = re.compile(r"[.!?:;…][\"'”’»)\]]*$")
_AFTER_HYPHEN = {  # words before which a hyphen stands for a part that comes later
    "und", "oder", "bis", "bzw", "sowie", "and", "or", "to", "et", "ou", "e", "y", "en",
}  # fmt: skip
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
    height: int = 0  # where it stands on its page
    level: int = 0  # if a chapter begins with it: 1
    ends_box: bool = False  # of lines that stand together
    is_last: bool = False  # on its page


def read_pdf(content: Content, report: Report) -> Iterator[Document]:
    """The chapters of a PDF."""
    if importlib.util.find_spec("pdfminer") is None:
        raise needs_extra(content.source, "PDF (pdfminer.six)", "documents", "no_reader")

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
        raise Refused(content.source, "has no text", "empty")
    if characters < _LEAST_TEXT * max(len(pages), 1) and pictures > 0:
        reason = "is a scan: its pages are pictures without text"
        remedy = "recognise it first, for instance with ocrmypdf"
        raise Refused(content.source, f"{reason}; {remedy}", "scan")
    chapters_marked = _with_chapters(pages, outline)
    lines = _without_edges([_without_contents(page, report) for page in chapters_marked], report)
    yield from documents_of(chapters(_paragraphs(lines, report)), content.source)


def _lines(boxes: list[list[tuple[str, int]]]) -> list[_Line]:
    """The lines of a page, in the order of reading."""
    lines = []
    for box in boxes:
        own = [_Line(_readable(text), height) for text, height in box]
        written = [line for line in own if line.text]
        if written:
            written[-1] = written[-1]._replace(ends_box=True)
        lines += written
    return lines


def _readable(text: str) -> str:
    """The text of a line in usual letters, with single spaces."""
    return in_one_line(_WITHOUT_LETTER.sub("", text).translate(_LIGATURES))


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


# Tables of contents


def _without_contents(page: list[_Line], report: Report) -> list[_Line]:
    """The lines of a page without its table of contents: from the heading, or else the first entry,
    to the last line that can only be in one. Numbers of pages may be lines of their own."""
    begin = next((at for at, line in enumerate(page) if is_heading_of_contents(line.text)), None)
    fewest = _FEWEST_ENTRIES if begin is None else _FEWEST_BELOW_HEADING
    if begin is None:
        begin = next((at for at, line in enumerate(page) if _is_entry(line)), len(page))

    end = begin
    entries = 0
    for at, line in enumerate(page[begin:], start=begin):
        if _is_entry(line) or _is_page_number(line):
            end = at + 1
            entries += 1
        elif len(line.text) > _LONGEST_HEADER:
            break
    if entries < fewest:
        return page
    report.leave_out("entries of tables of contents", end - begin)
    return page[:begin] + page[end:]


# Page headers and numbers


def _without_edges(pages: Sequence[list[_Line]], report: Report) -> list[_Line]:
    """The lines of all pages, without those at the edges that are on several, and page numbers."""
    edges = [(_at_edge(page, is_top=True), _at_edge(page, is_top=False)) for page in pages]
    often: Counter[tuple[bool, str]] = Counter()
    offsets: Counter[int] = Counter()  # of the number of a page from its place
    for number, (tops, bottoms) in enumerate(edges):
        often.update({(True, _pattern(line)) for row in tops for line in row})
        often.update({(False, _pattern(line)) for row in bottoms for line in row})
        offsets.update({int(line.text) - number for row in (*tops, *bottoms) for line in row
                        if _is_plain_number(line)})  # fmt: skip

    kept = []
    for number, (page, (tops, bottoms)) in enumerate(zip(pages, edges, strict=True)):
        usual = {str(number + offset) for offset, count in offsets.items()
                 if count >= _LEAST_REPEATED}  # fmt: skip
        left_out: set[_Line] = set()
        for is_top, rows in ((True, tops), (False, bottoms)):
            for row in rows:
                if not _is_edge(row, is_top, often, usual):
                    break
                left_out.update(row)

        lines = [line for line in page if line not in left_out]
        report.leave_out("page headers and numbers", len(page) - len(lines))
        if lines:
            lines[-1] = lines[-1]._replace(is_last=True)
        kept += lines
    return kept


def _at_edge(page: Sequence[_Line], is_top: bool) -> list[list[_Line]]:
    """The lines at the edge of a page, those of the same height together, the outermost first."""
    heights = sorted({line.height for line in page}, reverse=is_top)[:_EDGE]
    return [[line for line in page if line.height == height] for height in heights]


def _is_edge(
    row: Sequence[_Line], is_top: bool, often: Counter[tuple[bool, str]], usual: set[str]
) -> bool:
    """Whether lines of the same height are page headers or numbers. Beside the number of a page all
    are; `usual` are the numbers that the page has if it is counted like the others."""
    if any(line.level for line in row):
        return False
    if any(line.text in usual for line in row):
        return all(len(line.text) <= _LONGEST_HEADER for line in row)
    return all(
        often[is_top, _pattern(line)] >= _LEAST_REPEATED or _is_page_number(line) for line in row
    )


def _is_page_number(line: _Line) -> bool:
    return len(line.text) <= _LONGEST_EDGE and _PAGE_NUMBER.fullmatch(line.text) is not None


def _is_plain_number(line: _Line) -> bool:
    return line.text.isascii() and line.text.isdecimal() and len(line.text) <= 4


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
        if paragraph and _ends(paragraph, line, usual):
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


def _ends(paragraph: Sequence[_Line], following: _Line, usual: int) -> bool:
    """Whether the last line so far is the last of its paragraph."""
    line = paragraph[-1]
    if line.level or following.level or _ITEM.match(following.text):
        return True
    begins_small = following.text[:1].islower()
    if begins_small or _HYPHEN.search(line.text[-_LONGEST_WORD:]):
        return False
    is_short = len(line.text) < _FULL * usual
    is_end = _ENDS.search(line.text[-_ENTRY_END:]) is not None
    if line.is_last:
        longest = max((len(before.text) for before in paragraph[:-1]), default=usual)
        is_very_short = len(line.text) < _SHORT * min(longest, usual)  # a column may be narrow
        return is_very_short or (is_end and is_short)
    if line.ends_box and (is_end or is_short):
        return True
    return len(line.text) < _SHORT * usual or (is_short and is_end)


def _joined(lines: Sequence[_Line], words: Counter[str]) -> Block:
    """A paragraph of lines, in one. A hyphen at the end of a line stays if the text has the word
    with it elsewhere, and not without."""
    text = lines[0].text
    for line in lines[1:]:
        hyphen = _HYPHEN.search(text[-_LONGEST_WORD:])
        second = re.match(r"\w*", line.text)
        rest = second[0] if second is not None else ""
        if hyphen is None or not rest or rest.lower() in _AFTER_HYPHEN:
            text += f" {line.text}"
            continue
        first = hyphen[1]
        if not rest[0].islower() and not (first.isupper() and rest.isupper()):
            text += line.text  # "Franco-German", "1990-2000"
            continue
        with_hyphen = words[f"{first}-{rest}".lower()]
        is_word = with_hyphen > words[f"{first}{rest}".lower()]
        text = f"{text[:-1]}{'-' if is_word else ''}{line.text}"

    is_item = _BULLET.match(text) is not None
    if is_item:
        text = _BULLET.sub("- ", text, count=1)
    return Block(text, lines[0].level, is_line=is_item)
