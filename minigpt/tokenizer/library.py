"""Tokenizers that other programs made: byte-level BPE, run by the `tokenizers` library itself."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import UserError
from .base import END_OF_TEXT, Tokenizer, UnknownCharacter, check_is_unicode
from .chunked_encoding import NOWHERE, places_to_cut, word_pattern

_SAMPLE = "A cat's 12.5 \t\r\n Ω² caf\u00e9 日本 👩\u200d👧  "


class LibraryTokenizer(Tokenizer):
    """The tokenizer of a `tokenizer.json` with the content `data`; `tokens` are the bytes of each
    token, none for a special one.

    The vocabulary may lack single bytes, as SmolLM's does. A character with such a byte is refused;
    the library would leave it out without a word.
    """

    def __init__(self, data: dict[str, Any], tokens: dict[int, bytes]):
        import tokenizers

        # Left out: what would add something to every text, cut it off, or encode it differently
        # each time.
        model = data["model"] | {"dropout": None}
        left_out = {"post_processor": None, "truncation": None, "padding": None}
        data = data | left_out | {"model": model}

        with one_line():
            self._library = tokenizers.Tokenizer.from_str(json.dumps(data))
        self._library.encode_special_tokens = True  # as the text that they are

        self._tokens = tokens
        self.vocab_size = max(tokens) + 1
        self.end_of_text = data["model"]["vocab"][END_OF_TEXT]
        self.cut = _places_to_cut(data)
        self._unknown = set(range(256)) - {token[0] for token in tokens.values() if len(token) == 1}

        sample = "".join(c for c in _SAMPLE if self._unknown.isdisjoint(c.encode()))
        if self.decode(self.encode(sample)) != sample:
            raise UserError("a text does not come back from its tokens")

    def encode(self, text: str) -> list[int]:
        check_is_unicode(text)
        if self._unknown and not self._unknown.isdisjoint(text.encode()):
            self._refuse_unknown(text)

        with one_line():
            ids: list[int] = self._library.encode(text, add_special_tokens=False).ids
        return ids

    def _refuse_unknown(self, text: str) -> None:
        for position, character in enumerate(text):
            if not self._unknown.isdisjoint(character.encode()):
                raise UnknownCharacter(character, f"at position {position}")

    def token_bytes(self, token_id: int) -> bytes:
        return self._tokens.get(token_id, b"")

    def to_json(self) -> str:
        text: str = self._library.to_str()
        return text


def _places_to_cut(data: dict[str, Any]) -> re.Pattern[str]:
    """Where a text may be cut without changing its ids."""
    added = [token for token in data["added_tokens"] if not token["special"]]
    if any(map(_looks_around, added)):
        return NOWHERE  # the token may lie across any place

    pattern = word_pattern(data["pre_tokenizer"])
    return places_to_cut(pattern or "", has_added=bool(added))


def _looks_around(token: dict[str, Any]) -> bool:
    """Whether white space or the next characters decide if an added token is matched."""
    name = token["content"]
    has_space = name.split() != [name]
    return has_space or any(token.get(flag) for flag in ("lstrip", "rstrip", "single_word"))


@contextmanager
def one_line() -> Iterator[None]:
    """Within, an error of the library, which has no classes of errors, is a UserError of a line."""
    try:
        yield
    except BaseException as error:
        is_panic = type(error).__name__ == "PanicException"  # of Rust; no Exception
        if not isinstance(error, Exception) and not is_panic:
            raise
        line = " ".join(str(error).split())
        raise UserError(line) from None
