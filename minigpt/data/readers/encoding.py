"""From the bytes of a plain file to its text: UTF-8, UTF-16 by its mark, or Windows-1252. A text in
another encoding is refused, with the encodings in which it is likely to be.
"""

import codecs
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ... import UserError
from ...config import is_text_encoding
from .content import BLOCK, Content, marked_encoding
from .document import Refused, Report

FALLBACK = "cp1252"
UTF_8 = "utf-8-sig"  # perhaps with a mark
_NAMES = {"utf-8-sig": "UTF-8"}
_MARKING = "minigpt-marking"  # how errors are handled: each wrong byte becomes ...
_WRONG = "\udfff"  # ... half a surrogate pair, which no decoder yields
_SAMPLE = 1 << 14  # bytes that are enough to tell an encoding
_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0e-\x19\x1c-\x1f\x7f]")  # no plain text has these
_ENOUGH = 20  # letters beyond ASCII; fewer tell nothing
_LIKELY = 0.97  # share of them in one alphabet
_DOUBTFUL = 0.9  # share of them in an alphabet of Western Europe
_MOST_BEYOND_ASCII = 1 / 3  # share of the letters of a text in Western Europe
_LEAST_KANA = 0.1  # share of Japanese
_MOST_NAMED = 3
_IN_WORDS = "’‘´·-–—\xad\u200c\u200d"  # what is no letter and may stand in a word

_CENTRAL = ("ąćęłńóśźż", "áčďéěíňóřšťúůýžäôĺľŕöü", "áéíóöőúüű", "ăâîșțşţ", "čćđšž")
_CYRILLIC = ("абвгдеёжзийклмнопрстуфхцчшщъыьэюя", "абвгґдеєжзиіїйклмнопрстуфхцчшщьюяў",
             "абвгдђѓежзѕијклљмнњопрстћќуфхцчџш")  # fmt: skip
_GREEK = ("αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ",)
_HEBREW = ("אבגדהוזחטיךכלםמןנסעףפץצקרשת",)
_ARABIC = ("ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىيپچژگکی",)
_EUROPE = ("äöåüßéèàáæøêôšž", "àâæçéèêëîïôœùûüÿäö", "àèéìíîòóùú", "áàâãçéêíóôõúüòèïñ",
           "áéíóúýþæöðø", "ëçéèïöüóáíú")  # fmt: skip
_ALPHABETS = {
    "cp1251": _CYRILLIC, "koi8-r": _CYRILLIC, "cp866": _CYRILLIC, "iso8859-5": _CYRILLIC,
    "cp1250": _CENTRAL, "latin2": _CENTRAL, "cp852": _CENTRAL, "cp1254": ("çğıöşüâîû",),
    "cp1257": ("āčēģīķļņšūžō", "ąčęėįšųūž"), "cp1253": _GREEK, "iso8859-7": _GREEK,
    "cp1255": _HEBREW, "cp1256": _ARABIC, "mac_roman": _EUROPE, "cp850": _EUROPE,
}  # fmt: skip


def encoding_called(name: str) -> str:
    """The encoding that a page or a letter means by a name, perhaps misspelt, such as cp-850. UTF-8
    if Python does not know the name, and for ASCII, which UTF-8 includes."""
    for spelling in (name.lower(), re.sub(r"[\W_]", "", name.lower())):
        if spelling in ("ascii", "us-ascii") or spelling.startswith("utf-16"):  # it cannot be true
            return UTF_8
        if is_text_encoding(spelling):
            is_latin1 = codecs.lookup(spelling).name == "iso8859-1"
            return FALLBACK if is_latin1 else spelling  # as browsers do
    return UTF_8


def plain_blocks(content: Content, report: Report) -> Iterator[str]:
    """The text of a plain file, about a megabyte at a time; each line ends with \\n.

    A file that is ASCII up to the first byte that is not UTF-8 is read as Windows-1252 if that has
    a character for each byte. UserError if it is no text.
    """
    decoder = _Decoder(content, report)
    line_ends = io.IncrementalNewlineDecoder(None, translate=True)
    with content.opened() as stream:
        is_last = False
        while not is_last:
            block = stream.read(BLOCK)
            is_last = not block
            text = line_ends.decode(decoder.decode(block, is_last), final=is_last)
            if text:
                yield text


def text_head(content: Content) -> str:
    """How the text of a file begins; UserError if it is no text."""
    head = content.head
    decoder = _Decoder(content, Report(content.source))
    return decoder.decode(head, is_last=False).removeprefix("\ufeff")


