"""Passages that a text repeats, and the logits of tokens that would make such a passage longer.

A small model that writes likely tokens soon writes in circles. A penalty on every token that was
written before would also keep it from "the" and "said"; this one acts on a token only where the
tokens before it, several of them, stood before it earlier too. It is known as DRY ("don't repeat
yourself"), and llama.cpp has it by the same names. Other than there, it never acts inside a word or
a character: a name of several tokens is written to its end.
"""

import contextlib
import functools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import UserError
from ..tokenizer import Tokenizer
from .scripts import WITHOUT_SPACES
from .window import Array, TokenIds

# After these a text may go on as it did before: line ends, quotation marks of any form but that of
# an apostrophe, and what stands after the name of a speaker.
_SEPARATORS = '\n\r"“”„«»‹›「」『』:：'
_SEPARATOR = re.compile(b"|".join(mark.encode() for mark in _SEPARATORS))
# Parts of words that are no letters: apostrophes, and what joins or parts letters unseen.
_JOINERS = "'’\u00ad\u200c\u200d"
_LARGEST = 1e4  # a penalty; beyond any difference of two logits


@dataclass(frozen=True)
class Boundaries:
    """Of each token ``(vocab_size,)``: whether a passage ends with it, whether it begins with a
    letter of a word, and whether it ends with one. Digits, and parts of characters, count too."""

    separators: NDArray[np.bool_]
    begins_with_letter: NDArray[np.bool_]
    ends_with_letter: NDArray[np.bool_]

    @classmethod
    def none(cls, vocab_size: int) -> "Boundaries":
        """Those of tokens of which nothing is known."""
        return cls(*np.zeros((3, vocab_size), bool))

    def are_free(self, before: TokenIds, tokens: TokenIds) -> NDArray[np.bool_]:
        """Whether tokens may be penalised after those before them: separators may not, nor may
        what goes on with a word or a character."""
        is_inside_word = self.ends_with_letter[before] & self.begins_with_letter[tokens]
        return ~(self.separators[tokens] | is_inside_word)


class Passages:
    """For each of several texts of the same length, what stands at its end and earlier too.

    A passage never goes on over a separator, and a separator never makes one longer.
    """

    def __init__(self, prompt: Sequence[int], samples: int, boundaries: Boundaries):
        """All texts begin with the prompt."""
        n = len(prompt)
        self._boundaries = boundaries
        self._count = n  # of the tokens of each text
        capacity = 2 * n + 256
        self._tokens = np.zeros((samples, capacity), np.int64)
        self._tokens[:, :n] = prompt
        # For each place in a text, how many tokens before it are the same as at the text's end.
        self._lengths = np.zeros((samples, capacity), np.int64)
        self._lengths[:, :n] = _lengths_of(prompt, boundaries.separators)

    @property
    def tokens(self) -> NDArray[np.int64]:
        """The texts so far, ``(samples, n)``."""
        return self._tokens[:, : self._count]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """For each token of a text, how many tokens before it are the same as at the end of the
        text, ``(samples, n)``: if the token came next, the text would repeat so many, and it."""
        return self._lengths[:, : self._count]

    def append(self, token_ids: TokenIds) -> None:
        """Add a token to each text, ``(samples,)``."""
        n = self._count
        if n == self._tokens.shape[1]:
            self._tokens = np.concatenate((self._tokens, np.zeros_like(self._tokens)), axis=1)
            self._lengths = np.concatenate((self._lengths, np.zeros_like(self._lengths)), axis=1)

        new = token_ids[:, None]  # (samples, 1)
        is_same = (self._tokens[:, :n] == new) & ~self._boundaries.separators[new]  # (samples, n)
        self._lengths[:, 1 : n + 1] = np.where(is_same, self._lengths[:, :n] + 1, 0)
        self._tokens[:, n] = token_ids
        self._count = n + 1

    def penalised(
        self, logits: Array, *, multiplier: float, base: float, allowed_length: int
    ) -> Array:
        """Logits ``(samples, vocab_size)`` less multiplier x base^(length - allowed_length) for a
        token that would repeat a passage of `length` tokens before it, if these are at least
        `allowed_length`."""
        is_too_long = self.lengths >= allowed_length  # (samples, n)
        if self._count > 0:
            is_too_long &= self._boundaries.are_free(self.tokens[:, -1:], self.tokens)
        rows, places = np.nonzero(is_too_long)
        if len(rows) == 0:
            return logits

        excess = self.lengths[rows, places] - allowed_length
        most = np.log(_LARGEST / multiplier) / np.log(base)
        penalties = multiplier * base ** np.minimum(excess, most)

        penalty = np.zeros_like(logits)  # (samples, vocab_size): the largest of each token
        np.maximum.at(penalty, (rows, self.tokens[rows, places]), penalties)
        return logits - penalty


