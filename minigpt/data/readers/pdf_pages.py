"""The lines of each page of a PDF, by pdfminer.six: a program that `apart.read_apart` starts.

It prints the outline first: [page number, title] for each entry of the highest level that has
several, and how many pages the file says it has. Then it prints for each page its boxes, whether it
shows a picture and how many of its figures hold texts; or that the page is damaged. A box is a list
of lines that stand together, each with its height on the page. Where a page says which text some of
its signs stand for (/ActualText), that text is taken; a letter that the file does not tell is one
sign.
"""

import itertools
import logging
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pdfminer.converter import PDFPageAggregator
from pdfminer.layout import (
    LAParams,
    LTChar,
    LTFigure,
    LTImage,
    LTTextBox,
    LTTextLineHorizontal,
)
from pdfminer.pdfdocument import PDFDocument, PDFEncryptionError
from pdfminer.pdffont import PDFUnicodeNotDefined
from pdfminer.pdfinterp import PDFPageInterpreter, PDFResourceManager
from pdfminer.pdfpage import PDFPage
from pdfminer.pdfparser import PDFParser
from pdfminer.pdftypes import resolve1
from pdfminer.psparser import LIT, PSLiteral
from pdfminer.utils import decode_text

from .apart import CannotRead, answer
from .right_to_left import has_right_to_left, in_order_of_reading, is_from_right

_UNTOLD = "\ufffd"
_NO_LETTER = re.compile("[\x00-\x08\x0e-\x1f\ufffd\ue000-\uf8ff]")  # what maps have for none
_BULLETS = {"\uf0b7": "•", "\uf0a7": "▪"}  # of the fonts Symbol and Wingdings
_MOST_ENTRIES = 10_000  # of an outline
_SAME_PLACE = 0.2  # of its width: so near to the same letter before, a letter is printed again
_GAP = 0.1  # of a letter's size: so far from the one before, another word begins


def pages(stream: Any) -> Iterator[Any]:
    """The outline, then each page."""
    logging.disable()
    try:
        document = PDFDocument(PDFParser(stream))
        yield {"outline": _outline(document), "pages": _how_many(document)}
        stream.seek(0)
        layouts = _Layouts()
        for page in _Page.get_pages(stream):
            yield _page(layouts, page)
    except PDFEncryptionError:
        raise CannotRead("is protected by a password, or encrypted", "locked") from None
    except RecursionError:
        raise CannotRead("loops: one of its parts is inside itself", "damaged") from None


def _page(layouts: Any, page: Any) -> dict[str, Any]:
    """What a page holds. If it is damaged, the other pages are still read."""
    if page.is_damaged:
        return {"is_damaged": True}
    try:
        layout = layouts.of_page(page)
    except (MemoryError, RecursionError):
        raise
    except Exception:  # of any kind: the library does not say which
        return {"is_damaged": True}

    boxes = list(_boxes(layout))
    figures = [part for part in layout if isinstance(part, LTFigure)]
    with_text = [own for own in map(list, map(_boxes, figures)) if own]
    if not boxes:  # some programs put all of a page into a figure
        boxes = [box for own in with_text for box in own]
        with_text = []
    return {
        "boxes": boxes,
        "has_picture": any(isinstance(part, LTFigure | LTImage) for part in layout),
        "texts_in_figures": len(with_text),
        **_beside(page),
    }


def _beside(page: Any) -> dict[str, int]:
    """How many comments and filled fields of a form stand on a page; none if they are damaged."""
    counts = {"comments": 0, "fields": 0}
    try:
        found = [resolve1(one) for one in resolve1(page.annots) or []]
        for one in (one for one in found if isinstance(one, dict)):
            kind = resolve1(one.get("Subtype"))
            if kind is LIT("Widget"):
                parent = resolve1(one.get("Parent"))
                inherited = parent.get("V") if isinstance(parent, dict) else None
                value = resolve1(one.get("V", inherited))
                counts["fields"] += isinstance(value, bytes) and bool(value.strip())
            elif kind not in (LIT("Link"), LIT("Popup")):
                counts["comments"] += bool(resolve1(one.get("Contents")))
    except Exception:  # of any kind: the text can be read without them
        return counts
    return counts


def _boxes(container: Any) -> Iterator[list[tuple[str, int]]]:
    """The lines of each box of a page or a figure and their heights, in the order of reading."""
    for part in container:
        if isinstance(part, LTTextBox):
            is_box_from_right = is_from_right(part.get_text())
            yield [(_text_of(line, is_box_from_right), round(line.y1)) for line in part]
        elif isinstance(part, LTFigure) and isinstance(container, LTFigure):
            yield from _boxes(part)