class _Decoder:
    """Decodes a file block by block."""

    def __init__(self, content: Content, report: Report):
        self._content = content
        self._report = report
        self._encoding = content.reading.encoding or marked_encoding(content.head)
        self._codec = codecs.getincrementaldecoder(self._encoding)()
        self._position = 0  # bytes read so far
        self._was_ascii = True  # so far
        self._leaves_out = False  # the few bytes that the encoding does not have

    def decode(self, block: bytes, is_last: bool) -> str:
        """The text of the next block."""
        is_first = self._position == 0
        is_wide = self._content.reading.encoding is not None or "8" not in self._encoding
        if is_first and not is_wide and b"\0" in block:
            raise self._has_nul(block.find(b"\0"), _wide_encoding(block))
        self._position += len(block)

        try:
            text = self._codec.decode(block, is_last)
        except UnicodeDecodeError as error:
            text = self._without_wrong_bytes(error, is_last)
        except UnicodeError as error:  # UTF-16 without its mark
            raise Refused(
                self._content.source, f"is not {self._encoding}: {error}", "encoding"
            ) from None

        if is_first and is_wide and "\0" in text:
            raise self._has_nul(text.find("\0"))
        if self._encoding == FALLBACK and _NO_TEXT.search(text):
            raise self._not_text(0, 0, [])
        if self._leaves_out:
            text = text.replace(_WRONG, "")
        self._was_ascii = self._was_ascii and text.isascii()
        return text

    def _without_wrong_bytes(self, error: UnicodeDecodeError, is_last: bool) -> str:
        """The text of a block that could not be decoded. A few wrong bytes are left out; if there
        are many, this block and the rest of the file are read as Windows-1252, or refused."""
        data = bytes(error.object)
        if self._encoding != FALLBACK or self._content.reading.encoding is not None:
            found = _surveyed(self._content, self._encoding)
            if found.are_few:
                self._leaves_out = True
                self._report.note(found.in_words(self._encoding))
                self._codec = codecs.getincrementaldecoder(self._encoding)(_MARKING)
                return self._codec.decode(data, is_last)

        sample = data[data.rfind(b"\n", 0, error.start) + 1 :][:_SAMPLE]
        offset = self._position - len(data) + error.start
        is_guessed = self._content.reading.encoding is None and self._encoding == "utf-8-sig"
        may_be_western = is_guessed and self._was_ascii and data[: error.start].isascii()
        if not (may_be_western and is_western(sample)):
            raise self._not_text(offset, data[error.start], likely_encodings(sample))

        try:
            text = data.decode(FALLBACK)
        except UnicodeDecodeError:
            text = "\0"
        if _NO_TEXT.search(text):
            raise self._not_text(offset, data[error.start], likely_encodings(sample))
        self._encoding = FALLBACK
        self._codec = codecs.getincrementaldecoder(FALLBACK)()
        self._report.note("read as Windows-1252, since it is not UTF-8 (--encoding names another)")
        return text

    def _not_text(self, offset: int, byte: int, likely: list[str]) -> UserError:
        """The error for a byte that the encoding does not have."""
        if self._encoding == FALLBACK:
            return Refused(self._content.source, "is not text, or not in UTF-8; name its encoding")
        name = _NAMES.get(self._encoding, self._encoding)
        found = f"is not {name}: byte 0x{byte:02x} at offset {offset}"
        return Refused(self._content.source, f"{found}; {_remedy(likely)}", "encoding")

    def _has_nul(self, offset: int, likely: str | None = None) -> UserError:
        """The error for a file that has a NUL in its first block: it is not text, or it is in a
        `likely` encoding that nobody has named."""
        reason = f"is not text: it has a NUL byte at offset {offset}"
        if likely is not None:
            reason += f"; if it is UTF-16, name its encoding: --encoding {likely}"
        return Refused(self._content.source, reason)


def _remedy(likely: list[str]) -> str:
    """What to do with a text that may be in some encodings."""
    if not likely:
        return "name its encoding with --encoding, such as latin2, cp1251 or gbk"
    return f"name its encoding, as --encoding {' or '.join(likely)}"


class _Survey(NamedTuple):
    """How well a whole text fits its encoding."""

    wrong: int  # bytes that its encoding does not have
    right: int  # characters that tell that it is in this encoding
    line: int  # of the first wrong byte

    @property
    def are_few(self) -> bool:
        """Whether the wrong bytes are damage in a text that is in this encoding."""
        return self.right > 4 * self.wrong

    def in_words(self, encoding: str) -> str:
        """What to tell a person."""
        name = _NAMES.get(encoding, encoding)
        bytes_are = "1 byte that is" if self.wrong == 1 else f"{self.wrong:,} bytes that are"
        where = "in" if self.wrong == 1 else "the first in"
        return f"left out {bytes_are} not {name}, {where} line {self.line:,}"


def _surveyed(content: Content, encoding: str) -> _Survey:
    """The survey of a content."""
    with content.opened() as stream:
        return _survey(iter(lambda: stream.read(BLOCK), b""), encoding)


def _survey(blocks: Iterator[bytes], encoding: str) -> _Survey:
    codec = codecs.getincrementaldecoder(encoding)(_MARKING)
    is_wide = encoding.lower().startswith(("utf-16", "utf-32"))
    wrong = 0
    right = 0
    line = 1
    for block in itertools.chain(blocks, [b""]):
        text = codec.decode(block, not block)
        if wrong == 0:
            line += text.partition(_WRONG)[0].count("\n")
        wrong += text.count(_WRONG)
        right += len(text) if is_wide else len(text) - len(text.encode("ascii", "ignore"))
    return _Survey(wrong, right - wrong, line)


