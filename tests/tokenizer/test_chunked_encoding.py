"""Texts of any length to token ids: cut anywhere, in pieces of any size, on several threads, they
give the ids that each document has when it is encoded whole.
"""

import itertools
import re
import threading
from collections.abc import Iterator
from functools import cache

import pytest
import regex
import tiktoken
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from minigpt import UserError
from minigpt.tokenizer import (
    END_OF_TEXT,
    BytePairTokenizer,
    CharacterTokenizer,
    Stretch,
    Tokenizer,
    cut_in_pieces,
    encode_in_pieces,
    train_bpe,
)
from minigpt.tokenizer.patterns import GPT2_PATTERN, PATTERNS

many = settings(max_examples=200, deadline=None)

STRETCHES = [
    *[
        "the",
        "cat",
        "a",
        "É",
        "é",
        "e\u0301",
        "中",
        "、",
        "。",
        "ß",
        "ǅ",
        "7",
        "٣",
        "²",
        "Ⅷ",
        "1234",
    ],
    *[" ", " ", "  ", "\n", "\n\n", "\r\n", "\t", "\v", "\x1f", "\u00a0", "\u2003", "\u3000"],
    *["'s", "'", "’", "'LL", ".", "/", "_", "-", "🙂", "👩\u200d👧", "\0", "\u0301", "\ufeff"],
    END_OF_TEXT,
]
some_text = st.lists(st.sampled_from(STRETCHES), max_size=30).map("".join) | st.text()


