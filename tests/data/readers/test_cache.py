"""What slow readers have read is kept: the same documents and the same report come again."""

from pathlib import Path

import pytest

from minigpt.config import ReadingConfig
from minigpt.data.readers.cache import _Cache
from minigpt.data.readers.document import Document, Layout, Report, Turn
from minigpt.data.readers.kinds import read_file

from ..texts import write
from .made import CHAPTER, p, word

DOCUMENTS = [
    Document("a\nb\u2028é", Path("a.docx"), line=3),
    Document("", Path("a.docx"), is_first=False, turns=(Turn("Anna", "hi"), Turn("Otto", "é"))),
    Document("ANNA: hi", Path("a.zip/b"), is_row=True, layout=Layout("{speaker}: {text}\n")),
]


def read(kept: _Cache, key: str) -> tuple[list[Document] | None, Report]:
    report = Report(Path("a.docx"))
    found = kept.documents(key, report)
    return None if found is None else list(found), report


def test_documents_come_back_as_they_were_with_what_was_said_of_them() -> None:
    kept = _Cache()
    assert read(kept, "a")[0] is None
    for key, documents in (("a", DOCUMENTS), ("b", DOCUMENTS[:1]), ("none", [])):
        report = Report(Path("a.docx"))
        report.kind = f"kind of {key}"
        report.leave_out("footnotes", 2)
        report.note("odd")
        report.files_left_out.append("a/b")
        assert list(kept.keep(key, iter(documents), report)) == documents
    for key, documents in (("b", DOCUMENTS[:1]), ("a", DOCUMENTS), ("none", [])):
        found, report = read(kept, key)
        assert found == documents
        assert (report.kind, report.notes) == (f"kind of {key}", ["odd"])
        assert (report.left_out, report.files_left_out) == ({"footnotes": 2}, ["a/b"])


def test_what_was_not_read_to_its_end_is_not_kept_nor_what_was_forgotten() -> None:
    kept = _Cache()
    next(kept.keep("a", iter(DOCUMENTS), Report(Path("a"))))
    assert read(kept, "a")[0] is None
    list(kept.keep("a", iter(DOCUMENTS), Report(Path("a"))))
    kept.forget()
    assert read(kept, "a")[0] is None
    list(kept.keep("a", iter(DOCUMENTS[1:]), Report(Path("a"))))
    assert read(kept, "a")[0] == DOCUMENTS[1:]


def test_two_may_read_what_is_kept_side_by_side() -> None:
    kept = _Cache()
    for key in "ab":
        list(kept.keep(key, iter(DOCUMENTS), Report(Path(key))))
    first, second = (kept.documents(key, Report(Path(key))) for key in "ab")
    assert first is not None and second is not None
    assert [pair[0] == pair[1] for pair in zip(first, second, strict=True)] == [True] * 3


def test_a_file_is_read_anew_once_it_has_changed_or_is_read_in_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "a.docx", word(p(CHAPTER)))
    texts = [document.text for document in read_file(file, ReadingConfig())]
    monkeypatch.setattr("minigpt.data.readers.word._Text.blocks", lambda *_: [])
    assert [document.text for document in read_file(file, ReadingConfig())] == texts
    assert list(read_file(file, ReadingConfig(raise_limits=2.0))) == []
    write(file, word(p(f"{CHAPTER} More.")))
    assert list(read_file(file, ReadingConfig())) == []
