"""How much of a training is done."""

import pytest

from minigpt.training.pace import progress


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
