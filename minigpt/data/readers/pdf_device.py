"""What pdfminer.six finds on the pages of a PDF. Where a page says which text some of its signs
stand for (/ActualText), that text is taken; a letter that the file does not tell is one sign.
"""

import re
from typing import Any

from pdfminer.converter import PDFPageAggregator
from pdfminer.layout import LAParams, LTChar
from pdfminer.pdffont import PDFUnicodeNotDefined
from pdfminer.pdfinterp import PDFPageInterpreter, PDFResourceManager
from pdfminer.pdfpage import PDFPage
from pdfminer.pdftypes import resolve1
from pdfminer.psparser import PSLiteral
from pdfminer.utils import decode_text

UNTOLD = "\ufffd"
_NO_LETTER = re.compile("[\x00-\x08\x0e-\x1f\ufffd\ue000-\uf8ff]")  # what maps have for none
_BULLETS = {"\uf0b7": "•", "\uf0a7": "▪"}  # of the fonts Symbol and Wingdings


class Page(PDFPage):
    """A page, which may be damaged."""

    def __init__(self, document: Any, pageid: object, attributes: Any, label: str | None):
        self.is_damaged = False
        try:
            super().__init__(document, pageid, attributes, label)
        except Exception:  # of any kind: the library does not say which
            self.pageid = pageid
            self.is_damaged = True


class Layouts:
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
            return UNTOLD
        text = _BULLETS.get(text, text)
        return UNTOLD if not text or _NO_LETTER.search(text) else text
