"""Tokens split in two: always the same bytes, and every pair of tokens gets its turn."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.tokenizer import BytePairTokenizer, CharacterTokenizer, TokenSplitter, train_bpe

TEXT = "the cat sat on the mat; the cats sat there, and that is that. " * 20


@pytest.fixture(scope="module")
def tokenizer() -> BytePairTokenizer:
    return train_bpe([TEXT], 290)


@given(split_prob=st.floats(0, 1), seed=st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_each_row_is_the_beginning_of_the_same_text(
    tokenizer: BytePairTokenizer, split_prob: float, seed: int
) -> None:
    ids = np.array([tokenizer.encode(TEXT), tokenizer.encode(TEXT)[::-1]])
    random = np.random.default_rng(seed).random((2, *ids.shape))
    for before, after in zip(ids, TokenSplitter(tokenizer)(ids, split_prob, random), strict=True):
        assert len(after) == len(before)
        assert tokenizer.decode(before).startswith(tokenizer.decode(after))


def test_as_many_tokens_are_split_as_was_asked_for(tokenizer: BytePairTokenizer) -> None:
    """Among tokens that can be split; the bounds are six sigma."""
    word = tokenizer.encode(" the")
    assert len(word) == 1
    ids = np.array([word * 4000])
    random = np.random.default_rng(0).random((2, 1, 4000))
    for prob in (0.0, 0.25, 1.0):
        whole = np.count_nonzero(TokenSplitter(tokenizer)(ids, prob, random) == word[0])
        # Of 1 + prob tokens for each word, 1 - prob are whole words.
        expected = 4000 * (1 - prob) / (1 + prob)
        assert abs(whole - expected) <= 6 * (4000 * prob * (1 - prob)) ** 0.5


def test_every_pair_of_tokens_has_its_turn(tokenizer: BytePairTokenizer) -> None:
    whole = tokenizer.encode(" the")
    seen = set()
    for seed in range(100):
        random = np.random.default_rng(seed).random((2, 1, 2))
        ids = TokenSplitter(tokenizer)(np.array([whole * 2]), 1.0, random)[0]
        seen.add(tuple(tokenizer.token_bytes(i) for i in ids))
    known = {tokenizer.token_bytes(i) for i in range(tokenizer.vocab_size)}
    pairs = {(b" the"[:i], b" the"[i:]) for i in (1, 2, 3)}
    assert seen == {pair for pair in pairs if known.issuperset(pair)}
    assert len(seen) > 1


def test_all_pairs_of_a_token_are_equally_likely_however_few_tokens_are_split(
    tokenizer: BytePairTokenizer,
) -> None:
    (whole,) = tokenizer.encode(" the")
    random = np.random.default_rng(0).random((2, 1, 20_000))
    ids = TokenSplitter(tokenizer)(np.full((1, 20_000), whole), 0.1, random)[0]

    counts = Counter(tokenizer.token_bytes(i) for i in ids)
    assert counts[b" "] == counts[b"the"] and counts[b" th"] == counts[b"e"]
    assert counts[b" "] == pytest.approx(counts[b" th"], rel=0.2)


def test_characters_and_special_tokens_stay() -> None:
    characters = CharacterTokenizer("abé")
    ids = np.array([[0, 1, 2, characters.end_of_text] * 3])
    assert (TokenSplitter(characters)(ids, 1.0, np.zeros((2, 1, 12))) == ids).all()
