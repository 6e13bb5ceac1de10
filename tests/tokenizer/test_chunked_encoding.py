"""Texts of any length to token ids: whatever chunks they come in and however long the pieces are,
several threads give the ids that each document has when it is encoded whole.
"""

import re
import threading
from collections.abc import Iterator
from functools import cache

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from minigpt import UserError
from minigpt.tokenizer import (
    END_OF_TEXT,
    CharacterTokenizer,
    TextChunk,
    Tokenizer,
    encode_in_pieces,
    train_bpe,
)
from minigpt.tokenizer.chunked_encoding import ANYWHERE, PATTERNS, cut_in_pieces

from .examples import bare_encoding

few, many = (settings(max_examples=number, deadline=None) for number in (40, 120))

WORDS = "the cat a É é e\u0301 中 、 。 ß ǅ 7 ٣ ² Ⅷ 1234".split()
SPACES = [" ", "  ", "\n", "\n\n", "\r\n", "\t", "\v", "\x1f", "\u00a0", "\u2003", "\u3000"]
OTHERS = "'s ' ’ 'LL . / _ - 🙂 👩\u200d👧 \0 \u0301 \ufeff <|endoftext|>".split(" ")
some_text = (
    st.lists(st.sampled_from([*WORDS, *SPACES, *OTHERS]), max_size=30).map("".join) | st.text()
)


@cache
def tokenizer(kind: str) -> Tokenizer:
    """A BPE that was learned, or single bytes with one of the patterns."""
    if kind == "bpe":
        return train_bpe(["the cat eats 1234 cats' dates.\n\nThe cat's\n"] * 9, 320)
    return bare_encoding([], {END_OF_TEXT: 256}, PATTERNS[kind])


def encoded(encoder: Tokenizer, chunks: list[TextChunk], size: int) -> list[int]:
    return [i for _, ids in encode_in_pieces(encoder, chunks, size) for i in ids.tolist()]


@pytest.mark.long
@pytest.mark.parametrize("name", PATTERNS)
@given(texts=st.lists(some_text, max_size=6), size=st.integers(1, 40))
@example(texts=["a 'll", "\r\n", "x"], size=1)
@example(texts=["12\n34"], size=1)
@example(texts=[")\n/a"], size=1)
@example(texts=["中、文"], size=1)
@many
def test_no_cut_changes_the_words(name: str, texts: list[str], size: int) -> None:
    """Bytes are merged within words only, so that with the same words the ids are the same."""
    pieces = cut_in_pieces([(False, text) for text in texts], tokenizer(name).cut, size)
    pattern = regex.compile(PATTERNS[name])
    words = [match[0] for match in pattern.finditer("".join(texts))]
    assert [match[0] for _, piece in pieces for match in pattern.finditer(piece)] == words


@pytest.mark.long
@pytest.mark.parametrize("kind", ["bpe", *PATTERNS])
@given(
    texts=st.lists(st.lists(some_text, min_size=1, max_size=4), max_size=4), size=st.integers(1, 60)
)
@few
def test_pieces_give_the_ids_of_whole_documents(
    kind: str, texts: list[list[str]], size: int
) -> None:
    """Each document comes in several chunks."""
    encoder = tokenizer(kind)
    documents = [parts for parts in texts if "".join(parts)]
    chunks = [
        (i == 0 and number > 0, part)
        for number, parts in enumerate(documents)
        for i, part in enumerate(parts)
    ]
    pieces = list(encode_in_pieces(encoder, chunks, size))
    expected: list[int] = []
    for number, parts in enumerate(documents):
        expected += [encoder.end_of_text] * (number > 0) + encoder.encode("".join(parts))
    assert [i for _, ids in pieces for i in ids.tolist()] == expected
    assert sum(characters for characters, _ in pieces) == sum(len(text) for _, text in chunks)