def _text_of(line: Any, is_box_from_right: bool) -> str:
    """The text of a line. A letter that is printed twice in its place, to look bold, is one."""
    signs: list[str] = []
    letters: list[Any] = []
    before: Any = None
    space = ""  # between the letters before and the next, unless both stand for one text
    for part in line:
        if not isinstance(part, LTChar):
            space = part.get_text()
            continue
        if part.get_text() and not (before is not None and _is_printed_again(part, before)):
            signs += [space, part.get_text()]
            letters.append(part)
        before = part
        space = ""

    if isinstance(line, LTTextLineHorizontal) and has_right_to_left(signs):
        return in_order_of_reading(_from_left_to_right(letters), is_box_from_right)
    return "".join(signs)


def _from_left_to_right(letters: list[Any]) -> list[str]:
    """The texts of letters as they stand in their line, with spaces where there are gaps."""
    signs: list[str] = []
    end = None  # of the letter before
    for letter in sorted(letters, key=lambda letter: float(letter.x0)):
        text = letter.get_text()
        if end is not None and letter.x0 - end > _GAP * max(letter.width, letter.height):
            signs.append(" ")
        end = max(letter.x1, end or letter.x1)
        is_mark = unicodedata.combining(text[0]) > 0 and has_right_to_left(signs[-1:])
        signs.insert(len(signs) - 1 if is_mark else len(signs), text)  # its letter is read first
    return signs


def _is_printed_again(letter: Any, before: Any) -> bool:
    is_same = letter.get_text() == before.get_text() and not letter.get_text().isspace()
    return is_same and abs(letter.x0 - before.x0) < _SAME_PLACE * letter.width


def _how_many(document: Any) -> int:
    """How many pages the file says it has; 0 if it does not say."""
    tree = resolve1(document.catalog.get("Pages"))
    said = resolve1(tree.get("Count")) if isinstance(tree, dict) else 0
    return said if isinstance(said, int) else 0


def _outline(document: Any) -> list[tuple[int, str]]:
    """The entries of the outline; none if it is damaged."""
    try:
        numbers = {page.pageid: number for number, page in enumerate(_first_pages(document))}
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


def _first_pages(document: Any) -> Iterator[Any]:
    """The first pages of a document, since a tree of pages may have no end."""
    for number, page in enumerate(_Page.create_pages(document)):
        if number >= _MOST_ENTRIES:
            return
        yield page


def _page_of(document: Any, target: Any, action: Any) -> Any:
    """The id of the page to which an entry of the outline leads."""
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


# What stands on a page


class _Page(PDFPage):
    """A page, which may be damaged."""

    def __init__(self, document: Any, pageid: object, attributes: Any, label: str | None):
        self.is_damaged = False
        try:
            super().__init__(document, pageid, attributes, label)
        except Exception:  # of any kind: the library does not say which
            self.pageid = pageid
            self.is_damaged = True


class _Layouts:
    """Makes the layouts of pages, one after the other."""

    def __init__(self) -> None:
        self._resources = PDFResourceManager(caching=True)

    def of_page(self, page: Any) -> Any:
        """The layout of a page: boxes of lines of letters, and figures."""
        device = _Device(self._resources, laparams=LAParams(all_texts=True))
        _Interpreter(self._resources, device).process_page(page)
        return device.get_result()


class _Interpreter(PDFPageInterpreter):
    """Tells the device the properties of marked content, which a page may refer to by name."""

    def do_BMC(self, tag: Any) -> None:
        self.device.begin_tag(tag)

    def do_BDC(self, tag: Any, props: Any) -> None:
        if isinstance(props, PSLiteral):
            named = resolve1(self.resources.get("Properties"))
            props = named.get(props.name) if isinstance(named, dict) else None
        self.device.begin_tag(tag, resolve1(props))


class _Device(PDFPageAggregator):
    """Lays out the letters of a page."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self._said: list[str | None] = []  # what is left of the texts that open tags stand for

    def begin_tag(self, tag: Any, props: Any = None) -> None:
        said = resolve1(props.get("ActualText")) if isinstance(props, dict) else None
        self._said.append(decode_text(said) if isinstance(said, bytes) else None)

    def end_tag(self) -> None:
        if self._said:
            self._said.pop()

    def render_char(
        self,
        matrix: Any,
        font: Any,
        fontsize: float,
        scaling: float,
        rise: float,
        cid: int,
        ncs: Any,
        graphicstate: Any,
    ) -> float:
        """Add a letter to the page, as pdfminer.six does, with the text that it stands for."""
        letter = LTChar(
            matrix,
            font,
            fontsize,
            scaling,
            rise,
            self._text(font, cid),
            font.char_width(cid),
            font.char_disp(cid),
            ncs,
            graphicstate,
        )
        self.cur_item.add(letter)
        return float(letter.adv)

    def _text(self, font: Any, cid: int) -> str:
        """What a sign stands for. The first one in a tag has all its text, the others have none."""
        for place, said in enumerate(self._said):
            if said is not None:
                self._said[place] = ""
                return said

        try:
            text = str(font.to_unichr(cid))
        except PDFUnicodeNotDefined:
            return _UNTOLD
        text = _BULLETS.get(text, text)
        return _UNTOLD if not text or _NO_LETTER.search(text) else text


if __name__ == "__main__":
    answer(pages(sys.stdin.buffer))
