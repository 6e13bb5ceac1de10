"""The settings of a training as one value: what each is, where it comes from, and why."""

from typing import Any

import pytest

from minigpt import UserError
from minigpt.config import (
    FREE,
    LESSON,
    PLANNED,
    PLAYS,
    TALES,
    GPTConfig,
    Settings,
    TextConfig,
    TrainConfig,
)


def test_a_setting_that_nobody_has_named_has_its_usual_value_and_is_open() -> None:
    settings = Settings.given({})
    assert settings.training == TrainConfig() and settings.text == TextConfig()
    for name in PLANNED:
        assert settings.is_open(name) and settings.source(name) == "default"
        assert settings.fixed(name) is None and settings.why(name) == ""


def test_what_was_given_is_never_planned_otherwise() -> None:
    settings = Settings.given({"dropout": 0.0, "batch_size": 5, "interpolate": False})
    planned = settings.planned(", because", dropout=0.3, batch_size=8, interpolate=True)
    assert planned == settings
    assert planned["dropout"] == 0.0 and planned.why("batch_size") == ", as given"


def test_what_is_planned_first_stays_and_says_why() -> None:
    settings = Settings.given({}).planned(", because it is short", context_length=64)
    again = settings.planned(", because it is long", context_length=128)
    assert again["context_length"] == 64
    assert again.source("context_length") == "planned"
    assert again.why("context_length") == ", because it is short"


def test_what_a_model_brings_is_its_own() -> None:
    settings = Settings.given({"init": "base", "dropout": 0.25})
    brought = settings.with_values("brought", {"emb_dim": 96, "vocab_size": 500})
    assert brought.why("emb_dim") == ", that of base"
    assert not brought.is_open("emb_dim")
    assert brought.text.vocab_size is None  # no tokenizer is learned from the text
    assert brought.network == GPTConfig(500, emb_dim=96, dropout=0.25)


def test_none_is_not_given_and_init_none_is_given() -> None:
    settings = Settings.given({"vocab_size": None, "steps": None, "init": "none"})
    assert settings.is_open("vocab_size") and settings.is_open("steps")
    assert settings["init"] is None and not settings.is_open("init")


def test_a_lesson_and_one_speaker_settle_other_settings() -> None:
    lesson = Settings.given({"lesson": True})
    assert lesson["files"] == (TALES,) and Settings()["files"] == (PLAYS,)
    assert Settings.given({"lesson": True, "files": ("my.txt",)})["files"] == ("my.txt",)
    assert {name: lesson[name] for name in LESSON} == LESSON
    assert not any(map(lesson.is_open, LESSON))
    assert Settings.given({"only": "Anna"}).planned(token_split_prob=0.2)["token_split_prob"] == 0.0


@pytest.mark.parametrize(
    ("fields", "shaping"),
    [
        ({"emb_dim": 16, "hidden_dim": None}, ["emb_dim"]),
        ({"tokenizer": "char"}, ["tokenizer"]),
        ({"vocab_size": 300, "architecture": "gpt2"}, ["architecture", "vocab_size"]),
        (dict(zip(FREE, (8, 0.1, 0.0), strict=True)), []),
        ({"learning_rate": 0.1, "steps": 3}, []),
    ],
    ids=str,
)
def test_which_settings_fix_the_shape_or_the_tokens_of_a_model(
    fields: dict[str, Any], shaping: list[str]
) -> None:
    assert Settings.given(fields).shaping() == shaping


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"learning_rat": 1.0, "step": 3}, "there is no setting learning_rat, step"),
        ({"learning_rate": -1.0}, "learning_rate must be above 0"),
        ({"steps": 3, "minutes": 2.0}, "--minutes does nothing beside --steps 3"),
        ({"warmup_context": 9, "context_length": 8}, "--warmup-context 9 is longer"),
        ({"vocab_size": 3}, "vocab_size must be at least 257"),
    ],
    ids=str,
)
def test_wrong_settings_are_refused_in_one_line(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as refused:
        Settings.given(fields)
    assert words in str(refused.value) and "\n" not in str(refused.value)
