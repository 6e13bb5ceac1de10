"""PDF to paragraphs and chapters, and parquet to rows; test_apart.py has what the process does that
reads them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from minigpt.config import ReadingConfig
from minigpt.data.readers.document import Report
from minigpt.data.readers.kinds import read_file

from ..texts import documents, refusal, write
from .made import parquet, pdf, pdf_in_font, pdf_of, scan, shown
from .reading import left_out

pytestmark = pytest.mark.usefixtures("read_in_process")

LINE = "This is a line of a paragraph that is about as long as the others, and then"


def text_of(folder: Path, *pages: list[str], at_top: Sequence[str] = ()) -> str:
    """The one document of a PDF."""
    (text,) = documents(write(folder / "a.pdf", pdf(*pages, at_top=at_top)))
    return text


def test_lines_are_joined_to_paragraphs_also_from_page_to_page(tmp_path: Path) -> None:
    first = [LINE, LINE, "it ends here.", LINE]
    assert text_of(tmp_path, first, ["goes on", "Heading", LINE]) == (
        f"{LINE} {LINE} it ends here.\n\n{LINE} goes on\n\nHeading\n\n{LINE}"
    )


def test_hyphens_at_the_ends_of_lines_are_joined_as_elsewhere_in_the_text(tmp_path: Path) -> None:
    lines = [
        f"{LINE} exam-",
        f"ple and {LINE[:50]} well-",
        "known, as well-known as 1990-",
        "2000.",
    ]
    text = text_of(tmp_path, lines)
    assert "and then example and" in text and " well-known, as well-known" in text


def test_hyphens_before_a_capital_or_an_and_stay(tmp_path: Path) -> None:
    lines = [f"{LINE} Franco-", f"German, {LINE[:60]} Haupt-", f"und Nebensatz, {LINE[:50]} PRO-",
             "VIDED."]  # fmt: skip
    text = text_of(tmp_path, lines)
    assert "Franco-German," in text and "Haupt- und Nebensatz" in text and "PROVIDED." in text


def test_the_last_line_of_a_title_page_does_not_go_on(tmp_path: Path) -> None:
    assert text_of(tmp_path, ["The Crow", "Anna Fox"], ["Preface", LINE, LINE]) == (
        f"The Crow\n\nAnna Fox\n\nPreface\n\n{LINE} {LINE}"
    )


def test_a_paragraph_of_a_narrow_column_goes_on_on_the_next_page(tmp_path: Path) -> None:
    wide = [LINE] * 9
    narrow = ["It was the best of crows,", "it was the worst of Foxes,"]
    text = text_of(tmp_path, [*wide, "It ends."], narrow, ["Foxes too.", *wide])
    assert "the worst of Foxes, Foxes too." in text


def test_page_headers_and_numbers_are_left_out(tmp_path: Path) -> None:
    pages = [
        ["My Book", f"Page {n}", f"{LINE} {'abcde'[n]}", f"It is {'abcde'[n]}.", f"- {n} -"]
        for n in range(1, 5)
    ]
    text = text_of(tmp_path, *pages)
    assert "Book" not in text and "Page" not in text and "-" not in text and "It is d." in text
    assert left_out(tmp_path / "a.pdf") == {"page headers and numbers": 12}


def test_numbers_and_words_at_the_edge_of_a_page_that_do_not_count_with_the_pages_stay(
    tmp_path: Path,
) -> None:
    """Chapters, years and words of the letters of Roman numbers."""
    names = ["III", "1984", "Civil", "1990", "mix", "1995", "Chapter 1", "Chapter 2", "Chapter 3"]
    pages = [[name, f"{LINE} {'abcdefghi'[n]}", f"It is {'abcdefghi'[n]}."]
             for n, name in enumerate(names)]  # fmt: skip
    blank = [["A preface", LINE, "Yours."], *pages[:6]]
    chapters = [pages[6], [f"{LINE} x"], pages[7], [f"{LINE} y"], ["z"], pages[8]]
    text = text_of(tmp_path, *blank, *chapters)
    assert all(name in text.replace("\n", " ").split(" ") for name in names[:6])
    assert all(name in text for name in names[6:])
    assert left_out(tmp_path / "a.pdf") == {}


@pytest.mark.parametrize(
    ("numbers", "count"),
    [
        (["i", "ii", "iii", "iv"], 4),
        (["17", "18", "", "20"], 3),
        (["12 13", "14 15", "16 17", "18 19"], 4),
        (["1 / 4", "2 / 4", "3 / 4", "4 / 4"], 4),
        (["The Fox 7", "8 My Book", "The Fox 9", "10 My Book"], 0),
        (["The Fox 7", "The Fox 8", "The Fox 9", "The Fox 10"], 4),
        (["1", "2"], 2),
        (["7", "8"], 0),
        (["Page 7"], 1),
    ],
)
def test_numbers_that_count_with_the_pages_are_left_out(
    numbers: list[str], count: int, tmp_path: Path
) -> None:
    pages = [[f"{LINE} {'abcd'[n]}", f"It is {'abcd'[n]}.", number]
             for n, number in enumerate(numbers)]  # fmt: skip
    text = text_of(tmp_path, *pages)
    assert left_out(tmp_path / "a.pdf") == ({"page headers and numbers": count} if count else {})
    stay = [
        number for number in numbers if number and f" {number} " in f"{text} ".replace("\n", " ")
    ]
    assert len(stay) == (0 if count else len(numbers))


def test_what_stands_beside_the_number_of_a_page_is_a_page_header(tmp_path: Path) -> None:
    """Each chapter has its own, on one page or two; the number is far from it."""
    pages = [[f"{'abcdef'[n]} {LINE}", f"The end of {'abcdef'[n]}."] for n in range(6)]
    heads = [f"Chapter {'abcdef'[n // 2]}" for n in range(6)]
    beside = [f"(17) Tj -500 0 Td ({head}) Tj".replace("17", str(n + 3))
              for n, head in enumerate(heads)]  # fmt: skip
    text = text_of(tmp_path, *pages, at_top=beside)
    assert "Chapter" not in text and not any(str(n) in text for n in range(3, 9))
    assert "The end of f." in text


def test_letters_printed_twice_to_look_bold_are_read_once(tmp_path: Path) -> None:
    twice = "".join(f"({letter}) Tj 0.2 0 Td ({letter}) Tj 6 0 Td " for letter in "Moon")
    text = text_of(tmp_path, ["A good book"], at_top=[twice])
    assert sorted(text.split()) == ["A", "Moon", "book", "good"]


def test_entries_of_a_table_of_contents_are_left_out(tmp_path: Path) -> None:
    contents = ["Contents", "1 The fox . . . . . . . . 3", "2 The crow ........ 12", "."]
    assert text_of(tmp_path, [*contents, LINE, LINE]) == f"{LINE} {LINE}"
    apart = ["Contents", "1 The fox", "2 The crow", "3 The bread", "3", "12", "20"]
    assert text_of(tmp_path, [*apart, LINE, LINE]) == f"{LINE} {LINE}"
    following = [f"{n} The fox . . . . . . {n}" for n in range(9)]
    assert text_of(tmp_path, [LINE, *following, "7", LINE]) == f"{LINE} {LINE}"


@pytest.mark.parametrize("end", [". . .", ". . . .", "....", "....?", ". . . . I"])
def test_a_line_that_ends_with_an_ellipsis_stays(end: str, tmp_path: Path) -> None:
    lines = [f"This is a line that is about as long as the other ones {end}", LINE, f"so {end}"]
    assert text_of(tmp_path, lines) == " ".join(lines)
    assert ". . ." in text_of(tmp_path, [LINE, "It ended.", ". . .", LINE])


def test_numbers_and_single_dots_of_formulas_are_no_table_of_contents(tmp_path: Path) -> None:
    """Papers have numbered equations and lines, and dots that formulas end with."""
    formulas = [line for number in range(1, 8) for line in (LINE, ".", f"{7 * number}")]
    assert text_of(tmp_path, [*formulas, LINE]).count(LINE) == 8


ASCII = {chr(code): chr(code) for code in range(32, 127)}


@pytest.mark.parametrize("known_as", [None, "\0", "\ufffd", "\ue001"])
def test_signs_whose_letters_the_file_does_not_tell_are_left_out_and_counted(
    known_as: str | None, tmp_path: Path
) -> None:
    """Fonts name them in several ways, or not at all."""
    told = ASCII if known_as is None else {**ASCII, "é": known_as}
    data = pdf_in_font(shown("Copyright cé 2022 Foé"), told=told)
    file = write(tmp_path / "a.pdf", data)
    assert documents(file) == ["Copyright c 2022 Fo"]
    assert left_out(file) == {"signs whose letters the file does not tell": 2}


def test_a_text_that_only_looks_like_a_name_of_a_sign_stays(tmp_path: Path) -> None:
    assert text_of(tmp_path, ["c(cid:13) 2022 Fox"]) == "c(cid:13) 2022 Fox"


def test_what_a_page_says_that_its_signs_stand_for_is_read(tmp_path: Path) -> None:
    """In the page, by a name, for several signs, inside another, and as nothing."""
    off = f"{shown('o')}/Span << /ActualText (ff) >> BDC {shown('é')} EMC "
    find = f"{shown(' ')}/Span /P0 BDC {shown('éé')} EMC {shown('nd ')}"
    dash = f"/Span << /ActualText <FEFF20AC> >> BDC /P BMC {shown('e u r')} EMC EMC "
    none = f"/Span << /ActualText () >> BDC {shown('-')} EMC EMC {shown(' end')}"
    file = write(tmp_path / "a.pdf", pdf_in_font(off + find + dash + none, told=ASCII))
    assert documents(file) == ["off find € end"]
    assert left_out(file) == {}


def test_a_file_that_tells_hardly_any_letter_is_named_as_a_scan_is(tmp_path: Path) -> None:
    page = shown("the fox asked the crow")
    file = write(tmp_path / "a.pdf", pdf_in_font(page, told={"e": "e", " ": " "}))
    assert "does not tell which letters its pages show" in refusal(file)
    assert "ocrmypdf" in refusal(file)


def test_a_page_of_signs_without_letters_is_left_out_and_the_others_are_read(
    tmp_path: Path,
) -> None:
    pages = [shown("A page that is read."), shown("ééé é éééé e")]
    file = write(tmp_path / "a.pdf", pdf_in_font(*pages, told=ASCII))
    assert documents(file) == ["A page that is read."]
    assert left_out(file) == {"pages whose letters the file does not tell": 1}


HEBREW = {letter: letter for letter in "אבגדהוזחטיכלמנסעפצקרשתםןףץך"}
WORDS = {**ASCII, **HEBREW, "\u05b8": "\u05b8"}


@pytest.mark.parametrize(
    ("drawn", "read"),
    [
        ("בלכו דלי םעפ היה היה", "היה היה פעם ילד וכלב"),
        (".1984 תנשב דלונ דליה", "הילד נולד בשנת 1984."),
        ("(50% דועו) 12:30 העשב", "בשעה 12:30 (ועוד 50%)"),
        ("םוי לכב Windows 95 לש בשחמ", "מחשב של Windows 95 בכל יום"),
        ("The word םולש בר means much peace", "The word רב שלום means much peace"),
    ],
)
def test_lines_from_right_to_left_are_read_in_their_order(
    drawn: str, read: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "a.pdf", pdf_in_font(shown(drawn), told=WORDS))
    assert documents(file) == [read]


def test_letters_from_right_to_left_may_be_drawn_in_any_order(tmp_path: Path) -> None:
    """By programs that draw them as they are read; with points, which stand on their letters."""
    signs = [(120, "ש"), (121, "\u05b8"), (115, "ל"), (110, "ו"), (105, "ם"), (98, "ר"), (93, "ב")]
    page = "".join(f"1 0 0 1 {x} 700 Tm {shown(sign)}" for x, sign in signs)
    file = write(tmp_path / "a.pdf", pdf_in_font(page, told=WORDS))
    assert documents(file) == ["ש\u05b8לום רב"]


def test_the_forms_of_letters_are_read_as_letters(tmp_path: Path) -> None:
    """Ligatures, and the four forms that each Arabic letter has."""
    told = {**ASCII, "a": "ﬁ", "b": "\ufee2", "c": "\ufefc", "d": "\ufeb3"}
    file = write(tmp_path / "a.pdf", pdf_in_font(shown("a") + "T* " + shown("bcd"), told=told))
    assert "".join(documents(file)).split() == ["fi", "سلام"]


def test_a_damaged_page_does_not_cost_the_others_and_a_missing_one_is_counted(
    tmp_path: Path,
) -> None:
    whole = pdf([LINE], ["gone"], [LINE])
    file = write(
        tmp_path / "a.pdf", whole.replace(b"/Kids [5 0 R 7 0 R 9", b"/Kids [5 0 R 99 0 R 9")
    )
    assert documents(file) == [f"{LINE} {LINE}"]
    assert left_out(file) == {"pages that are missing in the file": 1}


def test_a_page_whose_reading_fails_costs_neither_the_others_nor_the_outline(
    tmp_path: Path,
) -> None:
    pages = [[f"The chapter {name}", *([LINE] * 20)] for name in "abcdef"]
    whole = pdf(*pages, ["gone"], outline=[(n, f"The chapter {'abcdef'[n]}") for n in range(6)])
    before, _, after = whole.rpartition(b"/MediaBox [0 0")
    file = write(tmp_path / "a.pdf", before + b"/MediaBox [/ 0" + after)
    assert len(documents(file)) == 6
    assert left_out(file)["pages that are damaged"] == 1


def test_a_word_that_a_soft_hyphen_divides_is_one(tmp_path: Path) -> None:
    page = shown("This is an exam\u00ad") + "T* " + shown("ple of it.")
    file = write(tmp_path / "a.pdf", pdf_in_font(page, told={**ASCII, "\u00ad": "\u00ad"}))
    assert documents(file) == ["This is an example of it."]


def test_comments_and_fields_of_a_form_are_counted(tmp_path: Path) -> None:
    annotations = (
        "<< /Subtype /Text /Contents (a comment) >> << /Subtype /Highlight /Contents () >> "
        "<< /Subtype /Link /Contents (a link) >> << /Subtype /Widget /V (Anna) >> "
        "<< /Subtype /Widget /Parent << /V (Otto) >> >> << /Subtype /Widget /V /Off >> 7 [/x]"
    )
    page = b"/Type /Page /Parent"
    annotated = page.replace(b"/Parent", f"/Annots [{annotations}] /Parent".encode())
    file = write(tmp_path / "a.pdf", pdf([LINE]).replace(page, annotated))
    assert documents(file) == [LINE]
    assert left_out(file) == {"comments": 1, "fields of forms": 2}


def test_of_a_text_that_all_is_in_a_figure_the_figure_is_read(tmp_path: Path) -> None:
    figure = f"BT /F1 10 Tf 50 700 Td ({LINE}) Tj ET"
    form = (
        f"<< /Type /XObject /Subtype /Form /BBox [0 0 600 800] /Length {len(figure)} "
        f"/Resources << /Font << /F1 5 0 R >> >> >>\nstream\n{figure}\nendstream"
    )
    page = (
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 6 0 R "
        "/Resources << /XObject << /I 4 0 R >> /Font << /F1 5 0 R >> >> >>"
    )
    for operators, text, counts in (
        ("/I Do", LINE, {}),
        ("/I Do BT /F1 10 Tf 50 400 Td (A page with a figure.) Tj ET", "A page with a figure.",
         {"texts in figures": 1}),
    ):  # fmt: skip
        objects = [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            page,
            form,
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            f"<< /Length {len(operators)} >>\nstream\n{operators}\nendstream",
        ]
        file = write(tmp_path / "a.pdf", pdf_of(objects))
        assert documents(file) == [text]
        assert left_out(file) == counts


def test_each_chapter_of_the_outline_is_a_document(tmp_path: Path) -> None:
    pages = [[f"{n} The chapter {'abcdef'[n]}", *([LINE] * 20)] for n in range(6)]
    outline = [(n, f"The Chapter {'abcdef'[n]}") for n in range(6)]
    texts = documents(write(tmp_path / "a.pdf", pdf(*pages, outline=outline)))
    assert len(texts) == 6 and texts[3].startswith("3 The chapter d\n\nThis is")


def test_a_scan_is_named_as_one(tmp_path: Path) -> None:
    file = write(tmp_path / "scan.pdf", scan())
    assert refusal(file).startswith(f"{file} is a scan: its pages are pictures without text")


# Parquet


def test_each_row_of_a_parquet_file_is_a_document(tmp_path: Path) -> None:
    texts = [f"row {n}" for n in range(700)]
    file = write(
        tmp_path / "a.parquet", parquet({"id": list(range(702)), "text": [*texts, None, ""]})
    )
    report = Report(file)
    assert [document.text for document in read_file(file, ReadingConfig(), report)] == texts
    assert report.left_out == {"rows without text": 2}


def test_another_column_of_a_parquet_file_can_be_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", parquet({"title": ["a"], "body": ["b"]}))
    assert documents(file, text_field="body") == ["b"]
    assert refusal(file) == (
        f"{file} has no column 'text'; name one with --text-field: title, body"
    )


def test_a_column_of_bytes_holds_text_if_they_are_utf_8(tmp_path: Path) -> None:
    """As some programs write text."""
    values = ["naïve".encode(), b"\xff", b""]
    file = write(tmp_path / "a.parquet", parquet({"text": values}))
    report = Report(file)
    assert [document.text for document in read_file(file, ReadingConfig(), report)] == ["naïve"]
    assert report.left_out == {"rows without text": 2}


def test_a_parquet_file_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", parquet({"text": ["x" * 100_000] * 200}))
    assert "unpacks to too many times its size" in refusal(file)


def test_lines_of_dots_words_and_signs_take_no_long_time(tmp_path: Path) -> None:
    """A pattern that tries all ways to read them would never end."""
    lines = [". " * 100 + "x", "x" * 2000, "-" * 2000, "1 " * 1000, f"{'x' * 2000}-", LINE]
    assert LINE in text_of(tmp_path, lines)
