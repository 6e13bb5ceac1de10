"""Ctrl-C, SIGTERM and SIGHUP leave nothing half done. In training they wait for the end of a step,
so that what is saved is whole; before training they end the command, which removes its temporary
files.
"""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Self

# SIGHUP: the terminal was closed, which Windows does not tell. SIGBREAK: Ctrl-Break, only there.
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
_SIGNALS = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]


class Interrupted(Exception):
    """Training was stopped by a signal or, if that is 0, by the file `stop` in its journal. `saved`
    tells whether a checkpoint could be written."""

    def __init__(self, signal_number: int, saved: bool = True):
        super().__init__(signal.Signals(signal_number).name if signal_number else "stop")
        self.saved = saved
        self.exit_status = 128 + signal_number if signal_number else 0


@contextlib.contextmanager
def orderly_exit() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP end the program as sys.exit does, so that it tidies up on leaving.
    By themselves they would end it on the spot. Ctrl-C is a KeyboardInterrupt already.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    with contextlib.ExitStack() as handlers:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if signal.getsignal(number) == signal.SIG_DFL:
                    handlers.callback(signal.signal, number, signal.signal(number, leave))
        yield


class GracefulStop(contextlib.ExitStack):
    """While open, the first of these signals only sets `signal_number`; the next acts as usual."""

    signal_number = 0  # none yet

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if signal.getsignal(number) != signal.SIG_IGN:  # it is for a command under nohup
                    self.callback(signal.signal, number, signal.signal(number, self._note))
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal_number = number
        self.close()
