"""The dial: for every text, machine and time a plan that is sensible and can be carried out; what
it is made from, how it is told, and that a run follows it.
"""

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigpt
from minigpt import UserError
from minigpt.cli import main
from minigpt.config import GPTConfig, TrainConfig, count_parameters
from minigpt.data.batches import Dataset
from minigpt.recipe.machine import Machine, Speed
from minigpt.recipe.plan import Planned
from minigpt.recipe.rules import (
    CLEARLY_MORE,
    plan_context,
    plan_dropout,
    plan_token_split_prob,
    plan_vocabulary,
)
from minigpt.recipe.text_stats import Predictability, TextStats
from minigpt.recipe.told_at_start import reasons
from minigpt.runs.folder import PLAN, read_config
from minigpt.tokenizer.bpe import train_bpe
from minigpt.training.checkpoint import read_state
from tests.conftest import TINY, some_text, train_tiny

from .plans import plan_of, plan_with

few = settings(max_examples=40, deadline=None)
LAPTOP = Speed(flops=6e10, start=2e-3)
GPU = Speed(flops=1e14, start=4e-4)
MEGABYTE = TextStats(10**6)

# From 1 KB to 10 GB, from 12 seconds to a day, from a slow core to a large GPU; every order of
# magnitude is as likely as every other one.
# What copies counts too: it predicts a text no worse than counting alone.
predictabilities = st.builds(
    lambda counting, share: Predictability(counting, counting * share),
    counting=st.floats(0.1, 8),
    share=st.floats(0.1, 1),
)
texts = st.builds(
    TextStats,
    size=st.floats(3, 10).map(lambda power: int(10**power)),
    validation=st.floats(2, 9).map(lambda power: int(10**power)),
    tokenizer=st.sampled_from(["bpe", "char", "gpt2"]),
    predictability=predictabilities,
)
speeds = st.builds(
    Speed,
    flops=st.floats(9, 15).map(lambda power: 10**power),
    start=st.floats(1e-5, 1e-1),
    transfer=st.just(0.0) | st.floats(-11, -8).map(lambda power: 10**power),
    busy=st.sampled_from([1, 1024, 4096, 16384]),
)
times = st.floats(-0.7, 3.15).map(lambda power: 10**power)


def planned(text: TextStats = MEGABYTE, speed: Speed | None = LAPTOP, **given: Any) -> Planned:
    return plan_with(text, Machine(speed), **given)


@given(text=texts, speed=speeds, minutes=times)
@few
def test_every_plan_fits_the_text_and_the_time(
    text: TextStats, speed: Speed, minutes: float
) -> None:
    plan = planned(text, speed, minutes=minutes)
    assert plan.model.context_length < plan.tokens
    assert plan.steps == 1 or plan.seconds <= 60 * minutes
    tokens_a_step = plan.settings["batch_size"] * plan.model.context_length
    assert plan.trained_tokens <= plan.settings["max_epochs"] * plan.tokens + tokens_a_step
    assert 0.0 <= plan.model.dropout <= 0.5
    assert plan.bits_per_byte is not None and plan.bits_per_byte > 0.0
    assert 1 <= plan.settings["num_evals"] <= TrainConfig.num_evals


@given(text=texts, speed=speeds, one=times, other=times)
@few
def test_more_minutes_never_plan_a_smaller_model_or_a_worse_figure(
    text: TextStats, speed: Speed, one: float, other: float
) -> None:
    """Where the width steps up, the forecast gets worse for a while (docs/decisions.md); and a
    little where there is time for smaller batches: it does not know that they teach more."""
    short, long = (planned(text, speed, minutes=m) for m in sorted((one, other)))
    assert short.model.emb_dim <= long.model.emb_dim
    assert long.bits_per_byte is not None and short.bits_per_byte is not None

    has_one_width = short.model.emb_dim == long.model.emb_dim
    margin = 1.005 if has_one_width else 1.08
    if long.settings["batch_size"] < short.settings["batch_size"]:
        margin *= CLEARLY_MORE**0.15  # as the forecast takes fewer tokens
    assert long.bits_per_byte <= short.bits_per_byte * margin


