"""The attention weights of a text: those that the layers compute, while the model runs as ever."""

from pathlib import Path
from typing import Any

import pytest
import torch

import minigpt
from minigpt import UserError
from minigpt.generation.attention_maps import AttentionMaps
from minigpt.generation.writer import Writer
from minigpt.model import GPT, GPTConfig
from minigpt.tokenizer import CharacterTokenizer

MODELS: list[dict[str, Any]] = [
    {"architecture": "qwen3", "num_heads": 4, "num_kv_heads": 2},
    {"architecture": "gpt2", "num_heads": 2},
]


def writer(**shape: Any) -> Writer:
    torch.manual_seed(0)
    shape = {"context_length": 12, "emb_dim": 16, "num_layers": 3, "num_heads": 2} | shape
    model = GPT(GPTConfig(10, **shape)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return Writer(model, CharacterTokenizer("\n abcdefg"))


@pytest.mark.parametrize("shape", MODELS)
def test_the_weights_are_those_of_each_layer_in_its_place(shape: dict[str, Any]) -> None:
    one = writer(**shape)
    maps = minigpt.attention_maps(one, "abc defg")
    model, heads = one.model, shape["num_heads"]
    assert maps.weights.shape == (3, heads, 8, 8)
    x = model.token_embedding(torch.tensor([one.tokenizer.encode("abc defg")]))
    if model.position_embedding is not None:
        x = x + model.position_embedding(torch.arange(8))
    for i, block in enumerate(model.blocks):
        _, weights = block.attention.forward_with_weights(block.attention_norm(x))
        torch.testing.assert_close(maps.weights[i], weights[0])
        x = block(x)


@pytest.mark.parametrize("shape", MODELS)
def test_rows_sum_to_one_and_look_at_nothing_later(shape: dict[str, Any]) -> None:
    weights = minigpt.attention_maps(writer(**shape), "abcabcabcabc").weights
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:3]))
    assert (weights.triu(diagonal=1) == 0).all() and (weights >= 0).all()
    assert not torch.equal(weights[0], weights[1])


def test_the_model_is_left_as_it_was() -> None:
    one = writer()
    ids = torch.tensor([one.tokenizer.encode("abc")])
    before = one.model(ids)
    minigpt.attention_maps(one, "gfedcba")
    assert torch.equal(one.model(ids), before)
    assert not any(module._forward_pre_hooks for module in one.model.modules())


def test_a_run_is_read_and_its_tokens_make_up_the_text(tiny_run: Path) -> None:
    maps = minigpt.attention_maps(tiny_run, "the fox\nasked")
    assert isinstance(maps, AttentionMaps)
    assert "".join(maps.tokens) == "the␣fox↵asked"
    assert maps.weights.shape == (1, 2, len(maps.tokens), len(maps.tokens))


def test_what_cannot_be_looked_at_is_said(tiny_run: Path) -> None:
    with pytest.raises(UserError, match="text is empty"):
        minigpt.attention_maps(writer(), "")
    with pytest.raises(UserError, match="13 tokens; this model looks at 12 at most"):
        minigpt.attention_maps(writer(), "a" * 13)
    with pytest.raises(UserError, match="'€' at position 1"):
        minigpt.attention_maps(writer(), "a€")
    with pytest.raises(UserError, match="no such run"):
        minigpt.attention_maps(tiny_run / "nowhere", "a")
