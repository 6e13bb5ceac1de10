"""Text to token ids and back. One `Tokenizer`, three origins: the characters of a text, byte-pair
encoding trained on a text, and tiktoken's own encodings by name.

`kinds.py` holds the tokenizers and how they are made, `file.py` reads a saved one, `patterns.py`
says where a text may be cut, and `pieces.py` encodes one of any length so, on all cores.
`respelling.py` writes it in other tokens than the tokenizer would.
"""

from .bpe import (
    END_OF_TEXT,
    BytePairTokenizer,
    CharacterTokenizer,
    Tokenizer,
    make_tokenizer,
    tiktoken_tokenizer,
    train_bpe,
)
from .byte_alphabet import to_printable
from .chunked_encoding import Stretch, cut_in_pieces, encode_in_pieces
from .patterns import GPT2_PATTERN
from .token_splitting import TokenSplitter
from .tokenizer_json import load_tokenizer, tokenizer_from_data

__all__ = [
    "END_OF_TEXT",
    "GPT2_PATTERN",
    "BytePairTokenizer",
    "CharacterTokenizer",
    "Stretch",
    "TokenSplitter",
    "Tokenizer",
    "cut_in_pieces",
    "encode_in_pieces",
    "load_tokenizer",
    "make_tokenizer",
    "tiktoken_tokenizer",
    "to_printable",
    "tokenizer_from_data",
    "train_bpe",
]
