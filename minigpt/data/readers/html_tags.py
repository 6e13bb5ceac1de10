"""The tags and the text of an HTML page, in time that grows with its length however damaged it is.

The standard library's parser takes hours for some pages of a megabyte, in the versions of Python
before its repair in 2025. Pages need less than that parser offers.
"""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

_RAW = {"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"}
_ANY_TAG = re.compile(r"</?[a-zA-Z]")
_NAME = re.compile(r"[a-zA-Z][^\s/>]*")
_NEXT_IN_TAG = re.compile("[\"'>]")
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")
_LONGEST_NAME = 100  # characters of a tag's name, or an attribute's; others are cut
_FAR = 20  # characters that may be between = and the value of an attribute
_MOST_ATTRIBUTES = 20_000  # characters of a tag that are searched for attributes


class Tag(NamedTuple):
    """A tag. Its name is in lower case."""

    name: str
    is_end: bool
    attributes: dict[str, str]
    is_closed: bool = False  # <a/>


def tags_and_text(page: str) -> Iterator[Tag | str]:
    """The tags of a page and the text between them, in which &amp; and the like are decoded.
    Comments, declarations and the content of scripts and styles are left out."""
    position = 0
    never_closed: set[str] = set()  # scripts and the like, and comments
    while position < len(page):
        begin = page.find("<", position)
        if begin < 0:
            yield _text(page[position:])
            return
        if begin > position:
            yield _text(page[position:begin])

        if page.startswith("<!--", begin):
            position = _end_of_comment(page, begin, never_closed)
        elif page.startswith("<![CDATA[", begin):
            position = _after(page, "]]>", begin)
            yield page[begin + 9 : position].removesuffix("]]>")
        elif page.startswith(("<!", "<?"), begin):
            position = _after(page, ">", begin)
        else:
            position = begin + 1
            is_end = page.startswith("/", position)
            name = _NAME.match(page, position + is_end)
            if name is None:
                yield "<"
                continue

            position = _end_of_tag(page, name.end())
            tag = _tag(name[0], is_end, page[name.end() : position])
            yield tag
            if tag.name in _RAW and not tag.is_end and not tag.is_closed:
                position = _end_of_raw(page, tag.name, position, never_closed)
                if tag.name in never_closed:
                    yield Tag(tag.name, is_end=True, attributes={})


def _text(text: str) -> str:
    """A text in which &amp; and the like are decoded."""
    if "&" not in text:
        return text
    try:
        return html.unescape(text)
    except ValueError:  # the number of a character with thousands of digits
        return text


def _after(page: str, end: str, position: int) -> int:
    """The place after the next `end`; the end of the page if there is none."""
    found = page.find(end, position)
    return len(page) if found < 0 else found + len(end)


def _end_of_comment(page: str, begin: int, never_closed: set[str]) -> int:
    """The place after a comment, such as <!-->. One that is never closed ends with the next tag."""
    if "<!--" not in never_closed:
        end = page.find("-->", begin + 2)
        if end >= 0:
            return end + 3
        never_closed.add("<!--")
    return _after(page, ">", begin)


def _end_of_tag(page: str, position: int) -> int:
    """The place after a tag. Its attributes may hold > in quotes. A tag that is never closed takes
    the rest of the page, as in browsers."""
    place = position
    while (found := _NEXT_IN_TAG.search(page, place)) is not None:
        if found[0] == ">":
            return found.end()

        before = page[max(position, found.start() - _FAR) : found.start()]
        is_value = before.rstrip().endswith("=")
        close = page.find(found[0], found.end()) if is_value else found.start()
        if close < 0:  # the quote is never closed, so it begins no value
            return _after(page, ">", position)
        place = close + 1
    return len(page)


def _end_of_raw(page: str, name: str, position: int, never_closed: set[str]) -> int:
    """The place where the end tag of a script and the like begins. If there is none, a script takes
    the rest of the page, and others end at the next tag; their names are kept in `never_closed`, so
    that the rest is not searched again for each."""
    if name not in never_closed:
        found = re.compile(f"</{re.escape(name)}", re.IGNORECASE).search(page, position)
        if found is not None:
            return found.start()
        never_closed.add(name)
    following = None if name == "script" else _ANY_TAG.search(page, position)
    return len(page) if following is None else following.start()


def _tag(name: str, is_end: bool, rest: str) -> Tag:
    attributes: dict[str, str] = {}
    if (not is_end and "=" in rest) or "hidden" in rest.lower():
        for found in _ATTRIBUTE.finditer(rest[:_MOST_ATTRIBUTES]):
            key, *values = found.groups()
            value = next((value for value in values if value is not None), "")
            attributes.setdefault(key[:_LONGEST_NAME].lower(), _text(value))

    is_closed = rest.rstrip(">").endswith("/")
    return Tag(name[:_LONGEST_NAME].lower(), is_end, attributes, is_closed)
