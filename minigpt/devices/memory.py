"""Running out of memory, told in one line: of a machine or a GPU, in Python, numpy or torch."""

import contextlib
from collections.abc import Callable, Iterator

from .. import UserError

# In what torch says: of a GPU, of a CPU, of a CPU under Windows, of a GPU by the library of its
# matrix products.
_SIGNS = ("out of memory", "can't allocate memory", "not enough memory", "ALLOC_FAILED")


@contextlib.contextmanager
def enough_memory(smaller: str, is_kept: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Within, running out of memory is a UserError that advises what to make `smaller` and, if the
    last checkpoint of a training `is_kept`, says how to go on from it."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        kept = "; the last checkpoint is kept, and --resume goes on from it" if is_kept() else ""
        raise UserError(f"out of memory; try {smaller}{kept}", kind="memory") from None


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory ran out. torch has an error class for GPUs only."""
    is_named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return is_named or any(sign in str(error) for sign in _SIGNS)
