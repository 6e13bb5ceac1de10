"""The network is written three times, in torch, numpy and JavaScript, and computes the same.

The page's worker runs in node here; test_engine.py runs it in a browser.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.config import GPTConfig
from minigpt.generation.explanation import explain_token
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.generation.torch_gpt import glass_of
from minigpt.generation.window import Array
from minigpt.model import GPT
from minigpt.runs.read_model import FoundModel
from minigpt.tokenizer import make_tokenizer

from ..interop.examples import randomize, weights_of
from ..networks import COMBINATIONS, shapes
from .in_node import Worker

pytestmark = pytest.mark.long

TOKENIZER = make_tokenizer("char", None, ["abcdefghijkl"])
VOCAB = TOKENIZER.vocab_size


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """One process of node, which is given one model after another."""
    worker = Worker(tmp_path_factory.mktemp("node"))
    yield worker
    worker.close()


def random_gpt(config: GPTConfig) -> GPT:
    torch.manual_seed(0)
    model = GPT(config)
    randomize(model)
    return model.eval()


def found_model(config: GPTConfig, model: GPT) -> FoundModel:
    return FoundModel(Path(), NumpyGPT(config, weights_of(model)), TOKENIZER)


def assert_close(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "parts", COMBINATIONS, ids=lambda parts: "-".join(map(str, parts.values()))
)
@given(shape=shapes(VOCAB), data=st.data())
@settings(max_examples=3, deadline=None)
@torch.no_grad()
def test_torch_numpy_and_javascript_compute_the_same(
    worker: Worker, parts: dict[str, Any], shape: dict[str, Any], data: st.DataObject
) -> None:
    """Logits, attention weights and the stream, of a text that the page reads in two pieces."""
    config = GPTConfig(**shape, **parts)
    model = random_gpt(config)
    ids: Array = np.random.default_rng(0).integers(VOCAB, size=config.context_length)
    cut = data.draw(st.integers(1, len(ids)))

    glass = glass_of(model)
    logits = glass(ids[None])[0]
    assert_close(logits, model(torch.from_numpy(ids)[None])[0])

    worker.open(found_model(config, model))
    assert_close(worker.ask("logits", ids[:cut].tolist()), logits[cut - 1])
    assert_close(worker.ask("allLogits", ids.tolist()), logits)

    record = glass.record(ids)
    T = len(ids)
    layer = data.draw(st.integers(0, config.num_layers - 1))
    head = data.draw(st.integers(0, config.num_heads - 1))
    weights = worker.ask("attention", ids.tolist(), layer, head)["weights"]
    assert_close(np.reshape(weights, (T, T)), record.attention[layer, head])
    rows = worker.ask("rows", ids.tolist())["weights"]
    assert_close(rows, record.attention[:, :, -1].ravel())
    assert_close(worker.ask("norms", ids.tolist()), np.linalg.norm(record.residual[:, -1], axis=1))


@given(shape=shapes(VOCAB), parts=st.sampled_from(COMBINATIONS), data=st.data())
@settings(max_examples=20, deadline=None)
def test_a_head_that_is_off_is_off_in_numpy_and_javascript(
    worker: Worker, shape: dict[str, Any], parts: dict[str, Any], data: st.DataObject
) -> None:
    config = GPTConfig(**shape, **parts)
    model = random_gpt(config)
    glass = glass_of(model)
    ids = np.arange(config.context_length) % VOCAB
    layers = st.integers(0, config.num_layers - 1)
    heads = st.integers(0, config.num_heads - 1)
    off = data.draw(st.sets(st.tuples(layers, heads), min_size=1))

    worker.open(found_model(config, model))
    names = [f"{layer}.{head}" for layer, head in off]
    logits = worker.ask("allLogits", ids.tolist(), names)
    assert_close(logits, glass.logits(glass.record(ids, off).residual[-1]))


@pytest.mark.parametrize(
    "parts", COMBINATIONS, ids=lambda parts: "-".join(map(str, parts.values()))
)
@given(shape=shapes(VOCAB), data=st.data())
@settings(max_examples=2, deadline=None)
def test_a_token_is_explained_alike_in_python_and_javascript(
    worker: Worker, parts: dict[str, Any], shape: dict[str, Any], data: st.DataObject
) -> None:
    """With all heads, or with some of them off; and the parts add up to the centred logit."""
    config = GPTConfig(**shape, **parts)
    model = random_gpt(config)
    ids = np.random.default_rng(1).integers(VOCAB, size=config.context_length + 1).tolist()
    head = st.tuples(st.integers(0, config.num_layers - 1), st.integers(0, config.num_heads - 1))
    off = data.draw(st.sets(head, max_size=2))
    expected = explain_token(glass_of(model), ids, len(ids) - 1, off)

    worker.open(found_model(config, model))
    names = [f"{layer}.{head}" for layer, head in off]
    question = worker.send("explain", ids[:-1], ids[-1], names)
    why = worker.answer(question)

    assert why["logit"] == pytest.approx(expected.logit, abs=1e-3)
    assert why["probability"] == pytest.approx(expected.probability, abs=1e-3)
    assert why["parts"] == pytest.approx(expected.parts, abs=1e-3)
    assert why["heads"] == pytest.approx(expected.heads, abs=1e-3)
    words = {int(index): bits for index, bits in why["words"].items()}
    assert words == pytest.approx(expected.words, abs=1e-3)
    assert sum(why["parts"].values()) == pytest.approx(why["logit"], abs=1e-3)

    told: dict[str, Any] = {"heads": {}, "words": {}}
    for event in worker.events[question]:
        for name in ("heads", "words"):
            told[name] |= event.pop(name, {})
        told |= event
    assert {name: told[name] for name in why} == why
