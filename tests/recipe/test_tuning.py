"""How a model is trained further: its rules follow the loss before the first step, and leave alone
what was given.
"""

from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.config import GPTConfig, Settings
from minigpt.recipe.forecast import expected_after_tuning
from minigpt.recipe.machine import Machine, Speed
from minigpt.recipe.plan import Planned, plan
from minigpt.recipe.rules import plan_dropout, plan_max_epochs
from minigpt.recipe.text_stats import TextStats
from minigpt.recipe.told_at_start import reasons_of_shape
from minigpt.recipe.tuning import tuning_rate

BASE = GPTConfig(4096, context_length=256, emb_dim=256, num_layers=8, num_heads=4)
LAPTOP = Machine(Speed(flops=9e10, start=2e-3))
few = settings(max_examples=40, deadline=None)
losses = st.floats(0.0, 9.0)
sizes = st.floats(2.5, 9.5).map(lambda power: int(10**power))
times = st.floats(-1.0, 3.0).map(lambda power: 10**power)


def planned(before: float, size: int, processes: int = 1, **changes: Any) -> Planned:
    """For a text of so many bytes that the base predicts with `before` bits per byte."""
    text = TextStats(size, validation=size // 9, loss_before=before, bytes_per_token=3.4)
    start = changes.pop("start", BASE)
    brought = asdict(start)
    for name in ("context_length", "dropout"):
        del brought[name]
    settings = Settings().with_values("given", {"init": "base", "minutes": 1.0, **changes})
    settings = settings.with_values("brought", brought)
    return plan(text, replace(LAPTOP, processes=processes), settings, start)


@given(before=losses, size=sizes, minutes=times, processes=st.sampled_from([1, 3, 8]))
@few
def test_every_plan_fits_the_model_the_text_and_the_time(
    before: float, size: int, minutes: float, processes: int
) -> None:
    plan = planned(before, size, minutes=minutes, processes=processes)
    model = replace(
        plan.model, context_length=BASE.context_length, dropout=BASE.dropout
    )  # the rest comes with the model
    assert model == BASE
    assert plan.model.context_length <= min(BASE.context_length, plan.tokens - 1)
    assert plan.settings["warmup_context"] <= plan.model.context_length
    assert 0.0 <= plan.model.dropout <= 0.5
    assert plan.settings["batch_size"] % processes == 0
    assert plan.steps == 1 or plan.seconds <= 60 * minutes
    assert 0.0 < plan.bits_per_byte <= 8.0
    assert plan.init == "base" and plan.settings["interpolate"]


def test_the_farther_a_text_is_from_what_the_model_has_read_the_more_its_weights_move() -> None:
    near, between, far = (tuning_rate(before, 256) for before in (1.4, 2.2, 4.0))
    assert near < between < far <= 4e-3
    assert tuning_rate(1.4, 512) < near


@given(before=losses, size=sizes, one=times, other=times)
@few
def test_more_minutes_never_plan_a_worse_figure(
    before: float, size: int, one: float, other: float
) -> None:
    short, long = (planned(before, size, minutes=m) for m in sorted((one, other)))
    assert long.bits_per_byte <= short.bits_per_byte * 1.005


def test_the_better_a_model_predicts_a_text_the_better_it_is_expected_to_end() -> None:
    text = TextStats(100_000)
    before = [1.5, 1.8, 2.5]
    after = [expected_after_tuning(loss, text, read=3e5, work=7.5e11) for loss in before]
    assert after == sorted(after)
    for one, other in zip(before, after, strict=True):
        assert 0.5 * one < other <= one


def test_a_short_text_shortens_the_context() -> None:
    contexts = [planned(1.8, size).model.context_length for size in (300, 2_000, 10_000, 10**6)]
    assert contexts == sorted(contexts)
    assert contexts[0] < contexts[-1] == BASE.context_length


@pytest.mark.parametrize(
    "changes",
    [
        {"learning_rate": 0.5, "weight_decay": 0.3, "interpolate": False},
        {"batch_size": 5, "max_epochs": 2.5, "token_split_prob": 0.3},
        {"context_length": 77, "warmup_context": 33, "dropout": 0.45},
    ],
    ids=str,
)
def test_what_is_given_is_kept(changes: dict[str, Any]) -> None:
    plan = planned(1.8, 100_000, **changes)
    for name, value in changes.items():
        assert plan.settings[name] == value


def test_a_given_zero_is_kept_beside_what_the_model_was_trained_with() -> None:
    start = replace(BASE, dropout=0.1)
    assert planned(1.8, 100_000, start=start).model.dropout == 0.1
    assert planned(1.8, 100_000, start=start, dropout=0.0).model.dropout == 0.0


def test_a_model_reads_a_text_half_as_often_as_a_new_one() -> None:
    plan = planned(1.8, 100_000, minutes=60)
    assert plan.ends_early
    assert plan.settings["max_epochs"] == plan_max_epochs(BASE.emb_dim) / 2
    assert plan.epochs == pytest.approx(plan.settings["max_epochs"], rel=0.1)


def test_a_model_is_trained_further_with_the_more_dropout_the_more_often_the_text_is_read() -> None:
    """With none where it is read once, or with that of the model."""
    plans = [planned(1.8, 100_000, max_epochs=most, minutes=60) for most in (1, 7, 15, 30)]
    dropouts = [plan.model.dropout for plan in plans]
    assert dropouts == [plan_dropout(plan.epochs, BASE.emb_dim, True) for plan in plans]
    assert dropouts[0] == 0.0 and 0.0 < dropouts[1] < dropouts[-1]

    start = replace(BASE, dropout=0.15)
    assert planned(1.8, 100_000, start=start, max_epochs=1).model.dropout == 0.15


def test_the_reasons_name_the_model_that_a_training_begins_with() -> None:
    plan = planned(1.8, 100_000)
    assert reasons_of_shape(plan)[:3] == [
        "model: 8 layers of width 256, that of base",
        "vocabulary: 4,096 tokens, that of base",
        "context: 256 tokens, that of base",
    ]
    assert (
        reasons_of_shape(planned(1.8, 100_000, batch_size=5))[3] == "batch: 5 sequences, as given"
    )
    shorter = reasons_of_shape(planned(1.8, 1_000))[2]
    assert shorter.endswith("because the text has only 294")
