"""The learning rate at a point of a training, a pure function."""

from collections.abc import Callable

# Of the share of the training that is done, 0 to 1: the share of the highest learning rate.
Schedule = Callable[[float], float]


def rise_and_fall(done: float, *, warmup_ratio: float, min_lr_ratio: float) -> float:
    """The share of the highest learning rate: a linear rise to 1, then a linear fall to
    `min_lr_ratio`.

    Linear decay to near zero was the best of the schedules compared in "Straight to Zero: Why
    Linearly Decaying the Learning Rate to Zero Works Best for LLMs", Bergsma et al. 2025.

    `done` and `warmup_ratio` are shares of the training.
    """
    if done < warmup_ratio:
        return max(done / warmup_ratio, 0.01)  # at the first step 0 is done
    left = (1.0 - done) / (1.0 - warmup_ratio) if warmup_ratio < 1.0 else 0.0
    return min_lr_ratio + (1.0 - min_lr_ratio) * left
