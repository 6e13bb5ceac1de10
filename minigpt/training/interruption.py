"""Ctrl-C and SIGTERM, put off to the end of a training step, so that what is saved is whole."""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType


class Interrupted(Exception):
    """Training was asked to stop, and did.

    Args:
        signal_number: the signal, such as signal.SIGINT.
        saved: whether its last state could be written.
    """

    def __init__(self, signal_number: int, saved: bool = True):
        super().__init__(signal.Signals(signal_number).name)
        self.saved = saved
        self.exit_status = 128 + signal_number


class Interruption:
    """While open, the first SIGINT or SIGTERM only sets `signal_number`; a second one acts.

    Args:
        say: told that the first one was noticed.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.signal_number: int | None = None
        self._previous: dict[int, object] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) == signal.SIG_IGN:  # as for a command run with nohup
                    continue
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal_number = number
        self._restore()
        self._say("stopping after this step; once more to stop at once")

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._previous = {}
