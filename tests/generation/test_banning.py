"""Banned strings: exactly those tokens are forbidden that would complete one, whatever the tokens
are and however many a string spans.
"""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.generation.banning import BannedStrings

some = settings(max_examples=100, deadline=None)

letters = st.sampled_from("aab é🦊")
strings = st.lists(st.text(letters, min_size=1, max_size=4), min_size=1, max_size=3)
BYTES = [bytes([b]) for b in sorted({*"ab é🦊".encode(), 0, 255})]
# Every byte is a token, as in byte-level BPE; others are pieces of text and of characters, of which
# one is empty, as a special token is.
longer = st.text(letters, max_size=4).map(str.encode) | st.binary(max_size=3)
vocabularies = st.lists(longer, max_size=12).map(lambda tokens: [*BYTES, b"", *tokens])


def completes(banned: list[str], text: bytes, token: bytes) -> bool:
    """Whether one ends in the token's bytes, wherever it began."""
    for string in map(str.encode, banned):
        first = max(len(text) - len(string) + 1, 0)  # one that begins earlier ends in the text
        if (text + token).find(string, first) >= 0:
            return True
    return False


@given(banned=strings, vocabulary=vocabularies, texts=st.lists(longer, min_size=1, max_size=3))
@some
def test_just_the_tokens_that_complete_one_are_forbidden(
    banned: list[str], vocabulary: list[bytes], texts: list[bytes]
) -> None:
    logits = torch.randn(len(texts), len(vocabulary))
    masked, stuck = BannedStrings(banned, vocabulary).mask(logits, texts)
    for row, text in enumerate(texts):
        forbidden = [completes(banned, text, token) for token in vocabulary]
        assert (masked[row] == -torch.inf).tolist() == forbidden
        assert torch.equal(masked[row].isfinite(), masked[row] == logits[row])
        left = [t for t, bad in zip(vocabulary, forbidden, strict=True) if t and not bad]
        assert stuck[row] == (not left)


@given(banned=strings, vocabulary=vocabularies, seed=st.integers(0, 999))
@some
def test_what_is_written_never_holds_one(
    banned: list[str], vocabulary: list[bytes], seed: int
) -> None:
    """Only the last bytes of the text are looked at, as many as `memory` says."""
    strings, text, draw = BannedStrings(banned, vocabulary), b"", torch.manual_seed(seed)
    for _ in range(20):
        end = text[max(len(text) - strings.memory, 0) :]
        masked, (stuck,) = strings.mask(torch.zeros(1, len(vocabulary)), [end])
        if stuck:
            break
        text += vocabulary[int(masked.softmax(-1).multinomial(1, generator=draw))]
    assert not any(s in text.decode(errors="replace") for s in banned)


def test_nothing_is_left_when_every_token_that_writes_something_is_forbidden() -> None:
    strings = BannedStrings(["a", "bb"], [b"a", b"b", b""])
    masked, stuck = strings.mask(torch.zeros(2, 3), [b"", b"ab"])
    assert masked.tolist() == [[-torch.inf, 0, 0], [-torch.inf, -torch.inf, 0]]
    assert stuck == [False, True]
