"""What a model writes while it is trained: the samples, and what they begin with."""

from pathlib import Path
from typing import Any

import pytest

from minigpt import UserError
from minigpt.cli import main
from minigpt.runs.folder import read_config
from minigpt.runs.state import read_texts, texts_of_evaluations
from tests.conftest import TINY, train_tiny
from tests.training.runs import contents, interrupted, resume

pytestmark = pytest.mark.long


def samples(folder: Path) -> list[str]:
    return list(texts_of_evaluations(folder).values())


def test_every_sample_begins_with_the_prompt_also_after_a_resume(workplace: Path) -> None:
    interrupted("runs/my", step=6, num_evals=4, sample_prompt="the fox ")
    assert read_config(Path("runs/my")).training.sample_prompt == "the fox "
    resume(Path("runs/my"))
    written = samples(Path("runs/my"))
    assert len(written) == 4
    assert all(sample.startswith("the fox ") for sample in written)
    assert all(len(sample) > len("the fox ") for sample in written)


def test_a_resumed_run_takes_another_prompt(workplace: Path) -> None:
    folder = train_tiny()
    resume(folder, steps=12, sample_prompt="a crow")
    assert samples(folder)[-1].startswith("a crow")
    assert read_config(folder).training.sample_prompt == "a crow"


@pytest.mark.parametrize(
    ("text", "settings", "beginning"),
    [
        (
            "The Old Mill\n\nOnce upon a time a fox asked a crow for bread.\n",
            {},
            "Once upon a time",
        ),
        ("def f(x):\n    return [x]\n\n", {}, "def f(x):"),
        ("OTTO.\nThe crow is here.\n\nANNA.\nI see it too, my dear.\n\n", {}, "OTTO.\n"),
        ("OTTO.\nThe crow is here.\n\nANNA.\nI see.\n\n", {"only": "anna"}, "ANNA.\n"),
    ],
)
def test_each_text_begins_with_a_sentence_or_as_a_turn_does(
    workplace: Path, text: str, settings: dict[str, Any], beginning: str
) -> None:
    Path("my.txt").write_text(text * 60)
    folder = train_tiny(**settings)
    rows = read_texts(folder)
    assert {row["beginning"] for row in rows} == {beginning}
    assert all(row["text"].startswith(beginning) for row in rows)
    assert {row["is_evaluation"] for row in rows} == {True, False}


def test_a_prompt_changes_nothing_but_the_samples(workplace: Path) -> None:
    plain, prompted = (train_tiny(out=name, sample_prompt=name * 2) for name in ("a", "b"))
    assert samples(plain) != samples(prompted)
    weights = "model.safetensors"
    assert (plain / weights).read_bytes() == (prompted / weights).read_bytes()


def test_the_command_to_generate_that_is_shown_has_the_prompt(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train_tiny(sample_prompt="the old mill")
    assert ".generate('the old mill')" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("prompt", "settings", "words"),
    [
        ("the fox?", {"tokenizer": "char"}, "--sample-prompt cannot be used: character '?'"),
        ("the " * 17, {"tokenizer": "char"}, "is 68 tokens long, more than the context of 16"),
        ("the fox asked " * 5, {}, "choose a shorter one"),
        ("\ud800", {}, "sample_prompt must be text in UTF-8"),
        (5, {}, "sample_prompt must be a text, got 5"),
    ],
)
def test_a_prompt_that_no_sample_can_begin_with_is_refused_before_anything_is_written(
    workplace: Path, prompt: Any, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match="prompt") as refused:
        train_tiny(sample_prompt=prompt, **settings)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not Path("runs").exists()


def test_a_resume_with_a_wrong_prompt_leaves_the_run_as_it_is(workplace: Path) -> None:
    folder = train_tiny(tokenizer="char")
    before = contents(folder)
    with pytest.raises(UserError, match="cannot be used"):
        resume(folder, steps=12, sample_prompt="?")
    assert contents(folder) == before


def test_a_prompt_of_exactly_one_context_is_taken(workplace: Path) -> None:
    folder = train_tiny(tokenizer="char", sample_prompt="the fox asked a ", num_evals=1)
    assert samples(folder)[0].startswith("the fox asked a ")


def test_the_command_takes_a_prompt(workplace: Path) -> None:
    options = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    assert main(["train", "my.txt", "--sample-prompt", "for bread", *options]) == 0
    assert samples(Path("runs/my"))[0].startswith("for bread")