@cache
def tokenizer(kind: str) -> Tokenizer:
    """Characters, a BPE that was learned, and bytes alone, cut as tiktoken's encodings are."""
    if kind == "char":
        return CharacterTokenizer(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    if kind == "bpe":
        return train_bpe(["the cat eats 1234 cats' dates.\n\nThe cat's\n"] * 9, 320)
    ranks = {bytes([byte]): byte for byte in range(256)}
    specials = {END_OF_TEXT: 256}
    return BytePairTokenizer(
        tiktoken.Encoding(
            kind, pat_str=PATTERNS[kind], mergeable_ranks=ranks, special_tokens=specials
        ),
        nfc=kind == "qwen",
    )


def words(pattern: str, text: str) -> list[str]:
    """A text as it is cut before its bytes are merged."""
    return [match[0] for match in regex.finditer(pattern, text)]


def documents(texts: list[list[str]]) -> list[Stretch]:
    """Stretches of documents, each of which is given in parts."""
    return [
        (i == 0 and number > 0, part) for number, parts in enumerate(texts)
        for i, part in enumerate(parts)
    ]  # fmt: skip


@pytest.mark.parametrize("name", PATTERNS)
@given(texts=st.lists(some_text, max_size=6), size=st.integers(1, 40))
@example(texts=["a 'll", "\r\n", "x"], size=1)
@example(texts=["12\n34"], size=1)
@example(texts=[")\n/a"], size=1)
@example(texts=["中、文"], size=1)
@many
def test_no_cut_changes_the_words(name: str, texts: list[str], size: int) -> None:
    """Words are what bytes are merged within, whatever the merges are."""
    cut = tokenizer(name).cut
    pieces = cut_in_pieces([(False, text) for text in texts], cut, size)
    found = [word for _, piece in pieces for word in words(PATTERNS[name], piece)]
    assert found == words(PATTERNS[name], "".join(texts))


@pytest.mark.parametrize("kind", ["char", "bpe", *PATTERNS])
@given(
    texts=st.lists(st.lists(some_text, min_size=1, max_size=4), max_size=4), size=st.integers(1, 60)
)
@many
def test_pieces_give_the_ids_of_whole_documents(
    kind: str, texts: list[list[str]], size: int
) -> None:
    encoder = tokenizer(kind)
    whole = [text for text in map("".join, texts) if text]
    pieces = list(encode_in_pieces(encoder, documents([p for p in texts if "".join(p)]), size))
    expected = [i for text in whole for i in [encoder.end_of_text, *encoder.encode(text)]][1:]
    assert [i for _, ids in pieces for i in ids.tolist()] == expected
    assert sum(characters for characters, _ in pieces) == sum(map(len, whole))


@pytest.mark.parametrize("name", openai_public.ENCODING_CONSTRUCTORS)
def test_the_patterns_are_those_of_the_installed_tiktoken(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its vocabularies, which would be downloaded."""
    for load in ("load_tiktoken_bpe", "data_gym_to_mergeable_bpe_ranks"):
        monkeypatch.setattr(openai_public, load, lambda *_, **__: {})
    assert openai_public.ENCODING_CONSTRUCTORS[name]()["pat_str"] in PATTERNS.values()


@given(text=some_text, size=st.integers(1, 9))
@many
def test_a_text_whose_words_are_cut_in_another_way_is_encoded_whole(text: str, size: int) -> None:
    """Words of three characters, whatever these are: no cut of it is safe."""
    encoding = tiktoken.Encoding(
        "threes",
        pat_str=r"(?s).{1,3}",
        mergeable_ranks={bytes([byte]): byte for byte in range(256)} | {b"a,": 256, b", ": 257},
        special_tokens={END_OF_TEXT: 258},
    )
    encoder = BytePairTokenizer(encoding)
    text += "a, b, " * 20
    pieces = encode_in_pieces(encoder, [(False, text[:size]), (False, text[size:])], size)
    assert [i for _, ids in pieces for i in ids.tolist()] == encoder.encode(text)


@given(text=some_text, size=st.integers(1, 9))
@many
def test_characters_are_cut_anywhere(text: str, size: int) -> None:
    pieces = [piece for _, piece in cut_in_pieces([(False, text)], tokenizer("char").cut, size)]
    assert pieces == [text[i : i + size] for i in range(0, len(text), size)]


@pytest.mark.parametrize(
    ("text", "longest"),
    [
        ("the cat eats " * 500, 104),
        ("12,34,56\n78,9,10\n" * 500, 108),
        ('{"a": 1}\r\n{"b": 22, "c": [3]}\r\n' * 500, 132),
        ('{"a":1,"b":[22,"it"],"c_d":{"e":-3.5}},' * 500, 106),
        ("我是猫、没有名字。生在哪里？不知道！" * 500, 107),
        ("「ウィキペディア」は、\n百科事典。\n" * 500, 118),
    ],
    ids=["words", "numbers", "JSON", "JSON without spaces", "Chinese", "Japanese"],
)
def test_texts_of_all_sorts_are_cut_near_the_size_asked_for(text: str, longest: int) -> None:
    pieces = [piece for _, piece in cut_in_pieces([(False, text)], tokenizer("bpe").cut, 100)]
    assert all(100 <= len(piece) <= longest for piece in pieces[:-1])
    assert "".join(pieces) == text


def test_an_added_token_is_not_cut_at_its_punctuation() -> None:
    """A character behind a letter, which an added token may hold."""
    encoding = tiktoken.Encoding(
        "added",
        pat_str=GPT2_PATTERN,
        mergeable_ranks={bytes([byte]): byte for byte in range(256)},
        special_tokens={END_OF_TEXT: 256, "好。": 257},
    )
    encoder = BytePairTokenizer(encoding, added=["好。"])
    pieces = encode_in_pieces(encoder, [(False, "你好。你好。")], 1)
    assert [i for _, ids in pieces for i in ids.tolist()] == encoder.encode("你好。你好。")


def test_short_documents_are_encoded_many_at_a_time() -> None:
    documents = [(number > 0, "the cat. ") for number in range(1000)]
    pieces = list(encode_in_pieces(tokenizer("bpe"), documents, 900))
    assert [characters for characters, _ in pieces] == [900] * 10


def test_an_endless_text_is_encoded_as_it_comes() -> None:
    pieces = encode_in_pieces(tokenizer("bpe"), itertools.repeat((False, "the cat ")), 100)
    assert [next(pieces)[0] for _ in range(3)] == [103, 100, 100]
    pieces.close()  # type: ignore[attr-defined]


def test_no_more_is_read_ahead_than_keeps_the_threads_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    read = 0

    def texts() -> Iterator[Stretch]:
        nonlocal read
        while True:
            read += 1
            yield False, "the cat "

    pieces = encode_in_pieces(tokenizer("bpe"), texts(), 8)
    for taken in range(1, 50):
        next(pieces)
        assert read <= taken + 2 * 3 + 3
    pieces.close()  # type: ignore[attr-defined]


def test_what_cannot_be_encoded_is_said_and_the_threads_end() -> None:
    encoder, before = CharacterTokenizer("ab"), threading.active_count()
    with pytest.raises(UserError, match="character 'c'"):
        list(encode_in_pieces(encoder, [(False, "ab" * 1000 + "c" + "ab" * 1000)], 10))
    assert threading.active_count() == before


def test_a_text_is_looked_through_once_however_long_it_cannot_be_cut() -> None:
    """Not from its beginning again with every stretch that is read."""
    searched = []

    class Counted:
        def search(self, text: str, start: int) -> re.Match[str] | None:
            searched.append(len(text) - start)
            return tokenizer("bpe").cut.search(text, start)

    list(cut_in_pieces([(False, "." * 100)] * 50, Counted(), 10))  # type: ignore[arg-type]
    assert sum(searched) <= 50 * 100
