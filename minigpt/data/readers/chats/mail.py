"""Mailboxes (mbox): who wrote, and what they wrote themselves, thread by thread.

What is quoted of the letter before is left out, and so are signatures and attachments. A letter of
which nothing is left is counted.
"""

import email.policy
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from itertools import groupby

from .... import UserError
from ....system.errors import kind_of_error
from ..content import Content
from ..document import Document, Report
from ..encoding import FALLBACK, UTF_8, decoded_whole, encoding_called
from ..html import all_blocks, encoding_named_in
from ..html_main import PageBlock
from .quotations import SIGNATURES, own_text
from .turns import Message, clean_text, documents_of_chat

_UNKNOWN = "letters whose encoding only --encoding can name"
_UNREADABLE = "letters that cannot be read"
_PARSER = BytesParser(EmailMessage, policy=email.policy.default)
_ENVELOPE = re.compile(rb"From(?: |\s*$)")  # the line between two letters begins so
_DATE = re.compile(  # Mon Jan  1 10:00:00 2024, as most of these lines end
    rb".* (?:mon|tue|wed|thu|fri|sat|sun) (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec) "
    rb"[ \d]?\d \d\d?:\d\d(?::\d\d)?(?: [+\-\w]{1,6})? \d{4}\s*",
    re.IGNORECASE,
)
_FIELD = re.compile(rb"[!-9;-~]+[ \t]*:|[ \t]|From |>From ")  # or a line that continues one
_USUAL_FIELD = re.compile(
    rb"(from|to|date|subject|message-id|received|return-path|delivered-to|mime-version)[ \t]*:",
    re.IGNORECASE,
)
_MARKED = re.compile(rb">+From ")  # a line of a letter that is not to be taken for an envelope
# What the library raises for headers and bodies that it does not expect
_ODD = (ValueError, TypeError, LookupError, AttributeError, AssertionError, RecursionError)
_TEXTS = ("text/plain", "text/html", "text/markdown", "text/x-markdown")
_NO_TEXTS = ("application", "audio", "font", "image", "message", "model", "text", "video")


def is_mailbox(content: Content) -> bool:
    """Whether a content begins as a mailbox does."""
    lines = content.head.lstrip(b"\xef\xbb\xbf \t\r\n").splitlines(keepends=True)
    first = next(_paragraphs(lines), [])
    return bool(first) and _ENVELOPE.match(first[0]) is not None and _has_header(first)


def read_mailbox(content: Content, report: Report) -> Iterator[Document]:
    """The threads of a mailbox, each a document."""
    with content.opened() as stream:
        for letters in _threads(stream, content, report):
            yield from documents_of_chat(letters, content, report)


def _threads(lines: Iterable[bytes], content: Content, report: Report) -> Iterator[list[Message]]:
    """The letters of each thread, in the order of their dates."""
    found: dict[str, list[Message]] = {}
    homes: dict[str, str] = {}  # the thread of each letter, by its id
    ids: set[str] = set()
    for number, data in enumerate(_letters(lines)):
        try:
            letter = _PARSER.parsebytes(data)
            thread = _thread_of(letter, number, homes, ids)
            text = own_text(_body_of(letter, content, report), report)
        except (*_ODD, UserError) as error:
            report.leave_out(_UNKNOWN if kind_of_error(error) == "encoding" else _UNREADABLE)
            continue

        if clean_text(text):
            message = Message(_sender_of(letter), text, _moment_of_letter(letter))
            found.setdefault(thread, []).append(message)
        else:
            report.leave_out("letters without text")

    for messages in found.values():
        messages.sort(key=lambda message: message.time or datetime.min)
        yield [message._replace(time=None) for message in messages]  # weeks may lie between them


# Letters


