"""Zip files: archives, of which each file is read as if it lay in a folder, and the documents that
are one inside (Word, OpenDocument, EPUB).

Names in an archive are keys and never become names of files on this machine.
"""

import contextlib
import posixpath
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from ... import UserError
from .content import MOST_UNPACKED, MOST_WHOLE, Content
from .document import Document, Refused, Report, Unreadable, title

MOST_MEMBERS = 100_000


def read_archive(
    content: Content,
    report: Report,
    read_member: Callable[[Content, Report], Iterator[Document]],
) -> Iterator[Document]:
    """The documents of all files in an archive, in the order of their names. `read_member` reads a
    file and names its kind; a file that cannot be read is left out. The size of the archive limits
    how much is unpacked in all, also from archives inside it."""
    kinds: Counter[str] = Counter()
    with opened_zip(content) as archive:
        members = [info for info in archive.infolist() if not info.filename.endswith("/")]
        for info in sorted(members, key=lambda info: info.filename):
            if _is_hidden(info.filename):
                continue
            member = _member(archive, info, content)
            own = Report(member.source)
            try:
                yield from read_member(member, own)
                kinds[own.kind] += 1
            except UserError as error:
                report.files_left_out.append(str(error))
            _add(own, report)
            content.count_unpacked(content.unpacked + member.unpacked)
            if content.unpacked > content.most_unpacked():
                raise content.unpacks_too_much()

    if not kinds and report.files_left_out:
        reason = f"holds no text; {report.files_left_out[0]}"
        raise Refused(content.source, reason, "empty")
    report.kind = f"archive ({', '.join(f'{n} {kind}' for kind, n in kinds.most_common())})"


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, content: Content) -> Content:
    """The content of a file in an archive. Its name is only shown."""
    source = Path(title(content.source)) / info.filename.lstrip("/")
    return Content(source, info.compress_size, lambda: archive.open(info), content.reading, content)


def _is_hidden(name: str) -> bool:
    """Whether a file is hidden, in a hidden folder, or one that macOS adds."""
    if name.startswith("__MACOSX/"):
        return True
    return any(part.startswith(".") and part.strip(".") for part in name.split("/"))


def _add(own: Report, report: Report) -> None:
    """Add what was said of a file to what is said of the archive."""
    for what, number in own.left_out.items():
        report.leave_out(what, number)
    for note in own.notes:
        report.note(f"{title(own.file)}: {note}")


# Any zip file


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
