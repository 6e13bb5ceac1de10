"""A web page: its main part."""

import re
from collections.abc import Iterator

from .blocks import documents_of
from .boilerplate import without_gutenberg
from .content import Content
from .document import Document, Report
from .encoding import decoded_whole, encoding_called, marked_encoding
from .page import blocks_of_page

_BEGINS = re.compile(  # nothing is tried twice, however many comments there are
    r"\s*+(?:<\?xml[^>]*+>\s*+)?+(?:<!--(?:(?!-->).)*+-->\s*+)*+<(?:!doctype\s+html|html\b)",
    re.I | re.S,
)
_TAGS = re.compile(r"<(p|div|body|head|table|h[1-6]|span|a)\b[^<]*>", re.I)
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w-]{1,40})""", re.I)
_XML_ENCODING = re.compile(rb"""^\s*<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w-]{1,40})""", re.I)
_CHARSET_WITHIN = 4096  # bytes


def is_page(content: Content) -> bool:
    """Whether a content begins as a page does, or has a page's name and tags."""
    encoding = marked_encoding(content.head)
    head = content.head[:_CHARSET_WITHIN].decode(encoding, "replace")
    if _BEGINS.match(head) is not None:
        return True
    has_name = content.name.endswith((".html", ".htm", ".xhtml"))
    return has_name and _TAGS.search(head) is not None


def read_page(content: Content, report: Report) -> Iterator[Document]:
    """One document: the main part of a page; several, if it holds several books."""
    page = decoded_page(content.whole(), content, report)
    blocks = blocks_of_page(page, content, report, is_book=False)
    yield from documents_of(without_gutenberg([blocks], report), content.source)


def decoded_page(data: bytes, content: Content, report: Report) -> str:
    """The text of a page, in the encoding that was given, or that of its mark, or the one that it
    names."""
    encoding = content.reading.encoding or marked_encoding(data)
    named = encoding_named_in(data)
    if encoding == "utf-8-sig" and named is not None:
        encoding = encoding_called(named)
    return decoded_whole(data, encoding, content, report)


def encoding_named_in(data: bytes) -> str | None:
    """The encoding that a page names; None if it names none."""
    head = data[:_CHARSET_WITHIN]
    named = _CHARSET.search(head) or _XML_ENCODING.search(head)
    return None if named is None else named[1].decode()
