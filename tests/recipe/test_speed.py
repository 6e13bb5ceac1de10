"""How fast the machine is: a sensible figure, in little time, without a trace, that repeats."""

import random
from collections.abc import Callable
from itertools import accumulate, count
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from minigpt.config import GPTConfig
from minigpt.model import GPT, flops_per_token
from minigpt.recipe import speed as measuring
from minigpt.recipe.machine import REFERENCE, Speed
from minigpt.recipe.speed import SHAPE_ON_GPU, measure_speed
from minigpt.training.precision import choose_precision, gain_of_bfloat16
from minigpt.training.step import GradientDescent

CPU = torch.device("cpu")
USUAL = GPTConfig(2048, context_length=128, emb_dim=128, num_layers=4, num_heads=2)
SMALL = GPTConfig(64, context_length=8, emb_dim=8, num_layers=2, num_heads=1)


@pytest.mark.long
def test_the_speed_is_a_sensible_one_and_measuring_it_draws_no_random_numbers() -> None:
    before = torch.get_rng_state()
    speed = measure_speed(CPU, torch.float32)
    assert torch.equal(torch.get_rng_state(), before)
    assert 1e7 < speed.flops < 1e14 and 0.0 <= speed.start < 1.0


@pytest.mark.parametrize("seconds", [0.5, 60.0])
def test_a_busy_machine_is_measured_in_two_seconds_or_three_steps(seconds: float) -> None:
    """However slow its steps are, there is an estimate; the slower they are, the lower it is."""
    clock = count(seconds, seconds)  # goes on by so much each time it is read
    speed = measure_speed(CPU, torch.float32, 1, clock.__next__)
    assert next(clock) < 2.0 + 13 * seconds
    assert 0.0 < speed.flops < 1e10 / seconds
    assert 0.0 < speed.start < seconds


def test_the_costs_of_a_start_and_of_a_token_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0

    def loss(self: GPT, token_ids: Tensor, targets: Tensor) -> Tensor:
        """Takes 8 ms, and 0.1 ms for each token."""
        nonlocal now
        now += 0.008 + 0.0001 * token_ids.numel()
        return torch.stack([0.0 * p.sum() for p in self.parameters()]).sum()

    monkeypatch.setattr(GPT, "loss", loss)
    speed = measure_speed(CPU, torch.float32, 1, lambda: now)
    assert speed.start == pytest.approx(0.008 / REFERENCE.num_layers)
    assert speed.flops == pytest.approx(flops_per_token(REFERENCE) / 0.0001)


@pytest.mark.long
def test_other_programs_that_take_the_machine_for_moments_do_not_change_what_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("minigpt.recipe.speed.REFERENCE", SMALL)  # only the clock counts here

    def clock(delay: float) -> Callable[[], float]:
        """Goes on by 10 ms each time that it is read, and by a delay more in six of ten."""
        draw = random.Random(0)
        return accumulate(0.01 + delay * (draw.random() < 0.6) for _ in count()).__next__

    alone = measure_speed(CPU, torch.float32, 1, clock(delay=0.0))
    beside = measure_speed(CPU, torch.float32, 1, clock(delay=0.02))
    assert (beside.flops, beside.start) == pytest.approx((alone.flops, alone.start))


