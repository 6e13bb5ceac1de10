"""Processors change the logits before a token is drawn: each text's own, in order, however it is
written; what they return is checked; `without` bans a text however tokens would make it up.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from minigpt import UserError
from minigpt.generation.processors import Processor, without
from minigpt.generation.torch_gpt import TorchGPT
from minigpt.generation.window import Array
from minigpt.generation.writer import Writer
from minigpt.tokenizer import CharacterTokenizer, Tokenizer, train_bpe

from .test_writer import saying, writer

few = settings(max_examples=10, deadline=None)

LETTERS = CharacterTokenizer("\n abcdefgh")


def on_torch() -> Writer:
    return Writer(TorchGPT(writer().model), LETTERS)


class Recurrent(nn.Module):
    """A network of one's own, which knows nothing of key/value caches."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(LETTERS.vocab_size, 8)
        self.lstm = nn.LSTM(8, 8, batch_first=True)
        self.head = nn.Linear(8, LETTERS.vocab_size)

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.lstm(self.embedding(token_ids))
        logits: torch.Tensor = self.head(hidden)  # (b, T, vocab_size)
        return logits


def on_an_lstm() -> Writer:
    return Writer(TorchGPT(Recurrent(), context_length=6), LETTERS)


def only(*ids: int) -> Processor:
    """Forbids all tokens but these."""

    def process(_: Array, logits: Array) -> Array:
        forbidden = np.full_like(logits, -np.inf)
        forbidden[:, ids] = logits[:, ids]
        return forbidden

    return process


# What a processor does


@pytest.mark.parametrize("make", [writer, on_torch, on_an_lstm])
def test_a_forced_token_is_written_with_every_engine_and_whatever_the_filters(
    make: Callable[[], Writer],
) -> None:
    forced: dict[str, Any] = {"processors": [only(LETTERS.ids["c"])], "max_new_tokens": 9}
    for filters in ({"temperature": 0.0}, {"temperature": 5.0, "top_k": 3}, {"top_p": 0.5}):
        assert make().generate("ab", **forced, **filters) == "ab" + 9 * "c"
        assert "".join(make().stream("ab", **forced, **filters)) == "ab" + 9 * "c"
    penalties = {"repetition_penalty": 2.0, "presence_penalty": 2.0, "frequency_penalty": 2.0}
    assert make().generate("ab", **forced, **penalties) == "ab" + 9 * "c"
    texts = [sample.text for sample in make().samples("ab", samples=3, **forced)]
    assert texts == 3 * [9 * "c"]


def test_a_processor_that_changes_nothing_changes_no_text() -> None:
    given: dict[str, Any] = {"seed": 3, "max_new_tokens": 20, "samples": 2, "top_k": 5}
    plain = writer().samples("ab", **given)
    same = writer().samples("ab", processors=[lambda ids, logits: logits], **given)
    assert [sample.text for sample in same] == [sample.text for sample in plain]


def test_it_gets_the_ids_of_prompt_and_text_and_the_model_s_logits() -> None:
    """More of them than the context of 6, and in each row those of one sample."""
    one = writer()
    seen: list[Array] = []

    def look(ids: Array, logits: Array) -> Array:
        assert ids.dtype == np.int64 and logits.dtype == np.float32
        assert logits.shape == (3, LETTERS.vocab_size)
        if not seen:
            expected = one.model(torch.tensor([LETTERS.encode("abc")]))[0, -1].detach()
            np.testing.assert_allclose(logits, np.tile(expected, (3, 1)), atol=1e-5)
        seen.append(ids)
        return logits

    end = LETTERS.end_of_text
    samples = one.samples("abc", samples=3, max_new_tokens=9, seed=1, processors=[look])
    assert [ids.shape for ids in seen] == [(3, n) for n in range(3, 3 + len(seen))]
    for row, sample in zip(seen[-1].tolist(), samples, strict=True):
        drawn = sample.token_ids[: len(seen) - 1]
        assert row[: 3 + len(drawn)] == LETTERS.encode("abc") + list(drawn)
        assert end not in sample.token_ids[:-1]


