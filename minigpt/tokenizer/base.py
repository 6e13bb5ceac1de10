"""What a tokenizer is: `TokenizerLike` is what an object of your own needs, `Tokenizer` what the
rest of the package uses. `characters.py`, `bpe.py` and `library.py` hold the kinds there are, and
`foreign.py` makes a `Tokenizer` of any object that is `TokenizerLike`.
"""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import Protocol

from .. import UserError

END_OF_TEXT = "<|endoftext|>"

# Special tokens of a tokenizer that was learned from conversations: SPEAKER stands before the name
# of whoever speaks, END_OF_TURN in the place of the empty line that ends a turn.
SPEAKER = "<|speaker|>"
END_OF_TURN = "<|turn|>"
BETWEEN_TURNS = "\n\n"

# How a turn spells the name of a special token, so that no program takes it for the token.
NAMES_AS_TEXT = {name: name.replace("<", "< ") for name in (END_OF_TEXT, SPEAKER, END_OF_TURN)}


class UnknownCharacter(UserError):
    """A character that the tokenizer cannot encode, and its position in the text."""

    def __init__(self, character: str, place: str):
        super().__init__(
            f"character {character!r} {place} is not in the vocabulary of this tokenizer"
        )
        self.character = character


class TokenizerLike(Protocol):
    """What a tokenizer of your own needs: four members, and a fifth one that it may have.

    Ids run from 0 to vocab_size - 1. The bytes of the ids of a text, one after the other, should be
    the text: a model writes them, and its loss in bits per byte counts them. An attribute
    ``end_of_text``, if there is one, is the id that stands between two documents; without it one
    document follows the other.
    """

    @property
    def vocab_size(self) -> int:
        """Number of ids."""

    def encode(self, text: str, /) -> Iterable[int]:
        """Token ids of `text`."""

    def decode(self, ids: list[int], /) -> str:
        """The text of token ids."""

    def token_bytes(self, token_id: int, /) -> bytes:
        """The UTF-8 bytes that a token stands for; none for a special token."""


class Tokenizer(ABC):
    """Text to token ids and back. Ids run from 0 to vocab_size - 1.

    Attributes:
        vocab_size: number of ids, special tokens included.
        end_of_text: the id that stands between two documents; None if nothing does.
        speaker: the id before each turn of a conversation; None if there is none.
        end_of_turn: the id that stands for the empty line after a turn; None if there is none.
        cut: matches each place where a text may be cut without changing its ids.
    """

    vocab_size: int
    end_of_text: int | None
    cut: re.Pattern[str]
    speaker: int | None = None
    end_of_turn: int | None = None

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
        """The tokenizer in the Hugging Face `tokenizer.json` format.

        Raises:
            UserError: if it is somebody else's, which the format may not be able to describe.
        """

    def to_run_json(self) -> str:
        """What a run keeps as its `tokenizer.json`; for somebody else's tokenizer, only its name
        and its fingerprint."""
        return self.to_json()

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

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the bytes of all tokens, in the order of their ids, and of the end of text."""
        digest = hashlib.sha256(str(self.end_of_text).encode())
        for token_id in range(self.vocab_size):
            token = self.token_bytes(token_id)
            digest.update(len(token).to_bytes(8, "little"))
            digest.update(token)
        return digest.hexdigest()


def check_is_unicode(text: str) -> None:
    """Raise UnknownCharacter for half a surrogate pair, which is no character: libraries put
    another one in its place without a word, or fail."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnknownCharacter(text[error.start], f"at position {error.start}") from None
