"""What readers make of a file: documents, and a report of what was read and left out, which can be
told to a person as a table or in its essence.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ... import UserError
from ...system.shown import plural
from ...tokenizer import BETWEEN_TURNS

STANDARD_INPUT = "-"  # its name on a command line
COPY_FOLDER = re.compile(r"minigpt-(stdin|documents)-\w+")  # of a temporary copy; temporary.py

_MOST_NAMES = 3
_LONGEST_NAME = 48  # characters
_HEADINGS = ("file", "kind", "characters", "documents", "left out")

# Characters that nobody sees, which are left out of every text. Joiners (U+200C, U+200D) are
# letters: they change a Persian word, and hold an emoji together. So are selectors and tags, which
# choose a picture or a flag.
_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # controls that are no white space
    "\xad\u200b\u2060-\u2064\ufeff"  # where a line may break, or must not
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # marks of direction
    "\ufff9-\ufffb\ufffe\uffff\ud800-\udfff"  # no characters of a text; half surrogate pairs
    "]"
)


class Turn(NamedTuple):
    """All that a speaker says until another one speaks: one or several lines, none empty."""

    speaker: str
    text: str


@dataclass(frozen=True)
class Layout:
    """How turns are written."""

    template: str = "{speaker}: {text}" + BETWEEN_TURNS
    ends_at_name: bool = False  # whether a turn ends only where the next one begins


class Document(NamedTuple):
    """A document, or a piece of one that is too long to hold."""

    text: str
    source: Path  # the file; in an archive, the archive's name and the file's
    line: int = 1  # of the source, or its row, in which it begins; 0: not known, as of a chat
    is_first: bool = True  # False if it continues the document before
    is_row: bool = False  # whether all of it is in one line of the source
    turns: tuple[Turn, ...] = ()  # if it is a conversation
    layout: Layout | None = None  # of its turns, if the text has some and stays as it is


def invisible_characters() -> list[str]:
    """All invisible characters that a text in UTF-8 can hold, but for NUL."""
    characters = map(chr, (*range(1, 0xD800), *range(0xE000, 0x10000)))
    return [character for character in characters if _INVISIBLE.match(character)]


def without_invisible(text: str) -> str:
    """The text without characters that nobody sees."""
    return _INVISIBLE.sub("", text)


# What can be wrong with a file


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


def title(file: str | Path) -> str:
    """What to call a text: "stdin" or "documents" if the file is a temporary copy of them."""
    if str(file) == STANDARD_INPUT:
        return "stdin"
    copy = COPY_FOLDER.fullmatch(Path(file).parent.name)
    return copy[1] if copy else str(file)


# What there is to say of a file


@dataclass
class Report:
    """What there is to say of a file. Its reader fills it in while it reads."""

    file: Path
    kind: str = ""  # such as "Word"
    documents: int = 0
    characters: int = 0
    left_out: Counter[str] = field(default_factory=Counter)  # how many of what, such as "footnotes"
    files_left_out: list[str] = field(default_factory=list)  # of an archive, each with the reason
    notes: list[str] = field(default_factory=list)  # what else a person should know
    error: UserError | None = None  # why the whole file was left out

    def leave_out(self, what: str, number: int = 1) -> None:
        """Count what is not in the text; `what` is plural, such as "footnotes"."""
        if number:
            self.left_out[what] += number

    def note(self, line: str) -> None:
        """Keep a line for the person, once."""
        if line not in self.notes:
            self.notes.append(line)


def table(reports: Iterable[Report]) -> list[str]:
    """A line for each file, below the headings."""
    rows = [_HEADINGS]
    more = []
    for report in reports:
        name = title(report.file)
        if len(name) > _LONGEST_NAME:
            name = "…" + name[1 - _LONGEST_NAME :]
        if report.error is not None:
            rows.append((name, "-", "-", "-", f"all of it: {_reason(report)}"))
            continue

        sizes = (f"{report.characters:,}", f"{report.documents:,}")
        rows.append((name, report.kind, *sizes, _left_out(report.left_out) or "nothing"))
        more += [f"{name}: {note}" for note in report.notes]
        more += [f"left out: {member}" for member in report.files_left_out]

    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return [*(_row(row, widths) for row in rows), *more]


def _row(row: Sequence[str], widths: Sequence[int]) -> str:
    """A row of the table; numbers are at the right of their columns."""
    name, kind, characters, documents, left_out = row
    texts = [name.ljust(widths[0]), kind.ljust(widths[1])]
    numbers = [characters.rjust(widths[2]), documents.rjust(widths[3])]
    return "  ".join([*texts, *numbers, left_out])


def _reason(report: Report) -> str:
    """Why a whole file was left out."""
    return (
        str(report.error)
        .removeprefix(f"cannot read {title(report.file)}: ")
        .removeprefix(f"{title(report.file)} ")
    )


def _left_out(what: Counter[str]) -> str:
    """Such as "footnotes (3), tables of contents (2)"."""
    return ", ".join(f"{name} ({number:,})" for name, number in what.most_common())


def problems(reports: Sequence[Report]) -> list[str]:
    """A line for each file that was left out, and for each thing that a person should know."""
    lines = [f"left out: {report.error}" for report in reports if report.error is not None]
    notes: dict[str, list[str]] = {}
    for report in reports:
        lines += [f"left out: {member}" for member in report.files_left_out]
        for note in report.notes:
            notes.setdefault(note, []).append(title(report.file))
    lines += [f"{_listed(names)}: {note}" for note, names in notes.items()]
    return lines


def _listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    listed = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return f"{listed} and {more} more" if more > 0 else listed


def kinds_read(reports: Sequence[Report]) -> str:
    """Which kinds of files were read, such as "2 Word, 1 EPUB"; empty if all are plain."""
    kinds = Counter(report.kind for report in reports)
    if set(kinds) <= {"plain text", "JSON lines"}:
        return ""
    if len(reports) == 1:
        return reports[0].kind
    return ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())


def all_left_out(reports: Sequence[Report]) -> str:
    """What was left out of all files together."""
    together: Counter[str] = Counter()
    for report in reports:
        together += report.left_out
    return _left_out(together)


def documents_read(reports: Sequence[Report]) -> str:
    """How many documents there are."""
    return plural(sum(report.documents for report in reports), "document")
