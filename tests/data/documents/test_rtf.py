"""Rich Text Format to paragraphs."""

from pathlib import Path

import pytest

from ..texts import documents, refusal, write
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
