"""When a training has gone wrong: a loss or gradient that is no number, or worse than nothing."""

import math


class DivergedError(Exception):
    """Training has gone wrong.

    Args:
        what: in a few words.
    """


def check_finite(name: str, value: float) -> None:
    """Raise DivergedError if `value` is infinite or not a number."""
    if not math.isfinite(value):
        raise DivergedError(f"the {name} became {value}")


def check_learning(train_loss: float, vocab_size: int) -> None:
    """Raise DivergedError if the loss is far above that of a model that knows nothing.

    Such a model gives every token the same probability: a loss of ln(vocab_size).
    """
    if train_loss > math.log(vocab_size) + 2.0:
        raise DivergedError(f"the loss grew to {train_loss:.1f} nats a token")
