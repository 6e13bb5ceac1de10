"""Word's .docx to paragraphs and chapters."""

from pathlib import Path

import pytest

from ..texts import documents, refusal, write
from .made import CHAPTER, W, p, word, zipped
from .reading import left_out


def text_of(folder: Path, body: str) -> str:
    """The one document of a body."""
    (text,) = documents(write(folder / "a.docx", word(body)))
    return text


def test_paragraphs_are_separated_by_an_empty_line(tmp_path: Path) -> None:
    assert text_of(tmp_path, p("One  is\nhere.") + p("") + p("Two & <three>.")) == (
        "One is here.\n\nTwo & <three>."
    )


def test_breaks_tabs_and_hyphens_in_a_paragraph_are_characters(tmp_path: Path) -> None:
    run = "<w:p><w:r><w:t>a</w:t><w:ptab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:softHyphen/>"
    assert text_of(tmp_path, run + "<w:noBreakHyphen/><w:t>d</w:t></w:r></w:p>") == "a b\nc‑d"


def test_deleted_text_comments_notes_and_fields_are_left_out(tmp_path: Path) -> None:
    body = (
        '<w:p><w:r><w:t>kept</w:t><w:footnoteReference w:id="1"/></w:r>'
        "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
        "<w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom>"
        "<w:r><w:instrText>PAGEREF</w:instrText></w:r>"
        "<w:ins><w:r><w:t xml:space='preserve'> too</w:t></w:r></w:ins></w:p>"
    ) + p("Chapter 1 ... 5", "Verz1")
    file = write(tmp_path / "a.docx", word(body, **{"word/footnotes.xml": p("a note")}))
    assert documents(file) == ["kept too"]
    assert left_out(file) == {
        "footnotes": 1, "deleted parts": 1, "entries of tables of contents": 1,
    }  # fmt: skip


def test_hidden_text_and_pronunciations_are_left_out(tmp_path: Path) -> None:
    body = (
        "<w:p><w:pPr><w:rPr><w:vanish/></w:rPr></w:pPr><w:r><w:t>seen</w:t></w:r>"
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>"
        "<w:r><w:rPr><w:vanish w:val='0'/></w:rPr><w:t>, too: </w:t></w:r>"
        "<w:r><w:ruby><w:rt><w:r><w:t>とうきょう</w:t></w:r></w:rt>"
        "<w:rubyBase><w:r><w:t>東京</w:t></w:r></w:rubyBase></w:ruby></w:r></w:p>"
    )
    file = write(tmp_path / "a.docx", word(body))
    assert documents(file) == ["seen, too: 東京"]
    assert left_out(file) == {"hidden parts": 1}


def test_text_that_a_style_hides_is_left_out(tmp_path: Path) -> None:
    """Of a paragraph or of characters, perhaps by the style that it is based on."""

    def style(name: str, properties: str) -> str:
        return f'<w:style w:styleId="{name}"><w:name w:val="{name}"/>{properties}</w:style>'

    def run(name: str, text: str, more: str = "") -> str:
        return f'<w:r><w:rPr><w:rStyle w:val="{name}"/>{more}</w:rPr><w:t>{text}</w:t></w:r>'

    hidden = style("Hidden", "<w:rPr><w:vanish/></w:rPr>")
    based = style("Based", '<w:basedOn w:val="Hidden"/>')
    shown = style("Shown", '<w:basedOn w:val="Based"/><w:rPr><w:vanish w:val="0"/></w:rPr>')
    circle = style("Circle", '<w:basedOn w:val="Circle"/>')
    styles = f'<w:styles xmlns:w="{W}">{based}{hidden}{shown}{circle}</w:styles>'

    runs = run("Hidden", "no") + run("Based", "no") + run("Shown", "one ") + run("Circle", "two ")
    direct = run("Based", "three", "<w:vanish w:val='false'/>")
    body = f"<w:p>{runs}{direct}</w:p>"
    body += p("none", "Based") + p("four", "Shown")
    file = write(tmp_path / "a.docx", word(body, **{"word/styles.xml": styles}))
    assert documents(file) == ["one two three\n\nfour"]
    assert left_out(file) == {"hidden parts": 4}


@pytest.mark.parametrize("mark", ["del", "vanish"])
def test_a_paragraph_whose_end_is_deleted_or_hidden_goes_on_in_the_next(
    mark: str, tmp_path: Path
) -> None:
    def open_ended(text: str) -> str:
        return f"<w:p><w:pPr><w:rPr><w:{mark}/></w:rPr></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"

    row = f"<w:tr><w:tc>{open_ended('c')}</w:tc><w:tc>{p('d')}</w:tc></w:tr>"
    body = f"{open_ended('o')}{open_ended('n')}{p('e')}{p('two')}<w:tbl>{row}</w:tbl>"
    file = write(tmp_path / "a.docx", word(body + open_ended("end")))
    assert documents(file) == ["one\n\ntwo\n\nc\td\n\nend"]
    assert left_out(file) == {}


