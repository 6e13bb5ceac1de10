"""A letter: who wrote it, when, and the text of its parts, whatever it says of itself."""

from collections.abc import Iterator
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage, MIMEPart
from email.utils import parsedate_to_datetime
from itertools import groupby

from ..documents.content import Content
from ..documents.document import Report
from ..documents.encoding import FALLBACK, UTF_8, decoded_whole, encoding_called
from ..documents.html import encoding_named_in
from ..documents.main_part import PageBlock
from ..documents.page import all_blocks
from .quoted import SIGNATURES

# What the library raises for headers and bodies that it does not expect
ODD = (ValueError, TypeError, LookupError, AttributeError, AssertionError, RecursionError)
_TEXTS = ("text/plain", "text/html", "text/markdown", "text/x-markdown")
_NO_TEXTS = ("application", "audio", "font", "image", "message", "model", "text", "video")


def sender_of(letter: EmailMessage) -> str:
    """The name of whoever wrote, or else what stands before the @."""
    try:
        addresses: tuple[Address, ...] = letter["from"].addresses
        first = addresses[0]
        return _repaired(first.display_name or first.username) or "Somebody"
    except ODD:
        return "Somebody"


def moment_of_letter(letter: EmailMessage) -> datetime | None:
    """When it was written, in UTC: two letters may come from different places."""
    try:
        moment = parsedate_to_datetime(str(letter["date"]))
        return moment.replace(tzinfo=None) if moment.tzinfo is None else _in_utc(moment)
    except (*ODD, OverflowError):
        return None


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)


def header_of(letter: EmailMessage, name: str) -> str:
    """A field of its header; empty if there is none that can be read."""
    try:
        return str(letter[name] or "")
    except ODD:
        return ""


def _repaired(text: str) -> str:
    """A text from a header, in which the library keeps bytes that it cannot decode."""
    data = text.encode("utf-8", "surrogateescape")
    try:
        return data.decode(UTF_8)
    except UnicodeError:
        return data.decode(FALLBACK, "replace")


# Its text


def body_of(letter: EmailMessage, content: Content, report: Report) -> str:
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
