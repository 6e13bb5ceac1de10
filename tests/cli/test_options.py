"""Command line options from the fields of a config: one for each, read as its type, absent unless
given. What is wrong with a command line is said in one line, with exit status 2.
"""

import dataclasses
import types
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.cli.options import Parser, add_options, chosen
from minigpt.config import (
    EvaluationConfig,
    GPTConfig,
    SampleConfig,
    TextConfig,
    TrainConfig,
    setting,
)

CONFIGS = [TextConfig, GPTConfig, TrainConfig, SampleConfig, EvaluationConfig]
FIELDS = [(config, field.name) for config in CONFIGS for field in dataclasses.fields(config)]


@dataclass(frozen=True)
class Odd:
    """Fields whose help and defaults hold what argparse would fill in."""

    share: float = setting(0.5, "100% of it, %(default)s, %s and %d")
    rate: str = setting("5%", "a share such as 50%")


def parser_of(*configs: type, **keywords: Any) -> Parser:
    parser = Parser("minigpt")
    for config in configs:
        add_options(parser, config, config.__name__, **keywords)
    return parser


def parsed(config: type, *arguments: str) -> dict[str, Any]:
    return chosen(parser_of(config).parse_args(arguments), config)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The line a user gets."""
    with pytest.raises(SystemExit) as exit_:
        parser_of(TrainConfig).parse_args(arguments)
    assert exit_.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), err[-1]) == ("", 1, "\n")
    assert err.startswith("error: ")
    return err


def help_of(parser: Parser, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as exit_:
        parser.parse_args(["--help"])
    assert exit_.value.code == 0
    return " ".join(capsys.readouterr().out.split())


def option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def given_as(config: type, name: str) -> tuple[list[str], Any]:
    """How to give a field on the command line, and the value that it then has."""
    hint = get_type_hints(config)[name]
    if name == "logit_bias":
        return [option(name), "a=b=-1", option(name), r"\n=2e1"], {"a=b": -1.0, "\n": 20.0}
    if name in ("stop", "banned"):
        return [option(name), "the end", option(name), r"\n\t\\n"], ("the end", "\n\t\\n")
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = set(get_args(hint)) - {type(None)}
    if hint is bool:
        fields = {field.name: field for field in dataclasses.fields(config)}
        default = fields[name].default  # what is on can be turned off, what is off turned on
        return [f"--no-{name.replace('_', '-')}" if default else option(name)], not default
    if get_origin(hint) is Literal:
        return [option(name), get_args(hint)[-1]], get_args(hint)[-1]
    if get_origin(hint) is tuple:
        if get_args(hint)[0] is float:
            return [option(name), "3", "0.5"], (3.0, 0.5)
        return [option(name), "a.txt", "b*.txt"], ("a.txt", "b*.txt")
    words = {int: ("77", 77), float: ("2.5e-1", 0.25), str: ("words", "words")}
    word, value = words[hint]
    return [option(name), word], value


@pytest.mark.parametrize(("config", "name"), FIELDS)
def test_every_field_is_an_option(config: type, name: str) -> None:
    arguments, value = given_as(config, name)
    assert parsed(config, *arguments) == {name: value}
    assert type(parsed(config, *arguments)[name]) is type(value)


@pytest.mark.parametrize("config", CONFIGS)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_only_the_options_given_are_chosen(config: type, data: st.DataObject) -> None:
    all_names = [field.name for field in dataclasses.fields(config)]
    names = data.draw(st.lists(st.sampled_from(all_names), unique=True))
    given_options = {name: given_as(config, name) for name in names}
    words = [word for arguments, _ in given_options.values() for word in arguments]
    assert parsed(config, *words) == {name: value for name, (_, value) in given_options.items()}


def test_a_default_given_is_chosen_too() -> None:
    assert parsed(TrainConfig, "--seed", "0") == {"seed": 0}
    assert parsed(GPTConfig, "--tie-embeddings") == {"tie_embeddings": True}


def test_each_config_finds_its_own_options() -> None:
    parser = parser_of(TextConfig, TrainConfig)
    arguments = parser.parse_args(["--steps", "5", "--tokenizer", "char"])
    assert chosen(arguments, TextConfig) == {"tokenizer": "char"}
    assert chosen(arguments, TrainConfig) == {"steps": 5}


def test_a_skipped_field_is_no_option(capsys: pytest.CaptureFixture[str]) -> None:
    parser = parser_of(GPTConfig, skip=("vocab_size",))
    with pytest.raises(SystemExit):
        parser.parse_args(["--vocab-size", "300"])
    assert "--vocab-size" not in help_of(parser, capsys)


# What is wrong


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--stepz", "5"], "--stepz"),
        (["stray.txt"], "stray.txt"),
        (["--steps"], "--steps"),
        (["--steps", "many"], "'many'"),
        (["--steps", "1.5"], "'1.5'"),
        (["--minutes", "soon"], "'soon'"),
        (["--precision", "float16"], "'float16'"),
        (["--compile"], "--compile"),
    ],
)
def test_a_wrong_command_line_is_answered_in_one_line(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refusal(capsys, *arguments)
    assert named in message
    assert message.endswith("(see minigpt --help)\n")


def test_a_wrong_choice_is_answered_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    message = refusal(capsys, "--precision", "float16")
    assert all(choice in message for choice in ("auto", "float32", "bfloat16"))


# Help


@pytest.mark.parametrize("config", CONFIGS)
def test_help_shows_the_text_and_the_default_of_every_field(
    config: type, capsys: pytest.CaptureFixture[str]
) -> None:
    skip = ("vocab_size",) if config is GPTConfig else ()
    text = help_of(parser_of(config, skip=skip), capsys).replace("- ", "-")
    for field in dataclasses.fields(config):
        if field.name not in skip:
            assert " ".join(field.metadata["help"].split()).replace("- ", "-") in text
            assert option(field.name) in text
            silent = field.default in (None, ()) or field.default is False
            assert silent or f"(default: {field.default})" in text


def test_a_planned_field_shows_no_default(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(parser_of(TrainConfig, planned=("batch_size",)), capsys)
    assert "sequences in a training step (default: planned)" in text
    assert "peak learning rate (default: 0.004)" in text


def test_a_percent_sign_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(parser_of(Odd), capsys)
    assert "100% of it, %(default)s, %s and %d (default: 0.5)" in text
    assert "a share such as 50% (default: 5%)" in text
