"""Characters that nobody sees, which are left out of every text.

Joiners (U+200C, U+200D) are letters: they change a Persian word, and hold an emoji together. So are
selectors and tags, which choose a picture or a flag.
"""

import re

_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # controls that are no white space
    "\xad\u200b\u2060-\u2064\ufeff"  # where a line may break, or must not
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # marks of direction
    "\ufff9-\ufffb\ufffe\uffff\ud800-\udfff"  # no characters of a text; half surrogate pairs
    "]"
)


def invisible_characters() -> list[str]:
    """All invisible characters that a text in UTF-8 can hold, but for NUL."""
    characters = map(chr, (*range(1, 0xD800), *range(0xE000, 0x10000)))
    return [character for character in characters if _INVISIBLE.match(character)]


def without_invisible(text: str) -> str:
    """The text without characters that nobody sees."""
    return _INVISIBLE.sub("", text)
