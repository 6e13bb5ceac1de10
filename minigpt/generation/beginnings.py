"""How a text begins that a model writes to be shown: with the first words of a sentence of the text
that it learned from, not with a heading.
"""

import re
import unicodedata

from .scripts import WITHOUT_SPACES

_WORDS = 4  # of a beginning
_SHORTEST = 8  # characters of a beginning
_LONGEST = 36
_MORE = 4  # characters at least of the sentence after it
_LONGEST_LINE = 24  # characters of the beginning of a line without a sentence
_FEWEST_WORDS = 5  # of a sentence
_IN_SMALL_LETTERS = 0.4  # of its words but the first; a title in capitals has fewer
_SYMBOLS_OF_CODE = 0.06  # of the characters of program code, at least
_LOOKED_AT = 600  # characters of a sentence

_FIRST_WORDS = re.compile(rf"\S+(?:\s+\S+){{0,{_WORDS - 1}}}")
_FIRST_OF_LINE = re.compile(rf"\S.{{0,{_LONGEST_LINE - 1}}}(?<=\S)(?!\S)")
_QUOTES = "\"'“”‘„«»‹「『"
_SYMBOL = re.compile(r"[]()[{}<>=_/\\*+#@$%^&|~`]")
# The end of a sentence, and the quotation marks that close it.
_END = re.compile(r"[.!?…][\"'”’»)]*(?=\s|\Z)|[。！？।॥։።۔؟]")
_NUMBERED = re.compile(r"\w+\s+(?:[IVXLCDM]+|\d+)\s*(?:[.:–—-]|\Z)")  # "Part I", "Chapter 2: ..."


def first_words(text: str) -> str:
    """The first words of the first sentence that begins a line; in a text without sentences, such
    as program code, of the first line that has letters or digits. Never empty, but of a text that
    is white space alone."""
    lines = [line.strip() for line in text.splitlines()]
    if not _is_code(text):
        for i, line in enumerate(lines):
            can_begin = i == 0 or not lines[i - 1] or _ends_sentence(lines[i - 1])
            if can_begin and _has_end(lines, i) and (opening := opening_of(line)) is not None:
                return opening

    written = list(filter(None, lines)) or [""]
    line = next((line for line in written if any(map(str.isalnum, line))), written[0])
    whole_words = _FIRST_OF_LINE.match(line)
    return whole_words[0] if whole_words is not None else _cut(line, _LONGEST_LINE)


def opening_of(sentence: str) -> str | None:
    """The first words of a sentence; None if it is too short, begins in its middle, or is none: a
    title, or the heading of a part."""
    sentence = sentence[:_LOOKED_AT].strip()
    words = sentence.split()
    if not words:
        return None

    # Spaces stay as they are: of a text of characters the model may know no others.
    found = _FIRST_WORDS.match(sentence)
    assert found is not None
    opening = found[0].rstrip(",;:-–—")
    letter = next(filter(str.isalpha, sentence), "")
    if WITHOUT_SPACES.match(letter.encode()):
        opening = _cut(sentence, _SHORTEST)
    elif not _are_words_of_a_sentence(words):
        return None

    begins = opening.lstrip(f"{_QUOTES}—–¿¡ ")[:1]
    is_begun = begins.isalpha() and begins == begins.upper() and not opening.startswith('""')
    is_long_enough = _SHORTEST <= len(opening) <= _LONGEST and len(opening) + _MORE <= len(sentence)
    return opening if is_begun and is_long_enough and "\ufffd" not in opening else None


def _are_words_of_a_sentence(words: list[str]) -> bool:
    """Whether words are neither a title nor a heading: enough of them, most in small letters, and
    the first not in capitals as a whole."""
    others = [word for word in words[1:] if any(map(str.isalpha, word))]
    small = [word for word in others if not next(filter(str.isalpha, word)).isupper()]
    first = words[0].strip(_QUOTES)
    is_in_capitals = len(first) > 1 and first.isupper()
    is_numbered = _NUMBERED.match(" ".join(words)) is not None
    is_long_enough = len(words) >= _FEWEST_WORDS and len(small) >= _IN_SMALL_LETTERS * len(others)
    return is_long_enough and not is_in_capitals and not is_numbered


def _cut(text: str, length: int) -> str:
    """So many characters of a text, and the marks on the last of them."""
    while length < len(text) and unicodedata.category(text[length])[0] == "M":
        length += 1
    return text[:length]


def _ends_sentence(line: str) -> bool:
    """Whether a line ends with a sentence."""
    return any(end.end() == len(line) for end in _END.finditer(line))


def _has_end(lines: list[str], start: int) -> bool:
    """Whether a sentence ends in a line or in those of its paragraph that follow."""
    looked_at = 0
    for line in lines[start:]:
        if _END.search(line[:_LOOKED_AT]):
            return True
        looked_at += len(line)
        if not line or looked_at > _LOOKED_AT:
            return False
    return False


def _is_code(text: str) -> bool:
    """Whether so much of a text is symbols as only program code has."""
    count = sum(not character.isspace() for character in text)
    return len(_SYMBOL.findall(text)) > _SYMBOLS_OF_CODE * count
