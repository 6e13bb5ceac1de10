"""The learning rate over a training."""

import pytest

from minigpt.training.schedule import rise_and_fall


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
