"""How far a training is, and the learning rate that belongs there: pure functions."""


def progress(
    step: int, steps: int | None, seconds: float, limit: float, most: int | None = None
) -> float:
    """Share of the training that is done, 0 to 1: by steps where these are given, else by time.

    Args:
        step: steps taken.
        steps: steps to take, or None to go by time.
        seconds: time since training began.
        limit: time that training may take, in seconds; with none left it is done at once.
        most: steps after which there is nothing more to learn, even if time is left.
    """
    if steps is not None:
        return min(1.0, step / steps)
    by_time = min(1.0, seconds / limit) if limit > 0 else 1.0
    return by_time if most is None else max(by_time, min(1.0, step / most))


def learning_rate(done: float, peak: float, warmup: float, final: float) -> float:
    """Linear rise to `peak`, then linear fall to ``final * peak``.

    Linear decay to near zero was the best of the schedules compared in "Straight to Zero: Why
    Linearly Decaying the Learning Rate to Zero Works Best for LLMs", Bergsma et al. 2025.

    Args:
        done: share of the training that is done, 0 to 1.
        peak: the highest rate.
        warmup: share of the training in which it rises.
        final: what remains at the end, as a share of the peak.
    """
    if done < warmup:
        return peak * max(done / warmup, 0.01)
    left = (1.0 - done) / (1.0 - warmup) if warmup < 1.0 else 0.0
    return peak * (final + (1.0 - final) * left)


def smoothed(average: float, value: float, count: int) -> float:
    """A running average that has seen `count` values and now sees one more.

    The plain mean of the first twenty, then an exponential average that reaches back as far.
    """
    return average + max(0.05, 1 / (count + 1)) * (value - average)
