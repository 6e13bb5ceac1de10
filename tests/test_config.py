"""The settings of a run: saved and read back as they were, refused with the field and the value
where they make no sense, and the sizes that follow from others.
"""

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.config import (
    EvaluationConfig,
    GPTConfig,
    SampleConfig,
    TextConfig,
    TrainConfig,
    from_dict,
    to_dict,
)

law = settings(max_examples=50, deadline=None)

CONFIGS = [TextConfig, GPTConfig, TrainConfig, SampleConfig, EvaluationConfig]
REQUIRED: dict[type, dict[str, Any]] = {GPTConfig: {"vocab_size": 300}}
counts, shares = st.integers(1, 2**18), st.floats(0, 1, exclude_max=True)
seeds, rates = st.integers(0, 2**63 - 1), st.floats(1e-9, 1e5)


@st.composite
def gpt_configs(draw: st.DrawFn) -> GPTConfig:
    heads = draw(st.integers(1, 24))
    kv_heads = st.sampled_from([n for n in range(1, heads + 1) if heads % n == 0])
    architecture = draw(st.sampled_from(["qwen3", "gpt2"]))
    head_size = draw(st.integers(1, 64)) * (2 if architecture == "qwen3" else 1)
    head_dim = draw(st.none() | st.just(head_size)) if architecture == "qwen3" else None
    return GPTConfig(
        vocab_size=draw(counts),
        architecture=architecture,
        context_length=draw(st.integers(1, 2**17)),
        emb_dim=heads * head_size if head_dim is None else draw(counts),
        num_layers=draw(counts),
        num_heads=heads,
        num_kv_heads=draw(st.none() | kv_heads),
        head_dim=head_dim,
        hidden_dim=draw(st.none() | counts),
        dropout=draw(shares),
        attention_dropout=draw(shares),
        tie_embeddings=draw(st.booleans()),
        rotary_base=draw(st.floats(1.5, 1e7) | st.integers(2, 10**7)),
        norm_eps=draw(st.floats(1e-12, 0.5)),
    )


names = st.lists(st.text(min_size=1), min_size=1, max_size=3).map(tuple)
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd")
texts = st.lists(st.text(characters, min_size=1), max_size=3).map(tuple)
text_configs = st.builds(
    TextConfig,
    files=names,
    validation=st.just(()) | names,
    validation_fraction=st.floats(0.001, 0.999),
    text_field=st.text(),
    tokenizer=st.sampled_from(["bpe", "char", "gpt2"]),
    vocab_size=st.none() | st.integers(257, 10**6),
)
train_configs = st.builds(
    TrainConfig,
    minutes=rates,
    steps=st.none() | counts,
    batch_size=counts,
    learning_rate=rates,
    min_lr_ratio=shares,
    warmup_ratio=shares,
    weight_decay=shares,
    beta1=shares,
    beta2=shares,
    grad_clip=rates,
    num_evals=counts,
    eval_tokens=counts,
    seed=seeds,
    device=st.sampled_from(["auto", "cpu", "cuda:1"]),
    precision=st.sampled_from(["auto", "float32", "bfloat16"]),
    compile=st.sampled_from(["auto", "on", "off"]),
)
sample_configs = st.builds(
    SampleConfig,
    max_new_tokens=st.integers(0, 10**6),
    temperature=st.floats(0, 100),
    top_k=st.none() | counts,
    top_p=st.none() | st.floats(0, 1, exclude_min=True),
    min_p=st.none() | st.floats(0, 1),
    repetition_penalty=st.floats(0.01, 100),
    presence_penalty=st.floats(-100, 100),
    frequency_penalty=st.floats(-100, 100),
    logit_bias=st.none() | st.dictionaries(st.text(), st.floats(-100, 100)),
    stop=st.just(()) | texts,
    banned=st.just(()) | texts,
    samples=st.integers(1, 4096),
    seed=st.none() | seeds,
)