def test_the_model_grows_with_time_machine_and_text() -> None:
    def parameters(size: int, speed: Speed, minutes: float) -> int:
        return count_parameters(planned(TextStats(size), speed, minutes=minutes).model)

    usual = parameters(10**6, LAPTOP, 5)
    assert 0.3e6 < usual < 3e6
    assert parameters(10**8, LAPTOP, 24 * 60) > 8 * usual
    assert parameters(10**8, GPU, 5) > 10 * usual
    assert parameters(10**4, GPU, 60) < usual


@pytest.mark.parametrize(("minutes", "width"), [(0.5, 64), (1.5, 96), (5, 128), (10, 192)])
def test_a_model_is_as_wide_as_was_best_in_so_many_minutes(minutes: float, width: int) -> None:
    """Each was trained beside another on tinyshakespeare, at this speed (docs/decisions.md)."""
    plan = planned(TextStats(1_003_854), Speed(7e10, 8e-3), minutes=minutes)
    assert plan.model.emb_dim == width


def test_a_short_text_ends_its_run_early_however_long_it_may_take() -> None:
    short, long = (planned(TextStats(20_000), minutes=m) for m in (60, 1440))
    assert short.model == long.model and short.steps == long.steps
    assert long.seconds < 30 * 60


@pytest.mark.parametrize(
    "fields",
    [
        {"emb_dim": 96, "num_layers": 7, "batch_size": 5, "token_split_prob": 0.3},
        {"num_heads": 3, "vocab_size": 700, "dropout": 0.33, "max_epochs": 2.0},
        {"architecture": "gpt2", "context_length": 64, "num_evals": 1, "warmup_context": 7},
        {"steps": 70},
        {"dropout": 0.0, "token_split_prob": 0.0, "weight_decay": 0.0, "steps": 10**6},
    ],
    ids=str,
)
def test_what_is_given_is_kept(fields: dict[str, Any]) -> None:
    plan = planned(**fields)
    for name, value in fields.items():
        assert plan.settings[name] == value


def test_the_rest_is_planned_around_what_is_given() -> None:
    assert planned(emb_dim=96).model.num_heads == 1
    assert planned(num_heads=3).model.emb_dim == 96
    assert planned(max_epochs=2.0, minutes=60).epochs <= 2.1
    assert [planned(steps=n).settings["batch_size"] for n in (10, 10**4)] == [8, 4]
    assert planned(steps=10**4, context_length=64).settings["batch_size"] == 8
    assert planned(steps=10, batch_size=8).model.dropout == 0.0
    assert planned(steps=10**6, batch_size=8).model.dropout > 0.0
    with pytest.raises(UserError, match="emb_dim must be a multiple of num_heads"):
        planned(emb_dim=100, num_heads=7)


def test_the_more_often_a_text_is_read_the_more_of_it_is_hidden() -> None:
    """By dropout, and by splitting its tokens otherwise each time."""
    rates = [plan_dropout(epochs, 128) for epochs in range(1, 1000)]
    assert rates == sorted(rates) and rates[0] == rates[2] == 0.0 and rates[-1] == 0.3
    assert plan_dropout(15, 256) == plan_dropout(60, 64) > plan_dropout(15, 256, is_helped=True) > 0
    probs = [plan_token_split_prob(epochs, 128, "bpe") for epochs in (1, 2, 4, 8)]
    assert probs[:2] == [0.0, 0.0] and probs[2] == probs[3] > 0.0
    assert (
        planned(minutes=1).settings["weight_decay"] < planned(minutes=10).settings["weight_decay"]
    )
    ties = [planned(minutes=m).model.tie_embeddings for m in (1, 60)]
    assert ties == [False, True] and planned(minutes=1, architecture="gpt2").model.tie_embeddings
    rates = [planned(emb_dim=width, steps=1).settings["learning_rate"] for width in (64, 128, 512)]
    assert rates == [pytest.approx(4e-3 * 2**0.5, rel=1e-3), 4e-3, 2e-3]
    assert plan_token_split_prob(4, 64, "bpe") == plan_token_split_prob(9, 128, "char") == 0.0