@pytest.mark.parametrize("name", openai_public.ENCODING_CONSTRUCTORS)
def test_the_patterns_are_those_of_the_installed_tiktoken(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its vocabularies, which would be downloaded."""
    for load in ("load_tiktoken_bpe", "data_gym_to_mergeable_bpe_ranks"):
        monkeypatch.setattr(openai_public, load, lambda *_, **__: {})
    assert openai_public.ENCODING_CONSTRUCTORS[name]()["pat_str"] in PATTERNS.values()


def test_a_text_whose_words_are_cut_in_another_way_is_encoded_whole() -> None:
    """Words of three characters, whatever these are: no cut of it is safe."""
    encoder = bare_encoding(["a,", ", "], {END_OF_TEXT: 258}, r"(?s).{1,3}")
    text = "a, b, " * 20
    for size in range(1, 9):
        chunks = [(False, text[:size]), (False, text[size:])]
        assert encoded(encoder, chunks, size) == encoder.encode(text)


@pytest.mark.parametrize("kind", ["bpe", *PATTERNS])
def test_a_text_without_a_place_to_cut_comes_in_bounded_pieces_that_decode_to_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.tokenizer.chunked_encoding.LONGEST", 100)
    encoder = tokenizer(kind)
    for text in ("ACGT" * 300, "我是猫没有名字" * 90, "a" * 1000, " " * 1000, "-" * 1000):
        chunks = [(False, text[i : i + 30]) for i in range(0, len(text), 30)]
        pieces = list(encode_in_pieces(encoder, chunks, 40))
        assert max(characters for characters, _ in pieces) <= 100
        assert encoder.decode(i for _, ids in pieces for i in ids.tolist()) == text


def test_where_no_place_is_safe_a_cut_is_before_a_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minigpt.tokenizer.chunked_encoding.LONGEST", 100)
    nowhere = re.compile("(?!)")
    pieces = [piece for _, piece in cut_in_pieces([(False, "some words " * 50)], nowhere, 40)]
    assert all(piece.startswith(" ") and 80 < len(piece) <= 100 for piece in pieces[1:-1])


@pytest.mark.parametrize("text", ["", "a", "the cat e\u0301 \r\n 👩\u200d👧", "".join(SPACES)])
@pytest.mark.parametrize("size", [1, 2, 9])
def test_characters_are_cut_anywhere(text: str, size: int) -> None:
    pieces = [piece for _, piece in cut_in_pieces([(False, text)], ANYWHERE, size)]
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


def test_short_documents_are_encoded_many_at_a_time() -> None:
    documents = [(number > 0, "the cat. ") for number in range(1000)]
    pieces = list(encode_in_pieces(tokenizer("bpe"), documents, 900))
    assert [characters for characters, _ in pieces] == [900] * 10


def test_an_endless_text_is_read_only_as_far_as_it_keeps_the_threads_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    read = 0

    def chunks() -> Iterator[TextChunk]:
        nonlocal read
        while True:
            read += 1
            yield False, "the cat "

    pieces = encode_in_pieces(tokenizer("bpe"), chunks(), 8)
    for taken in range(1, 50):
        assert next(pieces)[0] == (11 if taken == 1 else 8)
        assert read <= taken + 2 * 3 + 3
    pieces.close()  # type: ignore[attr-defined]


def test_a_character_that_cannot_be_encoded_is_named_and_the_threads_end() -> None:
    encoder, before = CharacterTokenizer("ab"), threading.active_count()
    with pytest.raises(UserError, match="character 'c'"):
        list(encode_in_pieces(encoder, [(False, "ab" * 1000 + "c" + "ab" * 1000)], 10))
    assert threading.active_count() == before


def test_a_text_is_looked_through_once_even_where_it_cannot_be_cut() -> None:
    """Not from its beginning again with every chunk."""
    searched = []

    class Counted:
        def search(self, text: str, start: int, end: int) -> re.Match[str] | None:
            searched.append(min(len(text), end) - start)
            return tokenizer("bpe").cut.search(text, start, end)

    list(cut_in_pieces([(False, "." * 100)] * 50, Counted(), 10))  # type: ignore[arg-type]
    assert sum(searched) <= 50 * 100
