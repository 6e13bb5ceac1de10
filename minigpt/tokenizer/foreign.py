"""Tokenizers that somebody else wrote: any object that encodes, decodes and tells its tokens."""

import json
import operator
import textwrap
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .. import UserError
from .base import Tokenizer, TokenizerLike, check_is_unicode
from .bpe import BytePairTokenizer
from .characters import CharacterTokenizer
from .chunked_encoding import AT_WHITE_SPACE
from .library import LibraryTokenizer
from .tokenizer_json import FOREIGN, NotInFolder, load_tokenizer

_OURS = (BytePairTokenizer, CharacterTokenizer, LibraryTokenizer)
_MEMBERS = ("encode", "decode", "vocab_size", "token_bytes")
_MOST_TOKENS = 1 << 18  # as config.Size


class ForeignTokenizer(Tokenizer):
    """An object that is :class:`TokenizerLike`, with all that a :class:`Tokenizer` has.

    A long text is cut where a word ends, at white space, and one piece is encoded at a time: the
    object may not be made for several threads. What it returns is checked.
    """

    cut = AT_WHITE_SPACE

    def __init__(self, given: TokenizerLike):
        self.given = given
        self.name = type(given).__name__
        self.vocab_size = self._checked_vocab_size()
        self.end_of_text = self._checked_end_of_text()
        self._tokens = [self._checked_bytes(i) for i in range(self.vocab_size)]
        if self.end_of_text is not None:
            self._tokens[self.end_of_text] = b""  # it separates texts and has none itself
        self._one_at_a_time = threading.Lock()

    def encode(self, text: str) -> list[int]:
        check_is_unicode(text)
        try:
            with self._one_at_a_time:
                ids = [operator.index(i) for i in self.given.encode(text)]
        except UserError:
            raise
        except Exception as error:
            shown = textwrap.shorten(text, 40, placeholder="...")
            raise self._error(f"cannot encode {shown!r}: {_one_line(error)}") from error

        for token_id in ids:
            if not 0 <= token_id < self.vocab_size:
                size = self.vocab_size
                raise self._error(f"gives the id {token_id}, but its vocab_size is {size}")
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        with self._one_at_a_time:
            return self.given.decode([int(i) for i in ids])

    def token_bytes(self, token_id: int) -> bytes:
        return self._tokens[token_id]

    def to_json(self) -> str:
        raise self._error("is not one of minigpt's own, and only these can be written to a file")

    def to_run_json(self) -> str:
        about = {"name": self.name, "fingerprint": self.fingerprint}
        return json.dumps({FOREIGN: about}, indent=2) + "\n"

    def _error(self, problem: str) -> UserError:
        return UserError(f"the tokenizer {self.name} {problem}")

    def _checked_vocab_size(self) -> int:
        missing = [name for name in _MEMBERS if not hasattr(self.given, name)]
        if missing:
            needed = "encode(text), decode(ids), vocab_size and token_bytes(id)"
            raise self._error(f"has no {missing[0]}; a tokenizer needs {needed}")

        size: Any = self.given.vocab_size
        is_count = hasattr(size, "__index__") and 1 <= operator.index(size) <= _MOST_TOKENS
        if not is_count:
            expected = f"a whole number between 1 and {_MOST_TOKENS:,}"
            raise self._error(f"has the vocab_size {size!r}, which must be {expected}")
        return operator.index(size)

    def _checked_end_of_text(self) -> int | None:
        end: Any = getattr(self.given, "end_of_text", None)
        if end is None:
            return None
        is_id = hasattr(end, "__index__") and 0 <= operator.index(end) < self.vocab_size
        if not is_id:
            raise self._error(f"has the end_of_text {end!r}, which must be an id or None")
        return operator.index(end)

    def _checked_bytes(self, token_id: int) -> bytes:
        try:
            token: Any = self.given.token_bytes(token_id)
        except Exception as error:
            problem = f"gives no token_bytes({token_id}): {_one_line(error)}"
            raise self._error(problem) from error
        if not isinstance(token, bytes):
            raise self._error(f"gives {token!r} as token_bytes({token_id}), which must be bytes")
        return token


def _one_line(error: Exception) -> str:
    return " ".join(repr(error).split())


def as_tokenizer(tokenizer: TokenizerLike) -> Tokenizer:
    """A tokenizer of our own as it is, another object as a :class:`ForeignTokenizer`.

    A subclass of one of ours is another object: it may encode in another way than its parent.

    Raises:
        UserError: if a member is missing or not what it must be, naming it.
    """
    if type(tokenizer) in (*_OURS, ForeignTokenizer):
        assert isinstance(tokenizer, Tokenizer)
        return tokenizer
    return ForeignTokenizer(tokenizer)


def same_tokenizer(path: str | Path, tokenizer: TokenizerLike) -> Tokenizer:
    """`tokenizer` for a run whose `tokenizer.json` is `path`, if it has the same tokens.

    Raises:
        UserError: if it has others, or the file is missing or damaged.
    """
    given = as_tokenizer(tokenizer)
    try:
        expected = load_tokenizer(path).fingerprint
    except NotInFolder as kept:
        expected = kept.fingerprint

    if given.fingerprint != expected:
        name = type(tokenizer).__name__
        raise UserError(f"the tokenizer {name} has other tokens than {path} says that the run has")
    return given