def test_a_short_run_is_evaluated_less_often_the_more_so_on_a_long_validation_text() -> None:
    def evaluations(minutes: float, validation: int, **fields: Any) -> int:
        fields = {"minutes": minutes, "emb_dim": 128, "num_layers": 4, **fields}
        return planned(TextStats(10**6, validation), **fields).settings["num_evals"]

    usual = TrainConfig.num_evals
    assert 4 < evaluations(10, 10**6) < evaluations(60, 10**6) == usual
    assert evaluations(0.5, 10**6) == evaluations(0.2, 100) == 4 < evaluations(0.8, 100) < usual
    assert evaluations(0.5, 10**5, num_evals=20) == 20
    steps = (5, 10, 70, 100, 1000)
    assert [evaluations(0.5, 10**5, steps=n) for n in steps] == [1, 1, 7, usual, usual]


def test_a_longer_training_gets_a_longer_context_and_a_larger_text_more_tokens() -> None:
    short, long = (planned(minutes=m) for m in (1, 5))
    assert 2 * short.model.context_length == long.model.context_length
    assert short.settings["batch_size"] == 2 * long.settings["batch_size"]
    contexts = [plan_context(n, "bpe", times=2) for n in (2, 9, 200, 1000, 10**6)]
    assert contexts == [1, 8, 8, 32, 256]
    wide = GPTConfig(1, emb_dim=512, num_layers=8)
    sizes = [plan_vocabulary(TextStats(size), wide).value for size in (0, 1 << 20, 10**10)]
    assert sizes == [320, 2048, 16384]


def test_the_embedding_table_of_a_large_text_does_not_outweigh_a_small_model() -> None:
    for width, layers, size in ((64, 3, 2048), (128, 4, 4096), (192, 6, 8192)):
        shape = GPTConfig(1, emb_dim=width, num_layers=layers)
        assert plan_vocabulary(TextStats(10**8), shape).value == size
        repeating = TextStats(10**8, repeats_afar=True)
        assert plan_vocabulary(repeating, shape).value == max(size, 4096)


def test_of_a_long_text_a_part_is_used_that_the_minutes_can_read() -> None:
    assert planned(minutes=60).settings["max_characters"] is None
    short, long = (planned(TextStats(10**9), minutes=m) for m in (1, 60))
    for plan in (short, long):
        assert plan.settings["max_characters"] is not None
        assert 1.2 * plan.trained_tokens < plan.settings["max_characters"] < 2e8
    assert short.settings["max_characters"] < long.settings["max_characters"]
    assert planned(TextStats(10**9), max_characters=5_000).settings["max_characters"] == 5_000


def test_half_of_the_context_does_until_near_the_end() -> None:
    """Except where each position is learned by itself, and for a model that has it already."""
    contexts = [
        planned(**fields).settings["warmup_context"]
        for fields in ({}, {"context_length": 50}, {"architecture": "gpt2"}, {"init": "hf:gpt2"})
    ]
    assert contexts == [128, 25, 256, 256]


def test_processes_share_every_batch_evenly_and_train_a_larger_model() -> None:
    one, eight = (plan_with(TextStats(10**8), Machine(GPU, n), minutes=30) for n in (1, 8))
    assert count_parameters(eight.model) >= count_parameters(one.model)
    for processes in (3, 6, 7):
        shared = plan_with(MEGABYTE, Machine(LAPTOP, processes))
        assert shared.settings["batch_size"] % processes == 0


