"""The running average of losses."""

import pytest

from minigpt.training.loss import smoothed


def test_the_average_is_the_mean_at_first_and_forgets_the_distant_past() -> None:
    average = 0.0
    for count, value in enumerate([4.0, 8.0, 3.0]):
        average = smoothed(average, value, count)
    assert average == pytest.approx(5.0)
    assert smoothed(5.0, 25.0, count=1000) == pytest.approx(6.0)