def test_of_an_empty_prompt_it_gets_the_token_that_stands_for_it() -> None:
    seen = []

    def look(ids: Array, logits: Array) -> Array:
        seen.append(ids.tolist())
        return logits

    writer().generate("", max_new_tokens=1, processors=[look])
    assert seen == [[LETTERS.encode("\n")]]


def test_processors_act_in_their_order_and_before_penalties() -> None:
    b, c = LETTERS.encode("bc")

    def raise_b(_: Array, logits: Array) -> Array:
        logits[:, b] = 5.0
        return logits

    def set_c_to_twice_the_best(_: Array, logits: Array) -> Array:
        logits[:, c] = 2 * logits.max()
        return logits

    def first_two(*processors: Processor, **settings: Any) -> str:
        given: dict[str, Any] = {"temperature": 0.0, "max_new_tokens": 2}
        return writer().generate("a", processors=processors, **given, **settings)[1:]

    assert first_two(raise_b, set_c_to_twice_the_best) == "cc"  # at 5 and 10
    assert first_two(set_c_to_twice_the_best, raise_b) == "bb"
    assert first_two(raise_b, set_c_to_twice_the_best, repetition_penalty=3.0) == "cb"


def test_log_probabilities_stay_those_of_the_model_itself() -> None:
    """Also where a processor changes the logits in place."""
    c = LETTERS.ids["c"]

    def force(ids: Array, logits: Array) -> Array:
        ids[:] = 0
        logits[:] = -np.inf
        logits[:, c] = 0.0
        return logits

    given: dict[str, Any] = {"max_new_tokens": 4, "log_probabilities": True, "processors": [force]}
    (sample,) = writer().samples("ab", **given)
    (expected,) = writer().samples("ab", **given | {"processors": [only(c)]})
    assert sample.text == expected.text == "cccc"
    assert sample.log_probabilities == expected.log_probabilities
    assert sample.log_probabilities is not None and sample.log_probabilities[0] < -0.1


def test_stop_strings_and_whole_sentences_see_what_processors_let_through() -> None:
    tokenizer = CharacterTokenizer("Ab. ")
    script = tokenizer.encode("AbAb. ")

    def sentence(ids: Array, logits: Array) -> Array:
        """Writes AbAb. and again."""
        return only(script[ids.shape[1] % 6])(ids, logits)

    one = writer(tokenizer)
    texts = [
        one.generate("A", max_new_tokens=most, processors=[sentence], whole_sentences=True)
        for most in (1, 4, 7)
    ]
    assert texts == ["AbAb.", "AbAb.", "AbAb. AbAb."]
    assert one.generate("A", processors=[sentence], stop=(". A",)) == "AbAb"


def test_a_text_that_has_ended_may_have_nothing_left_to_choose() -> None:
    """While another goes on beside it."""
    ids: list[Array] = []

    def dead_end(so_far: Array, logits: Array) -> Array:
        """The first text ends at once and then has no token; the second writes a."""
        ids.append(so_far)
        step = so_far.shape[1]
        logits[:] = -np.inf
        if step == 1:
            logits[0, LETTERS.end_of_text] = 0.0
        logits[1, LETTERS.ids["a"]] = 0.0
        return logits

    given: dict[str, Any] = {"samples": 2, "max_new_tokens": 4, "processors": [dead_end]}
    with np.errstate(all="raise"):
        first, second = writer().samples("b", **given)
    assert (first.text, first.stop_reason) == ("", "end_of_text")
    assert (second.text, second.stop_reason) == ("aaaa", "length")


def test_bytes_that_the_training_text_lacks_stay_forbidden() -> None:
    engine = writer().engine
    one = Writer(engine, LETTERS, alphabet=b"\n abcd".hex())
    b, e = LETTERS.encode("be")
    assert one.generate("a", processors=[only(b, e)], max_new_tokens=5) == "abbbbb"
    with pytest.raises(UserError, match="no token is left to choose"):
        one.generate("a", processors=[only(e)])


