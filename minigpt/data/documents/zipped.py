"""Zip files: archives, and the documents that are one inside (Word, OpenDocument, EPUB).

Names in an archive are keys and never become names of files on this machine.
"""

import contextlib
import posixpath
import zipfile
from collections.abc import Iterator
from typing import IO

from .content import MOST_UNPACKED, MOST_WHOLE, Content
from .document import Refused, Unreadable

MOST_MEMBERS = 100_000


@contextlib.contextmanager
def opened_zip(content: Content) -> Iterator[zipfile.ZipFile]:
    """The zip file that a content is, if it does not hold too much."""
    with content.seekable() as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                _check_sizes(archive, content)
                yield archive
        except (ValueError, RecursionError, MemoryError, OverflowError) as error:
            if isinstance(error, Refused | Unreadable):
                raise
            raise Unreadable(content.source, f"it is damaged: {error}") from None


def _check_sizes(archive: zipfile.ZipFile, content: Content) -> None:
    """Refuse an archive with too much in it. zipfile reads no more of a member than it declares."""
    members = archive.infolist()
    if len(members) > content.limit(MOST_MEMBERS):
        reason = f"holds more than {content.limit(MOST_MEMBERS):,} files"
        raise Refused(content.source, reason, "too_large")

    unpacked = sum(member.file_size for member in members)
    most = content.limit(MOST_UNPACKED)
    if unpacked > most:
        raise content.too_large(most)
    content.count_unpacked(unpacked)
    if unpacked > content.most_unpacked():
        raise content.unpacks_too_much()


def part_of(archive: zipfile.ZipFile, name: str, content: Content) -> IO[bytes]:
    """A part of a document; UserError if it is not there, or too large to be read whole."""
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise Unreadable(content.source, f"it has no {name[:80]!r} inside") from None
    most = content.limit(MOST_WHOLE)
    if info.file_size > most:
        raise content.too_large(most)
    return archive.open(info)


def part_name(name: str, base: str) -> str:
    """The name of a part that another one, `base`, refers to by `name`."""
    if name.startswith("/"):
        return posixpath.normpath(name).lstrip("/")
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), name))