def refusal(cls: type, **fields: Any) -> str:
    """The line a user gets for fields that are read from a file."""
    with pytest.raises(UserError) as refused:
        from_dict(cls, {**REQUIRED.get(cls, {}), **fields})
    assert "\n" not in str(refused.value)
    return str(refused.value)


# Saved and read


@given(config=gpt_configs() | text_configs | train_configs | sample_configs)
@settings(law, max_examples=150)
def test_a_config_comes_back_from_json(config: Any) -> None:
    assert from_dict(type(config), to_dict(config)) == config
    assert from_dict(type(config), json.loads(json.dumps(to_dict(config)))) == config


@pytest.mark.parametrize("cls", CONFIGS)
def test_fields_left_out_have_their_defaults(cls: type) -> None:
    required = REQUIRED.get(cls, {})
    assert from_dict(cls, required) == cls(**required)


@pytest.mark.parametrize("cls", CONFIGS)
def test_a_config_does_not_change(cls: type) -> None:
    config = cls(**REQUIRED.get(cls, {}))
    for field in dataclasses.fields(cls):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(config, field.name, 1)


@pytest.mark.parametrize("cls", CONFIGS)
def test_every_field_has_a_line_of_help(cls: type) -> None:
    for field in dataclasses.fields(cls):
        assert field.metadata["help"].strip()
        assert "\n" not in field.metadata["help"]


def test_settings_load_without_torch() -> None:
    """So that the command line answers at once."""
    code = "import sys, minigpt.config, minigpt.cli.options; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1], check=True)


# Refused


@pytest.mark.parametrize("cls", CONFIGS)
def test_an_unknown_field_is_named(cls: type) -> None:
    assert "unknown field 'embed_dim'" in refusal(cls, embed_dim=1)


def test_a_missing_field_is_named() -> None:
    with pytest.raises(UserError, match="vocab_size"):
        from_dict(GPTConfig, {"emb_dim": 64})


@pytest.mark.parametrize("cls", CONFIGS)
@pytest.mark.parametrize("data", [None, [], "text", 5, [["vocab_size", 5]]])
def test_a_config_is_an_object(cls: type, data: Any) -> None:
    with pytest.raises(UserError, match=f"{cls.__name__}: expected an object"):
        from_dict(cls, data)