# What it may not do


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda logits: None, r"shorten \(processor 2\) returned nothing"),
        (lambda logits: logits[0], r"must return logits \(2, 11\), got an array \(11,\)"),
        (lambda logits: logits[:, :-1], r"must return logits \(2, 11\), got an array \(2, 10\)"),
        (lambda logits: "abc", "not str"),
        (lambda logits: logits * np.nan, "must return numbers"),
        (lambda logits: logits + np.inf, "must return numbers"),
        (lambda logits: logits - np.inf, "no token is left to choose"),
        (lambda logits: np.where([[True], [False]], logits, -np.inf), "no token is left"),
    ],
)
def test_what_is_no_logits_is_refused_by_the_processor_s_name(
    returned: Callable[[Array], Any], words: str
) -> None:
    def keep(ids: Array, logits: Array) -> Array:
        return logits

    def shorten(ids: Array, logits: Array) -> Any:
        with np.errstate(all="ignore"):
            return returned(np.abs(logits) + 1)

    with pytest.raises(UserError, match=words) as caught:
        writer().samples("ab", samples=2, processors=[keep, shorten])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", [lambda ids, logits: logits, [3], 3])
def test_what_is_no_list_of_functions_is_refused_before_anything_is_written(given: Any) -> None:
    with pytest.raises(UserError, match="processors must be a list of functions"):
        writer().stream("ab", processors=given)


# Without a text


def of_pieces() -> Tokenizer:
    """With tokens of several letters, and é in two."""
    return train_bpe(["the fox, the crow and the other foxes over there"] * 9, 290)


@pytest.mark.parametrize("make", [of_pieces, lambda: LETTERS])
def test_no_token_with_the_letter_is_written(make: Callable[[], Tokenizer]) -> None:
    tokenizer = make()
    one = writer(tokenizer)
    given: dict[str, Any] = {"samples": 9, "max_new_tokens": 90, "temperature": 2.0, "seed": 0}
    assert any("e" in sample.text for sample in one.samples("a", **given))
    banned = [without("e", tokenizer), without("h", tokenizer)]
    text = "".join(sample.text for sample in one.samples("a", processors=banned, **given))
    assert len(text) > 20 and not set(text) & {"e", "h"}


@given(
    text=st.text("abé", min_size=1, max_size=4),
    prompt=st.text("abé", max_size=4),
    seed=st.integers(0, 1000),
)
@few
def test_a_longer_text_is_not_made_up_of_several_tokens_nor_with_the_prompt(
    text: str, prompt: str, seed: int
) -> None:
    """Written by a model that knows nothing but these bytes, and a token of two letters."""
    tokenizer = train_bpe(["abab"] * 9, 258)
    one = Writer(writer(tokenizer).engine, tokenizer, alphabet="abé".encode().hex())
    given: dict[str, Any] = {"seed": seed, "max_new_tokens": 40, "temperature": 3.0}
    try:
        written = one.generate(prompt, processors=[without(text, tokenizer)], **given)
    except UserError as error:
        assert "no token is left" in str(error)
    else:
        assert text not in written[1:] or text in prompt
        assert written.count(text) == prompt.count(text)


def test_everything_else_may_be_written() -> None:
    """Every other token of the script, also one that only begins the text, or ends it."""
    tokenizer = CharacterTokenizer("forevy")
    script = "forever"
    for banned, expected in (("forever", "foreve"), ("rev", "fore"), ("verr", "forever")):
        ids = tokenizer.encode(script)
        given: dict[str, Any] = {"temperature": 0.0, "max_new_tokens": 7}
        text = saying(ids, tokenizer).generate("", processors=[without(banned, tokenizer)], **given)
        assert text.startswith(expected) and banned not in text


@pytest.mark.parametrize("text", ["", "\udce9"])
def test_what_is_no_text_cannot_be_left_out(text: str) -> None:
    with pytest.raises(UserError, match="to be left out"):
        without(text, LETTERS)
