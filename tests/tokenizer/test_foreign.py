"""Somebody else's tokenizer in the place of ours: what it needs, and what is said without it."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from minigpt import UserError
from minigpt.generation.writer import Writer
from minigpt.tokenizer import (
    CharacterTokenizer,
    ForeignTokenizer,
    as_tokenizer,
    encode_in_pieces,
    load_tokenizer,
    same_tokenizer,
)

from .examples import FABLE, KINDS, tokenizer
from .words import CapitalWords, Words, WordsAndEnd, with_member


def one_line(refused: pytest.ExceptionInfo[UserError]) -> str:
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_four_members_are_enough() -> None:
    given = Words(FABLE)
    words = as_tokenizer(given)
    assert words.encode(FABLE) == given.encode(FABLE)
    assert words.decode(np.array(words.encode(FABLE))) == FABLE
    assert words.byte_lengths() == [len(word.encode()) for word in given.words]
    assert words.most_bytes == max(words.byte_lengths())
    assert words.end_of_text is None
    assert as_tokenizer(words) is words


@pytest.mark.parametrize("kind", KINDS)
def test_our_own_tokenizers_are_taken_as_they_are(kind: str) -> None:
    assert as_tokenizer(tokenizer(kind)) is tokenizer(kind)


def test_a_subclass_of_ours_is_somebody_elses() -> None:
    """Its file would give back the parent, which encodes in another way."""

    class LowerCase(CharacterTokenizer):
        def encode(self, text: str) -> list[int]:
            return super().encode(text.lower())

    lower = as_tokenizer(LowerCase("abc"))
    assert isinstance(lower, ForeignTokenizer)
    assert lower.encode("aBC") == [0, 1, 2]
    assert lower.end_of_text == 3
    with pytest.raises(UserError, match="LowerCase is not one of minigpt's own"):
        lower.to_json()


@pytest.mark.parametrize("kind", [list, tuple, np.array, torch.tensor])
def test_ids_come_in_whatever_holds_whole_numbers(kind: Any) -> None:
    words = as_tokenizer(with_member("encode", lambda text: kind([0, 2, 1])))
    ids = words.encode("a b")
    assert ids == [0, 2, 1]
    assert {type(i) for i in ids} == {int}


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("encode", None, "has no encode; a tokenizer needs encode(text), decode(ids), vocab_size"),
        ("decode", None, "has no decode"),
        ("vocab_size", None, "has no vocab_size"),
        ("token_bytes", None, "has no token_bytes"),
        ("vocab_size", 0, "has the vocab_size 0, which must be a whole number between 1 and"),
        ("vocab_size", 1 << 30, "has the vocab_size 1073741824"),
        ("vocab_size", 2.0, "has the vocab_size 2.0"),
        ("vocab_size", 4, "gives no token_bytes(3): IndexError("),
        ("token_bytes", lambda token_id: "a", "gives 'a' as token_bytes(0), which must be bytes"),
        ("end_of_text", 3, "has the end_of_text 3, which must be an id or None"),
        ("end_of_text", "<end>", "has the end_of_text '<end>'"),
    ],
)
def test_what_a_tokenizer_lacks_is_named(name: str, value: Any, problem: str) -> None:
    with pytest.raises(UserError) as refused:
        as_tokenizer(with_member(name, value))
    assert one_line(refused).startswith(f"the tokenizer Mine {problem}")


def test_what_it_cannot_encode_is_said() -> None:
    with pytest.raises(UserError) as refused:
        as_tokenizer(Words("a b")).encode("a\nc")
    assert one_line(refused).startswith(r"the tokenizer Words cannot encode 'a c': ValueError(")

    for ids in ([3], [-1]):
        words = as_tokenizer(with_member("encode", lambda text, ids=ids: ids))
        with pytest.raises(UserError, match=rf"gives the id {ids[0]}, but its vocab_size is 3"):
            words.encode("a")


def test_its_end_of_text_stands_for_no_text() -> None:
    words = as_tokenizer(WordsAndEnd("a b"))
    assert words.end_of_text == 3
    assert words.byte_lengths() == [1, 1, 1, 0]
    chunks = [(False, "a b"), (True, "b")]
    (piece,) = encode_in_pieces(words, chunks)
    assert piece[1].tolist() == [1, 0, 2, 3, 2]

    (piece,) = encode_in_pieces(as_tokenizer(Words("a b")), chunks)
    assert piece[1].tolist() == [1, 0, 2, 2]


def test_it_encodes_one_text_at_a_time() -> None:
    """It may keep what it is doing in itself, as Python's own parsers do."""
    is_busy = False

    def encode(text: str) -> list[int]:
        nonlocal is_busy
        assert not is_busy
        is_busy = True
        time.sleep(0.001)
        is_busy = False
        return [0]

    words = as_tokenizer(with_member("encode", encode))
    pieces = encode_in_pieces(words, [(True, "a")] * 20, size=1)
    assert sum(len(ids) for _, ids in pieces) == 20


def test_a_run_keeps_its_name_and_takes_it_back_if_its_tokens_are_the_same(tmp_path: Path) -> None:
    kept = tmp_path / "tokenizer.json"
    kept.write_text(as_tokenizer(Words(FABLE)).to_run_json())
    with pytest.raises(UserError) as refused:
        load_tokenizer(kept)
    assert "with a tokenizer of your own, Words, which its folder does not hold" in one_line(
        refused
    )

    again = Words(FABLE)
    found = same_tokenizer(kept, again)
    assert isinstance(found, ForeignTokenizer) and found.given is again
    for other in (Words(FABLE + " more"), WordsAndEnd(FABLE), CapitalWords(FABLE.upper())):
        with pytest.raises(UserError, match="has other tokens than"):
            same_tokenizer(kept, other)


def test_a_run_with_a_tokenizer_of_ours_takes_no_other(tmp_path: Path) -> None:
    kept = tmp_path / "tokenizer.json"
    kept.write_text(tokenizer("bpe").to_run_json())
    assert same_tokenizer(kept, load_tokenizer(kept)).to_json() == kept.read_text()
    with pytest.raises(UserError, match=r"Words has other tokens than .*tokenizer\.json"):
        same_tokenizer(kept, Words(FABLE))


@pytest.mark.parametrize("content", ['{"foreign_tokenizer": {}}', '{"foreign_tokenizer": 5}'])
def test_a_damaged_note_of_it_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(UserError, match=r"tokenizer\.json is damaged"):
        same_tokenizer(tmp_path / "tokenizer.json", Words("a"))


@pytest.mark.parametrize(
    ("given", "first"),
    [
        (Words("b a\n"), "\n"),
        (Words("b  a"), "  "),  # it has no new line and no single space: the first of its tokens
        (WordsAndEnd("b  a"), "<end>"),
    ],
)
def test_an_empty_prompt_begins_with_a_token_that_it_has(given: Words, first: str) -> None:
    engine: Any = None  # not asked for anything
    writer = Writer(engine, as_tokenizer(given), knows_documents=first == "<end>")
    assert given.words[writer.first_token()] == first