WRONG_TYPES = [
    (GPTConfig, "vocab_size", "300"),
    (GPTConfig, "vocab_size", None),
    (GPTConfig, "vocab_size", True),
    (GPTConfig, "emb_dim", 128.0),
    (GPTConfig, "num_kv_heads", [2]),
    (GPTConfig, "head_dim", 64.0),
    (GPTConfig, "dropout", "0.1"),
    (GPTConfig, "dropout", False),
    (GPTConfig, "tie_embeddings", 1),
    (GPTConfig, "architecture", "gpt3"),
    (GPTConfig, "architecture", ["qwen3"]),
    (TextConfig, "files", "fables.txt"),
    (TextConfig, "files", ["fables.txt", 5]),
    (TextConfig, "files", {"fables.txt": 1}),
    (TextConfig, "text_field", None),
    (TextConfig, "weights", ["3"]),
    (TextConfig, "weights", 3.0),
    (TextConfig, "split", "middle"),
    (EvaluationConfig, "stride", 1.5),
    (TrainConfig, "precision", "float16"),
    (TrainConfig, "compile", True),
    (SampleConfig, "seed", 1.5),
    (SampleConfig, "top_p", "0.9"),
    (SampleConfig, "logit_bias", ["a", 1.0]),
    (SampleConfig, "logit_bias", {"a": "1"}),
    (SampleConfig, "stop", "the end"),
    (SampleConfig, "banned", ["a", 1]),
]
OUT_OF_RANGE = [
    (TextConfig, "files", ()),
    (TextConfig, "validation_fraction", 0.0),
    (TextConfig, "validation_fraction", 1.0),
    (TextConfig, "vocab_size", 256),
    (TextConfig, "weights", (1.0, 1.0)),
    (TextConfig, "weights", (0.0,)),
    (TextConfig, "weights", (math.nan,)),
    (EvaluationConfig, "stride", 0),
    (EvaluationConfig, "batch_size", 0),
    (GPTConfig, "vocab_size", 0),
    (GPTConfig, "context_length", 0),
    (GPTConfig, "emb_dim", 0),
    (GPTConfig, "num_layers", 0),
    (GPTConfig, "num_heads", 0),
    (GPTConfig, "num_kv_heads", 0),
    (GPTConfig, "num_kv_heads", 3),
    (GPTConfig, "num_kv_heads", 8),
    (GPTConfig, "head_dim", 0),
    (GPTConfig, "head_dim", 7),
    (GPTConfig, "hidden_dim", -1),
    (GPTConfig, "dropout", -0.1),
    (GPTConfig, "dropout", 1.0),
    (GPTConfig, "attention_dropout", 1.0),
    (GPTConfig, "rotary_base", 1.0),
    (GPTConfig, "rotary_base", math.inf),
    (GPTConfig, "norm_eps", 0.0),
    (GPTConfig, "norm_eps", 1.0),
    (GPTConfig, "emb_dim", 126),
    (GPTConfig, "emb_dim", 4),
    (TrainConfig, "minutes", 0.0),
    (TrainConfig, "minutes", math.nan),
    (TrainConfig, "steps", 0),
    (TrainConfig, "batch_size", 0),
    (TrainConfig, "num_evals", 0),
    (TrainConfig, "eval_tokens", 0),
    (TrainConfig, "learning_rate", 0.0),
    (TrainConfig, "learning_rate", math.nan),
    (TrainConfig, "grad_clip", 0.0),
    (TrainConfig, "min_lr_ratio", 1.1),
    (TrainConfig, "warmup_ratio", -0.1),
    (TrainConfig, "weight_decay", math.inf),
    (TrainConfig, "beta1", 1.0),
    (TrainConfig, "beta2", 1.0),
    (TrainConfig, "seed", -1),
    (TrainConfig, "seed", 2**63),
    (SampleConfig, "max_new_tokens", -1),
    (SampleConfig, "temperature", -0.1),
    (SampleConfig, "temperature", math.nan),
    (SampleConfig, "top_k", 0),
    (SampleConfig, "top_p", 0.0),
    (SampleConfig, "top_p", 1.1),
    (SampleConfig, "top_p", math.nan),
    (SampleConfig, "min_p", -0.1),
    (SampleConfig, "min_p", 1.1),
    (SampleConfig, "repetition_penalty", 0.0),
    (SampleConfig, "repetition_penalty", math.inf),
    (SampleConfig, "presence_penalty", math.nan),
    (SampleConfig, "frequency_penalty", -math.inf),
    (SampleConfig, "logit_bias", {"a": math.inf}),
    (SampleConfig, "stop", ("a", "")),
    (SampleConfig, "stop", ("\udcff",)),
    (SampleConfig, "banned", ("",)),
    (SampleConfig, "banned", ("a\ufffd",)),
    (SampleConfig, "samples", 0),
    (SampleConfig, "samples", 4097),
    (SampleConfig, "seed", -1),
]


