"""A trained model writes: the prompt first, whole characters only, the same text for the same seed,
up to where it should stop; and it says how likely a text is.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from minigpt import UserError
from minigpt.config import GPTConfig, SampleConfig
from minigpt.generation.torch_gpt import TorchGPT, glass_of
from minigpt.generation.window import Array
from minigpt.generation.writer import Writer
from minigpt.model import GPT
from minigpt.tokenizer import BytePairTokenizer, CharacterTokenizer, Tokenizer, train_bpe

few = settings(max_examples=10, deadline=None)


def writer(tokenizer: Tokenizer | None = None) -> Writer:
    """With a random model, whose context is shorter than what it writes here."""
    tokenizer = tokenizer or CharacterTokenizer("\n abcdefgh")
    torch.manual_seed(0)
    shape: dict[str, Any] = {"context_length": 6, "emb_dim": 8, "num_layers": 1, "num_heads": 1}
    model = GPT(GPTConfig(tokenizer.vocab_size, **shape)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return Writer(glass_of(model), tokenizer)


def bytewise() -> BytePairTokenizer:
    """Learned from plain ASCII, so that é is two tokens and 🦊 four."""
    return train_bpe(["the fox and the crow"], 270)


class Scripted:
    """An engine that is sure of the next of these ids, whatever it reads, and then of the end."""

    def __init__(self, ids: Iterable[int], tokenizer: Tokenizer):
        self.context_length = 1000
        self.vocab_size = tokenizer.vocab_size
        self.ids, self.end, self.read = iter(ids), tokenizer.end_of_text, []

    def next_logits(self, token_ids: Array, cache: Any) -> Array:
        self.read.append(token_ids.tolist())
        logits = np.zeros((len(token_ids), self.vocab_size), np.float32)
        logits[:, next(self.ids, self.end)] = 1000.0
        return logits

    def new_cache(self, batch_size: int, start: Any = None) -> None:
        return None


def saying(ids: Iterable[int], tokenizer: Tokenizer) -> Writer:
    """A writer whose model writes these ids."""
    return Writer(Scripted(ids, tokenizer), tokenizer)  # type: ignore[arg-type]


# What is written


@pytest.mark.parametrize("knows_documents", [False, True])
def test_an_empty_prompt_begins_a_line_or_if_the_model_knows_them_a_document(
    knows_documents: bool,
) -> None:
    tokenizer = CharacterTokenizer("\n abc")
    engine: Any = Scripted([], tokenizer)
    Writer(engine, tokenizer, knows_documents).generate()
    first = tokenizer.end_of_text if knows_documents else tokenizer.encode("\n")[0]
    assert engine.read == [[[first]]]


@pytest.mark.parametrize(
    ("text", "first"), [("a b\n", "\n"), ("a b", " "), ("ab", None), ("äb\n", "\n")]
)
def test_bytes_that_the_text_lacks_are_neither_the_start_nor_drawn(
    text: str, first: str | None
) -> None:
    tokenizer = train_bpe(["a b c ä\n" * 9], 280)
    engine: Any = Scripted([], tokenizer)
    one = Writer(engine, tokenizer, alphabet=text.encode().hex())
    written = one.generate(max_new_tokens=60, temperature=5.0, seed=0)
    start = tokenizer.end_of_text if first is None else tokenizer.encode(first)[0]
    assert engine.read[0] == [[start]]
    assert written and set(written) <= {*text, "\ufffd"[: "ä" in text]}


@pytest.mark.parametrize("knows_documents", [True, False])
def test_a_model_of_many_documents_ends_a_text_and_one_of_a_single_document_never_does(
    knows_documents: bool,
) -> None:
    tokenizer = CharacterTokenizer("\n abc")
    a, end = tokenizer.encode("a")[0], tokenizer.end_of_text
    engine: Any = Scripted([a, end, a, a], tokenizer)
    writer = Writer(engine, tokenizer, knows_documents, alphabet=b"\n abc".hex())
    (sample,) = writer.samples("b", max_new_tokens=4, temperature=0)
    assert (sample.stop_reason == "end_of_text") == knows_documents
    assert (sample.token_ids == (a, end)) == knows_documents


def test_a_model_of_one_conversation_writes_turns_and_does_not_end_the_text() -> None:
    tokenizer = train_bpe(["Anna: hi\n\nOtto: hi\n\n" * 9], 280, has_turns=True)
    alphabet = b"Anna: hi\nOto".hex()
    for knows_documents in (False, True):
        bias = Writer(Scripted([], tokenizer), tokenizer, knows_documents, alphabet=alphabet).bias
        assert bias[[tokenizer.speaker, tokenizer.end_of_turn]].tolist() == [0.0, 0.0]
        assert np.isfinite(bias[tokenizer.end_of_text]) == knows_documents


@given(
    prompt=st.text("abc \n", max_size=10),
    seed=st.integers(0, 2**63 - 1),
    temperature=st.floats(0, 5).filter(lambda t: t == 0 or t > 0.01),
    top_k=st.none() | st.integers(1, 20),
)
@few
def test_a_text_is_its_stream_joined_and_begins_with_the_prompt(
    prompt: str, seed: int, temperature: float, top_k: int | None
) -> None:
    given: dict[str, Any] = {"seed": seed, "temperature": temperature, "top_k": top_k}
    pieces = list(writer().stream(prompt, max_new_tokens=15, **given))
    text = writer().generate(prompt, max_new_tokens=15, **given)
    assert "".join(pieces) == text
    assert text.startswith(prompt) and pieces[:1] == ([prompt] if prompt else pieces[:1])
    assert "" not in pieces


def test_a_seed_writes_the_same_text_again_and_another_or_none_another() -> None:
    texts = [writer().generate("abc", seed=seed, max_new_tokens=40) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert len({writer().generate("abc", max_new_tokens=40) for _ in range(10)}) > 1


def test_it_stops_where_the_text_ends_and_does_not_write_that_down() -> None:
    for tokenizer in (CharacterTokenizer("abcd"), bytewise()):
        ids = tokenizer.encode("bc")
        assert saying([*ids, tokenizer.end_of_text, *ids], tokenizer).generate("a") == "abc"


# Characters of several tokens


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
@few
def test_a_character_is_never_broken(text: str) -> None:
    """Each piece is whole characters; nothing waits longer than for its own bytes."""
    tokenizer = bytewise()
    pieces = list(saying(tokenizer.encode(text), tokenizer).stream("", max_new_tokens=200))
    assert "".join(pieces) == text
    assert "" not in pieces
    assert all(len(piece) == 1 for piece in pieces if not piece.isascii())


# Stopping


@pytest.mark.parametrize(
    ("count", "text", "reason"),
    [(9, "bé", "stop"), (3, "bé", "stop"), (2, "bé", "length"), (0, "", "length")],
)
def test_a_text_ends_before_a_stop_string(count: int, text: str, reason: str) -> None:
    tokenizer = CharacterTokenizer("abé🦊")
    ids = tokenizer.encode("bé🦊a")
    given: dict[str, Any] = {"stop": ("x", "🦊"), "max_new_tokens": count}
    (sample,) = saying(ids, tokenizer).samples("a", **given)
    assert (sample.text, sample.stop_reason) == (text, reason)
    pieces = list(saying(ids, tokenizer).stream("a", **given))
    assert "".join(pieces) == "a" + text and "" not in pieces


def test_a_stop_string_does_not_begin_in_the_prompt() -> None:
    tokenizer = CharacterTokenizer("abc")
    assert saying(tokenizer.encode("bcab"), tokenizer).generate("a", stop=("ab",)) == "abc"


# Several samples


@pytest.mark.parametrize("samples", [2, 5])
def test_a_sample_depends_on_the_seed_and_its_index_alone(samples: int) -> None:
    one = writer(bytewise())
    given: dict[str, Any] = {"seed": 3, "max_new_tokens": 30, "temperature": 1.0}
    given |= {"presence_penalty": 0.5, "repetition_penalty": 1.2}
    many = one.samples("the", samples=samples, **given)
    more = one.samples("the", samples=samples + 3, **given)
    for sample, same in zip(many, more, strict=False):
        assert (sample.text, sample.token_ids) == (same.text, same.token_ids)
    assert len({sample.text for sample in many}) == samples
    assert "the" + many[0].text == one.generate("the", **given)
    assert one.generate("the", samples=4, **given) == one.generate("the", **given)


def test_each_sample_stops_by_itself() -> None:
    one = writer()
    given: dict[str, Any] = {"seed": 1, "max_new_tokens": 60, "stop": ("a",)}
    samples = one.samples("ab", samples=6, **given)
    assert len({len(sample.token_ids) for sample in samples}) > 1
    for sample in samples:
        assert sample.prompt == "ab" and "a" not in sample.text
        text = one.tokenizer.decode(sample.token_ids)
        if sample.stop_reason == "stop":
            assert text == sample.text + "a"
        else:
            assert text == sample.text
            ended = sample.token_ids[-1] == one.tokenizer.end_of_text
            assert sample.stop_reason == ("end_of_text" if ended else "length")
        assert sample.seconds > 0 and sample.tokens_per_second > 0


# Step by step


def test_probabilities_are_the_model_s_own_whatever_the_filters() -> None:
    one = writer()
    config = SampleConfig(seed=2, samples=2, max_new_tokens=4, top_k=2, temperature=3.0)
    texts = {0: one.tokenizer.encode("b"), 1: one.tokenizer.encode("b")}
    for step in one.steps("b", config, log_probabilities=True, alternatives=3):
        ids = texts[step.sample]
        with torch.no_grad():
            expected = one.model(torch.tensor([ids]))[0, -1].log_softmax(-1)
        assert step.token_id is not None and step.log_probability is not None
        assert math.isclose(step.log_probability, expected[step.token_id], rel_tol=1e-4)
        best = expected.argsort(descending=True)[:3].tolist()
        assert [token.id for token in step.alternatives] == best
        for token in step.alternatives:
            assert math.isclose(token.log_probability, expected[token.id], rel_tol=1e-4)
        ids.append(step.token_id)


# How likely a text is


@given(text=st.text("abcdefgh \n", max_size=40))
@few
def test_each_token_is_scored_after_at_least_half_a_context(text: str) -> None:
    """After all of it, as far as a window reaches back; the context here is 6 tokens."""
    one = writer()
    ids = one.tokenizer.encode(text)
    read = [one.tokenizer.encode("\n")[0], *ids]
    score, total = one.score(text), 0.0
    assert b"".join(token.bytes for token in score.tokens).decode() == text
    for i, token in enumerate(score.tokens):
        candidates = []
        for seen in range(min(i + 1, 4), min(i + 1, 6) + 1):
            with torch.no_grad():
                logits = one.model(torch.tensor([read[i + 1 - seen : i + 1]]))[0, -1]
            candidates.append(float(logits.log_softmax(-1)[ids[i]]))
        assert any(math.isclose(token.log_probability, c, rel_tol=1e-4) for c in candidates)
        total += token.log_probability
    assert math.isclose(score.log_probability, total, rel_tol=1e-6)
    bits = -total / math.log(2) / max(len(text.encode()), 1)
    assert math.isclose(score.bits_per_byte, bits, rel_tol=1e-6)


def test_bits_are_those_of_a_byte_not_of_a_character() -> None:
    score = writer(CharacterTokenizer("\naé中")).score("aé中é")  # of 1, 2, 3 and 2 bytes
    bits = -score.log_probability / math.log(2)
    assert math.isclose(score.bits_per_byte, bits / 8)


def test_a_sample_is_scored_as_it_was_drawn_and_an_empty_text_is_certain() -> None:
    (sample,) = writer().samples("", log_probabilities=True, seed=4, max_new_tokens=5)
    assert sample.log_probabilities is not None and sample.stop_reason == "length"
    expected = [token.log_probability for token in writer().score(sample.text).tokens]
    np.testing.assert_allclose(sample.log_probabilities, expected, rtol=1e-4)
    score = writer().score("")
    assert (score.tokens, score.log_probability, score.bits_per_byte) == ((), 0.0, 0.0)


@given(text=st.text("abcdefgh \n", max_size=12), k=st.integers(1, 20))
@few
def test_next_tokens_are_the_likeliest_in_order(text: str, k: int) -> None:
    one = writer()
    tokens, everything = one.next_tokens(text, k), one.next_tokens(text, one.tokenizer.vocab_size)
    assert math.isclose(math.fsum(t.probability for t in everything), 1.0, rel_tol=1e-4)
    assert tokens == everything[:k]
    assert everything == sorted(everything, key=lambda token: -token.probability)
    assert {token.id for token in everything} == set(range(one.tokenizer.vocab_size))
    assert all(token.bytes == one.tokenizer.token_bytes(token.id) for token in tokens)
    greedy = one.generate(text, temperature=0.0, max_new_tokens=1)
    assert greedy == text + tokens[0].text


@given(
    logits=st.lists(st.sampled_from([-1.5, 0.0, 0.25, 3.0]), min_size=1, max_size=9),
    k=st.integers(0, 12),
)
@few
def test_of_equally_likely_tokens_those_with_the_smallest_ids_come_first(
    logits: list[float], k: int
) -> None:
    """As when all are sorted, for each row by itself."""
    one = writer(CharacterTokenizer("abcdefgh"[: len(logits) - 1]))
    rows = np.array([logits, logits[::-1]], np.float32)
    for row, found in zip(rows, one.likeliest(rows, k), strict=True):
        expected = sorted(range(len(row)), key=lambda i: (-row[i], i))[:k]
        assert [token.id for token in found] == expected


# Prompts


def test_what_cannot_be_done_is_refused_before_anything_is_written() -> None:
    with pytest.raises(UserError, match="'€' at position 2"):
        writer().stream("ab€")
    with pytest.raises(UserError, match="top_k must be at least 1, got 0"):
        writer().stream("ab", top_k=0)
    for judge in (writer().score, writer().next_tokens):
        with pytest.raises(UserError, match="'€' at position 2"):
            judge("ab€")
    with pytest.raises(UserError, match="k must be at least 1, got 0"):
        writer().next_tokens("ab", 0)


def test_weights_that_are_no_numbers_are_noticed() -> None:
    one = writer()
    nn.init.constant_(one.model.token_embedding.weight, math.nan)
    for engine in (glass_of(one.model), TorchGPT(one.model)):
        with pytest.raises(UserError, match="the model is damaged"):
            Writer(engine, one.tokenizer).generate("ab")
