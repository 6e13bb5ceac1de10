"""Rich Text Format to paragraphs."""

from pathlib import Path

import pytest

from ..texts import documents, refusal, write
from .made import CHAPTER
from .reading import left_out

HEAD = r"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\*\generator X;}{\info{\title T}}"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (r"\pard One\par Two\b  bold\b0 .\par", "One\n\nTwo bold."),
        (r"d\'e9j\'e0 \u8220?vu\u8221? \u-4051? \emdash \~\{\}\\", "déjà “vu” \uf02d — {}\\"),
        (r"\uc0\u233\uc2\u224 ??b", "éàb"),
        (r"\u55357?\u56898?!", "\U0001f642!"),
        ("a\nb\r\nc\\line d\\tab e", "abc\nd e"),
        (r"{\header no}{\footnote no}{\*\unknown no}{\pict 00ff}a", "a"),
        (r"a{\field{\*\fldinst no}{\fldrslt b}}", "ab"),
        (r"a\bin5 }}}}}b", "ab"),
        (r"\trowd a\cell b\cell\row c\cell\row", "a\tb\nc"),
        (r"{\*\shppict{\pict 00}}a{\mmathPr\mmathFont34 no}", "a"),
        ("\\'81\\'40", "@"),
        (r"a{\deleted gone}b\deleted  gone\deleted0 c", "abc"),
        (r"a{\v hidden}b\v no\v0  c{\xe {\v word}}", "ab c"),
        (r"a\zwnj b\zwj c", "a\u200cb\u200dc"),
        (r"a\column b\lbr3 c", "a\n\nb\nc"),
        (r"a\nestcell b\nestcell{\*\nesttableprops\trowd\nestrow}{\nonesttables\par}c\cell d\cell"
         r"\row", "a\tb\nc\td"),
        (r"\pard{\listtext\'b7\tab}one\par{\pntext 2.}two\par\pard x\par", "- one\n- two\n\nx"),
    ],
)  # fmt: skip
def test_control_words_become_text(body: str, text: str, tmp_path: Path) -> None:
    (found,) = documents(write(tmp_path / "a.rtf", f"{HEAD}{body}}}"))
    assert found.replace("\ufffd", "") == text


def test_a_code_page_of_two_bytes_is_decoded(tmp_path: Path) -> None:
    hexed = "".join(f"\\'{byte:02x}" for byte in "日本".encode("cp932"))
    file = write(tmp_path / "a.rtf", rf"{{\rtf1\ansi\ansicpg932 {hexed}}}")
    assert documents(file) == ["日本"]


def test_a_font_can_have_a_code_page_of_its_own(tmp_path: Path) -> None:
    fonts = r"{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 A Cyr;}{\f2\fcharset128 Mincho;}}"

    def hexed(text: str, encoding: str) -> str:
        return "".join(f"\\'{byte:02x}" for byte in text.encode(encoding))

    body = rf"\f1 {hexed('Да', 'cp1251')}{{\f2 {hexed('日本', 'cp932')}}}{hexed('!ё', 'cp1251')}"
    body += rf"\plain  {hexed('é', 'cp1252')}"
    file = write(tmp_path / "a.rtf", rf"{{\rtf1\ansi\ansicpg1252\deff0{fonts}{body}}}")
    assert documents(file) == ["Да日本!ё é"]
    usual = write(tmp_path / "b.rtf", rf"{{\rtf1\deff1{fonts}{hexed('Ночь', 'cp1251')}}}")
    assert documents(usual) == ["Ночь"]


def test_footnotes_are_counted(tmp_path: Path) -> None:
    file = write(tmp_path / "a.rtf", HEAD + r"a{\footnote one}{\*\footnote two}{\*\annotation no}}")
    assert left_out(file) == {"footnotes": 2, "comments": 1}


def test_entries_of_a_table_of_contents_are_left_out_and_counted(tmp_path: Path) -> None:
    styles = r"{\stylesheet{Normal;}{\s15\li240 \snext0 toc 1;}{\*\cs10 toc 2;}{\s16 My toc 1;}}"
    entries = r"\pard\s15 One\tab 1\par Two\tab 2\par\par\pard\s16 Three\par\pard"
    file = write(tmp_path / "a.rtf", HEAD + styles + entries + r" text\par}")
    assert documents(file) == ["Three\n\ntext"]
    assert left_out(file) == {"entries of tables of contents": 2}


@pytest.mark.parametrize(
    "shape",
    [
        r"{\shp{\*\shpinst{\sp{\sn x}{\sv no}}{\shptxt\pard in a\par box}}{\shprslt in a box\par}}",
        r"{\*\do\dpx1 no{\dptxbxtext\pard in a\par box\par}}",
    ],
)
def test_a_text_box_is_read_once_before_the_paragraph_that_it_is_in(
    shape: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "a.rtf", rf"{HEAD}one {shape}two\par{{\header {shape}}}}}")
    assert documents(file) == ["in a\n\nbox\n\none two"]


