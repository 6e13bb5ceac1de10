"""The batch: as small as lets small steps teach, and on a GPU as large as keeps it busy."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from minigpt.recipe.machine import Speed
from minigpt.recipe.plan import Planned
from minigpt.recipe.text_stats import TextStats
from minigpt.recipe.told_at_start import reasons_of_shape

from .test_plan import LAPTOP, MEGABYTE, planned, speeds, texts, times

# As measured on an H200: 3.2 ms for a step on 4 x 256 tokens of 6 layers of width 192, 9.4 ms for
# 64 x 256.
CARD = Speed(flops=7.2e14, start=3.8e-4, transfer=3.25e-10, busy=4096)
LARGE = TextStats(10**8)
SHAPE = {"emb_dim": 192, "num_layers": 6, "minutes": 0.4}


def batch(plan: Planned) -> int:
    size: int = plan.settings["batch_size"]
    return size


def why(plan: Planned) -> str:
    return reasons_of_shape(plan)[-1]


def test_where_the_time_ends_the_training_the_batch_keeps_a_gpu_busy() -> None:
    plan = planned(LARGE, CARD, **SHAPE)
    assert not plan.ends_early
    assert batch(plan) * plan.model.context_length == CARD.busy
    assert why(plan) == ("batch: 16 sequences, because a step on 8 would take hardly less time")
    idle = planned(LARGE, replace(CARD, busy=1), **SHAPE)
    assert batch(idle) == 4
    assert plan.trained_tokens > 2 * idle.trained_tokens


def test_where_the_text_ends_it_small_steps_teach_more() -> None:
    plan = planned(TextStats(10**5), CARD, minutes=1)
    assert plan.ends_early
    assert batch(plan) == 4
    assert "the fewest" in why(plan)


def test_a_gpu_that_computes_for_long_is_busy_with_few_sequences() -> None:
    slow = replace(CARD, transfer=10 * CARD.transfer)
    assert batch(planned(LARGE, slow, **SHAPE)) < batch(planned(LARGE, CARD, **SHAPE))


def test_the_rate_follows_a_batch_that_keeps_a_gpu_busy_and_no_other_one() -> None:
    def rate(speed: Speed, **given: Any) -> float:
        rate: float = planned(LARGE, speed, **SHAPE, **given).settings["learning_rate"]
        return rate

    usual = rate(replace(CARD, busy=1))
    assert rate(CARD) == pytest.approx(2.0 * usual)  # of four times the sequences
    assert rate(CARD, batch_size=16) == usual
    assert rate(CARD, learning_rate=1e-3) == 1e-3
    slow = planned(LARGE, LAPTOP, emb_dim=192, num_layers=6, minutes=1000)
    assert batch(slow) > 4 and slow.settings["learning_rate"] == usual  # there are many steps


@given(text=texts, speed=speeds, minutes=times)
@settings(max_examples=100, deadline=None)
def test_a_batch_that_keeps_a_gpu_busy_never_makes_the_forecast_worse(
    text: TextStats, speed: Speed, minutes: float
) -> None:
    usual = planned(text, replace(speed, busy=1), minutes=minutes)
    size = {"emb_dim": usual.model.emb_dim, "num_layers": usual.model.num_layers}
    filled = planned(text, speed, minutes=minutes, **size)
    assert filled.bits_per_byte is not None and usual.bits_per_byte is not None
    assert filled.bits_per_byte <= usual.bits_per_byte * 1.005


def test_a_given_batch_or_number_of_steps_stays_as_it_is() -> None:
    assert batch(planned(LARGE, CARD, minutes=0.5, batch_size=3)) == 3
    assert batch(planned(MEGABYTE, CARD, steps=100)) == batch(planned(MEGABYTE, steps=100))
