"""A zip archive of files: each is read as if it lay in a folder."""

import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ... import UserError
from .content import Content, Read
from .document import Document, Refused, Report, title
from .zipped import opened_zip


def read_archive(content: Content, report: Report, read_member: Read) -> Iterator[Document]:
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
