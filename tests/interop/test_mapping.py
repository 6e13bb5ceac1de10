"""Weights and configs under the names that transformers gives them, without transformers."""

from typing import Any

import numpy as np
import pytest

from minigpt import UserError
from minigpt.config import GPTConfig, named_shapes
from minigpt.interop.mapping import (
    config_from_huggingface,
    config_to_huggingface,
    weights_from_huggingface,
    weights_to_huggingface,
)

from .examples import CONFIGS


def random_weights(config: GPTConfig) -> dict[str, Any]:
    draw = np.random.default_rng(0)
    return {name: draw.normal(size=shape) for name, shape in named_shapes(config)}


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert np.array_equal(array, other[name]), name


@pytest.mark.parametrize("name", CONFIGS)
def test_config_and_weights_come_back_from_their_names(name: str) -> None:
    config = GPTConfig(50, **CONFIGS[name])
    weights = random_weights(config)
    theirs = weights_to_huggingface(weights, config)
    read = config_from_huggingface(config_to_huggingface(config))
    assert (read.kind, read.head_size, read.ff_dim) == (
        config.kind,
        config.head_size,
        config.ff_dim,
    )
    assert_same(weights_from_huggingface(theirs, read), weights)
    assert ("lm_head.weight" in theirs) != config.tie_embeddings


@pytest.mark.parametrize("name", CONFIGS)
def test_names_may_lack_the_prefix_and_a_tied_head_may_be_there_too(name: str) -> None:
    """As in the first files of GPT-2, which also hold masks."""
    config = GPTConfig(50, **CONFIGS[name])
    weights = random_weights(config)
    theirs = weights_to_huggingface(weights, config)
    older = {
        name.removeprefix("transformer.").removeprefix("model."): array
        for name, array in theirs.items()
    }
    older["h.0.attn.bias"] = older["layers.0.self_attn.rotary_emb.inv_freq"] = np.zeros(1)
    older.setdefault("lm_head.weight", weights["token_embedding.weight"])
    assert_same(weights_from_huggingface(older, config), weights)


def test_a_tensor_too_few_or_too_many_is_named() -> None:
    config = GPTConfig(50, **CONFIGS["gpt2"])
    theirs = weights_to_huggingface(random_weights(config), config)
    missing = {name: array for name, array in theirs.items() if ".h.1.ln_2." not in name}
    with pytest.raises(UserError, match=r"tensor transformer\.h\.1\.ln_2\.weight is missing"):
        weights_from_huggingface(missing, config)
    with pytest.raises(UserError, match=r"transformer\.h\.4\.x does not belong to a GPT2LMHead"):
        weights_from_huggingface({**theirs, "h.4.x": np.zeros(1)}, config)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("gpt2", "activation_function", "relu"),
        ("gpt2", "scale_attn_by_inverse_layer_idx", True),
        ("llama", "attention_bias", True),
        ("llama", "hidden_act", "gelu"),
        ("llama", "rope_scaling", {"rope_type": "linear", "factor": 2.0}),
        ("qwen3", "layer_types", ["full_attention", "sliding_attention"]),
        ("qwen3", "quantization_config", {"bits": 4}),
        ("llama", "sliding_window", 4096),
    ],
)
def test_what_our_model_does_not_compute_is_refused(name: str, key: str, value: Any) -> None:
    theirs = config_to_huggingface(GPTConfig(50, **CONFIGS[name]))
    if key == "rope_scaling":
        del theirs["rope_parameters"]
    with pytest.raises(UserError, match=f"{key} .* is not supported, only"):
        config_from_huggingface({**theirs, key: value})
