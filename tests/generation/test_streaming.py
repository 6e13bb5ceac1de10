"""What is shown of a text while it is written: all of it up to the first stop string, in whole
characters, as soon as that can be decided, wherever the tokens are cut.
"""

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt import SampleConfig
from minigpt.generation.continuation import Continuation

some = settings(max_examples=80, deadline=None)

letters = st.sampled_from("aabé🦊")  # of one, two and four bytes
texts = st.text(letters, max_size=15)
stops = st.lists(st.text(letters, min_size=1, max_size=4), max_size=3)


@st.composite
def tokens_of(draw: st.DrawFn, text: str) -> list[bytes]:
    """The bytes of a text, cut anywhere; a token may be empty, as a special one."""
    data = text.encode()
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=20)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def before_the_first(text: str, stop: list[str]) -> str:
    """Read character by character: up to the first at which a stop string is complete."""
    for end in range(1, len(text) + 1):
        found = [s for s in stop if text[:end].endswith(s)]
        if found:
            return text[: end - max(map(len, found))]
    return text


class Tokens:
    """A tokenizer of these tokens alone, each by its index."""

    end_of_text = None

    def __init__(self, tokens: list[bytes]):
        self.tokens = tokens

    def token_bytes(self, token_id: int) -> bytes:
        return self.tokens[token_id]


def continuation(tokens: list[bytes], stop: list[str], most: int) -> Continuation:
    config = SampleConfig(stop=tuple(stop), max_new_tokens=most)
    return Continuation(config, Tokens(tokens))


def shown(tokens: list[bytes], stop: list[str]) -> tuple[list[str], bool]:
    """The pieces, and whether a stop string came up."""
    text = continuation(tokens, stop, most=len(tokens))
    pieces = []
    while text.stop_reason is None:
        pieces.append(text.add(len(pieces)))
    return pieces, text.stop_reason == "stop"


@given(text=texts, stop=stops, data=st.data())
@some
def test_a_text_that_is_cut_short_shows_what_was_held_back(
    text: str, stop: list[str], data: Any
) -> None:
    """Its last token may be any; a stop string that this completes ends it all the same."""
    tokens = data.draw(tokens_of(text))
    cut = data.draw(st.integers(1, len(tokens)))
    pieces, stopped = shown(tokens[:cut], stop)  # the last as the most that were asked for
    late = continuation(tokens, stop, most=len(tokens) + 1)
    found = []
    while late.stop_reason is None:
        found.append(late.add(len(found), is_last=len(found) == cut - 1))
    assert found == pieces
    assert late.stop_reason == ("stop" if stopped else "length")


@given(text=texts, stop=stops, data=st.data())
@some
def test_what_is_shown_is_exactly_the_text_before_the_first_stop(
    text: str, stop: list[str], data: Any
) -> None:
    pieces, stopped = shown(data.draw(tokens_of(text)), stop)
    assert "".join(pieces) == before_the_first(text, stop)
    assert stopped == any(s in text for s in stop)


@given(text=texts, stop=stops, data=st.data())
@some
def test_only_what_could_become_a_stop_or_a_character_is_held_back(
    text: str, stop: list[str], data: Any
) -> None:
    tokens = data.draw(tokens_of(text))
    written, so_far = b"", ""
    pieces = continuation(tokens, stop, most=1000)
    for i, token in enumerate(tokens):
        written, so_far = written + token, so_far + pieces.add(i)
        if pieces.stop_reason == "stop":
            return
        whole = written.decode(errors="ignore")  # without the bytes of an unfinished character
        assert whole.startswith(so_far)
        held = whole.removeprefix(so_far)
        assert held == "" or any(s.startswith(held) and s != held for s in stop)


@given(data=st.binary(max_size=20), cuts=st.lists(st.integers(0, 20), max_size=5))
@some
def test_bytes_that_are_no_text_are_marked_as_if_read_at_once(data: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    tokens = [data[a:b] for a, b in pairwise(edges)]
    assert "".join(shown(tokens, [])[0]) == data.decode(errors="replace")
