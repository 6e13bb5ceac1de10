"""The learning rate over a training, and how far a training is: laws that hold for any setting."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigpt.training.schedule import learning_rate, progress

few = settings(max_examples=25, deadline=None)

shares = st.floats(0, 1)
inner_shares = st.floats(0.01, 0.99)
peaks = st.floats(1e-6, 10)


# Learning rate


@given(peak=peaks, warmup_ratio=inner_shares, final=shares)
@few
def test_the_rate_starts_at_a_hundredth_or_less_of_its_peak(
    peak: float, warmup: float, final: float
) -> None:
    """But not at zero, where the first step would be lost."""
    assert 0 < learning_rate(0.0, peak, warmup, final) <= peak / 100 * (1 + 1e-12)


@given(done=shares, peak=peaks, warmup_ratio=shares, final=shares)
@few
def test_the_rate_is_never_negative_nor_above_its_peak(
    done: float, peak: float, warmup: float, final: float
) -> None:
    assert 0 <= learning_rate(done, peak, warmup, final) <= peak * (1 + 1e-12)


@given(peak=peaks, warmup_ratio=st.floats(0, 0.99), final=shares)
@few
def test_the_rate_peaks_where_the_warm_up_ends_and_ends_at_its_share_of_the_peak(
    peak: float, warmup: float, final: float
) -> None:
    assert learning_rate(warmup, peak, warmup, final) == pytest.approx(peak)
    assert learning_rate(1.0, peak, warmup, final) == pytest.approx(final * peak)


@given(peak=peaks, warmup_ratio=inner_shares, final=shares, share=shares)
@few
def test_the_rate_is_linear_up_and_linear_down(
    peak: float, warmup: float, final: float, share: float
) -> None:
    rising = learning_rate(share * warmup, peak, warmup, final)
    assert rising == pytest.approx(peak * max(share, 0.01))
    falling = learning_rate(warmup + share * (1 - warmup), peak, warmup, final)
    assert falling == pytest.approx(peak * (1 - share * (1 - final)))


@given(done=shares, peak=peaks, warmup_ratio=inner_shares, final=shares)
@few
def test_the_rate_never_jumps(done: float, peak: float, warmup: float, final: float) -> None:
    """Over a millionth of the training it moves by no more than the steeper slope allows."""
    slope = peak / min(warmup, 1 - warmup)
    step = learning_rate(min(done + 1e-6, 1.0), peak, warmup, final)
    assert abs(step - learning_rate(done, peak, warmup, final)) <= slope * 1.01e-6


def test_a_training_can_be_all_warm_up_or_none() -> None:
    assert learning_rate(0.5, 1.0, warmup_ratio=1.0, final=0.1) == 0.5
    assert learning_rate(1.0, 1.0, warmup_ratio=1.0, final=0.1) == 0.1
    assert learning_rate(0.0, 1.0, warmup_ratio=0.0, final=0.1) == 1.0


# Progress


@given(
    step=st.integers(0, 10**6),
    steps=st.none() | st.integers(1, 10**6),
    seconds=st.floats(0, 1e6),
    limit=st.floats(-1e6, 1e6),
)
@few
def test_progress_is_a_share(step: int, steps: int | None, seconds: float, limit: float) -> None:
    """Also where no time is left at all, because reading the text took it."""
    assert 0.0 <= progress(step, steps, seconds, limit) <= 1.0


@pytest.mark.parametrize("limit", [0.0, -1.5])
def test_without_time_a_training_is_over_at_once(limit: float) -> None:
    assert progress(0, None, 0.1, limit) == 1.0


def test_progress_goes_by_steps_where_they_are_given() -> None:
    assert [progress(n, 4, 1e9, 1.0) for n in (0, 1, 4, 5)] == [0.0, 0.25, 1.0, 1.0]


def test_progress_is_made_by_steps_and_by_time_where_the_steps_are_limited() -> None:
    fast = [progress(n, None, 1.0, 8.0, most=4) for n in (0, 1, 4, 5)]
    assert fast == [0.125, 0.25, 1.0, 1.0]
    assert progress(1, None, 8.0, 8.0, most=4) == 1.0


def test_progress_goes_by_time_where_they_are_not() -> None:
    assert [progress(10**9, None, s, 8.0) for s in (0.0, 2.0, 8.0, 9.0)] == [0.0, 0.25, 1.0, 1.0]