def _mark(error: UnicodeError) -> tuple[str, int]:
    """Marks bytes that cannot be decoded."""
    assert isinstance(error, UnicodeDecodeError)
    return _WRONG * (error.end - error.start), error.end


codecs.register_error(_MARKING, _mark)


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
    """A whole text in an encoding, without a few bytes that are wrong; or else in Windows-1252."""
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError):
        pass
    found = _survey(iter([data]), encoding)
    if found.are_few:
        report.note(found.in_words(encoding))
        return data.decode(encoding, _MARKING).replace(_WRONG, "")

    sample = data[:_SAMPLE]
    name = _NAMES.get(encoding, encoding)
    if not is_western(sample):
        reason = f"is not {name}; {_remedy(likely_encodings(sample))}"
        raise Refused(content.source, reason, "encoding")
    report.note(f"read as Windows-1252, since it is not {name}")
    return data.decode(FALLBACK, "replace")


# Which encoding a text may be in


def is_western(sample: bytes) -> bool:
    """Whether a text may be in Windows-1252. It may not if more than a third of its letters are
    beyond ASCII, or if these fit no alphabet of Western Europe but one of another encoding."""
    text = sample.decode(FALLBACK, "replace")
    letters = sum(map(str.isalpha, text))
    beyond = sum(letter.isalpha() and not letter.isascii() for letter in text)
    if len(_letters_of(text)) < _ENOUGH:
        return True
    if beyond > _MOST_BEYOND_ASCII * letters:
        return False
    return _share(text, _EUROPE) >= _DOUBTFUL or not likely_encodings(sample)


def likely_encodings(sample: bytes) -> list[str]:
    """The names of encodings that a text may be in, the likeliest first; perhaps none."""
    shares = {}
    for encoding, alphabets in _ALPHABETS.items():
        text = _decoded(sample, encoding)
        shares[encoding] = 0.0 if text is None else _share(text, alphabets)
    for encoding, share in _ASIAN.items():
        text = _decoded(sample, encoding)
        shares[encoding] = 0.0 if text is None else share(_beyond_ascii(text))
    likely = [encoding for encoding, share in shares.items() if share >= _LIKELY]
    return sorted(likely, key=lambda encoding: -shares[encoding])[:_MOST_NAMED]


def _decoded(sample: bytes, encoding: str) -> str | None:
    """A text, whose last character may be cut; None if it is not in this encoding."""
    try:
        return codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return None


def _share(text: str, alphabets: tuple[str, ...]) -> float:
    """The share of the letters beyond ASCII that are of one alphabet, the best of some."""
    found = _letters_of(text)
    capitals = sum(map(str.isupper, found))
    if len(found) < _ENOUGH or capitals > len(found) / 2:
        return 0.0
    counts = Counter(letter.lower() for letter in found)
    return max(sum(counts[letter] for letter in alphabet) for alphabet in alphabets) / len(found)


def _letters_of(text: str) -> list[str]:
    """The letters beyond ASCII. Signs in a word that are no letters, and capitals after a small
    letter, are given as spaces, which are in no alphabet."""
    found = []
    for before, letter, after in zip(" " + text, text, text[1:] + " ", strict=False):
        if letter.isascii():
            continue
        is_inside = before.isalpha() and after.isalpha() and letter not in _IN_WORDS
        if letter.isalpha():
            is_odd = letter.isupper() and before.islower()
            found.append(" " if is_odd else letter)
        elif is_inside:
            found.append(" ")
    return found


def _beyond_ascii(text: str) -> str:
    return "".join(character for character in text if not character.isascii())


def _share_of_japanese(text: str) -> float:
    kana = sum("\u3040" <= character <= "\u30ff" for character in text)
    if kana < _LEAST_KANA * len(text):
        return 0.0
    return _share_between(text, ("\u3000", "\u30ff"), ("\u4e00", "\u9fff"), ("\uff00", "\uff60"))


def _share_of_korean(text: str) -> float:
    return _share_between(text, ("\uac00", "\ud7a3"), ("\u3000", "\u303f"), ("\uff00", "\uff60"))


def _share_between(text: str, *ranges: tuple[str, str]) -> float:
    """The share of characters in some ranges."""
    if len(text) < _ENOUGH:
        return 0.0
    inside = sum(any(low <= one <= high for low, high in ranges) for one in text)
    return inside / len(text)


def _share_of_gbk(text: str) -> float:
    return _share_of_common(text, "gb2312", 0xD7)


def _share_of_big5(text: str) -> float:
    return _share_of_common(text, "big5", 0xC6)


def _share_of_common(text: str, encoding: str, last: int) -> float:
    """The share of Chinese characters that are common: they come first in their standard."""
    if len(text) < _ENOUGH:
        return 0.0
    common = 0
    for character in text:
        written = character.encode(encoding, "ignore")
        common += bool(written) and written[0] <= last
    return common / len(text)


_ASIAN = {
    "shift_jis": _share_of_japanese, "cp932": _share_of_japanese, "euc_jp": _share_of_japanese,
    "euc_kr": _share_of_korean, "gbk": _share_of_gbk,
    "big5": _share_of_big5,
}  # fmt: skip