@functools.lru_cache(maxsize=4)  # a training asks again for each text that it shows
def boundaries_of(tokenizer: Tokenizer) -> Boundaries:
    """What its tokens are. A passage ends with a line end, a quotation mark or a colon, between
    documents, between the turns of a conversation and, where words have a token with the space
    before them, with what lays out a text."""
    texts = [tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)]
    words = [text.decode(errors="ignore") for text in texts]
    words_have_spaces = any(text[:1] == b" " and text.strip() for text in texts)
    capitals_are_rare = _are_capitals_rare(words)

    separators = np.zeros(tokenizer.vocab_size, bool)
    for token_id, text in enumerate(texts):
        word = words[token_id]
        separators[token_id] = not text or _SEPARATOR.search(text) is not None
        if words_have_spaces and (text.isspace() or (capitals_are_rare and _is_in_capitals(word))):
            separators[token_id] = True

    # A mark without a token of its own is cut into bytes, after a space perhaps in another way: the
    # last of its tokens stands for it.
    for mark in _SEPARATORS:
        for written in (mark, f" {mark}"):
            with contextlib.suppress(UserError):  # not every tokenizer can encode it
                last = tokenizer.encode(written)[-1:]
                separators[last] = True

    begins = np.array([_begins_with_letter(text) for text in texts], bool)
    ends = np.array([_ends_with_letter(text) for text in texts], bool)
    return Boundaries(separators, begins, ends)


def _begins_with_letter(text: bytes) -> bool:
    """Whether a token begins with what may stand inside a word: a letter or a digit, unless its
    script puts no spaces between words, a mark on a letter, or part of any of these."""
    first = text.decode(errors="replace")[:1]  # part of a character becomes U+FFFD
    if not first:
        return False

    has_spaces = WITHOUT_SPACES.match(text) is None
    if first == "\ufffd":
        return has_spaces or text < b"\xe2"  # that may be a mark of Thai, Burmese or Khmer
    kind = unicodedata.category(first)[0]
    return (kind in "LN" and has_spaces) or kind == "M" or first in _JOINERS


def _ends_with_letter(text: bytes) -> bool:
    """Whether a token ends with what a letter, a mark or the rest of a character may follow."""
    last = text.decode(errors="replace")[-1:]
    if not last:
        return False

    is_letter = unicodedata.category(last)[0] in "LNM" or last == "\ufffd"
    can_have_mark = WITHOUT_SPACES.match(last.encode()) is not None
    return is_letter or can_have_mark or last in _JOINERS


def _is_in_capitals(word: str) -> bool:
    """Whether a token is a word in capitals, as the name of a speaker or a heading. A single
    capital after a space is a word of its own, or begins one."""
    letters = word.strip()
    return letters.isalpha() and letters.isupper() and (len(letters) > 1 or letters == word)


def _are_capitals_rare(words: Sequence[str]) -> bool:
    """Whether words in capitals stand out: most words of several letters have small ones."""
    longer = [word for word in words if len(word.strip()) > 1 and word.strip().isalpha()]
    in_capitals = [word for word in longer if word.isupper()]
    return 2 * len(in_capitals) <= len(longer)


def _lengths_of(text: Sequence[int], separators: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each place in a text, how many tokens before it are the same as at its end, ``(n,)``, not
    counting over a separator.

    Read backwards, that is how far the text agrees with itself from each place on: the Z algorithm
    ("Algorithms on Strings, Trees, and Sequences", Gusfield 1997, section 1.4), which looks at each
    token about twice.
    """
    backwards = [*reversed(text)]
    n = len(backwards)
    agreeing = [0] * (n + 1)  # from each place on, read backwards
    start = end = 0  # of the agreement that reaches farthest
    for i in range(1, n):
        length = min(end - i, agreeing[i - start]) if i < end else 0
        while i + length < n and backwards[length] == backwards[i + length]:
            length += 1
        agreeing[i] = length
        if i + length > end:
            start, end = i, i + length

    to_separator = next((i for i, token in enumerate(backwards) if separators[token]), n)
    lengths = np.array(
        agreeing[:0:-1], np.int64
    )  # before place j stands what is read from n - j on
    return np.minimum(lengths, to_separator)