def test_cores_without_a_sequence_of_their_own_do_not_count() -> None:
    """All that takes time is planned for those that compute."""

    def plan_on(flops: float, cores: int, **given: Any) -> Planned:
        machine = Machine(Speed(flops, start=2e-3, num_workers=cores), num_workers=cores)
        return plan_with(TextStats(10**8, validation=10**7), machine, minutes=60, **given)

    def figures(plan: Planned) -> tuple[Any, ...]:
        training = replace(plan.settings.training, num_workers=None, micro_batch_size=None)
        return plan.model, training, plan.steps, plan.seconds, plan.bits_per_byte

    for in_a_step in ({"batch_size": 2}, {"batch_size": 8, "micro_batch_size": 2}):
        eight = plan_on(8e11, 8, **in_a_step)
        two = plan_on(2e11, 2, batch_size=in_a_step["batch_size"])
        assert figures(eight) == figures(two)

    four = plan_on(4e11, 4)
    assert four.settings["batch_size"] >= 4 and figures(four) == figures(plan_on(4e11, 1))
    alone = plan_on(4e11, 4, batch_size=1)  # all of torch's threads compute it
    assert figures(alone) == figures(plan_on(4e11, 1, batch_size=1))


# What it is made from


def stats(file: Path, **given: Any) -> TextStats:
    """Of a file, with fields of GPTConfig and of TextConfig."""
    shape = {"emb_dim": 64, "num_layers": 2}
    return plan_of(files=(str(file),), steps=1, **(shape | given)).text


def test_a_part_of_a_text_is_planned_for_as_if_there_were_no_more(tmp_path: Path) -> None:
    text = some_text(words=20_000)
    (tmp_path / "long.txt").write_text(text)
    part = stats(tmp_path / "long.txt", max_characters=9_000)
    assert (part.size, part.whole) == (9_000, round(0.9 * len(text)))
    all_of_it = stats(tmp_path / "long.txt", max_characters=10**6)
    assert all_of_it.size == pytest.approx(part.whole, abs=1)


def test_the_same_command_plans_the_same_settings_again_and_forecasts_by_what_it_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my.txt").write_text(some_text(words=40_000))

    def planned_at(flops: float, start: float) -> Planned:
        speed = Speed(flops, start, num_workers=2)
        monkeypatch.setattr("minigpt.recipe.choose_plan.measure_speed", lambda *_: speed)
        return plan_of(files=(str(tmp_path / "my.txt"),), minutes=1.0)

    plans = [planned_at(1.18e11, 9.3e-3), planned_at(1.5e11, 9.1e-3)]
    steps = [plan.steps for plan in plans]
    seconds = [plan.seconds for plan in plans]
    assert steps[0] < 0.95 * steps[1] and seconds == pytest.approx([46, 46], abs=2)
    speeds = [plan.machine.speed for plan in plans]
    assert [speed.flops for speed in speeds if speed] == [1.18e11, 1.5e11]
    assert plans[0].settings == plans[1].settings


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
    names = ("my.txt", "my.txt.gz", "my.jsonl")
    plain, *others = (stats(tmp_path / name, split="end") for name in names)
    assert others == [plain, plain]


