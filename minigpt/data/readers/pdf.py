"""A PDF: from the lines of its pages to paragraphs and chapters.

A PDF does not say what a paragraph is. Lines are joined by their lengths and last characters; what
is repeated at the edge of pages is left out; hyphens at the ends of lines are joined.
"""

import importlib.util
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .apart import read_apart
from .content import Content, needs_extra
from .document import Document, Refused, Report, Unreadable
from .paragraphs import (
    Block,
    chapters,
    documents_of,
    in_one_line,
    is_heading_of_contents,
    paragraph_of,
)

_EDGE = 2  # heights at the top and at the bottom of a page whose lines may be repeated on others
_LEAST_REPEATED = 3  # pages
_LEAST_TEXT = 20  # characters a page, on average, or it is a scan
_LEAST_COUNTED = 2  # pages, if their numbers are those that they have in the file
_NUMBER = re.compile(r"(?<!\w)(?:\d{1,4}|[ivxlc]{1,7})(?!\w)")
_ROMAN = re.compile(r"(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})")  # below a hundred
_ROMAN_DIGITS = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}
_MOST_NUMBERS = 4  # in a line, of which one may be that of the page
_PAGE_OF = re.compile(r"\W*(?:page|seite|p\.)\s*\d{1,4}(?:\s*(?:/|of|von)\s*\d{1,4})?\W*", re.I)
_ROW_OF_DOTS = re.compile(  # at the end of an entry, without spaces; an ellipsis has up to four
    r"(?:\.{6,}(?:\d{1,4}|[ivxlc]{1,7})?|\.{4,}\d{1,4})$", re.I
)
_FEWER_THAN_ELLIPSIS = (".", "..")  # what is left of a row of dots, or of a formula
_LINE_END = 40  # characters that tell
_LONGEST_HEADER = (
    80  # characters; the same holds beside a page number, and for a title in a table of contents
)
_FEWEST_ENTRIES = 5  # of a table of contents on a page ...
_FEWEST_BELOW_HEADING = 3  # ... that has its heading
_LONGEST_WORD = 60  # characters
_ITEM = re.compile(r"(?:[•●▪◦‣∙*–—-]|\(?\d{1,3}[.)]|\(?[a-z]\))\s+\S")
_BULLET = re.compile(r"[•●▪◦‣∙]\s*")
_ENDS = re.compile(r"[.!?:;…][\"'”’»)\]]*$")
_AFTER_HYPHEN = {  # words before which a hyphen stands for a part that comes later
    "und", "oder", "bis", "bzw", "sowie", "and", "or", "to", "et", "ou", "e", "y", "en",
}  # fmt: skip
_SOFT_HYPHEN = "\u00ad"
_HYPHEN = re.compile(r"(\w+)[-\u2010]$")
_FORMS = re.compile("[\ufb00-\ufdff\ufe70-\ufefc]")  # ligatures, letters as they are in a word
_UNREADABLE_PAGES = "pages whose letters the file does not tell"
_PICTURES = "pages that are pictures"
_DAMAGED = "pages that are damaged"
_MISSING = "pages that are missing in the file"
_UNKNOWN_LETTER = "\ufffd"  # a sign of which the file does not tell the letter
_FULL = 0.75  # of the usual length of a line: a shorter one may end a paragraph
_SHORT = 0.5  # of it: a shorter one does, unless the next begins in lower case


class _Line(NamedTuple):
    """A line of a page."""

    text: str
    height: int = 0  # where it stands on its page
    level: int = 0  # 1 if a chapter begins with it
    ends_box: bool = False  # whether it is the last of lines that stand together
    is_last: bool = False  # on its page


def read_pdf(content: Content, report: Report) -> Iterator[Document]:
    """The chapters of a PDF."""
    if importlib.util.find_spec("pdfminer") is None:
        raise needs_extra(content.source, "PDF (pdfminer.six)", "documents", "no_reader")

    values = read_apart("pdf_pages", content)
    first: dict[str, Any] = next(values, {"outline": [], "pages": 0})
    pages: list[list[_Line]] = []
    characters = 0
    pictures = 0
    without_text: Counter[str] = Counter()  # pages, by the reason
    for page in values:
        lines, reason = _lines_of_page(page, report)
        without_text.update([reason] if reason else [])
        characters += sum(len(line.text) for line in lines)
        pictures += page.get("has_picture", False)
        pages.append(lines)
    without_text[_MISSING] = max(first["pages"] - len(pages), 0)

    unread = without_text[_UNREADABLE_PAGES] + without_text[_DAMAGED]
    if characters < _LEAST_TEXT * max(len(pages) - unread, 1):
        _refuse_pages(content, without_text, pictures)
    if not characters:
        raise Refused(content.source, "has no text", "empty")
    for reason, number in without_text.items():
        report.leave_out(reason, number)
    chapters_marked = _with_chapters(pages, first["outline"])
    lines = _without_edges([_without_contents(page, report) for page in chapters_marked], report)
    yield from documents_of(chapters(_paragraphs(lines, report)), content.source)


