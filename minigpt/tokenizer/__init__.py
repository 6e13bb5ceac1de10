"""Text to token ids and back: `make_tokenizer` makes a tokenizer, `load_tokenizer` reads one from
its file, `as_tokenizer` takes somebody else's, and `encode_in_pieces` encodes texts of any length,
on all cores.
"""

from collections.abc import Iterable

from .base import (
    BETWEEN_TURNS,
    END_OF_TEXT,
    END_OF_TURN,
    NAMES_AS_TEXT,
    SPEAKER,
    Tokenizer,
    TokenizerLike,
    UnknownCharacter,
)
from .bpe import BytePairTokenizer, tiktoken_tokenizer, train_bpe
from .characters import CharacterTokenizer
from .chunked_encoding import Encoded, TextChunk, encode_in_pieces
from .foreign import ForeignTokenizer, as_tokenizer, same_tokenizer
from .tokenizer_json import has_tokenizer, load_tokenizer

__all__ = [
    "BETWEEN_TURNS",
    "END_OF_TEXT",
    "END_OF_TURN",
    "NAMES_AS_TEXT",
    "SPEAKER",
    "BytePairTokenizer",
    "CharacterTokenizer",
    "Encoded",
    "ForeignTokenizer",
    "TextChunk",
    "Tokenizer",
    "TokenizerLike",
    "UnknownCharacter",
    "as_tokenizer",
    "encode_in_pieces",
    "has_tokenizer",
    "load_tokenizer",
    "make_tokenizer",
    "same_tokenizer",
    "tiktoken_tokenizer",
    "train_bpe",
]


def make_tokenizer(
    kind: str, vocab_size: int | None, texts: Iterable[str], *, has_turns: bool = False
) -> Tokenizer:
    """The tokenizer named `kind`: "char" or "bpe", learned from `texts`, or one of tiktoken's, such
    as "gpt2", for which they are not read. `vocab_size` is for bpe, END_OF_TEXT included; if
    `has_turns`, a bpe has tokens for the beginning and the end of a turn."""
    if kind == "char":
        characters: set[str] = set()
        for text in texts:
            characters.update(text)
        return CharacterTokenizer(sorted(characters))

    if kind == "bpe":
        return train_bpe(texts, vocab_size or 1024, has_turns=has_turns)
    return tiktoken_tokenizer(kind)
