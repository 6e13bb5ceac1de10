"""The glass engine is the torch model: every logit, attention weight and residual, for any shape
and any parts, alone or in a batch, with a cache or without.
"""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from minigpt import UserError
from minigpt.config import GPTConfig
from minigpt.generation.numpy_gpt import NumpyGPT
from minigpt.generation.torch_gpt import TorchGPT, glass_of, soonest_engine_of, torch_of
from minigpt.generation.window import Array
from minigpt.interop.huggingface import write_folder
from minigpt.model import GPT

from ..interop.examples import CONFIGS, byte_pairs, random_model, randomize, weights_of
from ..lazy import Lazy
from ..networks import configs

transformers = Lazy("transformers")

VOCAB = 31
few = settings(max_examples=8, deadline=None)


@st.composite
def models(draw: st.DrawFn) -> GPT:
    """Any small model with wide random weights."""
    config = draw(configs(VOCAB))
    assume(config.emb_dim > 1)  # a norm of one number magnifies float32's own errors, torch's too
    torch.manual_seed(draw(st.integers(0, 99)))
    model = GPT(config)
    randomize(model)
    return model.eval()


def some_ids(model: GPT, batch_size: int, seed: int = 0) -> Array:
    """As many tokens as the context holds."""
    shape = (batch_size, model.config.context_length)
    return np.random.default_rng(seed).integers(model.config.vocab_size, size=shape)


def assert_close(ours: Array, theirs: Tensor | Array) -> None:
    np.testing.assert_allclose(ours, np.asarray(theirs), rtol=1e-4, atol=1e-4)


def inside(model: GPT, ids: Array) -> tuple[Tensor, Tensor, Tensor]:
    """What the torch model computes for tokens ``(T,)``: logits ``(T, vocab_size)``, attention
    weights ``(num_layers, num_heads, T, T)`` and residuals ``(num_layers + 1, T, emb_dim)``."""
    x = model.token_embedding(torch.from_numpy(ids)[None])
    if model.position_embedding is not None:
        x = x + model.position_embedding(torch.arange(len(ids)))
    residuals, attention = [x], []
    for block in model.blocks:
        attention.append(block.attention.forward_with_weights(block.attention_norm(x))[1])
        x = block(x)
        residuals.append(x)
    return model(torch.from_numpy(ids)[None])[0], torch.cat(attention), torch.cat(residuals)


@given(model=models())
@settings(max_examples=20, deadline=None)
@torch.no_grad()
def test_all_that_happens_inside_is_as_in_the_torch_model(model: GPT) -> None:
    glass, ids = glass_of(model), some_ids(model, 1)
    logits, attention, residual = inside(model, ids[0])
    record = glass.record(ids[0])
    assert_close(glass(ids)[0], logits)
    assert_close(record.attention, attention)
    assert_close(record.residual, residual)
    assert_close(glass.logits(record.residual), model.head(model.final_norm(residual)))


@pytest.mark.parametrize("name", CONFIGS)
def test_all_that_happens_inside_is_as_in_transformers(name: str, tmp_path: Path) -> None:
    """With the model that it loads from a folder that we wrote."""
    model = random_model(name)
    write_folder(tmp_path, model.config, weights_of(model), byte_pairs())
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, attn_implementation="eager"
    ).eval()
    ids = some_ids(model, 1)
    with torch.no_grad():
        seen = theirs(torch.from_numpy(ids), output_attentions=True, output_hidden_states=True)
    record = glass_of(model).record(ids[0])
    assert_close(glass_of(model)(ids), seen.logits)
    assert_close(record.attention, torch.cat(seen.attentions))
    assert_close(record.residual[:-1], torch.cat(seen.hidden_states[:-1]))  # their last is normed


@given(model=models(), batch_size=st.integers(1, 3), data=st.data())
@few
def test_reading_piece_by_piece_gives_what_reading_at_once_gives(
    model: GPT, batch_size: int, data: st.DataObject
) -> None:
    ids = some_ids(model, batch_size)
    T = ids.shape[1]
    cuts = sorted(data.draw(st.sets(st.integers(1, T), max_size=T)) | {T})
    for engine in (glass_of(model), TorchGPT(model)):
        cache, expected, start = engine.new_cache(batch_size), engine(ids), 0
        for end in cuts:
            assert_close(engine.next_logits(ids[:, start:end], cache), expected[:, end - 1])
            start = end


def test_a_small_gpt_is_written_with_by_the_glass_engine_wherever_its_weights_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = GPT(
        GPTConfig(20, context_length=8, emb_dim=8, num_layers=1, num_heads=2)
    ).bfloat16()  # which no CPU writes with by itself
    assert isinstance(soonest_engine_of(model, context_length=8), NumpyGPT)
    monkeypatch.setattr("minigpt.generation.torch_gpt.WORTH_A_GPU", 10)
    assert isinstance(soonest_engine_of(model, context_length=8), TorchGPT)


