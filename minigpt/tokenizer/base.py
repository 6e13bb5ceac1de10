"""What every tokenizer can do; `characters.py` and `bpe.py` hold the two kinds there are."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property

from .. import UserError

END_OF_TEXT = "<|endoftext|>"


class UnknownCharacter(UserError):
    """A character that the tokenizer cannot encode, and its position in the text."""

    def __init__(self, character: str, place: str):
        super().__init__(
            f"character {character!r} {place} is not in the vocabulary of this tokenizer"
        )
        self.character = character


class Tokenizer(ABC):
    """Text to token ids and back. Ids run from 0 to vocab_size - 1.

    Attributes:
        vocab_size: number of ids, special tokens included.
        end_of_text: the id that stands between two documents.
        cut: matches each place where a text may be cut without changing its ids.
    """

    vocab_size: int
    end_of_text: int
    cut: re.Pattern[str]

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Token ids of `text`. The name of a special token in the text is ordinary text.

        Raises:
            UnknownCharacter: if a character cannot be encoded, naming it and its position.
        """

    @abstractmethod
    def token_bytes(self, token_id: int) -> bytes:
        """The UTF-8 bytes that a token stands for; none for a special token."""

    @abstractmethod
    def to_json(self) -> str:
        """The tokenizer in the Hugging Face `tokenizer.json` format."""

    def decode(self, ids: Iterable[int]) -> str:
        """The text of token ids; bytes that are not UTF-8 become U+FFFD."""
        return b"".join(map(self.token_bytes, ids)).decode("utf-8", errors="replace")

    def byte_lengths(self) -> list[int]:
        """For each id, how many bytes of text it stands for."""
        return [len(self.token_bytes(i)) for i in range(self.vocab_size)]

    @cached_property
    def most_bytes(self) -> int:
        """The bytes of the longest token."""
        return max(self.byte_lengths())
