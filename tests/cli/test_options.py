"""Command line options from the fields of a config: one for each, read as its type, absent unless
given.
"""

import dataclasses
from typing import Any

import pytest

from minigpt import UserError
from minigpt.cli import COMMANDS, parse
from minigpt.cli.options import Parser, add_fields, given_fields
from minigpt.config import (
    EvaluationConfig,
    GPTConfig,
    InferenceConfig,
    SampleConfig,
    TextConfig,
    TrainConfig,
)
from minigpt.serve.settings import ServeConfig

CONFIGS = [
    TextConfig,
    GPTConfig,
    TrainConfig,
    SampleConfig,
    InferenceConfig,
    EvaluationConfig,
    ServeConfig,
]


def parser_of(*configs: type, **keywords: Any) -> Parser:
    parser = Parser("minigpt")
    for config in configs:
        add_fields(parser, config, config.__name__, **keywords)
    return parser


def read(config: type, *words: str) -> dict[str, Any]:
    return given_fields(parser_of(config).parse_args(words), config)


def help_of(parser: Parser) -> str:
    return " ".join(parser.format_help().split()).replace("- ", "-")


@pytest.mark.parametrize(
    ("config", "words", "fields"),
    [
        (TrainConfig, "--steps 77", {"steps": 77}),
        (TrainConfig, "--minutes 2.5e-1", {"minutes": 0.25}),
        (TrainConfig, "--minutes 3", {"minutes": 3.0}),
        (TrainConfig, "--seed 0", {"seed": 0}),  # the default, but given
        (GPTConfig, "--no-tie-embeddings", {"tie_embeddings": False}),
        (GPTConfig, "--tie-embeddings", {"tie_embeddings": True}),
        (GPTConfig, "--architecture gpt2", {"architecture": "gpt2"}),
        (GPTConfig, "--no-qk-norm --bias", {"qk_norm": False, "bias": True}),
        (GPTConfig, "--norm layer", {"norm": "layer"}),
        (TextConfig, "--tokenizer char", {"tokenizer": "char"}),
        (TextConfig, "--validation a.txt", {"validation": ("a.txt",)}),
        (SampleConfig, r"--stop the\tend --stop \n\\n", {"stop": ("the\tend", "\n\\n")}),
        (TrainConfig, "", {}),
    ],
)  # fmt: skip
def test_an_option_is_read_as_the_type_of_its_field(
    config: type, words: str, fields: dict[str, Any]
) -> None:
    found = read(config, *words.split())
    assert found == fields
    assert [type(value) for value in found.values()] == [type(v) for v in fields.values()]


@pytest.mark.parametrize("config", CONFIGS)
def test_every_field_is_an_option_with_its_help_and_default(config: type) -> None:
    text = help_of(parser_of(config))
    for field in dataclasses.fields(config):
        help_ = " ".join(field.metadata["help"].split()).replace("- ", "-")
        assert f"--{field.name.replace('_', '-')} " in text and help_ in text
        if isinstance(field.default, int | float | str) and field.default not in (False, ""):
            assert f"{help_} (default: {field.default})" in text
        assert "(default: )" not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_begins_with_its_purpose_and_its_names_in_their_own_letters(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse([command, "--help"], None)
    purpose = COMMANDS[command][0]
    shown = " ".join(capsys.readouterr().out.split())
    assert purpose[0].upper() + purpose[1:] + "." in shown
    assert "(default: )" not in shown


def test_a_skipped_field_is_no_option_and_a_planned_one_shows_no_default() -> None:
    parser = parser_of(TrainConfig, skip=("minutes",), planned=("batch_size",))
    with pytest.raises(UserError, match="--minutes"):
        parser.parse_args(["--minutes", "3"])
    assert "sequences in a training step (default: planned)" in help_of(parser)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--stepz=5", "--stepz=5 (did you mean --steps?)"),
        ("--evals 5", "--evals 5 (did you mean --num-evals?)"),
        ("--lr 5", "--lr"),
        ("stray.txt", "stray.txt"),
        ("--steps", "--steps"),
        ("--steps 1.5", "'1.5'"),
        ("--minutes soon", "'soon'"),
        ("--precision float8", "'auto', 'float32', 'bfloat16'"),
    ],
)
def test_what_is_wrong_is_one_line_that_points_to_the_help(words: str, named: str) -> None:
    with pytest.raises(UserError) as refused:
        parser_of(TrainConfig).parse_args(words.split())
    message = str(refused.value)
    assert (
        named in message
        and "\n" not in message
        and message.endswith("?)" if "mean" in named else "(see minigpt --help)")
    )
