"""The dial: for every text, machine and time a plan that is sensible and can be carried out; what
it is made from, how it is told, and that a run follows it.
"""

import gzip
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigpt
from minigpt import UserError
from minigpt.cli import main
from minigpt.config import TextConfig, TrainConfig, count_parameters
from minigpt.data.corpus import FABLES, find_files, find_source
from minigpt.tokenizer.bpe import train_bpe
from minigpt.training.checkpoint import read_state
from minigpt.training.plan import (
    Plan,
    PlannedRun,
    TextStats,
    expected_bits_per_byte,
    make_plan,
    plan_context,
    plan_dropout,
    plan_max_epochs,
    plan_vocabulary,
    text_stats,
)
from minigpt.training.speed import Speed
from tests.conftest import TINY, some_text, train_tiny

few = settings(max_examples=60, deadline=None)
LAPTOP = Speed(flops=6e10, start=2e-3)
GPU = Speed(flops=1e14, start=4e-4)

# From 1 KB to 10 GB, from 12 seconds to a day, from a slow core to a large GPU; every order of
# magnitude is as likely as every other one.
texts = st.builds(
    TextStats,
    size=st.floats(3, 10).map(lambda power: int(10**power)),
    validation=st.floats(2, 9).map(lambda power: int(10**power)),
    tokenizer=st.sampled_from(["bpe", "char", "gpt2"]),
    ngram_bits_per_byte=st.floats(0.1, 8),
)
speeds = st.builds(
    Speed,
    flops=st.floats(9, 15).map(lambda power: 10**power),
    start=st.floats(1e-5, 1e-1),
)
times = st.floats(-0.7, 3.15).map(lambda power: 10**power)


@given(text=texts, speed=speeds, minutes=times)
@few
def test_every_plan_fits_the_text_and_the_time(
    text: TextStats, speed: Speed, minutes: float
) -> None:
    plan = make_plan(text, speed, {"minutes": minutes})
    assert plan.model.context_length < plan.tokens
    assert plan.steps == 1 or plan.seconds <= 60 * minutes
    tokens_a_step = plan.batch_size * plan.model.context_length
    assert plan.trained_tokens <= plan.max_epochs * plan.tokens + tokens_a_step
    assert 0.0 <= plan.model.dropout <= 0.5
    assert plan.bits_per_byte > 0.0
    assert 1 <= plan.num_evals <= TrainConfig.num_evals


@given(text=texts, speed=speeds, one=times, other=times)
@few
def test_more_minutes_never_plan_a_smaller_model_or_a_worse_figure(
    text: TextStats, speed: Speed, one: float, other: float
) -> None:
    short, long = (make_plan(text, speed, {"minutes": m}) for m in sorted((one, other)))
    assert count_parameters(short.model) <= count_parameters(long.model)
    assert long.bits_per_byte <= short.bits_per_byte * 1.005


def test_the_model_grows_with_time_machine_and_text() -> None:
    def parameters(size: int, speed: Speed, minutes: float) -> int:
        return count_parameters(make_plan(TextStats(size), speed, {"minutes": minutes}).model)

    usual = parameters(10**6, LAPTOP, 5)
    assert 0.3e6 < usual < 3e6
    assert parameters(10**8, LAPTOP, 24 * 60) > 8 * usual
    assert parameters(10**8, GPU, 5) > 10 * usual
    assert parameters(10**4, GPU, 60) < usual


@pytest.mark.parametrize(("minutes", "width"), [(1.5, 128), (5, 128), (10, 192)])
def test_a_model_is_as_wide_as_was_best_in_so_many_minutes(minutes: float, width: int) -> None:
    """Each was trained beside another on tinyshakespeare, at this speed (docs/decisions.md)."""
    plan = make_plan(TextStats(1_003_854), Speed(7e10, 1e-2), {"minutes": minutes})
    assert plan.model.emb_dim == width


def test_a_short_text_ends_its_run_early_however_long_it_may_take() -> None:
    short, long = (make_plan(TextStats(20_000), LAPTOP, {"minutes": m}) for m in (60, 1440))
    assert short.model == long.model and short.steps == long.steps
    assert long.seconds < 30 * 60


