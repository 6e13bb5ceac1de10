"""What counting alone gives on the validation text, to compare a model with: a callback that counts
once, while the model trains."""

from typing import Any

from ..data.counting import fit_in_time
from ..runs.folder import COUNTING_BITS
from ..training.callbacks import Training

_AT = 0.05  # of the training: the first step does not wait for it
_LONG = 3600.0  # seconds
_SHARE = 0.015  # of the time may go into it, and a little to apply it


class Counting:
    """Adds `counting_bits_per_byte` and `counted_tokens` to the figures."""

    only_reports = True
    hears_late = True
    _at = _AT  # when it counts, as a share of the training
    _is_done = False

    def on_start(self, trainer: Training, figures: dict[str, Any]) -> None:
        """Decide when to count: before the next evaluation, with which a resumed training may
        begin."""
        begun = figures["done"]
        next_evaluation = (trainer.state.evaluations + 1) / trainer.config.num_evals
        self._at = min(begun + _AT * (1.0 - begun), next_evaluation)
        self._is_done = False
        if trainer.state.step > 0:
            self.on_step(trainer, figures)

    def on_step(self, trainer: Training, figures: dict[str, Any]) -> None:
        """Count as much of the training text as the time allows."""
        if self._is_done or figures["done"] < self._at:
            return
        self._is_done = True

        if trainer.config.lesson:  # all of it, however long that takes
            seconds = _LONG
        elif trainer.config.steps is None:
            seconds = _SHARE * 60 * trainer.config.minutes
        else:  # a second at least: a short training on a short text counts all of it
            seconds = max(_SHARE * trainer.state.seconds / figures["done"], 1.0)
        counting = fit_in_time(trainer.dataset.train, trainer.vocab_size, seconds)

        windows = trainer.batches.validation(trainer.state.eval_tokens)
        figures[COUNTING_BITS] = counting.bits_per_byte(windows, trainer.byte_lengths.numpy())
        figures["counted_tokens"] = counting.tokens
