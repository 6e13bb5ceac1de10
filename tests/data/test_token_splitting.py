"""Tokens split in two: always the same bytes, and every pair of tokens gets its turn."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from minigpt.data.token_splitting import TokenSplitter
from minigpt.tokenizer import BytePairTokenizer, CharacterTokenizer, train_bpe

TEXT = "the cat sat on the mat; the cats sat there, and that is that. " * 20


@pytest.fixture(scope="module")
def tokenizer() -> BytePairTokenizer:
    return train_bpe([TEXT], 290)


def drawn(seed: int, ids: Tensor) -> Tensor:
    """Random numbers ``(2, b, n)`` for ids ``(b, n)``."""
    return torch.from_numpy(np.random.default_rng(seed).random((2, *ids.shape)))


@given(split_prob=st.floats(0, 1), seed=st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_each_row_is_the_beginning_of_the_same_text(
    tokenizer: BytePairTokenizer, split_prob: float, seed: int
) -> None:
    ids = torch.tensor([tokenizer.encode(TEXT), tokenizer.encode(TEXT)[::-1]])
    split = TokenSplitter(tokenizer)(ids, split_prob, drawn(seed, ids))
    assert split.shape == ids.shape
    for before, after in zip(ids.tolist(), split.tolist(), strict=True):
        assert tokenizer.decode(before).startswith(tokenizer.decode(after))


@given(split_prob=st.floats(0, 1), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_the_tokens_that_were_drawn_are_split_one_after_the_other(
    tokenizer: BytePairTokenizer, split_prob: float, seed: int
) -> None:
    """As a loop over them does."""
    known = {tokenizer.token_bytes(i): i for i in range(tokenizer.vocab_size)}
    ids = torch.tensor([tokenizer.encode(TEXT)])
    random = drawn(seed, ids)

    expected = list[int]()
    for token, whether, how in zip(ids[0].tolist(), *random[:, 0].tolist(), strict=True):
        word = tokenizer.token_bytes(token)
        halves = [(word[:i], word[i:]) for i in range(1, len(word))]
        pairs = [pair for pair in halves if known.keys() >= set(pair)]
        is_split = whether < split_prob and pairs and token != tokenizer.end_of_text
        pair = pairs[int(how * len(pairs))] if is_split else (word,)
        expected += [known[part] if part else token for part in pair]

    (split,) = TokenSplitter(tokenizer)(ids, split_prob, random).tolist()
    assert split == expected[: len(split)]


def test_as_many_tokens_are_split_as_was_asked_for(tokenizer: BytePairTokenizer) -> None:
    """Among tokens that can be split; the bounds are six sigma."""
    word = tokenizer.encode(" the")
    assert len(word) == 1
    ids = torch.tensor([word * 4000])
    for prob in (0.0, 0.25, 1.0):
        split = TokenSplitter(tokenizer)(ids, prob, drawn(0, ids))
        whole = int((split == word[0]).sum())
        # Of 1 + prob tokens for each word, 1 - prob are whole words.
        expected = 4000 * (1 - prob) / (1 + prob)
        assert abs(whole - expected) <= 6 * (4000 * prob * (1 - prob)) ** 0.5


def test_every_pair_of_tokens_has_its_turn(tokenizer: BytePairTokenizer) -> None:
    ids = torch.tensor([tokenizer.encode(" the") * 2])
    seen = set()
    for seed in range(100):
        (split,) = TokenSplitter(tokenizer)(ids, 1.0, drawn(seed, ids)).tolist()
        seen.add(tuple(tokenizer.token_bytes(i) for i in split))
    known = {tokenizer.token_bytes(i) for i in range(tokenizer.vocab_size)}
    pairs = {(b" the"[:i], b" the"[i:]) for i in (1, 2, 3)}
    assert seen == {pair for pair in pairs if known.issuperset(pair)}
    assert len(seen) > 1


def test_all_pairs_of_a_token_are_equally_likely_however_few_tokens_are_split(
    tokenizer: BytePairTokenizer,
) -> None:
    (whole,) = tokenizer.encode(" the")
    ids = torch.full((1, 20_000), whole)
    (split,) = TokenSplitter(tokenizer)(ids, 0.1, drawn(0, ids)).tolist()

    counts = Counter(tokenizer.token_bytes(i) for i in split)
    assert counts[b" "] == counts[b"the"] and counts[b" th"] == counts[b"e"]
    assert counts[b" "] == pytest.approx(counts[b" th"], rel=0.2)


def test_characters_and_special_tokens_stay() -> None:
    characters = CharacterTokenizer("abé")
    ids = torch.tensor([[0, 1, 2, characters.end_of_text] * 3])
    split = TokenSplitter(characters)(ids, 1.0, torch.zeros(2, 1, 12))
    assert torch.equal(split, ids)
