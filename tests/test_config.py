"""The settings of a run: saved and read back as they were, refused with the field and the value
where they make no sense, and the sizes that follow from others.
"""

import dataclasses
import io
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest

from minigpt import UserError
from minigpt.config import (
    PARTS,
    EvaluationConfig,
    GPTConfig,
    InferenceConfig,
    ReadingConfig,
    SampleConfig,
    TextConfig,
    TrainConfig,
    check_fields,
    check_given,
    check_interpolation,
    check_shapes,
    count_parameters,
    from_dict,
    named_shapes,
)
from minigpt.system.json_objects import parse_object, read_object, to_json, without_halves
from minigpt.system.platforms import quote, quote_path
from minigpt.system.shown import fit_for, in_utf8, plural

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
SHARES = ["min_lr_ratio", "warmup_ratio", "token_split_prob"]
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
    (TrainConfig, "weight_decay", [-0.1, 100.1, math.nan], "between 0 and 100"),
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
        *(
            ({"lesson": True, name: value}, f"--{name.replace('_', '-')} .* --lesson;")
            for name, value in (
                ("steps", 9),
                ("num_workers", 2),
                ("device", "cpu"),
                ("precision", "float32"),
                ("compile", "on"),
                ("seed", 0),
            )
        ),
        *(
            ({"plain": True, name: value}, f"--{name} .* --plain;")
            for name, value in (
                ("rename", ("a=b",)),
                ("anonymous", True),
                ("silence", 8.0),
                ("only", "Anna"),
            )
        ),
        ({"only": "Anna", "token_split_prob": 0.1}, "--token-split-prob .* --only Anna"),
        *(
            ({"interactive": True, name: value}, f"--{name.replace('_', '-')} .* --interactive;")
            for name, value in (("json", True), ("show", True), ("samples", 2), ("min_words", 9))
        ),
        *(
            ({other: True, name: value}, f"--{name.replace('_', '-')} .* --{other};")
            for other in ("json", "show")
            for name, value in (("min_words", 9), ("wrap", 0))
        ),
        ({"json": True, "show": True}, "--show .* --json;"),
        ({"min_words": 9, "samples": 2}, "--samples .* --min-words 9;"),
        ({"delete": True, "json": True}, "--json .* --delete;"),
        *(
            ({"copied": True, name: 8}, f"--{name.replace('_', '-')} .* --copied;")
            for name in ("stride", "batch_size")
        ),
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
    check_given({"plain": True, "anonymous": False, "steps": 1, "vocab_size": 300})
    check_given({"interactive": True, "samples": 1, "min_words": 0, "json": False})


def test_what_a_model_brings_counts_as_much_as_what_was_given() -> None:
    with pytest.raises(UserError, match=r"--token-split-prob .* --tokenizer char; leave it out"):
        check_given({"token_split_prob": 0.1}, {"tokenizer": "char"})


def test_what_comes_with_a_model_can_only_be_left_alone() -> None:
    """What was given beside it can be left out on either side."""
    for known, beside in (({}, "leave one of them out"), ({"tokenizer": "char"}, "leave it out")):
        given = {"vocab_size": 300} | ({} if known else {"tokenizer": "char"})
        with pytest.raises(UserError, match=f"--tokenizer char; {beside}$") as refused:
            check_given(given, known)
        assert refused.value.kind == "setting"
    check_given({"vocab_size": 300, "tokenizer": "bpe"}, {"tokenizer": "char"})
    with pytest.raises(UserError, match="--warmup-context 65 is longer than --context-length 64"):
        check_given({"warmup_context": 65}, {"context_length": 64})


def test_settings_that_need_something_else_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for init in ("base", "none"):
        check_interpolation(init)
    with pytest.raises(UserError, match=r"--interpolate is for .* name it by --init"):
        check_interpolation(None)

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "wandb" else 1)
    check_given({"log": "tensorboard"})
    with pytest.raises(UserError, match=r'--log wandb needs a package: .*"minigpt-text\[wandb\]"'):
        check_given({"log": "wandb"})


@pytest.mark.parametrize("rename", ["Anna", "=Anna", "Anna=", " = ", ""])
def test_a_speaker_is_renamed_from_something_to_something(rename: str) -> None:
    assert refusal(TextConfig, rename=("a=b", rename)).startswith("--rename must be NAME=NAME")
    assert TextConfig(rename=("+49 170=Anna=x", " a = b ")).rename[1] == " a = b "


