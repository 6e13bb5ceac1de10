"""Mistakes in the studio itself: they are printed in its terminal, and the studio goes on."""

import sys
import threading
import traceback

_told = set[tuple[type[BaseException], str, int | None]]()
_lock = threading.Lock()


def tell(error: BaseException) -> None:
    """Print where an error comes from, once: a window asks for the same again and again. Nothing is
    kept of its message, which can hold what somebody sent."""
    frames = traceback.extract_tb(error.__traceback__)
    place = (frames[-1].filename, frames[-1].lineno) if frames else ("", None)
    with _lock:
        key = (type(error), *place)
        if key in _told:
            return
        _told.add(key)
    print("".join(traceback.format_exception(error)), end="", file=sys.stderr, flush=True)