def test_a_format_of_before_a_change_is_none(tmp_path: Path) -> None:
    old = "<w:pPrChange><w:pPr><w:pStyle w:val='Verz1'/></w:pPr></w:pPrChange>"
    hidden = "<w:rPr><w:rPrChange><w:rPr><w:vanish/></w:rPr></w:rPrChange></w:rPr>"
    body = f"<w:p><w:pPr>{old}</w:pPr><w:r>{hidden}<w:t>seen</w:t></w:r></w:p>"
    assert text_of(tmp_path, body) == "seen"


def test_signs_of_a_font_and_inserted_documents_are_counted(tmp_path: Path) -> None:
    signs = '<w:sym w:font="Wingdings" w:char="F0E0"/><w:sym w:font="Arial" w:char="00E9"/>'
    body = f'<w:p><w:r><w:t>caf</w:t>{signs}</w:r></w:p><w:altChunk id="r1"/>'
    file = write(tmp_path / "a.docx", word(body))
    assert documents(file) == ["café"]
    assert left_out(file) == {
        "signs whose letters the file does not tell": 1, "inserted documents": 1,
    }  # fmt: skip


def test_a_text_box_is_read_once(tmp_path: Path) -> None:
    """It is stored twice, for new and for old versions of Word."""
    mc = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    box = f"<w:txbxContent>{p('in the box')}</w:txbxContent>"
    choice = f"<mc:AlternateContent xmlns:mc='{mc}'><mc:Choice>{box}</mc:Choice>"
    body = f"<w:p><w:r>{choice}<mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    assert text_of(tmp_path, body) == "in the box"


def test_rows_of_tables_and_items_of_lists_are_lines(tmp_path: Path) -> None:
    def row(*cells: str) -> str:
        return f"<w:tr>{''.join(f'<w:tc>{p(cell)}</w:tc>' for cell in cells)}</w:tr>"

    item = p("item").replace("<w:r>", "<w:pPr><w:numPr/></w:pPr><w:r>", 1)
    table = f"<w:tbl>{row('a', 'b')}{row('c', 'd')}</w:tbl>"
    assert text_of(tmp_path, item * 2 + p("x") + table) == "- item\n- item\n\nx\n\na\tb\nc\td"


def test_a_table_for_the_layout_is_as_good_as_none(tmp_path: Path) -> None:
    cell = f"<w:tc>{p('One.')}{p('Two.')}</w:tc><w:tc>{p('')}</w:tc>"
    assert text_of(tmp_path, f"<w:tbl><w:tr>{cell}</w:tr></w:tbl>") == "One.\n\nTwo."


@pytest.mark.parametrize("level", [1, 2])
def test_each_chapter_is_a_document(level: int, tmp_path: Path) -> None:
    """By the highest headings of which there are enough; that of a part stays with a chapter."""
    body = p("My Book", "berschrift1") if level == 2 else ""
    for number in range(5):
        body += p(f"Chapter {number}", f"berschrift{level}") + p(CHAPTER)
    texts = documents(write(tmp_path / "a.docx", word(body)))
    assert len(texts) == 5
    assert texts[0].removeprefix("My Book\n\n") == f"Chapter 0\n\n{CHAPTER.strip()}"
    assert texts[0].startswith("My Book") == (level == 2)


def test_few_or_short_sections_are_no_chapters(tmp_path: Path) -> None:
    few = "".join(p(f"{n}", "berschrift1") + p(CHAPTER) for n in range(4))
    short = "".join(p(f"{n}", "berschrift1") + p("short") for n in range(9))
    for body in (few, short):
        assert len(documents(write(tmp_path / "a.docx", word(body)))) == 1


def test_lines_between_empty_paragraphs_are_verses(tmp_path: Path) -> None:
    body = (p("a short line") * 4 + p("")) * 3
    assert text_of(tmp_path, body) == "\n\n".join(["\n".join(["a short line"] * 4)] * 3)


def test_a_word_file_is_known_by_its_content(tmp_path: Path) -> None:
    assert documents(write(tmp_path / "novel.txt", word(p("text")))) == ["text"]
    assert documents(write(tmp_path / "novel.docx", "plain text")) == ["plain text"]