@pytest.mark.long
def test_a_model_looks_far_back_in_a_text_that_repeats_itself_far_away(tmp_path: Path) -> None:
    def twice(size: int) -> Path:
        """A text of blocks of that size, each of which stands there twice."""
        draw, file = random.Random(0), tmp_path / f"{size}.txt"
        letters = (draw.choices("abcdefghijklmnop", k=size) for _ in range(24_000 // size))
        file.write_text("".join(2 * "".join(block) for block in letters))
        return file

    assert not stats(Path(__file__).parents[2] / "data/fables.txt").repeats_afar
    assert not stats(twice(100)).repeats_afar  # a short context reaches as far
    assert not stats(twice(4000)).repeats_afar  # not even a long one does

    far = twice(1000)
    found = stats(far)
    assert found.repeats_afar
    assert found.predictability.copying < 0.95 * found.predictability.counting
    for cannot_copy in (
        stats(far, architecture="gpt2"),
        stats(far, num_layers=1),
        stats(far, emb_dim=32),
        stats(far, num_heads=4),
        stats(far, tokenizer="char"),
        stats(far, embedding_init="random"),
    ):
        assert not cannot_copy.repeats_afar
        counting = found.predictability.counting
        assert cannot_copy.predictability == Predictability(counting, copying=counting)

    a, b = (planned(replace(MEGABYTE, repeats_afar=afar), minutes=3) for afar in (True, False))
    assert [(p.model.context_length, p.settings["batch_size"]) for p in (a, b)] == [
        (512, 8),
        (256, 4),
    ]
    assert a.model.emb_dim < b.model.emb_dim
    assert ["far away" in "".join(reasons(p)) for p in (a, b)] == [True, False]


@pytest.mark.parametrize("vocab_size", [320, 2048])
def test_the_tokens_of_an_english_text_are_guessed_within_an_eighth(vocab_size: int) -> None:
    text = (Path(__file__).parents[2] / "data/fables.txt").read_text(encoding="utf-8")
    tokens = len(train_bpe([text], vocab_size).encode(text))
    guessed = planned(TextStats(len(text.encode())), vocab_size=vocab_size, steps=1).tokens
    assert 7 / 8 < guessed / tokens < 9 / 8


# How it is told, and kept to


def test_the_reasons_tell_what_is_different_before_the_end_and_of_an_early_end() -> None:
    def told(text: TextStats = MEGABYTE, **given: Any) -> str:
        return "\n".join(reasons(planned(text, **given)))

    both = {"context_length": 64, "token_split_prob": 0.15, "warmup_context": 8}
    assert "until the last fifth 15% of the tokens are split in two and the model" in told(**both)
    assert "last fifth the model sees only 8 tokens at a time" in told(
        **both | {"token_split_prob": 0.0}
    )
    assert "last fifth" not in told(**both | {"token_split_prob": 0.0, "warmup_context": 64})
    short = TextStats(10**5)
    assert "ends early" in told(short, minutes=30)
    assert "ends early" not in told(short, minutes=0.5, max_epochs=1000.0)
    assert "ends early" not in told(short, max_epochs=0.1, steps=1000)


def test_a_run_keeps_its_plan_and_says_why(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = train_tiny()
    kept = json.loads((folder / "plan.json").read_text())
    config = json.loads((folder / "config.json").read_text())
    assert kept["settings"]["emb_dim"]["value"] == config["model"]["emb_dim"] == TINY["emb_dim"]
    assert kept["text"]["size"] > 0
    said = capsys.readouterr().err
    assert any(reason.startswith("context: ") for reason in kept["reasons"])
    assert not any(reason in said for reason in kept["reasons"])  # it says where they are
    assert f"  run        {folder} (" in said and "plan.json there says why all is so" in said


def test_a_run_ends_when_it_has_read_the_text_often_enough(workplace: Path) -> None:
    free = {name: value for name, value in TINY.items() if name not in ("steps", "vocab_size")}
    folder = minigpt.train("my.txt", **free, minutes=5, max_epochs=3.0)
    kept, state = json.loads((folder / "plan.json").read_text()), read_state(folder)
    assert kept["speed"]["flops"] > 0  # which decides how many steps there are
    read = state.step * TINY["batch_size"] * TINY["context_length"] / 3.0
    assert state.finished and state.seconds < 150
    assert 0.3 < read / kept["tokens"] < 3  # the plan only guesses the tokens


@pytest.mark.long
def test_a_run_whose_text_has_fewer_tokens_than_guessed_is_planned_for_those(
    workplace: Path,
) -> None:
    run = minigpt.train("my.txt", emb_dim=64, num_layers=1, steps=60, num_evals=1)
    plan = json.loads((run / PLAN).read_text())
    config = read_config(run)
    assert plan["tokens"] < 700 and config.gpt.context_length == 32
    assert config.training.warmup_context == plan["settings"]["warmup_context"]["value"] == 16

    epochs = 60 * config.training.batch_size * 32 / plan["tokens"]
    split = plan_token_split_prob(epochs, 64, "bpe")
    assert config.training.token_split_prob == split > 0
    assert config.gpt.dropout == plan_dropout(epochs, 64, split > 0.0) > 0
    told = "\n".join(plan["reasons"])
    assert "context: 32 tokens, because the text has only " in told
    assert f"the text's {plan['tokens']} tokens are read {epochs:.1f} times" in told
    assert config.gpt.vocab_size < 320
    assert f"vocabulary: {config.gpt.vocab_size} tokens, as many as the text gives" in told


def test_a_tokenizer_of_tiktoken_is_planned_with_the_tokens_that_it_has(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    encoding = train_bpe([some_text()], 305).encoding
    monkeypatch.setattr("tiktoken.list_encoding_names", lambda: ["cl100k_base"])
    monkeypatch.setattr("tiktoken.get_encoding", lambda name: encoding)
    assert main(["train", "--plan", "my.txt", "--tokenizer", "cl100k_base"]) == 0
    assert "vocabulary: 305 tokens, those of cl100k_base\n" in capsys.readouterr().out


def test_a_context_of_any_legal_length_is_planned(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("long.txt").write_text(some_text(100_000))
    arguments = ["--tokenizer=char", "--context-length=200000", "--emb-dim=16", "--num-heads=1"]
    assert main(["train", "--plan", "long.txt", "--minutes=900", *arguments]) == 0
    assert "--context-length 200000 " in capsys.readouterr().out


def test_a_warmup_context_longer_than_the_context_is_refused(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where that is planned, too, or kept from the run."""
    new = ["my.txt", "--warmup-context=40", "--emb-dim=16", "--num-layers=1", "--steps=2"]
    assert main(["train", *new]) == 2
    assert "than the context that is planned, 32;" in capsys.readouterr().err
    assert not Path("runs").exists()
    run = train_tiny()
    assert main(["train", "--resume", "--out", str(run), "--steps=9", "--warmup-context=17"]) == 2
    assert "--warmup-context 17 is longer than --context-length 16" in capsys.readouterr().err


def test_a_character_has_as_many_bytes_as_in_this_text() -> None:
    text = TextStats(30_000, bytes_per_character=3.0, tokenizer="char")
    assert planned(text).tokens == 10_000


def test_all_of_a_plan_is_fitted_to_the_tokens_that_were_found() -> None:
    """Of a text that has half of the tokens that were guessed, read twice as often as planned."""
    plan = planned(TextStats(100_000), minutes=2)
    tokens = np.zeros(plan.tokens // 2, np.uint16)
    tokenizer = train_bpe([some_text()], plan.model.vocab_size)
    fitted = plan.with_tokens(Dataset(tokenizer, tokens, tokens[:9]))

    assert fitted.tokens == len(tokens)
    assert fitted.settings["dropout"] == plan_dropout(
        fitted.epochs, fitted.model.emb_dim, fitted.settings["token_split_prob"] > 0.0
    )
    assert fitted.model.vocab_size == tokenizer.vocab_size
    same = replace(plan.text, bytes_per_token=plan.text.size / len(tokens))
    assert fitted.text == same


def test_a_plan_whose_guess_was_right_stays_as_it_is() -> None:
    plan = planned(TextStats(100_000), LAPTOP.rounded(), minutes=2, vocab_size=320)
    tokens = np.zeros(plan.tokens, np.uint16)
    text = (Path(__file__).parents[2] / "data/fables.txt").read_text(encoding="utf-8")
    tokenizer = train_bpe([text], 320)
    fitted = plan.with_tokens(Dataset(tokenizer, tokens, tokens[:9]))
    assert reasons(fitted) == reasons(plan)
    assert fitted.settings == plan.settings


def test_what_has_become_tokens_is_not_planned_anew() -> None:
    """Of a long text that is encoded in part, or whole."""
    for size in (400_000_000, 1_000_000):
        plan = planned(TextStats(size), minutes=5)
        tokens = np.zeros(1_000_000, np.uint16)
        tokenizer = train_bpe([some_text()], plan.model.vocab_size)
        fitted = plan.with_tokens(Dataset(tokenizer, tokens, tokens[:9]))
        assert fitted.settings["max_characters"] == plan.settings["max_characters"]


def test_a_device_that_was_left_to_the_plan_by_its_name_is_the_plan_s() -> None:
    settings = planned(device="auto", precision="auto").settings
    assert (settings["device"], settings["precision"]) == ("cpu", "float32")
