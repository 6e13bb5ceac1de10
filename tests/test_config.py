"""The settings of a run: saved and read back as they were, refused with the field and the value
where they make no sense, and the sizes that follow from others.
"""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

import minigpt
from minigpt import UserError
from minigpt.config import (
    PARTS,
    EvaluationConfig,
    GPTConfig,
    InferenceConfig,
    SampleConfig,
    TextConfig,
    TrainConfig,
    cache_folder,
    check_given,
    from_dict,
)

from .conftest import TINY

CONFIGS = [TextConfig, GPTConfig, TrainConfig, SampleConfig, InferenceConfig, EvaluationConfig]
REQUIRED: dict[type, dict[str, Any]] = {GPTConfig: {"vocab_size": 300}}
EXAMPLES = [
    GPTConfig(vocab_size=1, emb_dim=6, num_heads=2, architecture="gpt2", tie_embeddings=False),
    GPTConfig(vocab_size=2**18, num_kv_heads=1, head_dim=2, rotary_base=2, norm_eps=1e-12),
    TextConfig(files=("a.txt", "ä b.txt"), validation=("c",), vocab_size=257),
    TrainConfig(minutes=1, steps=7, max_epochs=0.5, warmup_ratio=0, seed=2**63 - 1),
    SampleConfig(stop=("\n", "é"), top_p=1, samples=4096, seed=0),
    EvaluationConfig(text_field="body"),
]


def refusal(cls: type, **fields: Any) -> str:
    """The line a user gets for fields from a file, and for the same fields in Python."""
    fields = {**REQUIRED.get(cls, {}), **fields}
    with pytest.raises(UserError) as refused:
        from_dict(cls, fields)
    with pytest.raises(UserError) as refused_in_python:
        cls(**fields)
    assert str(refused_in_python.value) == str(refused.value)
    return str(refused.value)


# Saved and read


@pytest.mark.parametrize("config", EXAMPLES, ids=repr)
def test_a_config_comes_back_from_json(config: Any) -> None:
    assert from_dict(type(config), dataclasses.asdict(config)) == config
    assert from_dict(type(config), json.loads(json.dumps(dataclasses.asdict(config)))) == config


# Refused


@pytest.mark.parametrize("cls", CONFIGS)
def test_an_unknown_or_missing_field_is_named(cls: type) -> None:
    with pytest.raises(UserError, match=f"{cls.__name__}: unknown field 'embed_dim'"):
        from_dict(cls, {**REQUIRED.get(cls, {}), "embed_dim": 1})
    if cls is GPTConfig:
        with pytest.raises(UserError, match="GPTConfig: vocab_size is missing"):
            from_dict(cls, {})


@pytest.mark.parametrize("data", [None, [], "text", 5, [["vocab_size", 5]]])
def test_a_config_is_an_object(data: Any) -> None:
    with pytest.raises(UserError, match="GPTConfig: expected an object"):
        from_dict(GPTConfig, data)