@given(model=models())
@few
def test_rows_of_a_batch_do_not_see_each_other(model: GPT) -> None:
    glass, ids = glass_of(model), some_ids(model, 3)
    other = np.concatenate([ids[:1], some_ids(model, 2, seed=1)])
    assert_close(glass(ids)[0], glass(other)[0])
    assert_close(glass(ids), np.concatenate([glass(row[None]) for row in ids]))


@given(model=models(), data=st.data())
@few
def test_texts_of_different_lengths_side_by_side_get_the_logits_that_each_gets_alone(
    model: GPT, data: st.DataObject
) -> None:
    """Each has positions of its own, whether it is the longest or not."""
    glass, ids = glass_of(model), some_ids(model, 3)
    longest = ids.shape[1] - 1
    lengths = data.draw(st.lists(st.integers(0, longest), min_size=3, max_size=3))
    cache = glass.new_cache(3)
    for i, length in enumerate(lengths):
        if length:
            glass.next_logits(ids[i : i + 1, :length], cache.part(slice(i, i + 1)))
    new = data.draw(st.integers(1, ids.shape[1] - max(lengths)))
    rows = [row[length : length + new] for row, length in zip(ids, lengths, strict=True)]
    logits = glass.next_logits(np.array(rows), cache)
    for row, length, together in zip(ids, lengths, logits, strict=True):
        assert_close(together, glass(row[None, : length + new])[0, -1])


@given(model=models())
@few
def test_a_cache_of_one_text_can_be_repeated(model: GPT) -> None:
    ids = some_ids(model, 1)
    for engine in (glass_of(model), TorchGPT(model)):
        one = engine.new_cache(1)
        engine.next_logits(ids[:, : ids.shape[1] // 2 or 1], one)
        rest = np.repeat(ids[:, ids.shape[1] // 2 or 1 :], 3, axis=0)
        if rest.size:
            logits = engine.next_logits(rest, engine.new_cache(3, one))
            assert_close(logits, np.repeat(engine(ids)[:, -1], 3, axis=0))


def test_a_prompt_longer_than_what_is_read_at_once_gives_the_same() -> None:
    model = GPT(GPTConfig(VOCAB, context_length=600, emb_dim=8, num_layers=2, num_heads=2)).eval()
    randomize(model)
    ids, glass = some_ids(model, 2), glass_of(model)
    assert_close(glass.next_logits(ids, glass.new_cache(2)), glass(ids)[:, -1])


@given(model=models(), data=st.data())
@few
@torch.no_grad()
def test_a_head_that_is_off_adds_nothing(model: GPT, data: st.DataObject) -> None:
    """As if the columns of out_proj that read it were zero."""
    config, ids = model.config, some_ids(model, 1)
    layer = data.draw(st.integers(0, config.num_layers - 1))
    off = data.draw(st.sets(st.integers(0, config.num_heads - 1), min_size=1))
    record = glass_of(model).record(ids[0], [(layer, head) for head in off])
    out_proj: Any = model.blocks[layer].attention.out_proj  # type: ignore[union-attr]
    for head in off:
        out_proj.weight[:, head * config.head_size : (head + 1) * config.head_size] = 0
    assert_close(record.residual, inside(model, ids[0])[2])


def test_more_tokens_than_the_context_are_refused() -> None:
    glass = glass_of(random_model("gpt2"))
    with pytest.raises(ValueError, match="129 tokens do not fit"):
        glass(np.zeros((1, 129), int))


# Weights


def test_a_model_that_is_trained_further_leaves_the_engine_as_it_is() -> None:
    model = random_model("qwen3")
    glass, ids = glass_of(model), some_ids(model, 1)
    expected = glass(ids)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    np.testing.assert_array_equal(glass(ids), expected)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_torch_model_of_an_engine_has_its_weights(name: str) -> None:
    model = random_model(name)
    copy = torch_of(glass_of(model))
    assert copy.state_dict().keys() == model.state_dict().keys()
    for key, weight in model.state_dict().items():
        assert torch.equal(copy.state_dict()[key], weight)


def test_weights_that_do_not_fit_the_config_are_named() -> None:
    glass = glass_of(random_model("gpt2"))
    name = "blocks.1.attention.W_key.bias"
    for changed, words in [
        (
            {name: np.zeros(4, np.float32)},
            rf"tensor {name} has shape \(4,\); by the config it is \(21,\)",
        ),
        ({"extra": np.zeros(4, np.float32)}, "tensors, but the model has"),
    ]:
        with pytest.raises(UserError, match=words):
            NumpyGPT(glass.config, {**glass.weights, **changed})
    fewer = {key: weight for key, weight in glass.weights.items() if key != name}
    with pytest.raises(
        UserError, match=rf"tensor {name} is missing; by the config its shape is \(21,\)"
    ):
        NumpyGPT(glass.config, fewer)


def test_a_config_that_asks_for_millions_of_layers_takes_no_memory() -> None:
    glass = glass_of(random_model("qwen3"))
    huge = dataclasses.replace(glass.config, num_layers=1 << 18)
    with pytest.raises(UserError, match=r"tensor blocks\.2\..* is missing"):
        NumpyGPT(huge, glass.weights)
