"""What was read and what was left out, as lines for a person: a table, or the essence."""

from collections import Counter
from collections.abc import Iterable, Sequence

from ...config import counted
from .document import Report, title

_MOST_NAMES = 3
_LONGEST_NAME = 48  # characters
_HEADINGS = ("file", "kind", "characters", "documents", "left out")


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
    return counted(sum(report.documents for report in reports), "document")
