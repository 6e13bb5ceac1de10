"""How long a training has taken, and when it will end, from what its files say."""

from .facts import Facts, Row

CLOCK = 0.01  # seconds by which a row may be older than its process: times are rounded
_AT_END = 20.0  # seconds of the minutes in which it evaluates and saves, and does not learn


def minutes_of(facts: Facts) -> float | None:
    """How long the whole training may take; None if it ends by its steps."""
    job = facts.job
    training = facts.config.get("training") or {}
    if job is not None and job.minutes is not None:
        return job.minutes
    if training.get("steps") is not None:
        return None
    minutes = training.get("minutes")
    return minutes if isinstance(minutes, int | float) else None


def elapsed_of(facts: Facts, now: float, *, is_active: bool) -> float | None:
    """The seconds that the training has taken so far."""
    last = max(facts.step.get("seconds", 0.0), facts.evaluation.get("seconds", 0.0))
    if not is_active:
        return last or None

    began = _began(facts)
    if last > 0 and (began is None or facts.step_time >= began):  # it has made steps since it began
        return last + max(now - facts.step_time, 0.0)
    if last > 0:  # it resumes: only the time of learning counts
        began = max(
            (time_of(row) for row in facts.phases if row["phase"] == "training"), default=now
        )
        if facts.job is not None and began < (facts.job.started or 0.0):
            return last
    return last + max(now - began, 0.0) if began is not None else None


def _began(facts: Facts) -> float | None:
    """When the training began that goes on now."""
    if facts.job is not None and facts.job.started is not None:
        return facts.job.started
    begun: float | None = None
    for row in facts.phases:
        if row["phase"] == "end":
            begun = None
        elif begun is None:
            begun = time_of(row)
    return begun


def end_of(facts: Facts, minutes: float | None, now: float) -> int | None:
    """When a training is expected to end; None before the first step if only a number of steps
    ends it."""
    began = _began(facts)
    ends = [] if began is None or minutes is None else [began + 60 * minutes]
    for row in facts.phases:
        if (
            row["phase"] == "training"
            and time_of(row) >= (began or 0.0) - CLOCK
            and row.get("ends")
        ):
            ends = [row["ends"]]

    seconds = facts.step.get("seconds", 0.0)
    done = facts.step.get("done")
    if seconds and done and (began is None or facts.step_time >= began):
        by_speed = facts.step_time + seconds * (1.0 - done) / done
        if not ends or by_speed < min(ends) - _AT_END:  # it has read its text often enough
            ends.append(by_speed)
    return round(max(min(ends), now)) if ends else None


def share_of(facts: Facts) -> float | None:
    """How much is done, from 0 to 1, of the phase that goes on before the training."""
    last = facts.phases[-1] if facts.phases else {}
    share = last.get("share")
    is_now = time_of(last) >= (_began(facts) or 0.0) - CLOCK
    return share if is_now and isinstance(share, int | float) else None


def time_of(row: Row) -> float:
    time_ = row.get("time")
    return float(time_) if isinstance(time_, int | float) else 0.0
