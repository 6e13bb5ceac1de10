"""The lines that say why a plan has its model, vocabulary, context and batch: true for every plan,
and different where something else decides.
"""

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import given

import minigpt
from minigpt.config import GPTConfig, Settings
from minigpt.recipe.machine import Machine, Speed
from minigpt.recipe.plan import Planned, plan
from minigpt.recipe.rules import MANY_STEPS, MANY_TOKENS, SIZES
from minigpt.recipe.size_and_batch import draft_of_size
from minigpt.recipe.text_stats import TextStats
from minigpt.recipe.told_at_start import reasons, reasons_of_shape
from minigpt.runs.folder import PLAN
from minigpt.training.messages import rough

from ..conftest import TINY, some_text
from .plans import plan_with
from .test_plan import GPU, LAPTOP, MEGABYTE, few, planned, speeds, texts, times

HEADINGS = ["model", "vocabulary", "context", "batch"]
LARGE = TextStats(10**8)
REPEATING = replace(LARGE, repeats_afar=True)


def why(text: TextStats = MEGABYTE, speed: Speed = LAPTOP, **given: Any) -> dict[str, str]:
    """Each reason by its heading."""
    plan = planned(text, speed, **given)
    return dict(line.split(": ", 1) for line in reasons_of_shape(plan))


def planned_with(
    start: GPTConfig, text: TextStats = MEGABYTE, init: str = "hf:gpt2", **given: Any
) -> Planned:
    """For a training that begins with a model of another program."""
    brought = {name: value for name, value in vars(start).items() if name not in given}
    del brought["attention_dropout"]
    brought.pop("context_length", None)
    settings = Settings().with_values("given", {"init": init, **given})
    return plan(text, Machine(LAPTOP), settings.with_values("brought", brought), start)


def begun_with(start: GPTConfig, text: TextStats = MEGABYTE, **given: Any) -> dict[str, str]:
    """Each reason of such a training by its heading."""
    told = reasons_of_shape(planned_with(start, text, **given))
    return dict(line.split(": ", 1) for line in told)


def numbers(line: str) -> list[float]:
    units = {"million": 1e6, "billion": 1e9}
    found = re.findall(r"(\d[\d,.]*)(?: (million|billion))?", line)
    return [
        float(digits.strip(",.").replace(",", "")) * units.get(unit, 1) for digits, unit in found
    ]


@given(text=texts, speed=speeds, minutes=times)
@few
def test_the_reasons_have_the_numbers_of_the_plan(
    text: TextStats, speed: Speed, minutes: float
) -> None:
    plan = planned(text, speed, minutes=minutes)
    told = reasons_of_shape(plan)
    lines = dict(line.split(": ", 1) for line in told)
    assert list(lines) == HEADINGS
    assert all(len(line) <= 140 and "\n" not in line and "e+" not in line for line in told)

    assert numbers(lines["model"])[:2] == [plan.model.num_layers, plan.model.emb_dim]
    assert numbers(lines["context"])[0] == plan.model.context_length
    assert numbers(lines["batch"])[0] == plan.settings["batch_size"]
    if text.tokenizer != "char":
        assert numbers(lines["vocabulary"])[0] == plan.model.vocab_size


@given(text=texts, speed=speeds, minutes=times)
@few
def test_what_a_reason_says_is_what_decided(text: TextStats, speed: Speed, minutes: float) -> None:
    """Read from the line itself: what would be needed is more than there is."""
    lines = why(text, speed, minutes=minutes)
    if " would need " in lines["model"]:
        *_, needed, _, read = numbers(lines["model"])
        assert needed >= read
    if "for each of the text's" in lines["model"]:
        *_, parameters, a_token, tokens = numbers(lines["model"])
        assert parameters >= 0.99 * a_token * tokens
    if "too few tokens" in lines["context"]:
        *_, read, needed = numbers(lines["context"])
        assert read <= needed == MANY_TOKENS
    if "or more are read" in lines["context"]:
        *_, needed, read = numbers(lines["context"])
        assert read >= needed == MANY_TOKENS
    if "would make more than" in lines["batch"]:
        _, smaller, most, steps = numbers(lines["batch"])
        assert steps >= most == MANY_STEPS
        assert smaller < numbers(lines["batch"])[0]


