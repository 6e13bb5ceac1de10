"""Hebrew, Arabic and other letters that are written from right to left: from where the signs of a
line stand, as on the page of a PDF, to the order in which they are read.

This is Unicode's bidirectional algorithm (UAX #9) backwards, as far as a line tells: in a text from
right to left, words in other letters and numbers are written from left to right.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

# The kind of a sign as one letter: R from right to left, L from left to right, N in a number,
# S between two numbers, T beside a number, M a mark on a letter, O anything else.
_KINDS = {
    "R": "R", "AL": "R", "L": "L", "EN": "N", "AN": "N", "ES": "S", "CS": "S", "ET": "T",
    "NSM": "M",
}  # fmt: skip
_FROM_LEFT = r"L(?:[^R]*[LN])?M*|T*N(?:S?N)*T*"
_RUN = re.compile(rf"(?:{_FROM_LEFT})|.")
_FROM_RIGHT = re.compile(r"M*R(?:[^L]*R)?")  # in a line from left to right
_BRACKETS = str.maketrans("()[]{}<>«»", ")(][}{><»«")
_CLOSED_FIRST = re.compile(r"[^(\[{<«]*[)\]}>»].*[(\[{<«]", re.S)


def is_from_right(text: str) -> bool:
    """Whether most letters of a text are written from right to left."""
    kinds = [_kind(sign) for sign in text]
    return kinds.count("R") > kinds.count("L")


def has_right_to_left(signs: Sequence[str]) -> bool:
    """Whether a line holds a letter that is written from right to left."""
    return any(_kind(sign) == "R" for sign in signs if not sign.isascii())


def in_order_of_reading(signs: Sequence[str], is_from_right: bool) -> str:
    """The text of a line, whose signs are given from left to right. A sign may be several letters,
    as a ligature is; `is_from_right` is whether the text around the line is from right to left."""
    kinds = "".join(map(_kind, signs))
    if is_from_right:
        return _from_right(signs, kinds)

    text: list[str] = []
    end = 0
    for found in _FROM_RIGHT.finditer(kinds):
        text += signs[end : found.start()]
        end = found.end()
        text.append(_from_right(signs[found.start() : end], found[0]))
    return "".join([*text, *signs[end:]])


def _from_right(signs: Sequence[str], kinds: str) -> str:
    """Signs from the last to the first; numbers and words from left to right stay as they are."""
    runs = list(_runs(signs, kinds))
    runs.reverse()
    outside = "".join(text for text, is_from_left in runs if not is_from_left)
    if _CLOSED_FIRST.match(outside):  # brackets are told by their shape
        runs = [(text if is_left else text.translate(_BRACKETS), is_left) for text, is_left in runs]
    return "".join(text for text, _ in runs)


def _runs(signs: Sequence[str], kinds: str) -> Iterator[tuple[str, bool]]:
    """The signs that stay together, and whether they are written from left to right."""
    for found in _RUN.finditer(kinds):
        is_from_left = found[0][0] in "LNT" and ("L" in found[0] or "N" in found[0])
        yield "".join(signs[found.start() : found.end()]), is_from_left


def _kind(sign: str) -> str:
    """The kind of a sign: of its first letter that is R, L or N, or else of its first letter. Marks
    of direction do not count."""
    letters = [letter for letter in sign if unicodedata.category(letter) != "Cf"]
    kinds = [_KINDS.get(unicodedata.bidirectional(letter), "O") for letter in letters]
    return next((kind for kind in kinds if kind in "RLN"), kinds[0] if kinds else "O")
