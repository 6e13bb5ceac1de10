"""Tokenizers of each kind and texts for them, for the tests of this folder."""

from functools import cache

import tiktoken
from hypothesis import settings
from hypothesis import strategies as st

from minigpt.tokenizer import END_OF_TEXT, BytePairTokenizer, Tokenizer, make_tokenizer
from minigpt.tokenizer.chunked_encoding import GPT2_PATTERN

law = settings(max_examples=50, deadline=None)

FABLE = """The cat sat on the mat; it's the cat's mat. There the cat eats 12 dates, 345 eels.

"Whose mat is that?" asked the heron, who had come down from the chimney to see the cat.
"The mat of whoever sits on it," said the cat, and sat on it. The heron thought about that.
When the rain came through the roof, the mat was wet, and the cat was gone. "Whose mat is
that?" asked the cat from the chimney. "It is yours," said the heron. "You have sat on it."
"""
ALPHABET = " \n\r\t\0 abcdehst.,!'0123é\u0301中🙂👩\u200d👧\ufeff" + END_OF_TEXT
KINDS = ["char", "bpe", "tiktoken"]


def bare_encoding(
    tokens: list[str], specials: dict[str, int], pattern: str = GPT2_PATTERN
) -> BytePairTokenizer:
    """Like tiktoken's encodings: 256 bytes, some longer tokens, several special tokens."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    ids = (i for i in range(256, 10_000) if i not in specials.values())
    ranks |= {token.encode(): i for token, i in zip(tokens, ids, strict=False)}
    encoding = tiktoken.Encoding(
        "bare", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials
    )
    return BytePairTokenizer(encoding)


@cache
def tokenizer(kind: str) -> Tokenizer:
    if kind == "tiktoken":
        specials = {END_OF_TEXT: 261, "<|fim_prefix|>": 262}
        return bare_encoding(["th", "the", " t", " the", "at"], specials)
    return make_tokenizer(kind, 320, [ALPHABET if kind == "char" else FABLE])


def texts(kind: str) -> st.SearchStrategy[str]:
    """Any text that a tokenizer of this kind can encode."""
    return st.text(sorted(set(ALPHABET))) if kind == "char" else st.text() | st.text(ALPHABET)
