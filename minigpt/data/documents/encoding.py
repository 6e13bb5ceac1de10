"""From the bytes of a plain file to its text: UTF-8, UTF-16 by its mark, or Windows-1252."""

import codecs
import io
import re
from collections.abc import Iterator
from typing import BinaryIO

from ... import UserError
from .content import BLOCK, Content
from .document import Refused, Report

FALLBACK = "cp1252"
UTF_8 = "utf-8-sig"  # perhaps with a mark
_MARKS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NAMES = {"utf-8-sig": "UTF-8"}
_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0e-\x19\x1c-\x1f\x7f]")  # no plain text has these


def encoding_of(content: Content) -> str:
    """The encoding that was given, or else that of the file's mark: usually UTF-8."""
    return content.reading.encoding or marked_encoding(content.head)


def marked_encoding(head: bytes) -> str:
    """The encoding of the mark with which a file begins; UTF-8 if there is none."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    return "utf-8-sig"


def encoding_called(name: str) -> str:
    """The encoding that a page or a letter means by a name, perhaps misspelt, such as cp-850. UTF-8
    if it is none that Python knows, and for ASCII, which nobody names who has other letters."""
    for spelling in (name.lower(), re.sub(r"[\W_]", "", name.lower())):
        if spelling in ("iso-8859-1", "latin1", "windows-1252"):  # as browsers do
            return FALLBACK
        if spelling in ("ascii", "us-ascii") or spelling.startswith("utf-16"):  # it cannot be true
            return UTF_8
        try:
            b"a".decode(spelling)
            return spelling
        except (LookupError, ValueError):
            continue
    return UTF_8


def plain_blocks(content: Content, report: Report) -> Iterator[str]:
    """The text of a plain file, about a megabyte at a time; each line ends with \\n.

    A file that is UTF-8 up to its first byte above 127, and not there, is read as Windows-1252 if
    that has a character for each byte. UserError if it is no text.
    """
    with content.opened() as stream:
        for text in _line_ends(_decoded(stream, content, report)):
            if text:
                yield text


def text_head(content: Content) -> str:
    """How the text of a file begins; UserError if it is no text."""
    head = content.head
    decoder = _Decoder(content, Report(content.source))
    return decoder.decode(head, is_last=False).removeprefix("\ufeff")


def _line_ends(texts: Iterator[str]) -> Iterator[str]:
    """Texts in which lines end with \\n, as on Unix, not as on Windows or old Macs."""
    newlines = io.IncrementalNewlineDecoder(None, translate=True)
    for text in texts:
        yield newlines.decode(text)
    yield newlines.decode("", final=True)


def _decoded(stream: BinaryIO, content: Content, report: Report) -> Iterator[str]:
    decoder = _Decoder(content, report)
    is_last = False
    while not is_last:
        block = stream.read(BLOCK)
        is_last = not block
        yield decoder.decode(block, is_last)


class _Decoder:
    """Decodes a file block by block."""

    def __init__(self, content: Content, report: Report):
        self._content = content
        self._report = report
        self._encoding = encoding_of(content)
        self._codec = codecs.getincrementaldecoder(self._encoding)()
        self._position = 0  # bytes read so far
        self._was_ascii = True  # so far

    def decode(self, block: bytes, is_last: bool) -> str:
        """The text of the next block."""
        is_first = self._position == 0
        is_wide = self._content.reading.encoding is not None or "8" not in self._encoding
        if is_first and not is_wide:
            self._refuse_nul(block.find(b"\0"), _wide_encoding(block))
        self._position += len(block)

        try:
            text = self._codec.decode(block, is_last)
        except UnicodeDecodeError as error:
            text = self._in_fallback(error)
        except UnicodeError as error:  # UTF-16 without its mark
            raise Refused(
                self._content.source, f"is not {self._encoding}: {error}", "encoding"
            ) from None

        if is_first and is_wide:
            self._refuse_nul(text.find("\0"))
        if self._encoding == FALLBACK and _NO_TEXT.search(text):
            raise self._not_text(0, 0)
        self._was_ascii = self._was_ascii and text.isascii()
        return text

    def _in_fallback(self, error: UnicodeDecodeError) -> str:
        """What could not be decoded, in Windows-1252, in which the file is read from now on."""
        data = bytes(error.object)
        offset = self._position - len(data) + error.start
        wrong = self._not_text(offset, data[error.start])
        is_guessed = self._content.reading.encoding is None and self._encoding == "utf-8-sig"
        if not (is_guessed and self._was_ascii and data[: error.start].isascii()):
            raise wrong

        self._encoding = FALLBACK
        self._codec = codecs.getincrementaldecoder(FALLBACK)()
        self._report.note("read as Windows-1252, since it is not UTF-8 (--encoding names another)")
        try:
            text = data.decode(FALLBACK)
        except UnicodeDecodeError:
            raise wrong from None
        if _NO_TEXT.search(text):
            raise wrong
        return text

    def _not_text(self, offset: int, byte: int) -> UserError:
        """The error for a byte that the encoding does not have."""
        if self._encoding == FALLBACK:
            return Refused(self._content.source, "is not text, or not in UTF-8; name its encoding")
        name = _NAMES.get(self._encoding, self._encoding)
        found = f"is not {name}: byte 0x{byte:02x} at offset {offset}"
        remedy = "name its encoding, as --encoding latin1"
        return Refused(self._content.source, f"{found}; {remedy}", "encoding")

    def _refuse_nul(self, offset: int, likely: str | None = None) -> None:
        """Refuse a file that has a NUL in its first block: it is not text, or it is in a `likely`
        encoding that nobody has named."""
        if offset < 0:
            return
        reason = f"is not text: it has a NUL byte at offset {offset}"
        if likely is not None:
            reason += f"; if it is UTF-16, name its encoding: --encoding {likely}"
        raise Refused(self._content.source, reason)


def _wide_encoding(block: bytes) -> str | None:
    """UTF-16, in one of its two orders, if every other byte is a NUL, as in English without the
    mark of that encoding; else None."""
    for encoding, high, low in (
        ("utf-16-le", block[1::2], block[0::2]),
        ("utf-16-be", block[0::2], block[1::2]),
    ):
        if high.count(0) > 0.9 * len(high) and 0 not in low:
            return encoding
    return None


def decoded_whole(data: bytes, encoding: str, content: Content, report: Report) -> str:
    """A whole text in an encoding, or else in Windows-1252; odd bytes become question marks, since
    a page is no worse for one."""
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError):
        pass
    if encoding == "utf-8-sig" and _is_mostly(data, encoding):
        return data.decode(encoding, "replace")
    report.note(f"read as Windows-1252, since it is not {_NAMES.get(encoding, encoding)}")
    return data.decode(FALLBACK, "replace")


def _is_mostly(data: bytes, encoding: str) -> bool:
    """Whether nearly all characters beyond ASCII can be decoded."""
    text = data.decode(encoding, "replace")
    wrong = text.count("\ufffd")
    right = sum(not character.isascii() for character in text) - wrong
    return right > 4 * wrong