def test_the_next_larger_model_is_named_and_what_it_lacks() -> None:
    by_time = why(minutes=1)["model"]
    settings = Settings().with_values("given", {"minutes": 1})
    chosen = planned(minutes=1).settings
    place = SIZES.index((chosen["emb_dim"], chosen["num_layers"]))
    larger = draft_of_size(SIZES[place + 1], MEGABYTE, Machine(LAPTOP), settings)
    assert f"width {larger.model.emb_dim} would need" in by_time
    assert f"60 seconds give them {rough(larger.trained_tokens)}" in by_time
    assert "100 steps give them" in why(steps=100)["model"]
    assert "at most 40 readings of the text give them" in why(TextStats(3000))["model"]

    by_text = why(TextStats(20_000), minutes=60)["model"]
    assert "parameters, more than 20 for each of the text's 12,600 tokens" in by_text
    assert why(TextStats(10**9), GPU, minutes=10**4)["model"].endswith(
        "the largest that is planned"
    )


@pytest.mark.parametrize(
    ("text", "settings", "words"),
    [
        (MEGABYTE, {}, "2,048 tokens; more would be too rare in 1.00MB of text"),
        (LARGE, {"minutes": 60}, "8,192 tokens; 16,384 would need more parameters than the layers"),
        (REPEATING, {"minutes": 3}, "4,096 tokens: long ones, because the text repeats itself far"),
        (TextStats(20_000), {}, "320 tokens, the fewest that are planned"),
        (TextStats(10**9), {"minutes": 1400}, "16,384 tokens, the most that are planned"),
        (replace(MEGABYTE, tokenizer="char"), {"tokenizer": "char"}, "the characters of the text"),
        (
            MEGABYTE,  # learned positions count as parameters, and so the context matters
            {"architecture": "gpt2", "emb_dim": 64, "num_layers": 1, "minutes": 0.3},
            "1,024 tokens; 2,048 would need more parameters than the layers have",
        ),
    ],
)
def test_the_vocabulary_has_the_reason_that_decided(
    text: TextStats, settings: dict[str, Any], words: str
) -> None:
    assert words in why(text, **settings)["vocabulary"]


def test_context_and_batch_have_the_reasons_that_decided() -> None:
    assert "256 tokens, because 1 million tokens or more are read: 1.8" in why()["context"]
    assert "128 tokens, because for 256 too few tokens are read" in why(minutes=1)["context"]
    assert why(REPEATING)["context"] == "512 tokens, because the text repeats itself far away"
    assert why(TextStats(3000))["context"] == "64 tokens, because the text has only 1,900"

    assert why()["batch"] == "4 sequences, the fewest, because there are no more than 6,000 steps"
    doubled = why(LARGE, minutes=60)["batch"]
    assert doubled.startswith("8 sequences, because 4 would make more than 6,000 steps: 6,")
    assert why(steps=100)["batch"] == "8 sequences, as usual for a given number of steps"
    shared = plan_with(MEGABYTE, Machine(LAPTOP, processes=3))
    assert (
        reasons_of_shape(shared)[-1]
        == "batch: 6 sequences, the fewest, because there are no more than 6,000 steps"
    )


def test_what_was_given_by_hand_is_said_to_be_given() -> None:
    lines = why(emb_dim=96, num_layers=7, vocab_size=700, context_length=64, batch_size=5)
    assert lines == {
        "model": "7 layers of width 96, as given",
        "vocabulary": "700 tokens, as given",
        "context": "64 tokens, as given",
        "batch": "5 sequences, as given",
    }
    assert why(emb_dim=96, minutes=1)["model"].startswith("4 layers of width 96; 6 of width")
    start = GPTConfig(700, emb_dim=96, num_layers=7, num_heads=1, context_length=64)
    begun = begun_with(start)
    assert begun["model"] == "7 layers of width 96, that of hf:gpt2"
    assert begun["vocabulary"] == "700 tokens, that of hf:gpt2"


