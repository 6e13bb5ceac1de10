"""Files of conversations: the format that one is in, and its documents, one for each conversation.

A format has a module beside this one. Nothing is recognised by the name of a file alone. What is
asked of each file is cheap: its first lines decide whether a format is looked for.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, NamedTuple

from .... import UserError
from ..content import MOST_WHOLE, Content, Read
from ..document import Document, Refused, Report, title
from ..encoding import marked_encoding, plain_blocks, text_head
from ..parquet import rows_of
from ..plain import plain_without_gutenberg, read_plain
from ..rows import table_of
from . import datasets, exports, plays, whatsapp
from .turns import Message, clean_text, conversations, without_numbers

_TELLING = (b'"messages"', b'"chats"', b'"personal_information"', b'"conversation',
            b'"prompt"', b'"instruction"', b'"question"', b'"envelope"', b'"sender"')  # fmt: skip
_LONGEST_LINE = 1 << 20  # bytes of a row by which a file is known
_MOST_ODD = 100  # rows at the beginning that may not tell what the others are

Conversations = Iterable[Iterable[Message]]  # each may hold several, with silence between them


class Format(NamedTuple):
    """A format of conversations: in the whole text of a file, its data in JSON, or its rows."""

    name: str  # "WhatsApp chat"
    conversations: Callable[[Any], Conversations]  # of the text, the data or the rows
    matches: Callable[[Any], bool] = bool  # whether data, or the first row, is in this format
    is_private: bool = True  # a chat, in which telephone numbers are left out


_OF_DATA = (
    Format("Messenger or Instagram chat", exports.chats_of_meta, exports.is_meta),
    Format("Discord chat", exports.channels, exports.is_discord),
    Format("Telegram chat", exports.chats_of_telegram, exports.is_telegram),
    Format(
        "conversation", datasets.conversation_of_data, datasets.is_conversation, is_private=False
    ),
)
_OF_ROWS = (
    Format("Signal chat", exports.chats_of_signal, exports.is_row_of_signal),
    Format(
        "conversations in rows",
        datasets.conversations_of_rows,
        datasets.is_conversation,
        is_private=False,
    ),
)
_SCRIPT = Format("play or interview", plays.scenes, is_private=False)


def format_of_text(head: str) -> Format | None:
    """The format of a text that begins like this."""
    chat = whatsapp.kind_of_chat(head)
    if chat is not None:
        return Format(f"{chat} chat", whatsapp.exports)
    return _SCRIPT if plays.is_script(head) else None


def format_of_data(data: Any) -> Format | None:
    """The format of what a JSON file holds."""
    return next((form for form in _OF_DATA if form.matches(data)), None)


def format_of_rows(first: Mapping[str, Any]) -> Format | None:
    """The format of rows of which this is the first."""
    return next((form for form in _OF_ROWS if form.matches(first)), None)


def conversations_in_data(content: Content) -> tuple[str, Read] | None:
    """The name and the reader of a mailbox, or of data (JSON, a table, parquet) that is
    conversations; None for other files, such as those whose rows have a text. Refused for a channel
    of Discord that is not in JSON."""
    if content.reading.plain:
        return None
    head = content.head
    begin = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if begin.lstrip().startswith(exports.BEGINNINGS):
        _refuse_other_discord(content)
    if begin.startswith(b"From") and _is_mailbox(head):
        return _reader(Format("mailbox", iter), _threads)

    if head.startswith(b"PAR1"):
        return _conversations_in_parquet(content)
    if content.name.endswith((".csv", ".tsv")):
        return _conversations_in_table(content)
    if begin[:1] not in (b"{", b"[") or not any(key in head for key in _TELLING):
        return None
    return _conversations_in_lines(content) or _conversations_in_json(content)


def conversations_in_text(content: Content, head: str) -> tuple[str, Read] | None:
    """The name and the reader of a plain text that is conversations and begins with `head`; None
    for other texts. What looks like a chat of an unknown format is read as a plain text, and a note
    says so."""
    if content.reading.plain:
        return None
    form = format_of_text(head)
    if form is None:
        return ("plain text", _read_unknown_chat) if whatsapp.looks_like_chat(head) else None
    if form is _SCRIPT and not _changed_by(content):
        return form.name, _read_script
    return _reader(form, _script if form is _SCRIPT else _text)


def _refuse_other_discord(content: Content) -> None:
    """Refuse a channel of Discord that is not in JSON, unless --text-field names a column of it."""
    form = exports.other_format(content.head)
    if form is None or content.reading.text_field in exports.COLUMNS:
        return
    reason = f"is an export of Discord as {form}; export it as JSON in DiscordChatExporter"
    raise Refused(content.source, reason, "discord")


# From conversations to documents


def _reader(form: Format, load: Callable[[Content, Report], Any]) -> tuple[str, Read]:
    """The name and the reader of files in a format; `load` gives what its conversations are in."""

    def read(content: Content, report: Report) -> Iterator[Document]:
        for messages in form.conversations(load(content, report)):
            written = map(_without_number, messages) if form.is_private else messages
            yield from _documents(written, content, report)

    return form.name, read


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


# Text


def _changed_by(content: Content) -> list[str]:
    """The settings for which a play or an interview has to be rewritten as turns."""
    return [name for name in ("rename", "anonymous") if getattr(content.reading, name)]


def _read_script(content: Content, report: Report) -> Iterator[Document]:
    """The documents of a play or an interview, whose text stays as it is, each with how its turns
    are written."""
    layout = plays.layout_of(text_head(content))
    for document in read_plain(content, report):
        yield document._replace(layout=layout)


def _read_unknown_chat(content: Content, report: Report) -> Iterator[Document]:
    report.note(
        "looks like a chat in a form that is not known: it is read as a text, with its dates, "
        "names and telephone numbers"
    )
    return read_plain(content, report)


def _script(content: Content, report: Report) -> str:
    """The whole text of a play or an interview that is to be rewritten."""
    setting = _changed_by(content)[0]
    report.note(f"rewritten as turns, NAME: TEXT, without its layout, for --{setting}")
    return _text(content, report)


def _text(content: Content, report: Report) -> str:
    """The whole text of a file, which must not be too large."""
    most = content.limit(MOST_WHOLE)
    size = 0
    parts = []
    for block in plain_without_gutenberg(plain_blocks(content, report), report):
        size += len(block)
        if size > most:
            raise content.too_large(most)
        parts.append(block)
    return "".join(parts)


def _is_mailbox(head: bytes) -> bool:
    from .mail import is_mbox  # the library for letters is slow to import

    return is_mbox(head)


def _threads(content: Content, report: Report) -> Iterator[list[Message]]:
    """The threads of a mailbox."""
    from . import mail

    with content.opened() as stream:
        yield from mail.threads(stream, content, report)


# Tables and parquet


def _conversations_in_table(content: Content) -> tuple[str, Read] | None:
    """The name and the reader of a table in which each row is a message, or a question and its
    answer."""
    try:
        table = table_of(content, Report(content.source))
    except UserError:
        return None
    if table.column_of(content.reading.text_field) is not None:
        return None
    form = format_of_rows(dict.fromkeys(map(str.lower, table.names), ""))
    return None if form is None else _reader(form, _rows_of_table)


def _rows_of_table(content: Content, report: Report) -> Iterator[Mapping[str, Any]]:
    table = table_of(content, report)
    names = [name.lower() for name in table.names]
    none = dict.fromkeys(names)  # for the cells that are missing in a row that ends early
    for _, row in table.rows:
        if row:
            yield none | dict(zip(names, row, strict=False))


def _conversations_in_parquet(content: Content) -> tuple[str, Read] | None:
    """The name and the reader of a parquet file whose rows are conversations."""
    try:
        form = _format_among(
            rows_of(content, [*datasets.FIELDS, content.reading.text_field]), content
        )
    except UserError:  # said when it is read
        return None
    return None if form is None else _reader(form, _rows_of_parquet)


def _rows_of_parquet(content: Content, report: Report) -> Iterator[Mapping[str, Any]]:
    return rows_of(content, datasets.FIELDS)


def _format_among(rows: Iterable[Any], content: Content) -> Format | None:
    """The format of the first row that has one, since any row may be odd; None if a row before it
    has a text."""
    for row in islice(rows, _MOST_ODD):
        if not isinstance(row, Mapping):
            continue
        if content.reading.text_field in row:
            return None
        form = format_of_rows(row)
        if form is not None:
            return form
    return None


# JSON


def _conversations_in_lines(content: Content) -> tuple[str, Read] | None:
    """The name and the reader of a file in which each line is a row in JSON."""
    form = _format_among(_first_rows(content), content)
    return None if form is None else _reader(form, _rows_of_lines)


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


def _rows_of_lines(content: Content, report: Report) -> Iterator[Mapping[str, Any]]:
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


def _conversations_in_json(content: Content) -> tuple[str, Read] | None:
    """The name and the reader of a file that is JSON as a whole: an export, or a list of rows."""
    data = _json(content)
    if isinstance(data, list):
        form = _format_among(data, content)
        return None if form is None else _reader(form, _rows_of_list)

    if isinstance(data, Mapping) and content.reading.text_field in data:
        return None
    form = format_of_data(data)
    return None if form is None else _reader(form, _data)


def _data(content: Content, report: Report) -> Any:
    """What a JSON file holds that is an export."""
    return _json(content)


def _rows_of_list(content: Content, report: Report) -> Iterator[Mapping[str, Any]]:
    for row in _json(content) or []:
        yield row if isinstance(row, Mapping) else {}


def _json(content: Content) -> Any:
    """What a file holds in JSON; None if it is none."""
    encoding = marked_encoding(content.head)
    try:
        return json.loads(content.whole().decode(encoding))
    except (ValueError, RecursionError):
        return None
