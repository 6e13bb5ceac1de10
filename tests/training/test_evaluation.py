"""How well a model predicts a text: every token but the first, once, in nats a token and in bits
a byte; of a long text always the same part, or all of it as a stream, in windows that overlap.
"""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from minigpt.config import GPTConfig
from minigpt.model import GPT
from minigpt.tokenizer import CharacterTokenizer
from minigpt.training.evaluation import (
    Evaluation,
    evaluate_tokens,
    evaluate_windows,
    sliding_windows,
)

few = settings(max_examples=25, deadline=None)

VOCAB, CONTEXT = 7, 5
ONE_BYTE = torch.ones(VOCAB, dtype=torch.int64)
MORE_BYTES = torch.tensor([1, 2, 3, 4, 0, 1, 2])  # such as a BPE's, 0 for a special token


def gpt(architecture: str = "qwen3", std: float = 0.5, **changes: Any) -> GPT:
    torch.manual_seed(0)
    shape = {"context_length": CONTEXT, "emb_dim": 8, "num_layers": 1, "num_heads": 2} | changes
    model = GPT(GPTConfig(VOCAB, architecture, **shape)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=std)
    return model


def tokens(length: int) -> np.ndarray:
    return np.random.default_rng(0).integers(VOCAB, size=length).astype(np.uint16)


