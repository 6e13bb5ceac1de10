"""Files of conversations, read as documents with turns: one for each conversation."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, NamedTuple

from ... import UserError
from ..documents.boilerplate import plain_without_gutenberg
from ..documents.content import MOST_WHOLE, Content
from ..documents.document import Document, Refused, Report, title
from ..documents.encoding import marked_encoding, plain_blocks, text_head
from ..documents.parquet import MAGIC, rows_of
from ..documents.plain import read_plain
from ..documents.rows import table_of
from . import discord, mail
from .layout import layout_of
from .recognise import RowForm, form_of_data, form_of_rows, form_of_text, is_mailbox
from .rows import FIELDS
from .turns import Message, clean_text, conversations, without_numbers
from .whatsapp import looks_like_chat

_TELLING = (b'"messages"', b'"chats"', b'"personal_information"', b'"conversation',
            b'"prompt"', b'"instruction"', b'"question"', b'"envelope"', b'"sender"')  # fmt: skip
_LONGEST_LINE = 1 << 20  # bytes of a row by which a file is known
_MOST_ODD = 100  # rows at the beginning that may not tell what the others are

Conversations = Iterable[Iterable[Message]]


class DialogueKind(NamedTuple):
    """What a file of conversations is called, and what reads it."""

    name: str
    read: Callable[[Content, Report], Iterator[Document]]


def kind_of_data(content: Content) -> DialogueKind | None:
    """The kind of a mailbox, or of data (JSON, a table, parquet) that is conversations; None for
    other files, such as those whose rows have a text. Refused for a channel of Discord that is not
    in JSON."""
    if content.reading.plain:
        return None
    _refuse_other_discord(content)
    if is_mailbox(content.head):
        return _kind("mailbox", _letters, is_private=True)
    if content.head.startswith(MAGIC):
        return _kind_of_parquet(content)
    if content.name.endswith((".csv", ".tsv")):
        return _kind_of_table(content)
    if content.head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"{", b"["):
        return None
    if not any(key in content.head for key in _TELLING):
        return None
    return _kind_of_lines(content) or _kind_of_json(content)


def _refuse_other_discord(content: Content) -> None:
    """Refuse a channel of Discord that is not in JSON, unless --text-field names a column of it."""
    form = discord.other_format(content.head)
    if form is None or content.reading.text_field in discord.COLUMNS:
        return
    reason = f"is an export of Discord as {form}; export it as JSON in DiscordChatExporter"
    raise Refused(content.source, reason, "discord")


def kind_of_text(content: Content) -> DialogueKind | None:
    """The kind of a plain text that is conversations; None for others."""
    if content.reading.plain:
        return None
    form = form_of_text(text_head(content))
    if form is None:
        return _kind_of_unknown_chat(content)
    needing = [name for name in ("rename", "anonymous") if getattr(content.reading, name)]
    if form.is_script and not needing:
        return DialogueKind(form.kind, _as_it_is)

    def read(content: Content, report: Report) -> Conversations:
        if form.is_script:
            report.note(f"rewritten as turns, NAME: TEXT, without its layout, for --{needing[0]}")
        blocks = plain_without_gutenberg(plain_blocks(content, report), report)
        return form.conversations(_whole(blocks, content))

    return _kind(form.kind, read, is_private=form.is_private)


def _kind_of_unknown_chat(content: Content) -> DialogueKind | None:
    """The kind of a text that looks like a chat of an unknown form: it is read as a plain text, and
    a note says so. None for other texts."""
    if not looks_like_chat(text_head(content)):
        return None

    def read(content: Content, report: Report) -> Iterator[Document]:
        report.note(
            "looks like a chat in a form that is not known: it is read as a text, with its dates, "
            "names and telephone numbers"
        )
        return read_plain(content, report)

    return DialogueKind("plain text", read)


def _as_it_is(content: Content, report: Report) -> Iterator[Document]:
    """The documents of a plain text with turns, each with how they are written."""
    layout = layout_of(text_head(content))
    for document in read_plain(content, report):
        yield document._replace(layout=layout)


# From conversations to documents

_ReadConversations = Callable[[Content, Report], Conversations]


def _kind(kind: str, read: _ReadConversations, *, is_private: bool) -> DialogueKind:
    """A kind of conversations; if they are private, telephone numbers in them are left out."""

    def documents(content: Content, report: Report) -> Iterator[Document]:
        for messages in read(content, report):
            told = map(_without_number, messages) if is_private else messages
            yield from _documents(told, content, report)

    return DialogueKind(kind, documents)


def _without_number(message: Message) -> Message:
    return message._replace(text=without_numbers(message.text))


def _documents(messages: Iterable[Message], content: Content, report: Report) -> Iterator[Document]:
    """The conversations of a chat, each a document."""

    def not_empty() -> Iterator[Message]:
        for message in messages:
            text = clean_text(message.text)
            if text:
                yield message._replace(text=text)
            else:
                report.leave_out("messages without text")

    for turns in conversations(not_empty(), content.reading.silence):
        text = "\n".join(turn.text for turn in turns)
        yield Document(text, content.source, is_row=True, turns=tuple(turns))


# Data


def _kind_of_table(content: Content) -> DialogueKind | None:
    """The kind of a table in which each row is a message, or a question and its answer."""
    try:
        table = table_of(content, Report(content.source))
    except UserError:
        return None
    if table.column_of(content.reading.text_field) is not None:
        return None
    form = form_of_rows(dict.fromkeys(map(str.lower, table.names), ""))
    if form is None:
        return None

    def read(content: Content, report: Report) -> Conversations:
        table = table_of(content, report)
        names = [name.lower() for name in table.names]
        none = dict.fromkeys(names)  # for the cells that are missing in a row that ends early
        rows = (none | dict(zip(names, row, strict=False)) for _, row in table.rows if row)
        return form.conversations(rows)

    return _kind(form.kind, read, is_private=form.is_private)


def _kind_of_parquet(content: Content) -> DialogueKind | None:
    """The kind of a parquet file whose rows are conversations."""
    try:
        form = _form_among(rows_of(content, [*FIELDS, content.reading.text_field]), content)
    except UserError:  # said when it is read
        return None
    if form is None:
        return None

    def read(content: Content, report: Report) -> Conversations:
        return form.conversations(rows_of(content, FIELDS))

    return _kind(form.kind, read, is_private=form.is_private)


def _form_among(rows: Iterable[Any], content: Content) -> RowForm | None:
    """The form of the first row that has one, since any row may be odd; None if a row before it has
    a text."""
    for row in islice(rows, _MOST_ODD):
        if not isinstance(row, Mapping):
            continue
        if content.reading.text_field in row:
            return None
        form = form_of_rows(row)
        if form is not None:
            return form
    return None


def _kind_of_lines(content: Content) -> DialogueKind | None:
    """The kind of a file in which each line is a row in JSON."""
    form = _form_among(_first_rows(content), content)
    if form is None:
        return None

    def read(content: Content, report: Report) -> Conversations:
        return form.conversations(_rows(content))

    return _kind(form.kind, read, is_private=form.is_private)


def _first_rows(content: Content) -> Iterator[Any]:
    """What the first lines of a file hold in JSON, up to the first line that is not JSON. Nothing
    if there is a single line, which may be a JSON file of another kind, unless the name tells."""
    is_named_so = content.name.endswith((".jsonl", ".ndjson"))
    with content.opened() as stream:
        lines = (line for line in stream if line.strip())
        begin = list(islice(lines, 2))
        if len(begin) < 2 and not is_named_so:
            return
        for line in chain(begin, lines):
            try:
                yield json.loads(line[: _LONGEST_LINE + 1].decode("utf-8-sig"))
            except (ValueError, RecursionError):
                return


def _rows(content: Content) -> Iterator[Mapping[str, Any]]:
    """The rows of a file of JSON lines; an empty row for a line with something else. UserError if a
    line is not JSON."""
    with content.opened() as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                place = f"{title(content.source)}, line {number}"
                raise UserError(f"{place}: not JSON in UTF-8", kind="damaged") from None
            yield row if isinstance(row, Mapping) else {}


def _kind_of_json(content: Content) -> DialogueKind | None:
    """The kind of a file that is JSON as a whole: an export, or a list of rows."""
    data = _whole_json(content)
    if isinstance(data, list):
        form_of_list = _form_among(data, content)
        if form_of_list is None:
            return None

        def read_list(content: Content, report: Report) -> Conversations:
            given = _whole_json(content) or []
            rows = (row if isinstance(row, Mapping) else {} for row in given)
            return form_of_list.conversations(rows)

        return _kind(form_of_list.kind, read_list, is_private=form_of_list.is_private)

    if isinstance(data, Mapping) and content.reading.text_field in data:
        return None
    form = form_of_data(data)
    if form is None:
        return None

    def read(content: Content, report: Report) -> Conversations:
        return form.conversations(_whole_json(content))

    return _kind(form.kind, read, is_private=form.is_private)


def _whole_json(content: Content) -> Any:
    """What a file holds in JSON; None if it is none."""
    encoding = marked_encoding(content.head)
    try:
        return json.loads(content.whole().decode(encoding))
    except (ValueError, RecursionError):
        return None


# Text


def _letters(content: Content, report: Report) -> Conversations:
    with content.opened() as stream:
        yield from mail.threads(stream, content, report)


def _whole(blocks: Iterable[str], content: Content) -> str:
    """The text of blocks, which must not be too large."""
    most = content.limit(MOST_WHOLE)
    size = 0
    parts = []
    for block in blocks:
        size += len(block)
        if size > most:
            raise content.too_large(most)
        parts.append(block)
    return "".join(parts)
