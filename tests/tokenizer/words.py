"""A tokenizer as somebody else writes it: words and the spaces between them, in a few lines."""

import re
from typing import Any


class Words:
    """Has the four members that a tokenizer needs, and no others."""

    def __init__(self, text: str):
        self.words = sorted(set(self.cut(text)))
        self.vocab_size = len(self.words)

    def cut(self, text: str) -> list[str]:
        return re.findall(r"\s+|\S+", text)

    def encode(self, text: str) -> list[int]:
        return [self.words.index(word) for word in self.cut(text)]

    def decode(self, ids: list[int]) -> str:
        return "".join(self.words[i] for i in ids)

    def token_bytes(self, token_id: int) -> bytes:
        return self.words[token_id].encode()


class WordsAndEnd(Words):
    """With an id of its own between two documents."""

    def __init__(self, text: str):
        super().__init__(text)
        self.words.append("<end>")
        self.vocab_size += 1
        self.end_of_text = self.vocab_size - 1


class CapitalWords(Words):
    """Other ids for the same text, with the same tokens."""

    def cut(self, text: str) -> list[str]:
        return [word.capitalize() for word in super().cut(text)]


def with_member(name: str, value: Any) -> Words:
    """One of which a member is another; None takes it away."""
    words: Any = type("Mine", (), {k: v for k, v in vars(Words).items() if k != name})("a b")
    if value is not None:
        setattr(words, name, value)
    elif name == "vocab_size":
        del words.vocab_size
    mine: Words = words
    return mine