def label(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else str(value)


@pytest.mark.parametrize(("cls", "name", "value"), WRONG_TYPES, ids=label)
def test_a_value_of_another_type_is_named(cls: type, name: str, value: Any) -> None:
    message = refusal(cls, **{name: value})
    assert name in message
    assert repr(value) in message


@pytest.mark.parametrize(("cls", "name", "value"), OUT_OF_RANGE, ids=label)
def test_a_value_out_of_range_is_named(cls: type, name: str, value: Any) -> None:
    message = refusal(cls, **{name: value})
    assert message.startswith(f"{name} must be ")
    assert message.endswith(f"got {value}")
    with pytest.raises(UserError, match=name):
        cls(**{**REQUIRED.get(cls, {}), name: value})


@pytest.mark.parametrize(("cls", "name", "value"), WRONG_TYPES, ids=label)
def test_a_config_made_in_python_is_checked_as_one_from_a_file(
    cls: type, name: str, value: Any
) -> None:
    with pytest.raises(UserError, match=name):
        cls(**{**REQUIRED.get(cls, {}), name: value})


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [
        (TrainConfig, "minutes", math.inf),
        (TrainConfig, "learning_rate", 1e7),
        (TrainConfig, "grad_clip", 1e7),
        (SampleConfig, "temperature", 1e4),
    ],
    ids=label,
)
def test_a_value_that_is_too_large_is_told_the_bound(cls: type, name: str, value: Any) -> None:
    """Not that it must be above 0, which it is."""
    assert "below" in refusal(cls, **{name: value})


# Sizes that follow


def test_two_heads_in_gpt2_may_be_odd_where_rotary_positions_need_pairs() -> None:
    assert GPTConfig(vocab_size=9, architecture="gpt2", emb_dim=6, num_heads=2).head_size == 3
    message = refusal(GPTConfig, emb_dim=6, num_heads=2)
    assert message == "emb_dim must be an even multiple of num_heads (2), got 6"


def test_heads_of_a_chosen_size_may_be_wider_together_than_the_model() -> None:
    assert GPTConfig(vocab_size=9, emb_dim=1024, num_heads=16, head_dim=128).head_size == 128
    assert GPTConfig(vocab_size=9, emb_dim=7, num_heads=4, head_dim=2).head_size == 2
    message = refusal(GPTConfig, architecture="gpt2", head_dim=8)
    assert message == "head_dim must be unset in the gpt2 architecture, got 8"


@given(config=gpt_configs())
@law
def test_heads_divide_the_width_unless_told_and_key_value_heads_the_heads(
    config: GPTConfig,
) -> None:
    if config.head_dim is None:
        assert config.head_size * config.num_heads == config.emb_dim
    else:
        assert config.head_size == config.head_dim
    assert config.num_heads % config.kv_heads == 0
    assert config.kv_heads == config.num_kv_heads or config.num_kv_heads is None
    assert config.kv_heads <= config.num_heads


def test_there_are_as_many_key_value_heads_as_heads_unless_told() -> None:
    assert GPTConfig(vocab_size=9, num_heads=8).kv_heads == 8
    assert GPTConfig(vocab_size=9, num_heads=8, num_kv_heads=2).kv_heads == 2


@pytest.mark.parametrize(
    ("architecture", "emb_dim", "expected"),
    [
        ("gpt2", 768, 3072),  # GPT-2's small model
        ("gpt2", 1600, 6400),  # its largest
        ("qwen3", 4096, 10_944),  # 10,923 rounded up; LLaMA 7B, to 256: 11,008
        ("qwen3", 96, 256),
        ("qwen3", 128, 352),
    ],
)
def test_the_feed_forward_width_follows_from_the_family(
    architecture: Any, emb_dim: int, expected: int
) -> None:
    assert GPTConfig(vocab_size=9, architecture=architecture, emb_dim=emb_dim).ff_dim == expected
    assert (
        GPTConfig(vocab_size=9, architecture=architecture, emb_dim=emb_dim, hidden_dim=7).ff_dim
        == 7
    )


@given(half=st.integers(1, 4096))
@law
def test_swiglu_is_a_third_narrower_rounded_up_to_32(half: int) -> None:
    """Its three matrices then hold about as many weights as two of four times the width."""
    config = GPTConfig(vocab_size=9, emb_dim=2 * half, num_heads=1)
    assert config.ff_dim % 32 == 0
    assert 0 <= 3 * config.ff_dim - 8 * config.emb_dim < 3 * 32
