"""How long a training goes on, and how fast: the steps or the time that it has, and the share of
that which is done.
"""

import math
from time import monotonic as now

from ..config import TrainConfig
from . import distributed

MIN_SECONDS = 5.0  # of training, however late it starts; a tenth of the minutes if that is less
_MARGIN = 1.25  # of the time that is kept for the last evaluations
_LEAVING = 1.3  # seconds for a sample, files and leaving
_LEAVING_A_MILLION = 0.15  # and for each million parameters: they are written to several files


class Pace:
    """The steps or the time that a training has, and the tokens that it takes in a second.

    Args:
        config: says how many steps or minutes.
        deadline: when the command should be over, in time.monotonic's seconds.
        steps_in_epoch: in which the text is read once.
        tokens_per_step: how many tokens are in a batch.

    Attributes:
        speed: in tokens a second, since the last evaluation or since training began.
    """

    def __init__(
        self, config: TrainConfig, deadline: float, steps_in_epoch: float, tokens_per_step: int
    ):
        self.speed = 0.0
        self._config = config
        self._deadline = deadline
        self._tokens_per_step = tokens_per_step
        self._began = now()  # as if all training had been in one go
        self._mark: tuple[float, int] | None = None  # time and step to measure the speed from
        self._seconds = 0.0  # that training may take
        self._max_steps: int | None = None
        if config.max_epochs is not None:
            self._max_steps = math.ceil(config.max_epochs * steps_in_epoch)

    def begin(self, seconds_so_far: float, seconds_at_end: float, parameters: int) -> None:
        """Training begins now, after `seconds_so_far` of training in earlier sittings. Time is kept
        for the evaluations at the end, and for the files of a model with so many parameters."""
        self._began = now() - seconds_so_far
        leaving = _LEAVING + _LEAVING_A_MILLION * parameters / 1e6
        left = self.seconds_to_deadline() - _MARGIN * seconds_at_end - leaving
        least = min(MIN_SECONDS, 60 * self._config.minutes / 10)
        self._seconds = seconds_so_far + max(left, least)

    def seconds_to_deadline(self) -> float:
        """The seconds until the deadline, by the clock of rank 0."""
        return distributed.of_main(self._deadline - now())

    def seconds(self) -> float:
        """The seconds spent training so far, by the clock of this process."""
        return now() - self._began

    def done(self, step: int, seconds: float) -> float:
        """The share of the training that is done after so many steps and seconds, 0 to 1."""
        return progress(step, self._config.steps, seconds, self._seconds, self._max_steps)

    def note(self, step: int) -> None:
        """Measure the speed after a step."""
        time = now()
        if self._mark is None:
            self._mark = (time, step)
        since, first = self._mark
        if time > since:
            self.speed = (step - first) * self._tokens_per_step / (time - since)

    def pause(self) -> None:
        """What follows, until the next step is over, does not count for the speed."""
        self._mark = None


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
