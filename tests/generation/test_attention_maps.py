"""The attention weights of a text, with its tokens."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import minigpt
from minigpt.generation.attention_maps import AttentionMaps
from minigpt.generation.torch_gpt import TorchGPT, glass_of
from minigpt.generation.writer import Writer
from minigpt.model import GPT, GPTConfig
from minigpt.tokenizer import CharacterTokenizer

TOKENIZER = CharacterTokenizer("\n abcdefg")
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
    return Writer(glass_of(model), TOKENIZER)


@pytest.mark.parametrize("shape", MODELS)
def test_the_weights_are_those_of_the_glass_engine(shape: dict[str, Any]) -> None:
    """Also where the writer's engine is torch's."""
    model = writer(**shape).model
    for engine in (glass_of(model), TorchGPT(model)):
        one = Writer(engine, TOKENIZER)
        weights = minigpt.attention_maps(one, "abcabcabcabc").weights
        expected = glass_of(model).record(np.array(TOKENIZER.encode("abcabcabcabc"))).attention
        np.testing.assert_array_equal(weights, expected)
        assert weights.shape == (3, shape["num_heads"], 12, 12)
        np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
        assert (np.triu(weights, 1) == 0).all() and (weights >= 0).all()


def test_a_run_is_read_and_its_tokens_make_up_the_text(tiny_run: Path) -> None:
    maps = minigpt.attention_maps(minigpt.load(tiny_run), "the fox\nasked")
    assert isinstance(maps, AttentionMaps)
    assert "".join(maps.tokens) == "the␣fox↵asked"
    assert maps.weights.shape == (1, 2, len(maps.tokens), len(maps.tokens))
