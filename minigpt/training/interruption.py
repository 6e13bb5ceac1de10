"""Ctrl-C, SIGTERM and SIGHUP wait for the end of a step, so that what is saved is whole."""

import contextlib
import signal
import threading
from types import FrameType
from typing import Self

_SIGNALS = [signal.SIGINT, signal.SIGTERM]
if hasattr(signal, "SIGHUP"):  # the terminal was closed; Windows has no such signal
    _SIGNALS.append(signal.SIGHUP)


class Interrupted(Exception):
    """Training was stopped by a signal; `saved` tells whether a checkpoint could be written."""

    def __init__(self, signal_number: int, saved: bool = True):
        super().__init__(signal.Signals(signal_number).name)
        self.saved = saved
        self.exit_status = 128 + signal_number


class GracefulStop(contextlib.ExitStack):
    """While open, the first of these signals only sets `signal_number`; a second one acts."""

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