@pytest.mark.parametrize(
    "fields",
    [
        {"emb_dim": 96},
        {"num_layers": 7},
        {"num_heads": 3},
        {"vocab_size": 700},
        {"dropout": 0.33},
        {"architecture": "gpt2", "context_length": 64},
        {"batch_size": 5},
        {"steps": 70},
        {"max_epochs": 2.0},
        {"num_evals": 1},
        {"token_split_prob": 0.3},
        {"warmup_context": 7},
    ],
    ids=str,
)
def test_what_is_given_is_kept(fields: dict[str, Any]) -> None:
    plan = make_plan(TextStats(10**6), LAPTOP, fields)
    for name, value in fields.items():
        assert getattr(plan if hasattr(plan, name) else plan.model, name) == value


def test_the_rest_is_planned_around_what_is_given() -> None:
    def planned(**fields: Any) -> Plan:
        return make_plan(TextStats(10**6), LAPTOP, fields)

    assert planned(emb_dim=96).model.num_heads == 1
    assert planned(num_heads=3).model.emb_dim == 192
    assert planned(max_epochs=2.0, minutes=60).epochs <= 2.1
    assert [planned(steps=n).batch_size for n in (10, 10**4)] == [8, 4]
    assert planned(steps=10**4, context_length=64).batch_size == 8
    assert planned(steps=10, batch_size=8).model.dropout == 0.0
    assert planned(steps=10**6, batch_size=8).model.dropout > 0.0


def test_what_no_model_can_have_is_refused_by_name() -> None:
    with pytest.raises(UserError, match="emb_dim must be a multiple of num_heads"):
        make_plan(TextStats(10**6), LAPTOP, {"emb_dim": 100, "num_heads": 7})


def test_a_text_read_more_often_or_by_a_wider_model_gets_more_dropout() -> None:
    rates = [plan_dropout(epochs, 128) for epochs in range(1, 1000)]
    assert rates == sorted(rates) and rates[0] == rates[2] == 0.0 and rates[-1] == 0.3
    assert plan_dropout(15, 256) == plan_dropout(60, 64) > plan_dropout(15, 256, split_prob=0.1) > 0


def test_a_wider_model_reads_a_text_less_often_but_never_only_a_few_times() -> None:
    epochs = [plan_max_epochs(width) for width in (64, 128, 192, 768, 4096)]
    assert epochs[0] == 2 * epochs[1] and epochs == sorted(epochs, reverse=True)
    assert epochs[-1] == epochs[-2] >= 10.0


def test_a_text_read_often_is_read_in_other_tokens_each_time() -> None:
    def split_prob(minutes: float, **fields: Any) -> float:
        text = TextStats(10**5, tokenizer=fields.pop("tokenizer", "bpe"))
        return make_plan(text, LAPTOP, {"minutes": minutes, **fields}).token_split_prob

    assert split_prob(0.1) == 0.0 < split_prob(10)
    assert split_prob(10, max_epochs=4.0, emb_dim=128) > 0.0
    assert split_prob(10, max_epochs=4.0, emb_dim=64) == 0.0
    assert split_prob(10, max_epochs=1.0) == split_prob(10, tokenizer="char") == 0.0


def test_a_short_run_is_evaluated_less_often_the_more_so_on_a_long_validation_text() -> None:
    def evaluations(minutes: float, validation: int, **fields: Any) -> int:
        fields = {"minutes": minutes, "emb_dim": 128, "num_layers": 4, **fields}
        return make_plan(TextStats(10**6, validation), LAPTOP, fields).num_evals

    usual = TrainConfig.num_evals
    assert [evaluations(m, 10**6) for m in (0.5, 60)] == [4, usual]
    assert 4 < evaluations(10, 10**6) < usual
    assert evaluations(0.2, 100) == 4 < evaluations(0.8, 100) < usual
    assert evaluations(2, 100) == evaluations(60, 10**9) == usual
    assert evaluations(0.5, 10**5, num_evals=20) == 20
    assert evaluations(0.5, 10**5, steps=100) == usual