def _letters(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Each letter, without its envelope."""
    held: list[bytes] = []
    is_after_blank = True
    is_first = True
    for paragraph in _paragraphs(lines):
        begins = _begins_letter(paragraph, is_after_blank)
        if begins and not is_first:
            yield b"".join(held)
        if begins:
            held = []
            is_first = False
        held += map(_unmarked, paragraph[begins:])
        is_after_blank = not paragraph[-1].strip()
    if not is_first:
        yield b"".join(held)


def _paragraphs(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The lines up to an empty one, and to each that may be an envelope."""
    held: list[bytes] = []
    for line in lines:
        if held and _ENVELOPE.match(line):
            yield held
            held = []
        held.append(line)
        if not line.strip():
            yield held
            held = []
    if held:
        yield held


def _begins_letter(paragraph: Sequence[bytes], is_after_blank: bool) -> bool:
    """Whether the first line of a paragraph is the envelope of a letter. A line of text can begin
    with From, too, so an envelope has to show two of three signs."""
    if not _ENVELOPE.match(paragraph[0]):
        return False
    return sum((is_after_blank, _has_date(paragraph), _has_header(paragraph))) >= 2


def _has_date(paragraph: Sequence[bytes]) -> bool:
    """Whether the first line ends with a date, as envelopes do."""
    return _DATE.fullmatch(paragraph[0]) is not None


def _has_header(paragraph: Sequence[bytes]) -> bool:
    """Whether the lines after the first are the header of a letter. Below a line without a date, a
    single field such as Date: is not enough: people write such lines in a text, too."""
    header = [line for line in paragraph[1:] if line.strip()]
    if not all(_FIELD.match(line) for line in header):
        return False
    found = {match[1].lower() for line in header if (match := _USUAL_FIELD.match(line))}
    least = 1 if _has_date(paragraph) else 2
    return b"from" in found or len(found) >= least


def _unmarked(line: bytes) -> bytes:
    return line[1:] if _MARKED.match(line) else line


def _thread_of(letter: EmailMessage, number: int, homes: dict[str, str], ids: set[str]) -> str:
    """The thread that a letter belongs to, by the letters that it answers. `ids` are the ids of the
    letters so far: a letter that repeats one of them gets an id of its own."""
    own = _header_of(letter, "message-id").strip()
    if not own or own in ids:
        own = f"letter {number}"
    ids.add(own)

    earlier = f"{_header_of(letter, 'references')} {_header_of(letter, 'in-reply-to')}".split()
    names = [own, *earlier]
    thread = next((homes[name] for name in names if name in homes), own)
    for name in names:
        homes.setdefault(name, thread)
    return thread


# A letter


def _sender_of(letter: EmailMessage) -> str:
    """The name of whoever wrote, or else what stands before the @."""
    try:
        addresses: tuple[Address, ...] = letter["from"].addresses
        first = addresses[0]
        return _repaired(first.display_name or first.username) or "Somebody"
    except _ODD:
        return "Somebody"


def _moment_of_letter(letter: EmailMessage) -> datetime | None:
    """When it was written, in UTC: two letters may come from different places."""
    try:
        moment = parsedate_to_datetime(str(letter["date"]))
        return moment.replace(tzinfo=None) if moment.tzinfo is None else _in_utc(moment)
    except (*_ODD, OverflowError):
        return None


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)


def _header_of(letter: EmailMessage, name: str) -> str:
    """A field of its header; empty if there is none that can be read."""
    try:
        return str(letter[name] or "")
    except _ODD:
        return ""


def _repaired(text: str) -> str:
    """A text from a header, in which the library keeps bytes that it cannot decode."""
    data = text.encode("utf-8", "surrogateescape")
    try:
        return data.decode(UTF_8)
    except UnicodeError:
        return data.decode(FALLBACK, "replace")


# Its text


def _body_of(letter: EmailMessage, content: Content, report: Report) -> str:
    """All text of a letter, also what it quotes, with > before each line. Its attachments are
    counted."""
    return "\n\n".join(_texts(letter, content, report))


