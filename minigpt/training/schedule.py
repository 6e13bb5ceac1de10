"""How much of a training is done, and the learning rate at that point: pure functions."""

from collections.abc import Callable

# Of the share of the training that is done, 0 to 1: the share of the highest learning rate.
Schedule = Callable[[float], float]


def progress(
    step: int, steps: int | None, seconds: float, limit: float, max_steps: int | None = None
) -> float:
    """The share of the training that is done, 0 to 1: by steps if these are given, else by time.

    By time, `seconds` of at most `limit` have passed, and `max_steps` end it early. At least one
    step is taken.
    """
    if step == 0:  # however little time there is
        return 0.0
    if steps is not None:
        return min(1.0, step / steps)
    by_time = min(1.0, seconds / limit) if limit > 0 else 1.0
    return by_time if max_steps is None else max(by_time, min(1.0, step / max_steps))


def rise_and_fall(done: float, *, warmup_ratio: float, min_lr_ratio: float) -> float:
    """The share of the highest learning rate: a linear rise to 1, then a linear fall to
    `min_lr_ratio`.

    Linear decay to near zero was the best of the schedules compared in "Straight to Zero: Why
    Linearly Decaying the Learning Rate to Zero Works Best for LLMs", Bergsma et al. 2025.

    `done` and `warmup_ratio` are shares of the training.
    """
    if done < warmup_ratio:
        return max(done / warmup_ratio, 0.01)
    left = (1.0 - done) / (1.0 - warmup_ratio) if warmup_ratio < 1.0 else 0.0
    return min_lr_ratio + (1.0 - min_lr_ratio) * left


def smoothed(average: float, value: float, count: int) -> float:
    """A running average that has seen `count` values and now sees one more.

    The mean of the first twenty values, then an exponential average of that memory.
    """
    return average + max(0.05, 1 / (count + 1)) * (value - average)