def _lines_of_page(page: dict[str, Any], report: Report) -> tuple[list[_Line], str]:
    """The lines of a page, and why it has none."""
    if page.get("is_damaged"):
        return [], _DAMAGED
    written = "".join(text for box in page["boxes"] for text, _ in box)
    unknown = written.count(_UNKNOWN_LETTER)
    known = len("".join(written.split())) - unknown
    if unknown > known:
        return [], _UNREADABLE_PAGES

    report.leave_out("signs whose letters the file does not tell", unknown)
    report.leave_out("texts in figures", page["texts_in_figures"])
    report.leave_out("comments", page["comments"])
    report.leave_out("fields of forms", page["fields"])
    lines = _lines(page["boxes"])
    is_picture = page["has_picture"] and not any(map(str.isalpha, written))
    return lines, _PICTURES if is_picture else ""


def _refuse_pages(content: Content, without_text: Counter[str], pictures: int) -> None:
    """Refuse a file with hardly any text if its pages tell why."""
    if without_text[_UNREADABLE_PAGES]:
        reason = "does not tell which letters its pages show: its fonts have no map"
        remedy = "recognise it first, for instance with ocrmypdf --force-ocr"
        raise Refused(content.source, f"{reason}; {remedy}", "scan")
    if pictures:
        reason = "is a scan: its pages are pictures without text"
        remedy = "recognise it first, for instance with ocrmypdf"
        raise Refused(content.source, f"{reason}; {remedy}", "scan")
    if without_text[_DAMAGED]:
        raise Unreadable(content.source, "its pages are damaged")


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
    known = text.replace(_UNKNOWN_LETTER, "").rstrip()
    if known.endswith(_SOFT_HYPHEN):
        known = f"{known[:-1]}-"  # at the end of a line a soft hyphen is printed
    return in_one_line(_FORMS.sub(lambda form: unicodedata.normalize("NFKC", form[0]), known))


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
    to the last entry or page number, which may be a line of its own. Where there is no heading,
    only rows of dots tell: formulas and tables have numbers and single dots too."""
    begin = next((at for at, line in enumerate(page) if is_heading_of_contents(line.text)), None)
    if begin is None:
        leading = [at for at, line in enumerate(page) if _has_row_of_dots(line)]
        if len(leading) < _FEWEST_ENTRIES:
            return page
        begin = leading[0]

    end = begin
    entries = 0
    for at, line in enumerate(page[begin:], start=begin):
        if _is_entry(line) or _is_number(line):
            end = at + 1
            entries += 1
        elif len(line.text) > _LONGEST_HEADER:
            break
    if entries < _FEWEST_BELOW_HEADING:
        return page
    report.leave_out("entries of tables of contents", end - begin)
    return page[:begin] + page[end:]


def _is_number(line: _Line) -> bool:
    return _NUMBER.fullmatch(line.text) is not None and _value(line.text) > 0


# Page headers and numbers


def _without_edges(pages: Sequence[list[_Line]], report: Report) -> list[_Line]:
    """The lines of all pages, without page numbers and lines that several pages have at an edge."""
    edges = [(_at_edge(page, is_top=True), _at_edge(page, is_top=False)) for page in pages]
    often: Counter[_Pattern] = Counter()
    for place, both in enumerate(edges):
        often.update({pattern for rows in both for row in rows for line in row
                      for pattern in _patterns(line, place)})  # fmt: skip
    repeated = {pattern for pattern, count in often.items() if count >= pattern.least}

    kept = []
    for place, (page, both) in enumerate(zip(pages, edges, strict=True)):
        left_out: set[_Line] = set()
        for rows in both:
            for row in rows:
                if not _is_edge(row, place, repeated):
                    break
                left_out.update(row)

        lines = [line for line in page if line not in left_out]
        report.leave_out("page headers and numbers", len(page) - len(lines))
        if lines:
            lines[-1] = lines[-1]._replace(is_last=True)
        kept += lines
    return kept


class _Pattern(NamedTuple):
    """What lines on several pages have in common: their text, perhaps except for a number that goes
    up with the pages."""

    text: str
    first: int | None = None  # what the number is on the first page, if there is one
    pages: int = 1  # how many a page of the file shows: it may be a sheet with two

    @property
    def is_number(self) -> bool:
        """Whether such lines are the number of a page alone."""
        return not any(map(str.isalnum, self.text))

    @property
    def least(self) -> int:
        """The number of pages from which on such lines are no accident."""
        is_natural = self.first == 1 and self.pages == 1
        return _LEAST_COUNTED if is_natural else _LEAST_REPEATED


def _patterns(line: _Line, place: int) -> set[_Pattern]:
    """What a line at the edge of a page may have in common with others."""
    if len(line.text) > _LONGEST_HEADER or line.level:
        return set()
    patterns = {_Pattern(line.text)}
    if not any(map(str.isalpha, line.text)):  # a number alone: it is no header
        patterns.clear()
    for found in itertools.islice(_NUMBER.finditer(line.text), _MOST_NUMBERS):
        number = _value(found[0])
        text = f"{line.text[: found.start()]}#{line.text[found.end() :]}"
        text = re.sub(r"\d+", "#", text)  # on a sheet with two pages there are two
        if number > 0:
            patterns |= {_Pattern(text, number - n * place, n) for n in (1, 2)}
    return patterns


def _value(number: str) -> int:
    """The value of a number, also in Roman letters; 0 for letters that are none."""
    if number.isdecimal():
        return int(number)
    if _ROMAN.fullmatch(number) is None:
        return 0
    values = [_ROMAN_DIGITS[letter] for letter in number]
    following = [*values[1:], 0]
    return sum(-v if v < after else v for v, after in zip(values, following, strict=True))


def _at_edge(page: Sequence[_Line], is_top: bool) -> list[list[_Line]]:
    """The lines at the edge of a page, those of the same height together, the outermost first."""
    heights = sorted({line.height for line in page}, reverse=is_top)[:_EDGE]
    return [[line for line in page if line.height == height] for height in heights]


def _is_edge(row: Sequence[_Line], place: int, repeated: set[_Pattern]) -> bool:
    """Whether lines of the same height are page headers or numbers. If one is a page number, short
    lines beside it are headers."""
    if any(line.level for line in row):
        return False
    found = [_patterns(line, place) & repeated for line in row]
    if any(pattern.is_number for patterns in found for pattern in patterns):
        return all(len(line.text) <= _LONGEST_HEADER for line in row)
    return all(
        patterns or _PAGE_OF.fullmatch(line.text) for patterns, line in zip(found, row, strict=True)
    )


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
    """Whether a line is an entry of a table of contents: dots lead to a page number. The dots may
    be a line of their own."""
    return line.text in _FEWER_THAN_ELLIPSIS or _has_row_of_dots(line)


def _has_row_of_dots(line: _Line) -> bool:
    """Whether a line ends in many dots, or in dots and a page number."""
    end = line.text[-_LINE_END:].replace(" ", "")
    return _ROW_OF_DOTS.search(end) is not None


def _ends(paragraph: Sequence[_Line], following: _Line, usual: int) -> bool:
    """Whether the last line so far is the last of its paragraph."""
    line = paragraph[-1]
    if line.level or following.level or _ITEM.match(following.text):
        return True
    begins_small = following.text[:1].islower()
    if begins_small or _HYPHEN.search(line.text[-_LONGEST_WORD:]):
        return False
    is_short = len(line.text) < _FULL * usual
    is_end = _ENDS.search(line.text[-_LINE_END:]) is not None
    if line.is_last:
        longest = max((len(before.text) for before in paragraph[:-1]), default=usual)
        is_very_short = len(line.text) < _SHORT * min(longest, usual)  # a column may be narrow
        return is_very_short or (is_end and is_short)
    if line.ends_box and (is_end or is_short):
        return True
    return len(line.text) < _SHORT * usual or (is_short and is_end)


def _joined(lines: Sequence[_Line], words: Counter[str]) -> Block:
    """The lines of a paragraph as one. A hyphen at the end of a line stays if the text has the word
    more often with a hyphen than without."""
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
        text = _BULLET.sub("", text, count=1)
    return paragraph_of(text, lines[0].level, is_item)
