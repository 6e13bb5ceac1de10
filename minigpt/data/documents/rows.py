"""Files of rows, each of which holds a text: JSON lines, and tables (.csv, .tsv)."""

import csv
import io
import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ... import UserError
from .content import Content
from .document import Document, Refused, Report, title
from .encoding import marked_encoding, plain_blocks
from .plain import documents_in_rows

_DELIMITERS = ",;\t|"
_LONGEST_CELL = 10 << 20  # characters; a quote that is never closed would else take all memory


# JSON lines


def read_json_lines(content: Content, report: Report) -> Iterator[Document]:
    """A document for each line of a .jsonl file, or several with lines <|endoftext|> in it."""
    return documents_in_rows(_json_rows(content), content.source)


def text_in(row: Any, text_field: str, place: str) -> str:
    """The text in a field of a row, which is a mapping; `place` is the row's name in errors."""
    try:
        text: str = row[text_field]
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        raise UserError(f"{place}: not JSON in UTF-8", kind="damaged") from None
    except (KeyError, IndexError, TypeError, AttributeError):
        raise UserError(
            f"{place}: no text in field {text_field!r}; name the field with --text-field",
            kind="column",
        ) from None
    return text


def _json_rows(content: Content) -> Iterator[tuple[int, str]]:
    """The number of each line that has a text, and its text."""
    with content.opened() as stream:
        for number, line in enumerate(_json_lines(stream, content), start=1):
            if not line.strip():
                continue
            place = f"{title(content.source)}, line {number}"
            try:
                # Given bytes, json would also accept UTF-16 and UTF-32, unlike for plain text.
                row = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                raise UserError(f"{place}: not JSON in UTF-8", kind="damaged") from None

            text = text_in(row, content.reading.text_field, place)
            if text:
                yield number, text


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


# Tables


def read_table(content: Content, report: Report) -> Iterator[Document]:
    """A document for each row of a .csv or .tsv file: the cell in the column of the text."""
    return documents_in_rows(_cells(content, report), content.source)


def _cells(content: Content, report: Report) -> Iterator[tuple[int, str]]:
    """The number of each line in which a row begins, and the row's text."""
    lines = _lines(plain_blocks(content, report))
    header = next(lines, "")
    if not header.strip():
        return

    text_field = content.reading.text_field
    delimiter = _delimiter(header, text_field)
    csv.field_size_limit(content.limit(_LONGEST_CELL))
    rows = csv.reader(itertools.chain([header], lines), delimiter=delimiter)
    column: int | None = None
    while True:
        number = rows.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            place = f"{title(content.source)}, line {number}"
            raise UserError(f"{place}: {error}", kind="damaged") from None

        if column is None:
            column = _column(row, text_field, content.source)
        elif len(row) > column and row[column]:
            yield number, row[column]
        elif any(row):
            report.leave_out("rows without text")


def _column(header: list[str], text_field: str, source: Path) -> int:
    """Which column holds the text."""
    names = [name.strip() for name in header]
    if text_field in names:
        return names.index(text_field)
    lower = [name.lower() for name in names]
    if text_field.lower() in lower:
        return lower.index(text_field.lower())

    shown = ", ".join(name[:40] for name in names[:8])
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    reason = f"has no column {text_field!r}; name one with --text-field: {shown}{more}"
    raise Refused(source, reason, "column")


def _delimiter(header: str, text_field: str) -> str:
    """What separates the cells: what sets the text's column apart, or else is most often there."""
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
