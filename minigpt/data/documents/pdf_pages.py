"""The lines of each page of a PDF, by pdfminer.six: a program that `apart.read_apart` starts.

It prints the outline first, as [number of a page, title] of the entries of the highest level that
has several; then for each page its boxes and whether it shows a picture. A box is a list of lines
that stand together, each with how high it stands on the page.
"""

import itertools
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from .apart import Told, answer

_MOST_ENTRIES = 10_000  # of an outline
_SAME_PLACE = 0.2  # of a letter's width: so near to the one before, it is that letter again


def pages(stream: Any) -> Iterator[Any]:
    """The outline, then each page."""
    from pdfminer.high_level import extract_pages
    from pdfminer.layout import LAParams
    from pdfminer.pdfdocument import PDFDocument, PDFEncryptionError
    from pdfminer.pdfparser import PDFParser

    logging.disable()
    try:
        yield _outline(PDFDocument(PDFParser(stream)))
        stream.seek(0)
        for page in extract_pages(stream, laparams=LAParams()):
            yield {"boxes": list(_boxes(page)), "has_picture": _has_picture(page)}
    except PDFEncryptionError:
        raise Told("is protected by a password, or encrypted", "locked") from None
    except RecursionError:
        raise Told("loops: one of its parts is inside itself", "damaged") from None


def _boxes(page: Any) -> Iterator[list[tuple[str, int]]]:
    """The lines of each box of a page and their heights, in the order of reading."""
    from pdfminer.layout import LTTextBox

    for box in page:
        if isinstance(box, LTTextBox):
            yield [(_text_of(line), round(line.y1)) for line in box]


def _text_of(line: Any) -> str:
    """The text of a line. A letter that is printed twice in its place, to look bold, is one."""
    from pdfminer.layout import LTChar

    text = ""
    before: Any = None
    for part in line:
        if isinstance(part, LTChar):
            is_again = before is not None and _is_printed_again(part, before)
            before = part
            if is_again:
                continue
        text += part.get_text()
    return text


def _is_printed_again(letter: Any, before: Any) -> bool:
    is_same = letter.get_text() == before.get_text() and not letter.get_text().isspace()
    return is_same and abs(letter.x0 - before.x0) < _SAME_PLACE * letter.width


def _has_picture(page: Any) -> bool:
    """Whether a page shows a picture."""
    from pdfminer.layout import LTFigure, LTImage

    return any(isinstance(one, LTFigure | LTImage) for one in page)


def _outline(document: Any) -> list[tuple[int, str]]:
    """The entries of the outline; none if it is damaged."""
    from pdfminer.pdfpage import PDFPage

    try:
        numbers = {page.pageid: number for number, page in enumerate(_first(PDFPage, document))}
        entries = list(itertools.islice(document.get_outlines(), _MOST_ENTRIES))
        levels = Counter(level for level, *_ in entries)
        highest = min((level for level, count in levels.items() if count > 1), default=0)

        found = []
        for level, title, target, action, _ in entries:
            if level != highest:  # to find the page of an entry takes time
                continue
            number = numbers.get(_page_of(document, target, action))
            if number is not None:
                found.append((number, str(title)))
        return found
    except Exception:  # of any kind, or there is none: the text can be read without it
        return []


def _first(pages: Any, document: Any) -> Iterator[Any]:
    """The first pages of a document, since a tree of pages may have no end."""
    for number, page in enumerate(pages.create_pages(document)):
        if number >= _MOST_ENTRIES:
            return
        yield page


def _page_of(document: Any, target: Any, action: Any) -> Any:
    """The id of the page to which an entry of the outline leads."""
    from pdfminer.pdftypes import resolve1
    from pdfminer.psparser import PSLiteral

    if target is None and action is not None:
        target = resolve1(action).get("D")
    target = resolve1(target)
    if isinstance(target, PSLiteral):
        target = target.name
    if isinstance(target, bytes | str):
        target = resolve1(document.get_dest(target))
    if isinstance(target, dict):
        target = resolve1(target.get("D"))
    return target[0].objid


if __name__ == "__main__":
    answer(pages(sys.stdin.buffer))
