"""How fast the machine is: a sensible figure, in little time, without a trace."""

from itertools import count

import pytest
import torch

from minigpt.training.speed import measure_speed

CPU = torch.device("cpu")


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