@pytest.mark.parametrize(
    ("size", "vocabulary"),
    [(0, 320), (1000, 320), (1 << 19, 1024), (1 << 20, 2048), (10**10, 16384)],
)
def test_there_is_about_one_token_for_512_bytes(size: int, vocabulary: int) -> None:
    assert plan_vocabulary(TextStats(size)) == vocabulary


def test_a_long_text_gets_the_whole_context_and_a_short_one_less() -> None:
    contexts = [plan_context(n, "bpe", is_long=True) for n in (2, 9, 200, 1000, 10**6)]
    assert contexts == [1, 8, 8, 32, 256]
    assert plan_context(10**6, "char", is_long=True) == 512


def test_a_longer_training_gets_a_longer_context_and_no_more_tokens_a_step() -> None:
    short, long = (make_plan(TextStats(10**6), LAPTOP, {"minutes": m}) for m in (1, 5))
    assert 2 * short.model.context_length == long.model.context_length
    assert short.batch_size == 2 * long.batch_size


@pytest.mark.parametrize(
    ("fields", "early"),
    [
        ({}, 128),
        ({"context_length": 50}, 25),
        ({"architecture": "gpt2"}, 256),
        ({"init": "gpt2"}, 256),
    ],
    ids=str,
)
def test_half_of_the_context_does_until_near_the_end(fields: dict[str, Any], early: int) -> None:
    """Except where each position is learned by itself, and for a model that has it already."""
    assert make_plan(TextStats(10**6), LAPTOP, fields).warmup_context == early


def test_what_is_expected_falls_with_work_and_never_below_nothing() -> None:
    bits = [expected_bits_per_byte(2.5, 10.0**power) for power in range(6, 20)]
    assert bits == sorted(bits, reverse=True) and bits[-1] > 0 and bits[0] == 8.0


def test_processes_share_every_batch_evenly_and_train_a_larger_model() -> None:
    one, eight = (make_plan(TextStats(10**8), GPU, {"minutes": 30}, n) for n in (1, 8))
    assert count_parameters(eight.model) >= count_parameters(one.model)
    for processes in (3, 6, 7):
        assert make_plan(TextStats(10**6), LAPTOP, {}, processes).batch_size % processes == 0


# What it is made from


def stats(file: Path, **settings: Any) -> TextStats:
    config = TextConfig(files=(str(file),), **settings)
    return text_stats(find_source(config), config)


def test_the_part_to_train_on_is_what_counts(tmp_path: Path) -> None:
    file, text = tmp_path / "my.txt", some_text(words=2000)
    file.write_text(text)
    usual, half = stats(file), stats(file, validation_fraction=0.5)
    assert (usual.size, half.size) == (round(0.9 * len(text)), round(0.5 * len(text)))
    assert usual.size + usual.validation == half.size + half.validation == len(text)
    (tmp_path / "other.txt").write_text("what it is judged by\n")
    apart = stats(file, validation=(str(tmp_path / "other.txt"),))
    assert (apart.size, apart.validation) == (len(text), 21)


