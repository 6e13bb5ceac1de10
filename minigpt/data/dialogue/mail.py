"""Mailboxes (mbox): who wrote, and what they wrote themselves, thread by thread.

What is quoted of the letter before is left out, and so are signatures and attachments. A letter of
which nothing is left is counted.
"""

import email.policy
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from email.message import EmailMessage
from email.parser import BytesParser

from ... import UserError
from ...system.errors import kind_of_error
from ..documents.content import Content
from ..documents.document import Report
from .letter import ODD, body_of, header_of, moment_of_letter, sender_of
from .quoted import own_text
from .turns import Message, clean_text

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


def is_mbox(beginning: bytes) -> bool:
    """Whether a file that begins like this is a mailbox."""
    lines = beginning.lstrip(b"\r\n").splitlines(keepends=True)
    first = next(_paragraphs(lines), [])
    return bool(first) and _ENVELOPE.match(first[0]) is not None and _has_header(first)


def threads(lines: Iterable[bytes], content: Content, report: Report) -> Iterator[list[Message]]:
    """The letters of each thread, in the order of their dates."""
    found: dict[str, list[Message]] = {}
    homes: dict[str, str] = {}  # the thread of each letter, by its id
    ids: set[str] = set()
    for number, data in enumerate(_letters(lines)):
        try:
            letter = _PARSER.parsebytes(data)
            thread = _thread_of(letter, number, homes, ids)
            text = own_text(body_of(letter, content, report), report)
        except (*ODD, UserError) as error:
            report.leave_out(_UNKNOWN if kind_of_error(error) == "encoding" else _UNREADABLE)
            continue

        if clean_text(text):
            message = Message(sender_of(letter), text, moment_of_letter(letter))
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
    own = header_of(letter, "message-id").strip()
    if not own or own in ids:
        own = f"letter {number}"
    ids.add(own)

    earlier = f"{header_of(letter, 'references')} {header_of(letter, 'in-reply-to')}".split()
    names = [own, *earlier]
    thread = next((homes[name] for name in names if name in homes), own)
    for name in names:
        homes.setdefault(name, thread)
    return thread
