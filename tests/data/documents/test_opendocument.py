"""OpenDocument's .odt to paragraphs and chapters."""

from pathlib import Path

from ..texts import documents, refusal, write
from .made import CHAPTER, opendocument, zipped
from .reading import left_out


def text_of(folder: Path, body: str) -> str:
    (text,) = documents(write(folder / "a.odt", opendocument(body)))
    return text


def test_paragraphs_headings_lists_and_tables(tmp_path: Path) -> None:
    row = "<table:table-row><table:table-cell><t:p>a</t:p></table:table-cell>"
    table = f"<table:table>{row}<table:table-cell><t:p>b</t:p></table:table-cell>"
    items = "<t:list><t:list-item><t:p>one</t:p></t:list-item></t:list>"
    body = (
        '<t:h t:outline-level="1">Title</t:h><t:p>A <t:span>few</t:span><t:s t:c="3"/>words<t:tab/>'
        f"in\n  a<t:line-break/>row.</t:p>{items}{table}</table:table-row></table:table>"
    )
    assert text_of(tmp_path, body) == "Title\n\nA few words in a\nrow.\n\n- one\na\tb"


def test_deleted_text_notes_comments_and_contents_are_left_out(tmp_path: Path) -> None:
    body = (
        "<t:tracked-changes><t:changed-region><t:deletion><t:p>gone</t:p></t:deletion>"
        "</t:changed-region></t:tracked-changes><t:table-of-content><t:p>1 ... 2</t:p>"
        "</t:table-of-content><t:p>kept<t:note><t:note-citation>1</t:note-citation>"
        "<t:note-body><t:p>a note</t:p></t:note-body></t:note>"
        "<o:annotation><t:p>a comment</t:p></o:annotation> text</t:p>"
    )
    assert text_of(tmp_path, body) == "kept text"
    counts = {"tables of contents": 1, "footnotes": 1, "comments": 1}
    assert left_out(tmp_path / "a.odt") == counts


def test_the_field_of_the_title_is_read_and_the_title_of_a_picture_is_not(tmp_path: Path) -> None:
    svg = "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"
    picture = f"<s:title xmlns:s='{svg}'>a fox</s:title><s:desc xmlns:s='{svg}'>runs</s:desc>"
    body = f"<t:p>The book <t:title>Emma</t:title> is long{picture}.</t:p>"
    assert text_of(tmp_path, body) == "The book Emma is long."


def test_each_chapter_is_a_document(tmp_path: Path) -> None:
    chapter = f'<t:h t:outline-level="1">Chapter</t:h><t:p>{CHAPTER}</t:p>'
    assert len(documents(write(tmp_path / "a.odt", opendocument(chapter * 6)))) == 6


def test_other_files_of_libreoffice_are_named(tmp_path: Path) -> None:
    mimetype = "application/vnd.oasis.opendocument.spreadsheet"
    file = write(tmp_path / "a.odt", zipped({"mimetype": mimetype, "content.xml": "<a/>"}))
    assert "save it as .csv or .pdf" in refusal(file)
    manifest = "<manifest><encryption-data/></manifest>"
    mimetype = "application/vnd.oasis.opendocument.text"
    locked = {"mimetype": mimetype, "META-INF/manifest.xml": manifest, "content.xml": "?"}
    assert "password" in refusal(write(tmp_path / "a.odt", zipped(locked)))
