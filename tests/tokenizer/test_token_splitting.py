"""Other tokens for the same text: always the same bytes, and every pair in its turn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.tokenizer import (
    BytePairTokenizer,
    CharacterTokenizer,
    Tokenizer,
    TokenSplitter,
    train_bpe,
)

TEXT = "the cat sat on the mat; the cats sat there, and that is that. " * 20


@pytest.fixture(scope="module")
def tokenizer() -> BytePairTokenizer:
    return train_bpe([TEXT], 290)


def respelled(tokenizer: Tokenizer, text: str, share: float, seed: int = 0) -> list[int]:
    """The tokens of a text that is long enough to lose nothing."""
    ids = np.array([tokenizer.encode(text + " " * len(text))])
    chance = np.random.default_rng(seed).random((2, *ids.shape))
    return list(TokenSplitter(tokenizer)(ids, share, chance)[0])


@given(share=st.floats(0, 1), seed=st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_it_is_the_beginning_of_the_same_text(
    tokenizer: BytePairTokenizer, share: float, seed: int
) -> None:
    ids = respelled(tokenizer, TEXT, share, seed)
    assert len(ids) == len(tokenizer.encode(TEXT + " " * len(TEXT)))
    assert (TEXT + " " * len(TEXT)).startswith(tokenizer.decode(ids))


def test_as_many_are_respelled_as_was_said(tokenizer: BytePairTokenizer) -> None:
    """Of those that have a pair; the bounds are six sigma."""
    word = tokenizer.encode(" the")
    assert len(word) == 1
    ids = np.array([word * 4000])
    chance = np.random.default_rng(0).random((2, 1, 4000))
    for share in (0.0, 0.25, 1.0):
        kept = np.count_nonzero(TokenSplitter(tokenizer)(ids, share, chance) == word[0])
        # 4,000 places hold whole words, and two tokens for each of the others.
        expected = 4000 * (1 - share) / (1 + share)
        assert abs(kept - expected) <= 6 * (4000 * share * (1 - share)) ** 0.5


def test_every_pair_of_tokens_has_its_turn(tokenizer: BytePairTokenizer) -> None:
    whole = tokenizer.encode(" the")
    seen = set()
    for seed in range(100):
        chance = np.random.default_rng(seed).random((2, 1, 2))
        ids = TokenSplitter(tokenizer)(np.array([whole * 2]), 1.0, chance)[0]
        seen.add(tuple(tokenizer.token_bytes(i) for i in ids))
    known = {tokenizer.token_bytes(i) for i in range(tokenizer.vocab_size)}
    pairs = {(b" the"[:i], b" the"[i:]) for i in (1, 2, 3)}
    assert seen == {pair for pair in pairs if known.issuperset(pair)}
    assert len(seen) > 1


def test_characters_and_special_tokens_stay() -> None:
    characters = CharacterTokenizer("abé")
    ids = np.array([[0, 1, 2, characters.end_of_text] * 3])
    assert (TokenSplitter(characters)(ids, 1.0, np.zeros((2, 1, 12))) == ids).all()
