"""Which encoding a text may be in that is neither UTF-8 nor Windows-1252, so that it can be named.

A text is likely to be in an encoding if nearly all of its letters beyond ASCII are then of one
alphabet, and capitals do not stand inside of words.
"""

import codecs
from collections import Counter

WESTERN = "cp1252"
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


def is_western(sample: bytes) -> bool:
    """Whether a text may be in Windows-1252. It may not if more than a third of its letters are
    beyond ASCII, or if these fit no alphabet of Western Europe but one of another encoding."""
    text = sample.decode(WESTERN, "replace")
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