def _texts(part: MIMEPart, content: Content, report: Report) -> Iterator[str]:
    """The texts of a part and the parts in it."""
    if part.is_multipart() and part.get_content_maintype() == "multipart":
        inside = [_texts(one, content, report) for one in part.iter_parts()]
        if part.get_content_subtype() == "alternative":
            forms = map(list, inside)
            yield from next((texts for texts in forms if any(map(str.strip, texts))), [])
        else:
            for texts in inside:
                yield from texts
    elif _is_file(part):
        report.leave_out("attachments")
    else:
        yield _text(part, content, report)


def _is_file(part: MIMEPart) -> bool:
    """Whether a part is no text of the letter. A part of an unknown kind is taken for a text."""
    if part.is_attachment() or part.get_filename():
        return True
    kind = _kind_of(part)
    return kind.partition("/")[0] in _NO_TEXTS and kind not in _TEXTS


def _kind_of(part: MIMEPart) -> str:
    """Such as text/plain. A semicolon may be missing after it."""
    return "".join(part.get_content_type().split()[:1])


def _text(part: MIMEPart, content: Content, report: Report) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    named = part.get_content_charset()
    if _kind_of(part) == "text/html":
        page = _decoded(data, named or encoding_named_in(data), content, report)
        return _text_of_page(page, content, report)

    text = _decoded(data, named, content, report)
    if str(part.get_param("format", "")).lower() != "flowed":
        return text
    is_space_deleted = str(part.get_param("delsp", "")).lower() == "yes"
    return _unflowed(text, is_space_deleted)


def _decoded(data: bytes, named: str | None, content: Content, report: Report) -> str:
    """A text in the encoding that it names. If it names none, or cannot be decoded in this way, it
    is read as UTF-8, or else in the given encoding, or in Windows-1252; UserError if none of them
    fits."""
    for encoding in (encoding_called(named or ""), UTF_8):
        try:
            return data.decode(encoding)
        except UnicodeError:
            continue
    given = content.reading.encoding
    if given is not None:
        return data.decode(given, "replace")
    return decoded_whole(data, UTF_8, content, report)


def _unflowed(text: str, is_space_deleted: bool) -> str:
    """A flowed text (RFC 3676) whose paragraphs are lines: a line that ends with a space goes on in
    the next one, if that is quoted as often."""
    lines: list[list[str]] = []  # each in the parts that it had
    goes_on = -1  # how many marks the last line has if it goes on in the next one, or else -1
    for line in text.splitlines():
        marks, words = _marks_and_text(line)
        is_signature = words == "-- "
        if marks != goes_on or is_signature:
            lines.append(["> "] if marks else [])

        goes_on = marks if words.endswith(" ") and not is_signature else -1
        if goes_on >= 0 and is_space_deleted:
            words = words[:-1]
        lines[-1].append(words)
    return "\n".join(map("".join, lines))


def _marks_and_text(line: str) -> tuple[int, str]:
    """How often a flowed line is quoted, and its text, without the space before it."""
    words = line.lstrip(">")
    return len(line) - len(words), words.removeprefix(" ")


def _text_of_page(page: str, content: Content, report: Report) -> str:
    """The text of a letter in HTML without its signature. What it cites has a > before each
    line."""
    parts: list[str] = []
    blocks = all_blocks(page, content, report, has_frame=False)
    for is_signature, group in groupby(blocks, key=_is_signature):
        if is_signature:
            report.leave_out(SIGNATURES)
        else:
            parts += map(_lines_of, group)
    return "\n".join(parts)


def _is_signature(found: PageBlock) -> bool:
    return found.inside.is_signature and not found.inside.is_cited


def _lines_of(found: PageBlock) -> str:
    """A paragraph with an empty line after it, or one of several lines that belong together."""
    text = found.block.text
    if found.inside.is_cited:
        return "> " + text.replace("\n", "\n> ")
    return text if found.block.is_line else f"{text}\n"