def test_of_the_long_context_of_a_model_a_part_is_planned_that_fits_text_and_time() -> None:
    shape = {"vocab_size": 49_152, "emb_dim": 576, "num_layers": 30, "num_heads": 9}

    def begun(longest: int, text: TextStats = MEGABYTE, **given: Any) -> dict[str, str]:
        start = GPTConfig(**shape, context_length=longest)
        return begun_with(start, text, init="hf:owner/model", **given)

    of_a_longer = "512 tokens of the 8,192 that the model can read; more need more time and memory"
    assert begun(8192)["context"] == of_a_longer
    assert begun(8192)["batch"].startswith("2 sequences, the fewest")
    assert begun(8192, TextStats(9000))["context"] == "64 tokens, because the text has only 2,000"
    assert begun(300)["context"] == "300 tokens, that of hf:owner/model"
    assert begun(8192, context_length=4096)["context"] == "4,096 tokens, as given"


def test_of_a_model_of_others_no_loss_is_foretold() -> None:
    """The forecast is for models that begin from nothing, and dropout is the model's own."""
    start = GPTConfig(50_257, emb_dim=768, num_layers=12, num_heads=12, context_length=1024)
    plan = planned_with(start, init="hf:gpt2", dropout=0.1)
    assert plan.epochs < 1 and plan.bits_per_byte is None
    assert not any(word in line for line in reasons(plan) for word in ("expected", "by heart"))


def test_a_plan_that_guessed_too_many_tokens_is_corrected_before_it_is_told(
    workplace: Path,
) -> None:
    """Whole sentences come again, so that the text has half of the tokens that were expected."""
    random = Random(0)
    words = [random.choice(["mill", "goose", "river", "winter", "lantern"]) for _ in range(40)]
    sentences = [f"The {a} never forgot the {b} of long ago.\n" for a in words for b in words]
    Path("my.txt").write_text("".join(random.choices(sentences, k=500)), encoding="utf-8")
    minigpt.train("my.txt", out="my", steps=1, num_evals=1)

    planned = json.loads(Path("my/plan.json").read_text(encoding="utf-8"))
    made = json.loads(Path("my/config.json").read_text(encoding="utf-8"))
    settings = planned["settings"]
    for name, value in made["model"].items():
        assert name not in settings or settings[name]["value"] == value
    told = "\n".join(planned["reasons"])
    assert f"context: {made['model']['context_length']} tokens" in told
    assert f"the text's {rough(planned['tokens'])} tokens are read" in told


def test_a_training_says_when_it_is_done_if_that_is_known(
    workplace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.recipe.run.train_and_report", mock.Mock())  # it does not begin
    for settings, is_known, expected in (
        ({"minutes": 600.0, "max_epochs": 0.01}, True, 0),  # it has read enough long before
        ({"minutes": 8.0, "max_epochs": 9e5}, True, 8),
        ({"steps": 1}, False, 0),  # this machine's speed was not measured
    ):
        begun = time.time()
        minigpt.train("my.txt", emb_dim=16, num_layers=1, init="none", **settings)
        (row,) = re.findall("  training   .*\n", capsys.readouterr().err)
        told = re.search(r", done about (\d\d):(\d\d)\n", row)
        assert (told is not None) == is_known
        if told is not None:
            hours, minutes = map(int, told.groups())
            then = time.localtime(begun)
            later = (60 * hours + minutes - 60 * then.tm_hour - then.tm_min) % (24 * 60)
            assert expected - 3 <= later <= expected + 3


@pytest.mark.long
def test_of_one_speaker_no_loss_is_expected_since_the_forecast_is_of_all_words(
    workplace: Path, known_kind: None
) -> None:
    lines = [f"{'ANNA' if i % 2 else 'OTTO'}:\n{some_text(60, seed=i)}\n\n" for i in range(40)]
    Path("play.txt").write_text("".join(lines))
    told = {}
    for only in (None, "anna"):
        run = minigpt.train("play.txt", only=only, out=str(only), **TINY)
        told[only] = json.loads((run / PLAN).read_text())
    assert told[None]["bits_per_byte"] is not None and told["anna"]["bits_per_byte"] is None
    assert "expected: not known of the words of one speaker" in told["anna"]["reasons"]


def test_a_part_of_a_text_is_only_spoken_of_where_there_is_more_of_it() -> None:
    def says_part(most: int) -> bool:
        return any("of this long text" in line for line in reasons(planned(max_characters=most)))

    assert says_part(MEGABYTE.size // 2)
    assert not says_part(MEGABYTE.size)
