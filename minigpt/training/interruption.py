"""Ctrl-C and SIGTERM wait for the end of a training step, so that what is saved is whole."""

import contextlib
import signal
import threading
from types import FrameType
from typing import Self


class Interrupted(Exception):
    """Training was stopped by a signal; `saved` tells whether a checkpoint could be written."""

    def __init__(self, signal_number: int, saved: bool = True):
        super().__init__(signal.Signals(signal_number).name)
        self.saved = saved
        self.exit_status = 128 + signal_number


class GracefulStop(contextlib.ExitStack):
    """While open, the first SIGINT or SIGTERM only sets `signal_number`; a second one acts."""

    signal_number = 0  # none yet

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) != signal.SIG_IGN:  # it is for a command under nohup
                    self.callback(signal.signal, number, signal.signal(number, self._note))
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal_number = number
        self.close()
