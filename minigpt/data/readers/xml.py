"""The parts of XML in a document, one after the other: tags and text, in constant memory.

Nothing outside the document is read: entities that it declares are refused, and external ones are
never opened.
"""

from collections.abc import Iterator
from typing import IO, NamedTuple
from xml.parsers import expat

from .content import BLOCK, Content
from .document import Refused, Unreadable

MOST_NESTED = 1000  # tags inside one another


class Start(NamedTuple):
    """A tag begins. Names are without their namespaces."""

    name: str
    attributes: dict[str, str]
    namespace: str = ""


class End(NamedTuple):
    """A tag ends."""

    name: str
    namespace: str = ""


Event = Start | End | str  # a str is text


def events(part: IO[bytes], content: Content) -> Iterator[Event]:
    """The tags and the text of an XML file, which is a part of `content`."""
    parser = _Parser(content)
    while block := part.read(BLOCK >> 4):
        yield from parser.feed(block)
    yield from parser.feed(b"", is_last=True)


class _Parser:
    """Parses block by block."""

    def __init__(self, content: Content):
        self._content = content
        self._found: list[Event] = []
        self._depth = 0
        self._most_nested = content.limit(MOST_NESTED)

        self._expat = expat.ParserCreate(namespace_separator=" ")
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._found.append
        self._expat.EntityDeclHandler = self._refuse_entities

    def feed(self, block: bytes, is_last: bool = False) -> list[Event]:
        """What the next block adds."""
        self._found.clear()
        try:
            self._expat.Parse(block, is_last)
        except (expat.ExpatError, ValueError) as error:
            if isinstance(error, Refused):
                raise
            raise Unreadable(self._content.source, f"its XML is damaged: {error}") from None
        return list(self._found)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > self._most_nested:
            raise too_deep(self._content)
        local = {_local(key): value for key, value in attributes.items()}
        self._found.append(Start(_local(name), local, _namespace(name)))

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._found.append(End(_local(name), _namespace(name)))

    def _refuse_entities(self, *_: object) -> None:
        reason = "declares entities in its XML, which is not read"
        raise Refused(self._content.source, reason, "damaged")


def _local(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition(" ")[2]


def _namespace(name: str) -> str:
    """The namespace of a name; empty if it has none."""
    return name.rpartition(" ")[0]


def too_deep(content: Content) -> Refused:
    """The error for tags that are nested too deep."""
    most = content.limit(MOST_NESTED)
    remedy = "if you trust it, use --raise-limits 10"
    reason = f"has more than {most:,} tags inside one another; {remedy}"
    return Refused(content.source, reason, "too_large")