SIZES = ["vocab_size", "context_length", "emb_dim", "num_layers", "num_heads", "hidden_dim"]
POSITIVE = ["minutes", "learning_rate", "grad_clip", "max_epochs", "checkpoint_seconds"]
COUNTS = ["steps", "batch_size", "micro_batch_size", "warmup_context", "num_evals", "eval_tokens"]
SHARES = ["min_lr_ratio", "warmup_ratio", "weight_decay", "token_split_prob"]
PROBABILITIES = [
    *((TrainConfig, name) for name in ("momentum", "beta1", "beta2")),
    *((GPTConfig, name) for name in ("dropout", "attention_dropout")),
]
REFUSED = [
    # Of another type
    (GPTConfig, "vocab_size", ["300", None, True, 300.0], "a whole number"),
    (GPTConfig, "num_kv_heads", [[2], "2", 2.0], "a whole number"),
    (GPTConfig, "dropout", ["0.1", False, None], "a number"),
    (GPTConfig, "tie_embeddings", [1, "true"], "true or false"),
    (GPTConfig, "architecture", ["gpt3", ["qwen3"], None], "one of qwen3, llama, gpt2"),
    (TrainConfig, "compile", [True], "one of auto, on, off"),
    (TextConfig, "text_field", [None, 5], "a text"),
    (TextConfig, "files", ["fables.txt", {"fables.txt": 1}], "a list"),
    (TextConfig, "files", [["fables.txt", 5]], "a list, each item a text"),
    # Out of range
    (TextConfig, "files", [()], "at least one file"),
    (TextConfig, "validation_fraction", [0.0, 1.0], "above 0 and below 1"),
    (TextConfig, "vocab_size", [256], "at least 257"),
    *((GPTConfig, name, [0, 2**18 + 1], "between 1 and 262,144") for name in SIZES),
    (GPTConfig, "norm", ["batch", True], "one of rms, layer"),
    (GPTConfig, "positions", ["none"], "one of rotary, learned"),
    (GPTConfig, "feed_forward", ["relu"], "one of swiglu, gelu"),
    (GPTConfig, "qk_norm", ["off", 1], "true or false"),
    (GPTConfig, "bias", [0], "true or false"),
    (GPTConfig, "num_kv_heads", [3, 8], "a divisor of num_heads (4)"),
    (GPTConfig, "head_dim", [7], "even"),
    (GPTConfig, "emb_dim", [126], "a multiple of num_heads (4)"),
    (GPTConfig, "emb_dim", [4], "an even multiple of num_heads (4)"),
    (GPTConfig, "rotary_base", [1.0, 1e12], "above 1 and below 1e12"),
    (GPTConfig, "norm_eps", [0.0, 1.0], "above 0 and below 1"),
    *((TrainConfig, name, [0.0, math.nan, 1e6], "above 0 and below 1e6") for name in POSITIVE),
    *((TrainConfig, name, [0, -1], "at least 1") for name in COUNTS),
    *((TrainConfig, name, [-0.1, 1.1, math.nan], "between 0 and 1") for name in SHARES),
    *((cls, name, [-0.1, 1.0], "at least 0 and below 1") for cls, name in PROBABILITIES),
    (TrainConfig, "seed", [-1, 2**63], "between 0 and 2^63 - 1"),
    (SampleConfig, "seed", [-2, 2**63], "-1 or between 0 and 2^63 - 1"),
    (SampleConfig, "max_new_tokens", [-1], "at least 0"),
    (SampleConfig, "temperature", [-0.1, math.nan, 1e3], "at least 0 and below 1e3"),
    (SampleConfig, "top_k", [0], "at least 1"),
    (SampleConfig, "top_p", [0.0, 1.1, math.nan], "above 0 and at most 1"),
    (SampleConfig, "min_p", [-0.1, 1.1], "between 0 and 1"),
    (SampleConfig, "repetition_penalty", [0.0, 1e3], "above 0 and below 1e3"),
    (SampleConfig, "presence_penalty", [math.nan, 1001], "between -1e3 and 1e3"),
    (SampleConfig, "frequency_penalty", [-math.inf], "between -1e3 and 1e3"),
    (SampleConfig, "stop", [("a", ""), ("\udcff",)], "texts, none empty"),
    (SampleConfig, "samples", [0, 4097], "between 1 and 4,096"),
]


@pytest.mark.parametrize(("cls", "name", "values", "expected"), REFUSED)
def test_what_a_field_cannot_be_is_refused_with_its_name_the_value_and_what_it_must_be(
    cls: type, name: str, values: list[Any], expected: str
) -> None:
    for value in values:
        message = refusal(cls, **{name: value})
        assert message.startswith(f"{name} must be {expected}") and "\n" not in message
        assert message.endswith((f"got {value}", f"got {value!r}"))


# Parts

QWEN3 = {"norm": "rms", "positions": "rotary", "qk_norm": True, "feed_forward": "swiglu"}
GPT2 = {"norm": "layer", "positions": "learned", "qk_norm": False, "feed_forward": "gelu"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, QWEN3 | {"bias": False}),
        ({"architecture": "qwen3"}, QWEN3 | {"bias": False}),
        ({"architecture": "llama"}, QWEN3 | {"qk_norm": False, "bias": False}),
        ({"architecture": "gpt2"}, GPT2 | {"bias": True}),
        (
            {"architecture": "gpt2", "bias": False, "norm": "rms"},
            GPT2 | {"norm": "rms", "bias": False},
        ),
        (
            {"positions": "learned", "qk_norm": None},
            QWEN3 | {"positions": "learned", "bias": False},
        ),
    ],
    ids=str,
)
def test_parts_that_are_not_given_are_those_of_the_architecture(
    given: dict[str, Any], expected: dict[str, Any]
) -> None:
    config = GPTConfig(9, **given)
    assert {part: getattr(config, part) for part in PARTS} == expected
    assert from_dict(GPTConfig, dataclasses.asdict(config)) == config


@pytest.mark.parametrize(
    ("given", "preset", "kind"),
    [
        ({}, "qwen3", "qwen3"),
        ({"qk_norm": False}, "llama", "llama"),
        ({"architecture": "gpt2", "bias": True}, "gpt2", "gpt2"),
        ({"architecture": "llama", "bias": True}, None, "llama with bias on"),
        (
            {"norm": "layer", "qk_norm": False},
            None,
            "qwen3 with norm layer, qk-norm off",
        ),
        ({"feed_forward": "gelu"}, None, "qwen3 with feed-forward gelu"),
    ],
    ids=str,
)
def test_a_model_is_called_by_the_architecture_that_has_its_parts_or_by_what_differs(
    given: dict[str, Any], preset: str | None, kind: str
) -> None:
    config = GPTConfig(9, **given)
    assert (config.preset, config.kind) == (preset, kind)


# Sizes that follow


def test_a_head_may_be_odd_but_for_rotary_positions_which_need_pairs() -> None:
    assert GPTConfig(vocab_size=9, positions="learned", emb_dim=6, num_heads=2).head_size == 3
    assert GPTConfig(vocab_size=9, positions="learned", head_dim=7).head_size == 7
    message = refusal(GPTConfig, emb_dim=6, num_heads=2)
    assert message == "emb_dim must be an even multiple of num_heads (2), got 6"