def test_spreadsheets_presentations_and_old_files_are_named(tmp_path: Path) -> None:
    for folder, what in (("xl", "spreadsheet"), ("ppt", "presentation")):
        data = zipped({"[Content_Types].xml": "", f"{folder}/a.xml": ""})
        assert f"is a {what}; save" in refusal(write(tmp_path / "a.docx", data))
    old = write(tmp_path / "a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600)
    assert "save it as .docx" in refusal(old)


def test_damaged_files_are_refused_by_name(tmp_path: Path) -> None:
    whole = word(p("text"))
    for data in (whole[:-30], whole[: len(whole) // 2], zipped({"[Content_Types].xml": ""})):
        file = write(tmp_path / "a.docx", data)
        assert refusal(file).startswith(f"cannot read {file}: ")
    xml = f'<w:document xmlns:w="{W}"><w:p>'
    file = write(tmp_path / "a.docx", word("", **{"word/document.xml": xml}))
    assert "its XML is damaged" in refusal(file)


def test_the_main_part_may_have_another_name_and_stand_after_others(tmp_path: Path) -> None:
    def package(relations: str, name: str) -> bytes:
        document = f'<w:document xmlns:w="{W}"><w:body>{p("text")}</w:body></w:document>'
        parts = {"[Content_Types].xml": "<Types/>", name: document}
        return zipped(parts | ({"_rels/.rels": f"<R>{relations}</R>"} if relations else {}))

    office = "http://purl.oclc.org/ooxml/officeDocument/relationships"
    relations = f'<Relationship Type="{office}/extendedProperties" Target="docProps/app.xml"/>'
    relations += f'<Relationship Type="{office}/officeDocument" Target="/word/document2.xml"/>'
    file = write(tmp_path / "a.docx", package(relations, "word/document2.xml"))
    assert documents(file) == ["text"]
    usual = write(tmp_path / "b.docx", package("", "word/document.xml"))
    assert documents(usual) == ["text"]
    lost = write(tmp_path / "c.docx", package(relations, "word/document.xml"))
    assert "it has no 'word/document2.xml' inside" in refusal(lost)


def test_a_tab_is_a_space_and_a_tab_stop_is_none(tmp_path: Path) -> None:
    stops = '<w:tabs><w:tab w:val="left" w:pos="720"/></w:tabs>'
    open_end = "<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:r><w:t>o</w:t></w:r></w:p>"
    run = "<w:r><w:t>ne</w:t><w:tab/><w:t>b</w:t></w:r>"
    assert text_of(tmp_path, f"{open_end}<w:p><w:pPr>{stops}</w:pPr>{run}</w:p>") == "one b"


@pytest.mark.parametrize(
    ("outline", "text"), [(0, "x"), (1, "x"), (5, "x"), (6, "- x"), (9, "- x")]
)
def test_a_heading_by_its_level_is_no_item_of_a_list(
    outline: int, text: str, tmp_path: Path
) -> None:
    """The tenth level is that of the body's text, which numbered paragraphs may name."""
    properties = f'<w:pPr><w:numPr/><w:outlineLvl w:val="{outline}"/></w:pPr>'
    assert text_of(tmp_path, f"<w:p>{properties}<w:r><w:t>x</w:t></w:r></w:p>") == text


def test_chapters_are_found_by_the_level_of_their_headings_too(tmp_path: Path) -> None:
    head = '<w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr><w:r><w:t>Chapter</w:t></w:r></w:p>'
    assert len(documents(write(tmp_path / "a.docx", word((head + p(CHAPTER)) * 5)))) == 5


@pytest.mark.parametrize(
    ("code", "letter"),
    [
        ("E000", ""),
        ("F8FF", ""),
        ("F900", "\uf900"),
        ("41", "A"),
        ("", ""),
        ("xyz", ""),
        ("1F600", ""),
    ],
)
def test_of_the_signs_of_a_font_those_are_read_that_are_letters(
    code: str, letter: str, tmp_path: Path
) -> None:
    body = f'<w:p><w:r><w:t>a</w:t><w:sym w:char="{code}"/></w:r></w:p>'
    assert text_of(tmp_path, body) == f"a{letter}"
    assert bool(left_out(tmp_path / "a.docx")) == (not letter)


def test_a_table_in_a_cell_is_read_in_its_place(tmp_path: Path) -> None:
    def table(*cells: str) -> str:
        row = "".join(f"<w:tc>{cell}</w:tc>" for cell in cells)
        return f"<w:tbl><w:tr>{row}</w:tr></w:tbl>"

    inner = table(p("a"), p("b"))
    assert text_of(tmp_path, table(p("x") + inner, p("y"))) == "x a\tb\ty"
    assert text_of(tmp_path, table(inner + p("below"), p(""))) == "a\tb\n\nbelow"
    assert text_of(tmp_path, table(p("x"), p(""), p("z"), p(""))) == "x\t\tz"