def test_a_text_is_planned_for_alike_however_it_is_stored(tmp_path: Path) -> None:
    """Packed, or as the lines of a JSON file with much else in them."""
    text = some_text(words=2000) + "\N{FOX FACE}\n"
    (tmp_path / "my.txt").write_text(text, encoding="utf-8")
    (tmp_path / "my.txt.gz").write_bytes(gzip.compress(text.encode()))
    rows = [{"id": "0" * 500, "text": line} for line in text.splitlines(keepends=True)]
    (tmp_path / "my.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    plain, *others = (stats(tmp_path / name) for name in ("my.txt", "my.txt.gz", "my.jsonl"))
    assert others == [plain, plain]


@pytest.mark.parametrize("vocab_size", [320, 512, 2048])
def test_the_tokens_of_an_english_text_are_guessed_within_an_eighth(vocab_size: int) -> None:
    text = find_files((FABLES,))[0].read_text(encoding="utf-8")
    tokens = len(train_bpe([text], vocab_size).encode(text))
    given = {"vocab_size": vocab_size, "steps": 1}
    guessed = make_plan(TextStats(len(text.encode())), Speed(1e11, 0.0), given).tokens
    assert 7 / 8 < guessed / tokens < 9 / 8


# How it is told, and kept to


@pytest.mark.parametrize(
    ("prob", "context", "line"),
    [
        (0.15, 8, "until the last fifth 15% of the tokens are split in two and windows are cut"),
        (0.15, 64, "15% of the tokens are split in two;"),
        (0.0, 8, "until the last fifth windows are cut to 8 tokens;"),
        (0.0, 64, None),
    ],
)
def test_the_reasons_tell_what_is_different_before_the_end(
    prob: float, context: int, line: str | None
) -> None:
    fields = {"context_length": 64, "token_split_prob": prob, "warmup_context": context}
    plan = make_plan(TextStats(10**6), None, fields)
    told = "\n".join(PlannedRun(plan, TextStats(10**6), None, 5.0).reasons())
    assert line in told if line else "last fifth" not in told


@pytest.mark.parametrize(
    ("given", "is_told"),
    [
        ({"minutes": 30}, True),
        ({"minutes": 30, "max_epochs": 0.1}, True),
        ({"minutes": 0.5, "max_epochs": 1000.0}, False),
        ({"minutes": 0.5, "max_epochs": 0.1, "steps": 1000}, False),
    ],
    ids=str,
)
def test_the_reasons_tell_of_an_early_end(given: dict[str, Any], is_told: bool) -> None:
    plan = make_plan(TextStats(10**5), Speed(1e11, 0.0), given)
    told = PlannedRun(plan, TextStats(10**5), None, given["minutes"]).reasons()
    assert any("ends early" in reason for reason in told) == is_told


def test_plan_tells_what_would_be_done_and_does_nothing(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(workplace.rglob("*"))
    assert main(["train", "my.txt", "--plan", "--minutes", "3", "--emb-dim", "64"]) == 0
    out, _ = capsys.readouterr()
    assert "GFLOP/s" in out and "3 minutes" not in out and "bits/byte" in out
    options = shlex.split(out.splitlines()[-1])
    assert options[options.index("--emb-dim") + 1] == "64"
    assert main(["train", "my.txt", *options, "--plan"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == shlex.join(options)
    assert sorted(workplace.rglob("*")) == before


def test_a_table_tells_what_more_minutes_would_give(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("plan my.txt --minutes 0.5 --minutes 20 --dropout 0.3".split()) == 0
    head, *rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert head[0] == "minutes" and [row[0] for row in rows] == ["0.5", "20"]
    figures = [float(row[-1]) for row in rows]
    assert figures[0] >= figures[1] > 0
    assert all(row[-2] == "0.3" for row in rows) and head[-2] == "dropout"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["my.txt", "--minutes", "0"], "minutes must be above 0"),
        (["none.txt"], "no such file: none.txt"),
        (["my.txt", "--num-heads", "7", "--emb-dim", "64"], "emb_dim must be a multiple"),
    ],
    ids=str,
)
def test_what_cannot_be_planned_is_refused_in_one_line(
    arguments: list[str], words: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: ") and words in err


def test_a_run_keeps_its_plan_and_says_why(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = train_tiny()
    kept = json.loads((folder / "plan.json").read_text())
    config = json.loads((folder / "config.json").read_text())
    assert kept["plan"]["model"]["emb_dim"] == config["model"]["emb_dim"] == TINY["emb_dim"]
    assert kept["text"]["size"] > 0
    said = capsys.readouterr().err
    assert all(reason in said for reason in kept["reasons"])


def test_a_run_ends_when_it_has_read_the_text_often_enough(workplace: Path) -> None:
    free = {name: value for name, value in TINY.items() if name not in ("steps", "vocab_size")}
    folder = minigpt.train("my.txt", **free, minutes=5, max_epochs=3.0)
    kept = json.loads((folder / "plan.json").read_text())
    tokens = kept["plan"]["tokens"]
    assert kept["speed"]["flops"] > 0  # which decides how many steps there are
    state = read_state(folder)
    a_step = TINY["batch_size"] * TINY["context_length"]
    assert state.finished and state.seconds < 150
    assert 0.3 * tokens < state.step * a_step / 3.0 < 3 * tokens  # the plan only guesses them
