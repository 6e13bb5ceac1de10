"""What readers make of a file: documents, and a report of what was read and left out."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ... import UserError
from ..dialogue.layout import Layout
from ..dialogue.turns import Turn
from ..temporary import kind_of

STANDARD_INPUT = "-"  # its name on a command line


class Document(NamedTuple):
    """A document, or a piece of one that is too long to hold."""

    text: str
    source: Path  # the file; in an archive, the archive's name and the file's
    line: int = 1  # the number of the source's line, or row, in which it begins
    is_first: bool = True  # False if it continues the document before
    is_row: bool = False  # whether all of it is in one line of the source
    turns: tuple[Turn, ...] = ()  # if it is a conversation
    layout: Layout | None = None  # of its turns, if the text has some and stays as it is


class Unreadable(UserError):
    """A file that cannot be opened, or is damaged; `reason` says why in a few words, and `kind` in
    one, for programs."""

    def __init__(self, source: Path, reason: str, kind: str = "damaged"):
        self.reason = " ".join(reason.split())
        super().__init__(f"cannot read {title(source)}: {self.reason}", kind=kind)


class Refused(UserError):
    """A file that is no text or may not be read; `reason` says what it is, and `kind` in one word,
    for programs."""

    def __init__(self, source: Path, reason: str, kind: str = "no_text"):
        self.reason = " ".join(reason.split())
        super().__init__(f"{title(source)} {self.reason}", kind=kind)


class Report:
    """What there is to say of a file. Its reader fills it in while it reads."""

    def __init__(self, file: Path):
        self.file = file
        self.kind = ""  # such as "Word"
        self.documents = 0
        self.characters = 0
        self.left_out: Counter[str] = Counter()  # how many of what, such as "footnotes"
        self.files_left_out: list[str] = []  # members of an archive, each with the reason
        self.notes: list[str] = []  # what else a person should know
        self.error: UserError | None = None  # why the whole file was left out

    def leave_out(self, what: str, number: int = 1) -> None:
        """Count what is not in the text; `what` is plural, such as "footnotes"."""
        if number:
            self.left_out[what] += number

    def take(self, other: "Report") -> None:
        """Take over what another report of the same file says of it."""
        self.kind = other.kind
        self.left_out = other.left_out
        self.files_left_out = other.files_left_out
        self.notes = other.notes

    def note(self, line: str) -> None:
        """Keep a line for the person, once."""
        if line not in self.notes:
            self.notes.append(line)

    def counted(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The same documents, counted as they pass."""
        for document in documents:
            self.documents += document.is_first
            self.characters += len(document.text)
            yield document


def title(file: str | Path) -> str:
    """What to call a text: "stdin" or "documents" if the file is a temporary copy of them."""
    if str(file) == STANDARD_INPUT:
        return "stdin"
    return kind_of(Path(file)) or str(file)