def test_deep_groups_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.rtf", r"{\rtf1" + "{" * 10_000)
    assert "more than 1,000 tags inside one another" in refusal(file)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (r"a\emspace b\enspace c\qmspace d", "a b c d"),
        (r"a\endash b\bullet c\lquote d\rquote \ldblquote e\rdblquote", "a–b•c‘d’“e”"),
        ("a\\\nb\\\r\nc", "a\n\nb\n\nc"),
        (r"one{\*\do\dpx1\par\tab no}two", "onetwo"),
        (r"a{\fonttbl{\f1 toc Sans;}}{\info{\title toc of birds}}b", "ab"),
        (r"\bin-3 a}b", "ab"),
        (r"\uc3\u233abcd", "éd"),
        (r"\u233{x}y", "éxy"),
        (r"a\page b\sect c", "a\n\nb\n\nc"),
        (r"a\_b\~c", "a\u2011b c"),
        (r"{\v no {\plain yes}\v0  too}", "yes too"),
        (r"a\cell\cell c\row", "a\t\tc"),
        ("a\\", "a}"),
    ],
)
def test_further_control_words_become_text(body: str, text: str, tmp_path: Path) -> None:
    (found,) = documents(write(tmp_path / "a.rtf", f"{HEAD}{body}}}"))
    assert found == text


@pytest.mark.parametrize(
    ("number", "encoding", "text"),
    [
        (437, "cp437", "é░"), (850, "cp850", "éÁ"), (852, "cp852", "ěő"), (1251, "cp1251", "Да"),
        (10000, "mac_roman", "é•"), (65001, "utf-8", "é日"), (1, "cp1252", "é€"),
        (99999, "cp1252", "é€"),
    ],
)  # fmt: skip
def test_the_code_page_of_a_file_is_known_by_its_number(
    number: int, encoding: str, text: str, tmp_path: Path
) -> None:
    hexed = "".join(f"\\'{byte:02x}" for byte in text.encode(encoding))
    file = write(tmp_path / "a.rtf", rf"{{\rtf1\ansi\ansicpg{number} {hexed}}}")
    assert documents(file) == [text]


@pytest.mark.parametrize(
    ("number", "encoding", "text"),
    [
        (77, "mac_roman", "é"), (128, "cp932", "日"), (129, "cp949", "한"), (130, "johab", "한"),
        (134, "gbk", "乌"), (136, "cp950", "烏"), (161, "cp1253", "Ω"), (162, "cp1254", "ğ"),
        (163, "cp1258", "ơ"), (177, "cp1255", "ש"), (178, "cp1256", "ع"), (186, "cp1257", "ė"),
        (204, "cp1251", "Я"), (222, "cp874", "ก"), (238, "cp1250", "ő"), (254, "cp437", "░"),
        (255, "cp850", "Á"), (0, "cp1252", "é"), (99, "cp1252", "é"),
    ],
)  # fmt: skip
def test_the_code_page_of_a_font_is_known_by_its_character_set(
    number: int, encoding: str, text: str, tmp_path: Path
) -> None:
    hexed = "".join(f"\\'{byte:02x}" for byte in text.encode(encoding))
    fonts = rf"{{\fonttbl{{\f3\fcharset{number} A;}}}}"
    file = write(tmp_path / "a.rtf", rf"{{\rtf1\ansi\ansicpg1252{fonts}\f3 {hexed}}}")
    assert documents(file) == [text]


def test_a_file_of_an_old_mac_says_so(tmp_path: Path) -> None:
    file = write(tmp_path / "a.rtf", r"{\rtf1\mac caf\'8e}")
    assert documents(file) == ["café"]


@pytest.mark.parametrize(("level", "text"), [(0, "x"), (5, "x"), (6, "- x"), (9, "- x")])
def test_a_heading_by_its_level_is_no_item_of_a_list(level: int, text: str, tmp_path: Path) -> None:
    body = rf"\pard\outlinelevel{level}{{\listtext 1.}}x\par\pard{{\listtext 1.}}y\par"
    file = write(tmp_path / "a.rtf", f"{HEAD}{body}}}")
    assert documents(file) == [f"{text}{chr(10) * (1 + (text == 'x'))}- y"]


def test_each_chapter_is_a_document(tmp_path: Path) -> None:
    chapter = rf"\pard\outlinelevel1 Chapter\par\pard {CHAPTER}\par"
    file = write(tmp_path / "a.rtf", f"{HEAD}{chapter * 5}}}")
    assert documents(file) == [f"Chapter\n\n{CHAPTER.strip()}"] * 5


def test_hidden_and_deleted_text_is_counted_once_for_each_piece(tmp_path: Path) -> None:
    body = r"a{\v b\v c}d{\deleted e}{\v f{\footnote g}}"
    file = write(tmp_path / "a.rtf", f"{HEAD}{body}}}")
    assert documents(file) == ["ad"]
    assert left_out(file) == {"hidden parts": 2, "deleted parts": 1, "footnotes": 1}