@pytest.mark.parametrize(
    "encoding", ["rot13", "base64", "hex", "zip", "klingon", "idna", "punycode", "é"]
)
def test_an_encoding_is_one_that_makes_text_of_bytes_piece_by_piece(encoding: str) -> None:
    expected = "encoding must be an encoding that Python knows, such as latin1, got "
    assert refusal(EvaluationConfig, encoding=encoding) == expected + encoding
    for known in ("latin1", "UTF-8", "utf-8-sig", "cp1251", "gbk", "shift_jis", "utf-16-le"):
        assert ReadingConfig(encoding=known).encoding == known


def test_how_files_are_read_is_the_same_for_each_command() -> None:
    chosen: dict[str, Any] = {"text_field": "body", "raise_limits": 2.0, "anonymous": True}
    for config in (TextConfig(only="Anna", **chosen), EvaluationConfig(stride=3, **chosen)):
        assert config.reading() == ReadingConfig(**chosen)
        assert type(config.reading()) is ReadingConfig


def test_limits_hold_to_the_last_number() -> None:
    """Each field takes the ends of its range that its words name."""
    for fields in (
        {"minutes": 999_999.0, "steps": 1, "min_lr_ratio": 0.0, "warmup_ratio": 1.0},
        {"keep": 2, "beta1": 0.0, "beta2": 0.999999, "seed": 0},
        {"keep": 1000, "weight_decay": 100.0, "token_split_prob": 1, "num_workers": 1},
    ):
        assert TrainConfig(**fields) == from_dict(TrainConfig, fields)
    for fields in (
        {"temperature": 0, "top_k": 1, "top_p": 1.0, "min_p": 0.0, "max_new_tokens": 0},
        {"temperature": 999.0, "presence_penalty": -1e3, "frequency_penalty": 1e3, "min_p": 1.0},
        {"samples": 1, "repetition_penalty": 999.0, "stop": ()},
    ):
        assert SampleConfig(**fields) == from_dict(SampleConfig, fields)
    assert GPTConfig(2**18, norm_eps=0.999, dropout=0.999, rotary_base=1.001).vocab_size == 2**18
    assert refusal(TrainConfig, keep=1).startswith("keep must be between 2 and 1,000, got 1")
    assert refusal(TrainConfig, keep=1001).endswith("got 1001")
    assert SampleConfig(seed=-1).seed is None


def test_a_list_and_a_missing_value_are_of_their_field(tmp_path: Path) -> None:
    assert from_dict(TextConfig, {"files": ["a", "b"]}).files == ("a", "b")
    assert from_dict(TextConfig, {"encoding": None, "max_characters": None}) == TextConfig()
    check_fields(TrainConfig, {"minutes": 5, "lesson": True})  # a whole number is a number
    for name, value, expected in (
        ("minutes", True, "a number"), ("lesson", 1, "true or false"), ("steps", 1.0, "a whole"),
        ("optimizer", None, "one of adamw, muon"), ("sample_prompt", None, "a text"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=f"^{name} must be {expected}") as refused:
            check_fields(TrainConfig, {name: value})
        assert refused.value.kind == "setting"
    with pytest.raises(UserError, match="TrainConfig: unknown field 'file'"):
        check_fields(TrainConfig, {"file": "a"})


# Weights


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 2 * (12 * 64 + 9 * 8 + 4 * 8) + 100 * 8 + 16 * 8 + 2 * 8),
        ({"bias": False}, 2 * (12 * 64 + 2 * 8) + 100 * 8 + 16 * 8 + 8),
        ({"tie_embeddings": False, "bias": False}, 2 * (12 * 64 + 16) + 200 * 8 + 16 * 8 + 8),
        ({"norm": "rms"}, 2 * (12 * 64 + 2 * 8 + 8 * 9) + 100 * 8 + 16 * 8 + 8),
        ({"positions": "rotary", "bias": False}, 2 * (12 * 64 + 16) + 100 * 8 + 8),
        ({"positions": "rotary", "bias": False, "qk_norm": True},
         2 * (12 * 64 + 16 + 2 * 4) + 100 * 8 + 8),
        ({"positions": "rotary", "bias": False, "num_kv_heads": 1},
         2 * (12 * 64 - 2 * 32 + 16) + 100 * 8 + 8),
        ({"positions": "rotary", "bias": False, "feed_forward": "swiglu", "hidden_dim": 10},
         2 * (4 * 64 + 3 * 80 + 16) + 100 * 8 + 8),
    ],
    ids=str,
)  # fmt: skip
def test_the_weights_of_a_model_follow_from_its_parts(changes: dict[str, Any], count: int) -> None:
    config = GPTConfig(100, "gpt2", **{"emb_dim": 8, "num_layers": 2, "num_heads": 2,
                                       "context_length": 16, **changes})  # fmt: skip
    assert count_parameters(config) == count
    shapes = dict(named_shapes(config))
    assert sum(map(math.prod, shapes.values())) == count
    assert {name for name in shapes if name.startswith("blocks.0.")} == {
        name.replace("blocks.1.", "blocks.0.") for name in shapes if name.startswith("blocks.1.")
    }
    check_shapes(config, shapes)


