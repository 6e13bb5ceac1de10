"""The dial: for every text, machine and time a plan that is sensible and can be carried out."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.config import TrainConfig
from minigpt.model import count_parameters
from minigpt.training.plan import (
    Plan,
    TextStats,
    expected_bits_per_byte,
    make_plan,
    plan_context,
    plan_dropout,
    plan_max_epochs,
    plan_vocabulary,
)
from minigpt.training.speed import Speed

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
    assert planned(max_epochs=2.0, minutes=60).times <= 2.1
    assert [planned(steps=n).batch_size for n in (10, 10**4)] == [8, 4]
    assert planned(steps=10**4, context_length=64).batch_size == 8
    assert planned(steps=10, batch_size=8).model.dropout == 0.0
    assert planned(steps=10**6, batch_size=8).model.dropout > 0.0


def test_what_no_model_can_have_is_refused_by_name() -> None:
    with pytest.raises(UserError, match="emb_dim must be a multiple of num_heads"):
        make_plan(TextStats(10**6), LAPTOP, {"emb_dim": 100, "num_heads": 7})


def test_a_text_read_more_often_or_by_a_wider_model_gets_more_dropout() -> None:
    assert [plan_dropout(passes, 128) for passes in (0.1, 3, 10, 20)] == [0.0, 0.0, 0.15, 0.25]
    assert plan_dropout(15, 256) == plan_dropout(60, 64) > 0.0
    assert [plan_dropout(passes, 128, 0.1) for passes in (7, 20, 40)] == [0.0, 0.15, 0.25]
    rates = [plan_dropout(passes, 128) for passes in range(1, 1000)]
    assert rates == sorted(rates) and rates[-1] == 0.3


def test_a_wider_model_reads_a_text_less_often_but_never_only_a_few_times() -> None:
    passes = [plan_max_epochs(width) for width in (64, 128, 192, 768, 4096)]
    assert passes[0] == 2 * passes[1] and passes == sorted(passes, reverse=True)
    assert passes[-1] == passes[-2] >= 10.0


def test_a_text_read_often_is_read_in_other_tokens_each_time() -> None:
    def respelling(minutes: float, **fields: Any) -> float:
        text = TextStats(10**5, tokenizer=fields.pop("tokenizer", "bpe"))
        return make_plan(text, LAPTOP, {"minutes": minutes, **fields}).respelling

    assert respelling(0.1) == 0.0 < respelling(10)
    assert respelling(10, max_epochs=4.0, emb_dim=128) > 0.0
    assert respelling(10, max_epochs=4.0, emb_dim=64) == 0.0
    assert respelling(10, max_epochs=1.0) == respelling(10, tokenizer="char") == 0.0


def test_a_short_run_is_evaluated_less_often_the_more_so_on_a_long_validation_text() -> None:
    def evaluations(minutes: float, validation: int, **fields: Any) -> int:
        fields = {"minutes": minutes, "emb_dim": 128, "num_layers": 4, **fields}
        return make_plan(TextStats(10**6, validation), LAPTOP, fields).evaluations

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


def test_a_step_takes_the_longer_the_more_it_computes() -> None:
    plans: list[Plan] = [make_plan(TextStats(10**6), LAPTOP, {"emb_dim": d}) for d in (64, 512)]
    assert LAPTOP.seconds(plans[0].model, 1000) < LAPTOP.seconds(plans[1].model, 1000)
    assert LAPTOP.seconds(plans[0].model, 1000) < LAPTOP.seconds(plans[0].model, 2000)


def test_processes_share_every_batch_evenly_and_train_a_larger_model() -> None:
    one, eight = (make_plan(TextStats(10**8), GPU, {"minutes": 30}, n) for n in (1, 8))
    assert count_parameters(eight.model) >= count_parameters(one.model)
    for processes in (3, 6, 7):
        assert make_plan(TextStats(10**6), LAPTOP, {}, processes).batch_size % processes == 0
