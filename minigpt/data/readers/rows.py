"""Files of rows, each of which holds a text: JSON lines, lists in JSON, and tables (.csv, .tsv)."""

import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from ... import UserError
from .content import Content, marked_encoding
from .document import Document, Refused, Report, title
from .encoding import plain_blocks
from .parquet import rows_of_parquet
from .plain import documents_in_rows

_DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(r"\"?sep=(.)\"?\s*", re.IGNORECASE)  # a first line, for Excel
_LONGEST_CELL = 10 << 20  # characters; a quote that is never closed would else take all memory
_MOST_NAMED = 8  # fields
_LONGEST_LINE = 1 << 20  # bytes of a row by which a file is known
_MOST_ODD = 100  # rows at the beginning that may not tell what the others are


def value_in(row: Any, text_field: str) -> Any:
    """What is in a field of a row; None if there is no such field."""
    try:
        return row[text_field]
    except (KeyError, IndexError, TypeError, AttributeError):
        return None


def _no_field(what: str, names: Sequence[str], content: Content) -> Refused:
    """The error for a file without the field that holds the text; it has fields of these names."""
    shown = ", ".join(name[:40] for name in names[:_MOST_NAMED])
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    missing = f"has no {what} {content.reading.text_field!r}"
    return Refused(
        content.source, f"{missing}; name one with --text-field: {shown}{more}", "column"
    )


# JSON


def read_json_lines(content: Content, report: Report) -> Iterator[Document]:
    """A document for each line of a .jsonl file, or several with lines <|endoftext|> in it."""
    return documents_in_rows(_texts(_json_rows(content), content), content.source, report)


def is_json_list(content: Content) -> bool:
    """Whether a content is a list in JSON whose rows have a text."""
    field = content.reading.text_field
    if field not in content.beginning:
        return False
    try:
        rows = content.data
    except UserError:  # said when it is read
        return True
    return any(isinstance(value_in(row, field), str) for row in rows or [])


def read_json_list(content: Content, report: Report) -> Iterator[Document]:
    """A document for each row of a list in JSON."""
    rows = enumerate(content.data or [], start=1)
    return documents_in_rows(_texts(rows, content), content.source, report)


def _texts(rows: Iterable[tuple[int, Any]], content: Content) -> Iterator[tuple[int, Any]]:
    """What is in the field of the text in each row; Refused, at the end, if no row has it."""
    field = content.reading.text_field
    has_field = False
    other: dict[str, Any] = {}  # the first row that has fields
    for number, row in rows:
        if isinstance(row, dict):
            has_field = has_field or field in row
            other = other or row
        yield number, value_in(row, field)
    if other and not has_field:
        raise _no_field("field", list(other), content)


def _json_rows(content: Content) -> Iterator[tuple[int, Any]]:
    """The number of each line that is not empty, and its row."""
    with content.opened() as stream:
        for number, line in enumerate(_json_lines(stream, content), start=1):
            if not line.strip():
                continue
            try:
                # Given bytes, json would also accept UTF-16 and UTF-32, unlike for plain text.
                row = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                place = f"{title(content.source)}, line {number}"
                raise UserError(f"{place}: not JSON in UTF-8", kind="damaged") from None
            yield number, row


def _json_lines(stream: BinaryIO, content: Content) -> Iterator[bytes]:
    """The lines of a stream in UTF-8. JSON has no other encoding, apart from what a mark says."""
    encoding = marked_encoding(content.head)
    if encoding == "utf-8-sig":
        yield from stream
        return
    try:
        for line in io.TextIOWrapper(stream, encoding):
            yield line.encode()
    except UnicodeError as error:
        raise Refused(content.source, f"is not {encoding}: {error}", "encoding") from None


