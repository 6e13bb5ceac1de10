"""Texts of any length to token ids, in constant memory and on all cores.

A text comes in chunks that end anywhere. They become pieces that end where a cut changes no ids,
and threads encode the pieces side by side: tiktoken releases Python's lock meanwhile.
"""

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import Tokenizer

PIECE = 1 << 16  # characters
LONGEST = 1 << 18  # characters that are encoded at once where there is no place to cut
# Whether the text begins a new document, which an end of text separates from the document before;
# and the text.
TextChunk = tuple[bool, str]
Encoded = tuple[int, NDArray[np.uint32]]  # number of characters, their ids


def encode_in_pieces(
    tokenizer: Tokenizer, chunks: Iterable[TextChunk], size: int = PIECE
) -> Iterator[Encoded]:
    """Encode documents in pieces of about `size` characters.

    A document gets the ids that it has when it is encoded whole, unless :func:`cut_in_pieces` finds
    no place to cut. Short documents are put together in one piece, with the end of text between
    them.
    """
    threads = os.cpu_count() or 1
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[Encoded]] = deque()
    pieces = cut_in_pieces(chunks, tokenizer.cut, size)

    try:
        for batch in _batches(pieces, size):
            waiting.append(pool.submit(_encode, tokenizer, batch))
            if len(waiting) > 2 * threads:  # enough to keep all of them busy, in bounded memory
                yield waiting.popleft().result()
        for future in waiting:
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C nobody waits for what has not begun


def cut_in_pieces(
    chunks: Iterable[TextChunk], cut: re.Pattern[str], size: int
) -> Iterator[TextChunk]:
    """Cut documents in pieces that can be encoded one by one.

    A document is cut at the first match of `cut` after `size` characters. Where no match comes, as
    in a line of DNA, it is cut every `LONGEST` characters, before a space if there is one, since
    memory is limited and Ctrl-C waits for the end of a piece. Two or three tokens at such a cut
    differ from those of the whole document.
    """
    begins = False  # whether `rest` begins another document
    rest = ""  # what has not been handed on
    searched = 0  # characters of it without a place to cut

    for begins_another, text in chunks:
        if begins_another:
            if rest:
                yield begins, rest
            begins = True
            rest = ""
            searched = 0

        rest += text
        while (end := _end_of_piece(rest, cut, max(size, searched))) is not None:
            yield begins, rest[:end]
            begins = False
            rest = rest[end:]
            searched = 0
        searched = len(rest)

    if rest:
        yield begins, rest


def _end_of_piece(text: str, cut: re.Pattern[str], start: int) -> int | None:
    """Where to cut a text: at the first place from `start` on, or else where it is too long."""
    place = cut.search(text, start, LONGEST)
    if place is not None:
        return place.start()
    if len(text) <= LONGEST:
        return None  # a place may come yet

    last_space = text.rfind(" ", 1, LONGEST)
    return LONGEST if last_space < 0 else last_space


def _batches(pieces: Iterable[TextChunk], size: int) -> Iterator[list[TextChunk]]:
    """Pieces put together to at least `size` characters."""
    batch: list[TextChunk] = []
    length = 0
    for piece in pieces:
        batch.append(piece)
        length += len(piece[1])
        if length >= size:
            yield batch
            batch = []
            length = 0
    if batch:
        yield batch


def _encode(tokenizer: Tokenizer, batch: list[TextChunk]) -> Encoded:
    """The ids of some pieces, an end of text before each that begins another document."""
    ids: list[int] = []
    characters = 0
    for begins_another, text in batch:
        if begins_another and tokenizer.end_of_text is not None:
            ids.append(tokenizer.end_of_text)
        ids += tokenizer.encode(text)
        characters += len(text)
    return characters, np.array(ids, dtype=np.uint32)


# The patterns that cut a text into words before bytes are merged: GPT-2's, those of the encodings
# that tiktoken ships, Qwen's and SmolLM's.
GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
PATTERNS = {
    "gpt2": GPT2_PATTERN,
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k_base": (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    "qwen": (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
    # A digit at a time, then GPT-2's pattern for what stands between two digits.
    "smollm": (
        r"\p{N}|'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?[^\s\p{L}\p{N}]++|\s++(?=\p{N}|$)|\s+(?!\S)|\s"
    ),
}


def word_pattern(pre_tokenizer: Any) -> str | None:
    """The pattern that cuts a text into words before bytes are merged, by what a `tokenizer.json`
    says; None if words are cut in another way."""
    match pre_tokenizer:
        case {"type": "ByteLevel", **options} if options.get("use_regex", True):
            return GPT2_PATTERN
        case {
            "pretokenizers": [
                {"type": "Digits", "individual_digits": True},
                {"type": "ByteLevel", "add_prefix_space": False, **options},
            ]
        } if options.get("use_regex", True):
            return PATTERNS["smollm"]
        case {
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"} as split,
                {"type": "ByteLevel", "use_regex": False},
            ]
        } if not split["invert"]:
            return str(pattern)
    return None


# No pattern matches across these places, or looks across them: before white space that follows a
# letter or digit; before a letter or digit that follows a line end, if only one line end; ...
_WHITE_SPACE = r"(?<=[^\W_])(?=[ \t\r\n])|(?<=\S\n)(?=[^\W_])"
# ... before punctuation, other than an apostrophe, that follows a letter or digit.
_PUNCTUATION = r"""(?<=[^\W_])(?=[]!"#$%&()*+,./:;<=>?@[\\^_`{|}~、。，！？；：」』）-])"""
AT_WHITE_SPACE = re.compile(_WHITE_SPACE)
_AT_PUNCTUATION = re.compile(f"{_WHITE_SPACE}|{_PUNCTUATION}")
AFTER_TURN = re.compile(r"(?<=[^\n]\n\n)(?!\n)")  # where an empty line ends a turn
ANYWHERE = re.compile(r"(?s)(?=.)")
NOWHERE = re.compile(r"(?!)")


def places_to_cut(pattern: str, has_added: bool = False) -> re.Pattern[str]:
    """Matches each place where a text may be cut, given the pattern of its words.

    With an unknown pattern a text is encoded whole. Added tokens may contain anything but white
    space, so a text that may have some is cut at white space only.
    """
    if pattern not in PATTERNS.values():
        return NOWHERE
    return AT_WHITE_SPACE if has_added else _AT_PUNCTUATION
