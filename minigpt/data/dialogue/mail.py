"""Mailboxes (mbox): who wrote, and what they wrote themselves, thread by thread.

What is quoted of the letter before is left out, and so are signatures and attachments.
"""

import email.policy
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from typing import Any

from .turns import Message

_FROM = re.compile(rb"From \S+.*\d{4}.*\r?\n?")  # the line between two letters
_REPLY = re.compile(
    r"(?:\s*(?:re|aw|sv|fw|fwd|wg|rif|r|antw|odp|tr|rv|ynt|回复|答复)\s*:)+\s*", re.I
)
_QUOTED = re.compile(  # a line after which another letter is quoted
    r"(?:-{2,}\s*(?:original message|ursprüngliche nachricht|message d'origine|mensaje original|"
    r"messaggio originale|mensagem original|oorspronkelijk bericht|forwarded message|"
    r"weitergeleitete nachricht)\s*-{2,}|_{20,})\s*",
    re.IGNORECASE,
)
_HEADER = re.compile(  # From: Anna, as in the header of a letter that is quoted
    r"\*?(?:from|sent|date|to|cc|subject|von|gesendet|datum|an|betreff|de|envoyé|à|objet|para|"
    r"enviado|asunto|assunto|da|inviato|oggetto|van|verzonden|aan|onderwerp)\*?\s?:\*? ",
    re.IGNORECASE,
)
_WROTE = re.compile(  # Am 3. Mai 2024 um 10:12 schrieb Anna <anna@example.org>:
    r".{0,200}(?:\d{1,4}.{0,80}|@.{0,80})"
    r"(?:wrote|schrieb|écrit|escribió|scritto|escreveu|schreef|skrev|napisał\(a\)|пишет|写道)"
    r".{0,120}[:：]\s*",
    re.IGNORECASE,
)


def is_mbox(beginning: bytes) -> bool:
    """Whether a file that begins like this is a mailbox."""
    first, _, rest = beginning.lstrip(b"\r\n").partition(b"\n")
    if not _FROM.fullmatch(first + b"\n"):
        return False
    headers = rest.replace(b"\r", b"").partition(b"\n\n")[0]
    return re.search(rb"(?im)^(from|date|message-id|received|subject):", headers) is not None


def threads(lines: Iterable[bytes]) -> Iterator[list[Message]]:
    """The letters of each thread, in the order of their dates."""
    found: dict[str, list[Message]] = {}
    homes: dict[str, str] = {}  # the thread of each letter, by its id
    for letter in _letters(lines):
        message = _message(letter)
        if message is None:
            continue
        thread = _thread_of(letter, homes)
        found.setdefault(thread, []).append(message)

    for messages in found.values():
        messages.sort(key=lambda message: message.time or datetime.min)
        yield [message._replace(time=None) for message in messages]  # weeks may lie between them


def _letters(lines: Iterable[bytes]) -> Iterator[EmailMessage]:
    parser = BytesParser(EmailMessage, policy=email.policy.default)
    held: list[bytes] = []
    is_after_blank = True
    for line in lines:
        if is_after_blank and _FROM.fullmatch(line):
            if held:
                yield parser.parsebytes(b"".join(held))
            held = []
        else:
            held.append(line)
        is_after_blank = not line.strip()
    if held:
        yield parser.parsebytes(b"".join(held))


def _message(letter: EmailMessage) -> Message | None:
    text = own_text(_body(letter))
    if not text:
        return None
    return Message(_sender(letter), text, _moment(letter))


def _sender(letter: EmailMessage) -> str:
    """The name of whoever wrote, or else what stands before the @."""
    try:
        addresses: tuple[Address, ...] = letter["from"].addresses
        first = addresses[0]
        return first.display_name or first.username or "Somebody"
    except (AttributeError, IndexError, ValueError, TypeError, LookupError):
        return "Somebody"


def _moment(letter: EmailMessage) -> datetime | None:
    try:
        return parsedate_to_datetime(str(letter["date"])).replace(tzinfo=None)
    except (ValueError, TypeError, IndexError, LookupError, AttributeError):
        return None


def _thread_of(letter: EmailMessage, homes: dict[str, str]) -> str:
    """The thread that a letter belongs to: by the letters that it answers, or else its subject."""
    earlier = f"{_header(letter, 'references')} {_header(letter, 'in-reply-to')}".split()
    subject = _REPLY.sub("", _header(letter, "subject"), count=1).strip().lower()
    own = _header(letter, "message-id").strip() or str(len(homes))

    thread = next((homes[name] for name in earlier if name in homes), None)
    if thread is None:
        thread = earlier[0] if earlier else subject or own
        if subject and not earlier:
            thread = f"{subject} {own}"
    for name in (own, *earlier):
        homes.setdefault(name, thread)
    return thread


def _header(letter: EmailMessage, name: str) -> str:
    try:
        return str(letter[name] or "")
    except (ValueError, TypeError, IndexError, LookupError, AttributeError):
        return ""


def _body(letter: EmailMessage) -> str:
    """The text of a letter; of one that is HTML alone, the text in it."""
    try:
        part: Any = letter.get_body(("plain", "html"))
        if part is None:  # it does not say what it is
            payload = letter.get_payload(decode=True)
            return payload.decode(errors="replace") if isinstance(payload, bytes) else ""
        content = part.get_content()
        text = content if isinstance(content, str) else ""
        return _text_of_html(text) if part.get_content_type() == "text/html" else text
    except (ValueError, TypeError, LookupError, AttributeError, AssertionError):
        return ""


def own_text(body: str) -> str:
    """What a letter says itself: what it quotes is left out, and its signature."""
    source = body.splitlines()
    lines: list[str] = []
    number = 0
    while number < len(source):
        line = source[number]
        is_signature = line.rstrip("\r\n") in ("-- ", "--")
        if is_signature or _QUOTED.fullmatch(line) or _is_header_of_quoted(source, number):
            break

        attribution = _lines_of_attribution(source, number)
        if attribution:
            number += attribution
            continue
        if not line.lstrip().startswith(">"):
            lines.append(line)
        number += 1
    return "\n".join(lines).strip()


def _lines_of_attribution(source: list[str], number: int) -> int:
    """How many lines, from this one on, say who wrote what is quoted below: 0, 1 or 2."""
    for count in (1, 2):
        line = " ".join(source[number : number + count])
        after = source[number + count : number + count + 4]
        is_quoted = any(line.lstrip().startswith(">") for line in after)
        if is_quoted and _WROTE.fullmatch(line):
            return count
    return 0


def _is_header_of_quoted(source: list[str], number: int) -> bool:
    """Whether the header of another letter begins here, as Outlook puts it above what it quotes."""
    if not _HEADER.match(source[number]):
        return False
    following = [line for line in source[number : number + 6] if _HEADER.match(line)]
    return len(following) >= 3


class _Text(HTMLParser):
    """Collects the text of a letter in HTML; what it quotes is left out."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0  # how many elements are open whose text is left out

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("style", "script", "blockquote", "head"):
            self._hidden += 1
        elif tag in ("br", "p", "div", "tr", "li"):
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("style", "script", "blockquote", "head"):
            self._hidden = max(self._hidden - 1, 0)

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(" ".join(data.split(" ")).replace("\n", " "))


def _text_of_html(html: str) -> str:
    reader = _Text()
    reader.feed(html)
    return "".join(reader.parts)