def is_json_lines(content: Content) -> bool:
    """Whether a content, which begins as JSON does, has a row in each line: its name says so, or
    the first of several lines is JSON."""
    if content.name.endswith((".jsonl", ".ndjson")):
        return True
    with content.opened() as stream:
        lines = iter(lambda: stream.readline(_LONGEST_LINE), b"")
        begin = list(itertools.islice((line for line in lines if line.strip()), 2))
    if len(begin) < 2:
        return False
    try:
        json.loads(begin[0].decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return False
    return True


# Tables


def read_table(content: Content, report: Report) -> Iterator[Document]:
    """A document for each row of a .csv or .tsv file: the cell in the column of the text."""
    return documents_in_rows(_cells(content, report), content.source, report)


class Table(NamedTuple):
    """A table: the names of its columns, and its rows with the number of the line in which each
    begins."""

    names: list[str]
    rows: Iterator[tuple[int, list[str]]]

    def column_of(self, name: str) -> int | None:
        """Which column has a name, in capital or small letters; None if there is none."""
        if name in self.names:
            return self.names.index(name)
        lower = [other.lower() for other in self.names]
        return lower.index(name.lower()) if name.lower() in lower else None


def table_of(content: Content, report: Report) -> Table:
    """The table in a file; without columns if the file is empty."""
    lines = _lines(plain_blocks(content, report))
    first = next(lines, "")
    named = _SEPARATOR.fullmatch(first)
    header = first if named is None else next(lines, "")
    if not header.strip():
        return Table([], iter(()))

    delimiter = _delimiter(header, content.reading.text_field) if named is None else named[1]
    csv.field_size_limit(content.limit(_LONGEST_CELL))
    reader = csv.reader(itertools.chain([header], lines), delimiter=delimiter)
    rows = _numbered(reader, content, before=0 if named is None else 1)
    _, names = next(rows)
    return Table([name.strip() for name in names], rows)


def _numbered(reader: Any, content: Content, before: int) -> Iterator[tuple[int, list[str]]]:
    """The rows of a reader; there are so many lines `before` its first."""
    while True:
        number = before + reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            place = f"{title(content.source)}, line {number}"
            raise UserError(f"{place}: {error}", kind="damaged") from None
        yield number, row


def _cells(content: Content, report: Report) -> Iterator[tuple[int, str | None]]:
    """The number of each line in which a row begins, and the row's text."""
    table = table_of(content, report)
    if not table.names:
        return
    column = table.column_of(content.reading.text_field)
    if column is None:
        raise _no_field("column", table.names, content)
    for number, row in table.rows:
        if row:
            yield number, row[column] if len(row) > column else None


def _named_cells(content: Content, report: Report) -> Iterator[dict[str, str | None]]:
    """The cells of each row by the names of their columns, in small letters. None if there is a
    column of texts."""
    table = table_of(content, report)
    if table.column_of(content.reading.text_field) is not None:
        return
    names = [name.lower() for name in table.names]
    none = dict.fromkeys(names)  # for the cells that are missing in a row that ends early
    for _, row in table.rows:
        if row:
            yield none | dict(zip(names, row, strict=False))


def _delimiter(header: str, text_field: str) -> str:
    """What separates the cells: the sign that sets the column of the text apart, or else the most
    frequent one."""
    for delimiter in _DELIMITERS:
        names = [name.strip(' \n"').lower() for name in header.split(delimiter)]
        if len(names) > 1 and text_field.lower() in names:
            return delimiter
    return max(_DELIMITERS, key=header.count)


def _lines(blocks: Iterable[str]) -> Iterator[str]:
    """The lines of a text in blocks, each with its end."""
    rest = ""
    for block in blocks:
        *whole, rest = (rest + block).split("\n")
        for line in whole:
            yield line + "\n"
    if rest:
        yield rest


# Rows that hold no texts, but messages or conversations


def rows_in(content: Content, report: Report, columns: Sequence[str] = ()) -> Iterator[Any]:
    """The rows of any file of rows; of parquet those of `columns` that it has. A file that holds
    one object in JSON is a row."""
    if content.head.startswith(b"PAR1"):
        yield from rows_of_parquet(content, [*columns, content.reading.text_field])
    elif content.name.endswith((".csv", ".tsv")):
        yield from _named_cells(content, report)
    elif is_json_lines(content):
        yield from (row for _, row in _json_rows(content))
    else:
        yield from content.data if isinstance(content.data, list) else [content.data]


def are_rows_of(
    content: Content,
    matches: Callable[[Any], bool],
    telling: Sequence[bytes],
    columns: Sequence[str] = (),
) -> bool:
    """Whether a content has rows that match. Any row may be odd: the first that matches decides, if
    none before it has a text. One of the `telling` words is in the beginning of such a file, in
    small letters, except in parquet. Refused if it is too large to be read whole."""
    head = content.head.lower().replace(b"\0", b"")  # which UTF-16 has between the letters
    if not any(word in head for word in (b"par1", *telling)):
        return False
    try:
        for row in itertools.islice(rows_in(content, Report(content.source), columns), _MOST_ODD):
            if isinstance(row, dict) and content.reading.text_field in row:
                return False
            if matches(row):
                return True
    except UserError as error:
        if error.kind == "too_large":  # it would be taken for a text, which may have any size
            raise
        return False  # said when it is read
    return False
