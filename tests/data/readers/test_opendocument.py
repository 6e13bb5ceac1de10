"""OpenDocument's .odt to paragraphs and chapters."""

from pathlib import Path

import pytest

from ..texts import documents, refusal, write
from .made import CHAPTER, OFFICE, opendocument, zipped
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
    counts = {"deleted parts": 1, "tables of contents": 1, "footnotes": 1, "comments": 1}
    assert left_out(tmp_path / "a.odt") == counts


STYLE = "urn:oasis:names:tc:opendocument:xmlns:style:1.0"


def style(name: str, family: str, properties: str = "", parent: str = "") -> str:
    return (
        f'<s:style xmlns:s="{STYLE}" s:name="{name}" s:family="{family}" '
        f's:parent-style-name="{parent}"><s:text-properties {properties}/></s:style>'
    )


def test_hidden_text_and_hidden_sections_are_left_out_and_counted(tmp_path: Path) -> None:
    """A style may be based on one in another part of the file."""
    automatic = style("T1", "text", parent="Hidden")
    automatic += style("T2", "text", 's:display="true"', "Hidden") + style("P1", "text")
    own = f'<o:automatic-styles xmlns:o="{OFFICE}">{automatic}</o:automatic-styles>'
    hidden = style("Hidden", "text", 's:display="none"', "Hidden")
    hidden += style("P1", "paragraph", 's:display="none"')
    shared = f'<o:document-styles xmlns:o="{OFFICE}">{hidden}</o:document-styles>'
    body = (
        '<t:p>one<t:span t:style-name="T1"> no</t:span><t:span t:style-name="T2"> two</t:span>'
        '<t:span t:style-name="P1"/></t:p><t:p t:style-name="P1">no</t:p>'
        '<t:section t:display="none"><t:p>no</t:p></t:section>'
        '<t:section t:display="condition" t:is-hidden="true"><t:p>no</t:p></t:section>'
        '<t:section t:display="true"><t:p>three'
        '<t:hidden-text t:is-hidden="true">no</t:hidden-text></t:p></t:section>'
        '<t:p>four<t:hidden-text t:is-hidden="false">.</t:hidden-text></t:p>'
        '<t:p><t:hidden-paragraph t:is-hidden="true"/>no</t:p>'
    )
    data = opendocument(body, styles=own, **{"styles.xml": shared})
    file = write(tmp_path / "a.odt", data)
    assert documents(file) == ["one two\n\nthree\n\nfour."]
    assert left_out(file) == {"hidden parts": 6}


def test_indexes_numbers_and_citations_are_left_out_and_counted(tmp_path: Path) -> None:
    indexes = "".join(f"<t:{name}><t:p>x 1</t:p></t:{name}>" for name in
                      ("user-index", "object-index", "alphabetical-index"))  # fmt: skip
    cited = "<t:p>said<t:bibliography-mark>[Fox]</t:bibliography-mark></t:p>"
    number = '<t:h t:outline-level="1"><t:number>1.</t:number>Crows</t:h>'
    item = "<t:list><t:list-item><t:number>2.</t:number><t:p>item</t:p></t:list-item></t:list>"
    file = write(tmp_path / "a.odt", opendocument(number + cited + item + indexes))
    assert documents(file) == ["Crows\n\nsaid\n\n- item"]
    assert left_out(file) == {"citations": 1, "tables of contents": 3}


def test_a_cell_that_another_one_covers_keeps_its_column(tmp_path: Path) -> None:
    row = (
        "<table:table-row><table:table-cell><t:p>a</t:p></table:table-cell>"
        "<table:covered-table-cell><t:p>old</t:p></table:covered-table-cell>"
        "<table:table-cell><t:p>b</t:p></table:table-cell></table:table-row>"
    )
    file = write(tmp_path / "a.odt", opendocument(f"<table:table>{row}</table:table>"))
    assert documents(file) == ["a\t\tb"]
    assert left_out(file) == {"hidden parts": 1}


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


@pytest.mark.parametrize("level", ["1", "9", "0", "10", "", "x", "-1"])
def test_a_heading_in_a_list_is_no_item_whatever_its_level(level: str, tmp_path: Path) -> None:
    items = f'<t:list-item><t:h t:outline-level="{level}">One</t:h><t:p>two</t:p></t:list-item>'
    assert text_of(tmp_path, f"<t:list>{items}</t:list><t:p>x</t:p>") == "One\n\n- two\n\nx"


def test_chapters_are_the_highest_headings_that_are_often_there(tmp_path: Path) -> None:
    def heading(level: int, text: str) -> str:
        return f'<t:h t:outline-level="{level}">{text}</t:h>'

    chapter = f"{heading(2, 'Chapter')}<t:p>{CHAPTER}</t:p>{heading(3, 'A section')}<t:p>x</t:p>"
    file = write(tmp_path / "a.odt", opendocument(heading(1, "Title") + chapter * 5))
    texts = documents(file)
    assert len(texts) == 5 and texts[0].startswith("Title\n\nChapter\n\n")
    assert all(text.endswith("\n\nA section\n\nx") for text in texts)


def test_a_table_in_a_cell_and_a_frame_in_a_paragraph_are_read_in_their_place(
    tmp_path: Path,
) -> None:
    def table(*cells: str) -> str:
        row = "".join(f"<table:table-cell>{cell}</table:table-cell>" for cell in cells)
        return f"<table:table><table:table-row>{row}</table:table-row></table:table>"

    inner = table("<t:p>a</t:p>", "<t:p>b</t:p>")
    assert text_of(tmp_path, table(f"<t:p>x</t:p>{inner}", "<t:p>y</t:p>")) == "x a\tb\ty"
    framed = "<t:p>one<t:frame><t:p>inside</t:p></t:frame> two</t:p><t:p>three</t:p>"
    assert text_of(tmp_path, framed) == "inside\n\none two\n\nthree"


def test_what_is_left_out_without_text_is_not_counted(tmp_path: Path) -> None:
    note = "<t:note><t:note-body><t:p> </t:p></t:note-body></t:note>"
    body = f"<t:p>a{note}b<t:span t:style-name='none'>c</t:span></t:p><t:table-of-content/>"
    assert text_of(tmp_path, body) == "abc"
    assert left_out(tmp_path / "a.odt") == {}


def test_text_before_the_body_is_none(tmp_path: Path) -> None:
    scripts = "<o:scripts><t:p>no</t:p></o:scripts>"
    file = write(tmp_path / "a.odt", opendocument("<t:p>text</t:p>", styles=scripts))
    assert documents(file) == ["text"]


def test_poems_are_lines_and_prose_is_not(tmp_path: Path) -> None:
    verse = "<t:p>a short line</t:p>" * 4 + "<t:p/>"
    assert text_of(tmp_path, verse * 2) == "\n\n".join(["\n".join(["a short line"] * 4)] * 2)
    few = "<t:p>a short line</t:p>" * 3 + "<t:p/>"
    assert text_of(tmp_path, few * 2) == "\n\n".join(["a short line"] * 6)
    long = f"<t:p>{'a long line ' * 8}</t:p>" * 4 + "<t:p/>"
    assert text_of(tmp_path, long * 2).count("\n\n") == 7
