"""The saved tokenizer: read by us, by the tokenizers library and by transformers; and damaged."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.tokenizer import END_OF_TEXT, Tokenizer, load_tokenizer, train_bpe

from .examples import ALPHABET, KINDS, bare_encoding, law, texts, tokenizer


def saved(tokenizer: Tokenizer, folder: Path) -> Path:
    path = folder / "tokenizer.json"
    path.write_text(tokenizer.to_json(), encoding="utf-8")
    return path


# Read by us and by others


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_gives_the_same_ids_to_us_and_to_the_tokenizers_library(
    kind: str, tmp_path: Path
) -> None:
    original, path = tokenizer(kind), saved(tokenizer(kind), tmp_path)
    ours, theirs = load_tokenizer(path), tokenizers.Tokenizer.from_file(str(path))
    assert (ours.vocab_size, ours.end_of_text) == (original.vocab_size, original.end_of_text)

    @given(text=texts(kind))
    @law
    def check(text: str) -> None:
        ids = original.encode(text)
        assert ours.encode(text) == ids
        assert ours.decode(ids) == text
        if END_OF_TEXT not in text:
            assert theirs.encode(text, add_special_tokens=False).ids == ids
            assert theirs.decode(ids) == text

    check()


@given(
    learned=st.text("abc ", min_size=5, max_size=300),
    size=st.integers(258, 330),
    text=st.text("abc ", max_size=60),
)
@law
def test_the_tokenizers_library_merges_in_the_same_order(
    learned: str, size: int, text: str
) -> None:
    """A few letters in any order give many overlapping ways to merge."""
    ours = train_bpe([learned], size)
    theirs = tokenizers.Tokenizer.from_str(ours.to_json())
    assert theirs.encode(text, add_special_tokens=False).ids == ours.encode(text)


@pytest.mark.parametrize(
    "specials",
    [
        pytest.param({END_OF_TEXT: 260, "<|fim_prefix|>": 261}, id="after a gap, as cl100k_base"),
        pytest.param({END_OF_TEXT: 258, "<|fim_prefix|>": 270}, id="two gaps, as o200k_base"),
        pytest.param({"<|fim_prefix|>": 258, END_OF_TEXT: 259}, id="end of text last"),
        pytest.param({END_OF_TEXT: 256}, id="among the others, as p50k_base"),
    ],
)
def test_all_tokens_keep_their_ids_in_the_file(specials: dict[str, int], tmp_path: Path) -> None:
    original = bare_encoding(["th", "the"], specials)
    loaded = load_tokenizer(saved(original, tmp_path))
    assert (loaded.vocab_size, loaded.end_of_text) == (original.vocab_size, specials[END_OF_TEXT])
    assert loaded.byte_lengths() == original.byte_lengths()
    assert loaded.encode("the") == original.encode("the")


# Damaged files


def damaged(kind: str, *keys: Any, value: Any) -> Callable[[], bytes]:
    """The file of a tokenizer with one value replaced."""

    def make() -> bytes:
        data = json.loads(tokenizer(kind).to_json())
        place = data
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
        return json.dumps(data).encode()

    return make


def renamed(kind: str, old: str, new: str) -> Callable[[], bytes]:
    """The file of a tokenizer with another name for one of its tokens."""

    def make() -> bytes:
        data = json.loads(tokenizer(kind).to_json())
        vocab = data["model"]["vocab"]
        vocab[new] = vocab.pop(old)
        return json.dumps(data).encode()

    return make


VOCAB = ("model", "vocab")
PATTERN = ("pre_tokenizer", "pretokenizers", 0, "pattern", "Regex")
DAMAGES: dict[str, Callable[[], bytes]] = {
    "truncated": lambda: tokenizer("bpe").to_json().encode()[:-500],
    "not JSON": lambda: b"once upon a time",
    "not UTF-8": lambda: b'{"model": "\xff"}',
    "no vocab": damaged("bpe", "model", value={}),
    "another kind of model": damaged("bpe", "model", "type", value="Unigram"),
    "another normalizer": damaged("bpe", "normalizer", value={"type": "Lowercase"}),
    "a byte is missing": renamed("bpe", "a", "zzz"),
    "an id twice": damaged("bpe", *VOCAB, "a", value=5),
    "an id is a text": damaged("bpe", *VOCAB, "a", value="5"),
    "an id is negative": damaged("bpe", *VOCAB, "a", value=-1),
    "a hole in the ids": damaged("bpe", *VOCAB, "a", value=5000),
    "a character that is no byte": damaged("bpe", *VOCAB, "中", value=64),
    "no end of text": damaged("bpe", "added_tokens", value=[]),
    "no pattern": damaged("bpe", "pre_tokenizer", value=None),
    "pattern is no regex": damaged("bpe", *PATTERN, value="("),
    "char: an id twice": damaged("char", *VOCAB, "a", value=0),
    "char: a hole in the ids": damaged("char", *VOCAB, "a", value=5000),
    "char: two characters": damaged("char", *VOCAB, "ab", value=len(set(ALPHABET))),
    "char: half a surrogate pair": renamed("char", "a", "\ud83d"),
    "char: end of text first": damaged("char", "added_tokens", 0, "id", value=0),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_is_refused_by_name(damage: Callable[[], bytes], tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(damage())
    with pytest.raises(UserError) as refusal:
        load_tokenizer(path)
    assert f"{path} is damaged" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*nowhere\.json: No such file"):
        load_tokenizer(tmp_path / "nowhere.json")
    with pytest.raises(UserError, match=r"has no tokenizer\.json, and no vocab\.json"):
        load_tokenizer(tmp_path)