def test_weights_that_do_not_fit_are_named() -> None:
    config = GPTConfig(100, emb_dim=8, num_layers=2, num_heads=2)
    shapes = dict(named_shapes(config))
    name = "blocks.1.feed_forward.W_in.weight"
    without = {other: shape for other, shape in shapes.items() if other != name}
    with pytest.raises(UserError, match=rf"tensor {name} is missing; .* shape is \(32, 8\)"):
        check_shapes(config, without)
    with pytest.raises(UserError, match=rf"tensor {name} has shape \(8, 32\); .* it is \(32, 8\)"):
        check_shapes(config, {**shapes, name: (8, 32)})
    with pytest.raises(UserError, match=f"{len(shapes) + 1} tensors, .* has {len(shapes)}$"):
        check_shapes(config, {**shapes, "x": (1,)})


# JSON, errors and names


@pytest.mark.parametrize(
    "text", ["", "[1]", "5", "null", '{"a": 1', "[" * 100_000, '"a"', b'{"a": "\xff"}']
)
def test_what_is_no_object_is_an_empty_one(text: str | bytes, tmp_path: Path) -> None:
    assert parse_object(text) == {}
    file = tmp_path / "a.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert read_object(file) == read_object(tmp_path / "missing") == read_object(tmp_path) == {}


def test_numbers_that_no_browser_reads_are_none_unless_they_are_asked_for() -> None:
    text = '{"a": NaN, "b": [-Infinity, 1]}'
    assert parse_object(text) == {"a": None, "b": [None, 1]}
    assert math.isnan(parse_object(text, finite=False)["a"])


def test_json_can_be_read_and_holds_half_a_pair_of_surrogates() -> None:
    assert to_json({"é": "日\ud800"}) == '{"é": "日\\ud800"}'
    assert json.loads(to_json({"a": "\udc80"})) == {"a": "\udc80"}
    assert to_json([1], indent=1) == "[\n 1\n]"
    assert without_halves({"a": ["x\ud800y", "🦊", 1, None]}) == {"a": ["x\ufffdy", "🦊", 1, None]}


def test_control_characters_reach_no_terminal() -> None:
    class Stream(io.StringIO):
        is_terminal = True

        def isatty(self) -> bool:
            return self.is_terminal

    stream = Stream()
    text = "a\x1b[31m\tb\n\x07é\x9b\x7f\r"
    assert fit_for(stream, text) == "a\\x1b[31m\tb\n\\x07é\\x9b\\x7f\\r"
    stream.is_terminal = False
    assert fit_for(stream, text) == text
    assert in_utf8("a\udcffé") == "a\ufffdé"


def test_a_word_of_a_command_is_quoted_for_a_shell() -> None:
    for word, quoted in (
        ("plain", "plain"), ("two words", "'two words'"), ("it's", "'it'\"'\"'s'"), ("", "''"),
        ("a\x1bb", "$'a\\x1bb'"), ("é\n'\\", "$'\\xc3\\xa9\\x0a\\x27\\x5c'"),
    ):  # fmt: skip
        assert quote(word) == quoted
        shown = subprocess.run(["bash", "-c", f"printf %s {quoted}"], check=True, stdout=-1)
        assert shown.stdout == word.encode()
    assert quote_path(Path("-a")) == "./-a" and quote_path(Path("a b")) == "'a b'"


def test_one_is_one_and_more_are_more() -> None:
    assert [plural(number, "step") for number in (0, 1, 2, 1000)] == [
        "0 steps", "1 step", "2 steps", "1,000 steps",
    ]  # fmt: skip
