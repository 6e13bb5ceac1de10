"""Tokenizers that other programs made: byte-level BPE, run by the `tokenizers` library itself."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import UserError
from .base import END_OF_TEXT, Tokenizer
from .chunked_encoding import GPT2_PATTERN, places_to_cut

_SAMPLE = "A cat's 12.5 \t\r\n Ω² caf\u00e9 日本 👩\u200d👧  "


class LibraryTokenizer(Tokenizer):
    """The tokenizer of a `tokenizer.json` with the content `data`; `tokens` are the bytes of each
    token, none for a special one."""

    def __init__(self, data: dict[str, Any], tokens: dict[int, bytes]):
        import tokenizers

        # These would add something to every text, cut it off, or encode it differently each time.
        data = data | {"post_processor": None, "truncation": None, "padding": None}
        data["model"] = data["model"] | {"dropout": None}
        with _one_line():
            self._library = tokenizers.Tokenizer.from_str(json.dumps(data))
        self._library.encode_special_tokens = True  # as the text that they are
        self._tokens = tokens
        self.vocab_size = max(tokens) + 1
        self.end_of_text = data["model"]["vocab"][END_OF_TEXT]
        self.cut = _places_to_cut(data)
        if self.decode(self.encode(_SAMPLE)) != _SAMPLE:
            raise UserError("a text does not come back from its tokens")

    def encode(self, text: str) -> list[int]:
        with _one_line():
            ids: list[int] = self._library.encode(text, add_special_tokens=False).ids
        return ids

    def token_bytes(self, token_id: int) -> bytes:
        return self._tokens.get(token_id, b"")

    def to_json(self) -> str:
        text: str = self._library.to_str()
        return text


def word_pattern(pre_tokenizer: Any) -> str | None:
    """The pattern that cuts a text into words before bytes are merged; None for another way."""
    match pre_tokenizer:
        case {"type": "ByteLevel", **options} if options.get("use_regex", True):
            return GPT2_PATTERN
        case {
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"} as split,
                {"type": "ByteLevel", "use_regex": False},
            ]
        } if not split["invert"]:
            return str(pattern)
    return None


def _places_to_cut(data: dict[str, Any]) -> re.Pattern[str]:
    added = [token for token in data["added_tokens"] if not token["special"]]
    for token in added:
        name, flags = token["content"], ("lstrip", "rstrip", "single_word")
        if name.split() != [name] or any(map(token.get, flags)):
            return places_to_cut("", has_added=True)  # nowhere: it may lie across any place
    return places_to_cut(word_pattern(data["pre_tokenizer"]) or "", has_added=bool(added))


@contextmanager
def _one_line() -> Iterator[None]:
    """Say an error of the library, which has no classes for them, in one line."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise UserError(" ".join(str(error).split())) from None
        raise