def one_by_one(
    model: GPT, text: np.ndarray, byte_lengths: Tensor, stride: int = CONTEXT
) -> Evaluation:
    """Windows of the context length, each `stride` after the one before, a token at a time."""
    nats, size = 0.0, 0
    for i in range(1, len(text)):
        # The first window that holds the token among what it predicts.
        start = max(-(-(i - CONTEXT) // stride), 0) * stride
        logits = model(torch.tensor([text[start:i].tolist()]))[0, -1]
        nats -= logits.log_softmax(-1)[int(text[i])].item()
        size += int(byte_lengths[int(text[i])])
    count = len(text) - 1
    return Evaluation(nats / count, nats / math.log(2) / max(size, 1), count, size)


def windows_read(model: GPT, text: np.ndarray, max_tokens: int, batch_size: int = 16) -> list[Any]:
    """The windows that an evaluation gives the model."""
    seen: list[Any] = []
    hook = model.register_forward_pre_hook(lambda _, inputs: seen.extend(inputs[0].tolist()))
    evaluate_tokens(model, text, ONE_BYTE, max_tokens=max_tokens, batch_size=batch_size)
    hook.remove()
    return seen


@given(
    length=st.integers(2, 40),
    batch_size=st.integers(1, 4),
    architecture=st.sampled_from(["qwen3", "gpt2"]),
)
@few
def test_it_is_what_predicting_every_token_but_the_first_gives(
    length: int, batch_size: int, architecture: str
) -> None:
    """Also for a text shorter than the context, and one that ends with a short window."""
    model, text = gpt(architecture), tokens(length)
    result = evaluate_tokens(model, text, MORE_BYTES, max_tokens=1000, batch_size=batch_size)
    with torch.no_grad():
        expected = one_by_one(model, text, MORE_BYTES)
    assert result.loss == pytest.approx(expected.loss, rel=1e-5)
    assert result.bits_per_byte == pytest.approx(expected.bits_per_byte, rel=1e-5)
    assert (result.tokens, result.bytes) == (expected.tokens, expected.bytes)


@given(length=st.integers(2, 60), batch_size=st.integers(1, 4))
@few
def test_a_text_is_read_once_from_its_beginning_to_its_end(length: int, batch_size: int) -> None:
    text = tokens(length)
    read = windows_read(gpt(), text, max_tokens=1000, batch_size=batch_size)
    assert [token for window in read for token in window] == text[:-1].tolist()


def test_bits_a_byte_count_the_bytes_of_what_was_predicted() -> None:
    """é has two bytes, € three; the first token is not predicted and does not count."""
    tokenizer = CharacterTokenizer("aé€bcd")
    text = np.array(tokenizer.encode("€aé€a"), dtype=np.uint16)
    lengths = torch.tensor(tokenizer.byte_lengths())
    result = evaluate_tokens(gpt(), text, lengths, max_tokens=1000)
    assert result.bits_per_byte == pytest.approx(result.loss * 4 / math.log(2) / (1 + 2 + 3 + 1))


@pytest.mark.parametrize("architecture", ["qwen3", "gpt2"])
def test_a_model_without_an_opinion_needs_log2_of_the_vocabulary_for_each_token(
    architecture: str,
) -> None:
    result = evaluate_tokens(gpt(architecture, std=0.0), tokens(33), ONE_BYTE, max_tokens=1000)
    assert result.loss == pytest.approx(math.log(VOCAB), rel=1e-6)
    assert result.bits_per_byte == pytest.approx(math.log2(VOCAB), rel=1e-6)


@given(length=st.integers(2, 300), max_tokens=st.integers(1, 100))
@example(length=CONTEXT + 1, max_tokens=1)
@few
def test_of_a_long_text_the_same_part_is_read_every_time(length: int, max_tokens: int) -> None:
    """Of at most max_tokens and a window more, or all of it if it is no longer than that."""
    model, text = gpt(), np.arange(length, dtype=np.uint16) % VOCAB
    read = windows_read(model, text, max_tokens)
    assert windows_read(model, text, max_tokens) == read
    count = sum(map(len, read))
    assert 1 <= count <= max_tokens + CONTEXT
    if length - 1 + CONTEXT <= max_tokens:
        assert count == length - 1


def test_the_part_that_is_read_is_spread_over_the_text() -> None:
    text = np.repeat(np.arange(VOCAB, dtype=np.uint16), 30)
    read = windows_read(gpt(), text, max_tokens=70)
    assert {token for window in read for token in window} == set(range(VOCAB))


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_in_its_mode_and_judged_without_dropout(training: bool) -> None:
    model = gpt(dropout=0.5).train(training)
    first, second = (
        evaluate_tokens(model, tokens(33), ONE_BYTE, max_tokens=1000) for _ in range(2)
    )
    assert first == second == evaluate_tokens(gpt(), tokens(33), ONE_BYTE, max_tokens=1000)
    assert model.training == training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_perplexity_is_the_exponential_of_the_loss() -> None:
    assert Evaluation(math.log(50.0), 1.0, 1, 1).perplexity == pytest.approx(50.0)
    assert Evaluation(1e4, 1.0, 1, 1).perplexity == math.inf


# A stream of tokens, in windows that may overlap


def cut(text: np.ndarray, places: list[int]) -> list[np.ndarray]:
    return np.split(text, sorted({place for place in places if place < len(text)}))


@given(
    length=st.integers(2, 40),
    stride=st.integers(1, CONTEXT),
    batch_size=st.integers(1, 4),
    places=st.lists(st.integers(0, 40), max_size=5),
)
@example(length=CONTEXT + 1, stride=2, batch_size=3, places=[])
@example(length=CONTEXT + 2, stride=2, batch_size=3, places=[])
@few
def test_a_stream_is_predicted_as_token_by_token(
    length: int, stride: int, batch_size: int, places: list[int]
) -> None:
    model, text = gpt(), tokens(length)
    windows = sliding_windows(cut(text, places), CONTEXT, stride)
    result = evaluate_windows(model, windows, MORE_BYTES, batch_size=batch_size)
    with torch.no_grad():
        expected = one_by_one(model, text, MORE_BYTES, stride)
    assert result.loss == pytest.approx(expected.loss, rel=1e-5)
    assert result.bits_per_byte == pytest.approx(expected.bits_per_byte, rel=1e-5)
    assert (result.tokens, result.bytes) == (expected.tokens, expected.bytes)


@given(
    length=st.integers(0, 80),
    context=st.integers(1, 12),
    data=st.data(),
    places=st.lists(st.integers(0, 80), max_size=5),
)
@settings(max_examples=200, deadline=None)
def test_every_token_but_the_first_is_predicted_once_with_enough_before_it(
    length: int, context: int, data: st.DataObject, places: list[int]
) -> None:
    stride = data.draw(st.integers(1, context))
    predicted: list[int] = []
    for window, number in sliding_windows(cut(np.arange(length), places), context, stride):
        assert 2 <= len(window) <= context + 1
        assert window.tolist() == list(range(window[0], window[0] + len(window)))
        predicted += window[-number:].tolist()
        before = len(window) - number  # tokens that the first one predicted sees
        assert before >= min(context - stride, predicted[-number])
    assert predicted == list(range(1, length))


def test_more_before_each_token_makes_a_text_that_repeats_itself_easier_to_predict() -> None:
    """With a model that looks for the last time it saw the present token."""
    length = 16

    class Recall(nn.Module):
        config = GPTConfig(VOCAB, context_length=length, emb_dim=8, num_heads=2)

        def __init__(self) -> None:
            super().__init__()
            self.token_embedding = nn.Embedding(1, 1)

        def forward(self, ids: Tensor) -> Tensor:
            logits = torch.zeros(*ids.shape, VOCAB)
            for row, inputs in enumerate(ids.tolist()):
                for i, token in enumerate(inputs):
                    if token in inputs[:i]:
                        last = max(k for k in range(i) if inputs[k] == token)
                        logits[row, i, inputs[last + 1]] = 5.0
            return logits

    text = [np.array([0, 1, 2, 3, 4, 5, 6] * 30)]
    losses = [
        evaluate_windows(Recall(), sliding_windows(text, length, stride), ONE_BYTE).loss  # type: ignore[arg-type]
        for stride in (16, 12, 8)
    ]
    assert losses[0] > losses[1] + 0.1 and losses[1] > losses[2] + 0.1
