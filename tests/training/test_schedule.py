"""The learning rate over a training, and how much of a training is done."""

import pytest

from minigpt.training.schedule import progress, rise_and_fall, smoothed


@pytest.mark.parametrize(
    ("done", "rate"),
    [(0.0, 0.01), (0.001, 0.01), (0.1, 0.5), (0.2, 1.0), (0.4, 0.775), (0.6, 0.55), (1.0, 0.1)],
)
def test_the_rate_rises_to_its_peak_and_falls_to_its_share_of_it(done: float, rate: float) -> None:
    """It begins at a hundredth of the peak: at zero the first step would be lost."""
    found = rise_and_fall(done, warmup_ratio=0.2, min_lr_ratio=0.1)
    assert found == pytest.approx(rate)


def test_a_training_can_be_all_warmup_or_none() -> None:
    assert rise_and_fall(0.5, warmup_ratio=1.0, min_lr_ratio=0.1) == 0.5
    assert rise_and_fall(1.0, warmup_ratio=1.0, min_lr_ratio=0.1) == 0.1
    assert rise_and_fall(0.0, warmup_ratio=0.0, min_lr_ratio=0.1) == 1.0


@pytest.mark.parametrize("limit", [0.0, -1.5])
def test_without_time_a_training_is_over_after_one_step(limit: float) -> None:
    assert progress(0, None, 0.1, limit) == 0.0 and progress(1, None, 0.1, limit) == 1.0


def test_progress_goes_by_steps_if_they_are_given_and_else_by_time() -> None:
    assert [progress(n, 4, 1e9, 1.0) for n in (0, 1, 4, 5)] == [0.0, 0.25, 1.0, 1.0]
    assert [progress(10**9, None, s, 8.0) for s in (0.0, 2.0, 8.0, 9.0)] == [0.0, 0.25, 1.0, 1.0]


def test_a_training_by_time_also_ends_after_its_most_steps() -> None:
    found = [progress(n, None, 1.0, 8.0, max_steps=4) for n in (0, 1, 4, 5)]
    assert found == [0.0, 0.25, 1.0, 1.0]
    assert progress(1, None, 8.0, 8.0, max_steps=4) == 1.0


def test_the_average_is_the_mean_at_first_and_forgets_the_distant_past() -> None:
    average = 0.0
    for count, value in enumerate([4.0, 8.0, 3.0]):
        average = smoothed(average, value, count)
    assert average == pytest.approx(5.0)
    assert smoothed(5.0, 25.0, count=1000) == pytest.approx(6.0)