def test_the_precision_is_chosen_by_products_timed_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While another program works, whichever is timed then must not seem to be the slower one."""
    asked = list[torch.dtype]()

    def seconds(dtype: torch.dtype, size: int, repeat: int) -> float:
        asked.append(dtype)
        is_busy = 4 <= len(asked) <= 7
        return (2.0 if dtype == torch.float32 else 1.0) * (5.0 if is_busy else 1.0)

    monkeypatch.setattr("minigpt.training.precision.gain_of_bfloat16", gain_of_bfloat16)
    monkeypatch.setattr("minigpt.training.precision.matmul_seconds", seconds)
    assert choose_precision("auto", CPU) == "bfloat16"
    assert asked[:4] == [torch.float32, torch.bfloat16] * 2


# A GPU


# An H200, as it trained this shape on 4 and on 64 sequences, the whole step being one graph, and
# multiplied matrices in bfloat16. Steps on 32 are between the two.
SHORT, LONG, PRODUCT = 3.2e-3, 9.4e-3, 7.2e14
BETWEEN = SHORT + (32 - 4) / (64 - 4) * (LONG - SHORT)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Speed:
    """What is found out of a GPU whose steps take so long."""
    seconds = {4: SHORT, 32: BETWEEN}
    monkeypatch.setattr(measuring, "_seconds_a_step", lambda batch_size, *_: seconds[batch_size])
    monkeypatch.setattr(measuring, "_flops_of_a_product", lambda *_: PRODUCT)
    return measure_speed(torch.device("meta"), torch.bfloat16)


def test_a_step_on_a_gpu_takes_as_long_as_was_measured(card: Speed) -> None:
    for batch_size, seconds in ((4, SHORT), (64, LONG)):
        assert card.seconds(SHAPE_ON_GPU, 256 * batch_size) == pytest.approx(seconds, rel=1e-6)
    assert card.flops == PRODUCT and card.num_workers == 1


def test_of_wider_models_the_forecast_is_a_third_too_long_at_most(card: Speed) -> None:
    """Milliseconds that were measured on the same card; operations alone would be far off."""
    wider = GPTConfig(2048, context_length=256, emb_dim=384, num_layers=8, num_heads=6)
    assert 33.5e-3 < card.seconds(wider, 128 * 256) < 1.33 * 33.5e-3


def test_a_gpu_is_busy_where_a_step_takes_half_as_long_again_as_its_start(card: Speed) -> None:
    start = card.seconds(SHAPE_ON_GPU, 0)
    assert card.seconds(SHAPE_ON_GPU, card.busy) == pytest.approx(1.5 * start, rel=1e-3)
    assert card.rounded().busy == card.rounded().rounded().busy == 4096


@pytest.mark.parametrize(
    ("seconds", "steps"), [pytest.param(1e-3, 520, marks=pytest.mark.long), (1.0, 12)]
)
def test_a_gpu_is_judged_by_many_steps_of_a_training_or_by_few_long_ones(
    seconds: float, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "SHAPE_ON_GPU", SMALL)
    monkeypatch.setattr(measuring, "_flops_of_a_product", lambda *_: PRODUCT)
    made = 0
    step = GradientDescent.step

    def counted(*arguments: Any, **more: Any) -> Any:
        nonlocal made
        made += 1
        return step(*arguments, **more)

    monkeypatch.setattr(GradientDescent, "step", counted)
    found = measuring._of_gpu(CPU, torch.float32, lambda: made * seconds)
    assert made == steps
    assert found.seconds(SMALL, 4 * SMALL.context_length) == pytest.approx(seconds)


# Coarse steps


@given(
    flops=st.floats(9, 15).map(lambda power: 10**power),
    start=st.floats(-5, -1).map(lambda power: 10**power) | st.just(0.0),
    transfer=st.floats(-11, -8).map(lambda power: 10**power) | st.just(0.0),
    busy=st.integers(1, 10**6),
)
def test_a_rounded_speed_is_near_the_measured_one_and_stays_as_it_is(
    flops: float, start: float, transfer: float, busy: int
) -> None:
    speed = Speed(flops, start, num_workers=2, transfer=transfer, busy=busy)
    rounded = speed.rounded()
    assert rounded.num_workers == 2 and (rounded.start == 0.0) == (start == 0.0)
    assert (rounded.transfer == 0.0) == (transfer == 0.0)
    assert 0.7 < rounded.busy / busy < 1.5
    for tokens in (1024, 2048, 8192):
        assert 0.5 < rounded.seconds(USUAL, tokens) / speed.seconds(USUAL, tokens) < 2.0
    again = rounded.rounded()
    assert (again.flops, again.start) == pytest.approx((rounded.flops, rounded.start))
    assert (again.transfer, again.busy) == (pytest.approx(rounded.transfer), rounded.busy)


def test_what_differs_from_time_to_time_is_rounded_away() -> None:
    """As measured on the same two cores, at rest."""
    measured = [(1.18e11, 9.3e-3), (1.37e11, 1.0e-2), (1.49e11, 1.03e-2), (1.5e11, 9.1e-3)]
    assert len({Speed(flops, start).rounded() for flops, start in measured}) == 1
    assert Speed(3e11, 5e-3).rounded() != Speed(1.4e11, 1e-2).rounded()