def test_heads_of_a_chosen_size_may_be_wider_together_than_the_model() -> None:
    assert GPTConfig(vocab_size=9, emb_dim=1024, num_heads=16, head_dim=128).head_size == 128
    assert GPTConfig(vocab_size=9, emb_dim=7, num_heads=4, head_dim=2).head_size == 2
    message = refusal(GPTConfig, head_dim=256, context_length=2**17)
    assert message == "context_length must be at most 65,536 for heads this wide, got 131072"


@pytest.mark.parametrize(
    ("feed_forward", "emb_dim", "expected"),
    [
        ("gelu", 768, 3072),  # GPT-2's small model
        ("gelu", 1600, 6400),  # its largest
        ("swiglu", 4096, 10_944),  # 10,923 rounded up; LLaMA 7B, to 256: 11,008
        ("swiglu", 96, 256),
        ("swiglu", 128, 352),
    ],
)
def test_the_feed_forward_width_follows_from_its_kind(
    feed_forward: Any, emb_dim: int, expected: int
) -> None:
    config = GPTConfig(vocab_size=9, feed_forward=feed_forward, emb_dim=emb_dim)
    assert config.ff_dim == expected
    assert dataclasses.replace(config, hidden_dim=7).ff_dim == 7


# Where things are kept


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MINIGPT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder() == Path.home() / ".cache" / "minigpt"
    monkeypatch.setenv("XDG_CACHE_HOME", "")  # as if it were unset, by its specification
    assert cache_folder() == Path.home() / ".cache" / "minigpt"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/minigpt")
    monkeypatch.setenv("MINIGPT_CACHE", "/mine")
    assert cache_folder() == Path("/mine")


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"steps": 9, "minutes": 5.0}, "--minutes does nothing beside --steps 9"),
        ({"steps": 9, "max_epochs": 2.0}, "--max-epochs does nothing beside --steps 9"),
        ({"tokenizer": "char", "vocab_size": 300}, "--vocab-size .* --tokenizer char"),
        ({"tokenizer": "gpt2", "vocab_size": 300}, "--vocab-size .* --tokenizer gpt2"),
        ({"tokenizer": "char", "token_split_prob": 0.1}, "--token-split-prob .* --tokenizer char"),
        (
            {"validation": ("a",), "validation_fraction": 0.2},
            "--validation-fraction .* --validation;",
        ),
        ({"optimizer": "adamw", "momentum": 0.9}, "--momentum .* --optimizer adamw"),
        ({"architecture": "gpt2", "rotary_base": 1e4}, "--rotary-base .* --architecture gpt2"),
        ({"positions": "learned", "rotary_base": 1e4}, "--rotary-base .* --positions learned"),
        ({"attention_dropout": 0.1, "num_workers": 2}, "--num-workers .* --attention-dropout 0.1"),
        ({"compile": "on", "num_workers": 2}, "--num-workers .* --compile on"),
        ({"context_length": 64, "warmup_context": 65}, "--warmup-context 65 is longer"),
    ],
)
def test_a_setting_that_would_do_nothing_beside_another_is_refused(
    given: dict[str, Any], refused: str
) -> None:
    """Each by itself is taken, also with what asks for nothing in the place of the other."""
    with pytest.raises(UserError, match=refused) as error:
        check_given(given)
    assert "\n" not in str(error.value)
    first, second = given.items()
    check_given(dict([first]))
    check_given(dict([second]))
    check_given({first[0]: first[1], second[0]: None})


def test_a_part_that_is_given_counts_and_not_that_of_the_architecture() -> None:
    check_given({"architecture": "gpt2", "positions": "rotary", "rotary_base": 500.0})
    with pytest.raises(UserError, match="--rotary-base does nothing beside --positions learned"):
        check_given({"architecture": "qwen3", "positions": "learned", "rotary_base": 500.0})


def test_settings_that_ask_for_nothing_are_taken() -> None:
    """As a plan prints them."""
    check_given({"tokenizer": "char", "token_split_prob": 0.0})
    check_given({"compile": "on", "attention_dropout": 0.1, "num_workers": 1})
    check_given({"context_length": 64, "warmup_context": 64})
    check_given({"validation": (), "validation_fraction": 0.2})
    check_given({"plain": True, "anonymous": False, "rename": []})
    check_given({"steps": 3, "lesson": False})


def test_what_is_switched_off_is_taken_beside_what_it_would_do_nothing_beside(
    workplace: Path,
) -> None:
    run = minigpt.train("my.txt", plain=True, anonymous=False, **TINY | {"steps": 1})
    assert run.exists()


def test_what_a_model_brings_counts_as_much_as_what_was_given() -> None:
    with pytest.raises(UserError, match=r"--token-split-prob .* --tokenizer char; leave it out"):
        check_given({"token_split_prob": 0.1}, {"tokenizer": "char"})
