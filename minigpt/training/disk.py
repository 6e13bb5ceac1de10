"""What a training writes into its run's folder while it goes on. A file that cannot be written does
not end the training: the problem is told, and writing is tried again.
"""

from collections.abc import Callable
from pathlib import Path

from .. import UserError
from ..runs.journal import Journal
from ..system.errors import kind_of_error
from ..system.platforms import why_not_written
from .messages import say


class Disk:
    """Writes into the folder of a run, on rank 0.

    Attributes:
        folder: of the run; None if nothing is written.
        journal: is told when a file cannot be written, and when no such file is left.
    """

    def __init__(self, folder: Path | None):
        self.folder = folder
        self.journal: Journal | None = None
        self._unwritten: dict[str, str] = {}  # what could not be written, and the kind of the error

    @property
    def kind_of_problem(self) -> str:
        """The kind of the error for which something could not be written."""
        return next(iter(self._unwritten.values()), "not_written")

    def is_gone(self) -> bool:
        """Whether somebody has moved or deleted the folder."""
        return self.folder is not None and not self.folder.is_dir()

    def check_is_there(self) -> None:
        """Refuse to go on if the folder is gone."""
        if self.is_gone():
            raise self.gone()

    def gone(self) -> UserError:
        """The error for a folder that is gone."""
        what = "somebody has moved or deleted it, and nothing can be saved"
        return UserError(f"{self.folder} is gone: {what}", kind="folder_gone")

    def write(
        self,
        what: str,
        write: Callable[[], None],
        otherwise: str = "the old file stays as it was",
        *,
        is_tried_again: bool = True,
    ) -> bool:
        """Call `write`; whether that succeeded. If it fails, a line says that `what` could not be
        written, and what is the case `otherwise`, unless the whole folder is gone."""
        assert self.folder is not None
        try:
            write()
        except OSError as error:
            if self.is_gone():  # which ends the training
                return False
            why = why_not_written(error, self.folder)
            problem = f"could not write {what} to {self.folder}: {why}"
            say(f"{problem}; {otherwise}")
            if is_tried_again:
                self._note(what, kind_of_error(error), problem)
            return False

        self._forget(what)
        return True

    def _note(self, what: str, kind: str, problem: str) -> None:
        is_first = not self._unwritten
        self._unwritten[what] = kind
        if is_first and self.journal is not None:
            self.journal.tell("problem", kind=kind, message=problem)

    def _forget(self, what: str) -> None:
        kind = self._unwritten.pop(what, None)
        if kind is not None and not self._unwritten and self.journal is not None:
            self.journal.tell("solved", kind=kind)
