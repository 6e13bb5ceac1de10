"""One file to documents of text, packed or not, or to the line that says why not."""

import gzip
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.config import ReadingConfig
from minigpt.data.readers.content import BLOCK
from minigpt.data.readers.document import Report, without_invisible
from minigpt.data.readers.kinds import read_file

from .readers.reading import report_of
from .texts import documents, json_lines, refusal, write

law = settings(max_examples=20, deadline=None)

any_text = st.text(st.characters(exclude_characters="\r")).map(without_invisible)


@given(texts=st.lists(any_text, max_size=4))
@law
def test_pieces_join_to_the_text_and_an_empty_file_is_no_document(
    folder: Path, texts: list[str]
) -> None:
    assume(not any("<|endoftext|>" in text for text in texts))  # which is between documents
    files = [write(folder / f"{i}.txt", text) for i, text in enumerate(texts)]
    assert documents(*files) == [text for text in texts if text.strip()]


@pytest.mark.parametrize("text", ["é", "中", "🙂", "a\u200d"])
@pytest.mark.parametrize("before", range(1, 5))
def test_a_character_may_lie_across_two_blocks(before: int, text: str, folder: Path) -> None:
    whole = "a" * (BLOCK - before) + text
    assert documents(write(folder / "long.txt", whole)) == [whole]


@pytest.mark.parametrize(
    "begin",
    [
        "*** START OF THE PROJECT GUTENBERG EBOOK CROWS ***",
        "*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*",
        "*END THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.10/04/01*END*",
    ],
)
def test_project_gutenberg_s_header_and_licence_are_left_out(begin: str, tmp_path: Path) -> None:
    end = "End of The Project Gutenberg Etext of Crows"
    file = write(tmp_path / "a.txt", f"Header\n\n{begin}\n\nA crow.\n\n{end}\n\nLicence\n")
    assert documents(file) == ["A crow."]


def test_what_stands_between_two_books_of_project_gutenberg_stays(tmp_path: Path) -> None:
    """Also where the second book has no first line of a header."""
    begin, end = (
        f"*** {word} OF THE PROJECT GUTENBERG EBOOK CROWS ***" for word in ("START", "END")
    )
    licence = "Licence\nto hear about new eBooks."
    book = f"Title: Crows\n\n{begin}\n\nA crow.\n\n{end}\n{licence}\n"
    file = write(tmp_path / "a.txt", f"{book}\nMy own words.\n\n{book}")
    assert documents(file) == ["A crow.", "My own words.\n\nTitle: Crows", "A crow."]


def test_a_byte_order_mark_is_no_text_wherever_it_is(tmp_path: Path) -> None:
    assert documents(write(tmp_path / "a.txt", "\ufeffa\ufeffb")) == ["ab"]
    assert documents(write(tmp_path / "b.txt", "\ufeff")) == []


@pytest.mark.parametrize("name", ["a.txt.gz", "a.md.gz", "a.GZ", "a.txt", "a"])
def test_gzip_is_known_by_its_content(name: str, tmp_path: Path) -> None:
    zipped = gzip.compress("\ufeffzipped é".encode())
    assert documents(write(tmp_path / name, zipped)) == ["zipped é"]
    assert documents(write(tmp_path / name, "plain é")) == ["plain é"]


@given(texts=st.lists(any_text.map(str.strip).filter(bool), max_size=4), data=st.data())
@law
def test_a_line_of_its_own_separates_documents(
    folder: Path, texts: list[str], data: st.DataObject
) -> None:
    lines = st.sampled_from(["\n", "\n\n", "\r\n", "\r"])
    separators = [f"{data.draw(lines)}<|endoftext|>{data.draw(lines)}" for _ in texts]
    file = write(folder / "a.txt", "".join(map("".join, zip(texts, separators, strict=True))))
    assert documents(file) == texts


MARK = "<|endoftext|>"


def by_lines(text: str) -> list[str]:
    """The documents of a text, found line by line."""
    parts: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.strip(" \t") == MARK:
            parts.append([])
        else:
            parts[-1].append(line)
    found = ["\n".join(lines) for lines in parts]
    found = [found[0], *(text.lstrip("\n") for text in found[1:])]
    found = [*(text.rstrip("\n") for text in found[:-1]), found[-1]]
    return [text for text in found if text.strip()]


@given(
    parts=st.lists(
        st.sampled_from([MARK, "\n", "\n\n", " ", "\t", "a", "<|end", "b "]), max_size=20
    ),
    block=st.integers(1, 30),
    start=st.sampled_from(["", "\ufeff"]),
)
@example(parts=[MARK, "\n", "a"], block=30, start="\ufeff")
@example(parts=["a\n", MARK, "\n\n", MARK, "\n", MARK], block=30, start="")
@example(parts=["a\n ", MARK, "\t\n", "b"], block=30, start="")
@settings(max_examples=100, deadline=None)
def test_separators_may_stand_first_last_and_in_a_row(
    folder: Path, parts: list[str], block: int, start: str
) -> None:
    """Whatever blocks the text is read in. Where a document begins its line is known."""
    text = "".join(parts)
    file = write(folder / "a.txt", start + text)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("minigpt.data.readers.encoding.BLOCK", block)
        assert documents(file) == by_lines(text)
        pieces = list(read_file(file, ReadingConfig()))
    for piece in pieces:
        if piece.is_first:
            assert "\n".join(text.split("\n")[piece.line - 1 :]).startswith(piece.text)


def test_an_endless_beginning_of_a_separator_is_not_held_in_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minigpt.data.readers.encoding.BLOCK", 10)
    monkeypatch.setattr("minigpt.data.readers.plain._MOST_HELD", 50)
    monkeypatch.setattr("minigpt.data.readers.plain._LONGEST", 50)
    for text in ("\n" * 1000 + "a", "a" + "\n" * 1000):
        file = write(folder / "a.txt", text)
        pieces = [piece.text for piece in read_file(file, ReadingConfig())]
        assert "".join(pieces) == text and max(map(len, pieces)) <= 130


def test_a_separator_may_lie_across_two_blocks_and_is_text_inside_a_line(folder: Path) -> None:
    for before in range(22):
        first, second = "a" * (BLOCK - before) + "<", "a <|endoftext|> b\n<|endoftext"
        file = write(folder / "a.txt", f"{first}\n\n<|endoftext|>\n\n{second}")
        assert documents(file) == [first, second]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("before", range(3))
def test_lines_end_alike_whatever_system_they_come_from(
    end: str, before: int, tmp_path: Path
) -> None:
    lines = f"{'a' * (BLOCK - before)}\n\nb\nc"
    file = write(tmp_path / "a.txt.gz", gzip.compress(lines.replace("\n", end).encode()))
    assert documents(file) == [lines]


# JSON lines


@given(texts=st.lists(st.text().map(without_invisible), max_size=5), ascii_only=st.booleans())
@example(texts=["é" * BLOCK, "second", "中" * BLOCK], ascii_only=False)
@law
def test_each_json_line_is_a_document_unless_it_is_empty(
    folder: Path, texts: list[str], ascii_only: bool
) -> None:
    file = write(folder / "a.jsonl", json_lines(texts, ensure_ascii=ascii_only).rstrip("\n"))
    assert documents(file) == [text for text in texts if text.strip()]


def test_a_separator_in_a_row_separates_documents_too(tmp_path: Path) -> None:
    texts = [
        "<|endoftext|>\na\n",
        " \n\t",
        "b\n<|endoftext|>\n\n<|endoftext|>\nc",
        "d<|endoftext|>",
    ]
    file = write(tmp_path / "a.jsonl", json_lines(texts))
    assert documents(file) == ["a\n", "b", "c", "d<|endoftext|>"]


def test_json_lines_may_have_a_mark_windows_line_ends_and_blank_lines(tmp_path: Path) -> None:
    content = '\ufeff{"text": "a"}\r\n\r\n  \n{"text": "b\\n"}'
    assert documents(write(tmp_path / "a.jsonl", content)) == ["a", "b\n"]
    for name in ("b.JSONL.gz", "c.JSONL.GZ"):
        zipped = write(tmp_path / name, gzip.compress(content.encode()))
        assert documents(zipped) == ["a", "b\n"]


# What cannot be read


@pytest.mark.parametrize("offset", [0, 3])
def test_a_binary_file_is_refused(offset: int, tmp_path: Path) -> None:
    file = write(tmp_path / "model.bin", b"a" * offset + b"\0\x01\x02")
    assert refusal(file) == f"{file} is not text: it has a NUL byte at offset {offset}"


WIDE = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]


@pytest.mark.parametrize("encoding", WIDE)
def test_a_wide_encoding_is_known_by_its_mark(encoding: str, tmp_path: Path) -> None:
    rows = '\ufeff{"text": "é🙂"}\r\n{"text": "b"}'.encode(encoding)
    assert documents(write(tmp_path / "a.jsonl", rows)) == ["é🙂", "b"]
    assert documents(write(tmp_path / "a.txt", "\ufeffé🙂\r\nb".encode(encoding))) == ["é🙂\nb"]
    assert documents(write(tmp_path / "a.csv", "\ufefftext\né🙂\n".encode(encoding))) == ["é🙂"]


@pytest.mark.parametrize("encoding", WIDE)
def test_a_wide_encoding_without_a_mark_is_refused_unless_it_is_named(
    encoding: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "a.txt", "é🙂\nb".encode(encoding))
    assert f"{file} is not text" in refusal(file)
    refusal(write(tmp_path / "a.jsonl", b'{"text": "a"}'.decode().encode(encoding)))
    assert documents(file, encoding=encoding) == ["é🙂\nb"]
    if encoding.startswith("utf-16"):  # which some programs of Windows write
        english = write(tmp_path / "b.txt", "The fox asked.".encode(encoding))
        assert refusal(english).endswith(f"name its encoding: --encoding {encoding}")


def test_of_a_truncated_wide_file_the_last_character_is_left_out(tmp_path: Path) -> None:
    cut = '\ufeff{"text": "é"}'.encode("utf-16-le")[:-1]
    file = write(tmp_path / "a.txt", cut)
    assert documents(file) == ['{"text": "é"']
    assert report_of(file).notes == ["left out 1 byte that is not utf-16, in line 1"]
    assert "is not utf-16" in refusal(write(tmp_path / "a.jsonl", cut))


# Encodings


def test_what_is_not_utf_8_is_read_as_windows_1252_and_that_is_said(tmp_path: Path) -> None:
    text = "“Déjà vu”, she said – for 5 €.\r\n" + "a" * BLOCK + "é"
    file = write(tmp_path / "old.txt", text.encode("cp1252"))
    report = Report(file)
    pieces = [piece.text for piece in read_file(file, ReadingConfig(), report)]
    assert "".join(pieces) == text.replace("\r\n", "\n")
    (note,) = report.notes
    assert "Windows-1252" in note and "--encoding" in note


def test_an_encoding_that_is_named_is_used(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "żółć".encode("latin2"))
    assert documents(file, encoding="latin2") == ["żółć"]
    with pytest.raises(UserError, match=r"is not ascii: byte 0xbf at offset 0"):
        documents(file, encoding="ascii")
    for unknown in ("klingon", "rot13", "hex", ""):
        with pytest.raises(UserError, match="encoding must be an encoding that Python knows"):
            ReadingConfig(encoding=unknown)


@given(
    filling=st.sampled_from([0, BLOCK - 3, BLOCK]), bad=st.sampled_from([b"\x81", b"\x9d", b"\1"])
)
@law
def test_what_windows_1252_has_no_letter_for_is_refused(
    folder: Path, filling: int, bad: bytes
) -> None:
    file = write(folder / "bad.txt", b"caf\xe9" + b"a" * filling + bad)
    assert str(file) in refusal(file)


@given(
    filling=st.sampled_from([0, *range(BLOCK - 5, BLOCK + 2)]),
    before=any_text,
    bad=st.sampled_from([b"\x80", b"\xc0", b"\xff", "🙂".encode()[:3]]),
    after=any_text,
)
@example(filling=BLOCK - 2, before="🙂", bad=b"\x80", after="")
@example(filling=BLOCK - 1, before="é", bad=b"\xff", after="é")
@example(filling=BLOCK - 3, before="é", bad="🙂".encode()[:3], after="")
@law
def test_a_byte_that_is_not_utf_8_is_named_with_its_offset(
    folder: Path, filling: int, before: str, bad: bytes, after: str
) -> None:
    good = b"a" * filling + before.encode()
    assume(not before.isascii())  # else it may be Windows-1252
    wrong = bad * 500
    message = refusal(write(folder / "bad.txt", good + wrong + after.encode()))
    assert f"byte 0x{bad[0]:02x} at offset {len(good)};" in message
    assert "--encoding" in message


@pytest.mark.parametrize("bad", [b"\xff", "🙂".encode()[:3], b"\x80\xc0\xc0\xc0"])
@pytest.mark.parametrize("place", ["begin", "middle", "end"])
def test_a_few_wrong_bytes_are_left_out_of_a_text_in_utf_8_and_that_is_said(
    place: str, bad: bytes, tmp_path: Path
) -> None:
    half = "Déjà vu: “a crow”.\n" * 40_000  # longer than a block
    good = [half, half] if place == "middle" else [half]
    parts = (
        [b"", *(text.encode() for text in good)]
        if place == "begin"
        else [*(text.encode() for text in good), *([b""] if place == "end" else [])]
    )
    for name in ("a.txt", "a.html"):
        file = write(tmp_path / name, bad.join(parts))
        if name == "a.txt":
            assert documents(file) == ["".join(good)]
        line = 1 if place == "begin" else 40_001
        where = f"in line {line:,}" if len(bad) == 1 else f"the first in line {line:,}"
        are = "1 byte that is" if len(bad) == 1 else f"{len(bad)} bytes that are"
        assert report_of(file).notes == [f"left out {are} not UTF-8, {where}"]


RUSSIAN = "Ворона сидела на дереве и держала во рту кусок сыра. Лиса это увидела. "
MOJIBAKE = {
    "cp1251": RUSSIAN, "koi8-r": RUSSIAN, "cp866": RUSSIAN, "iso8859-5": RUSSIAN,
    "gbk": "乌鸦站在树上，嘴里有一块奶酪。狐狸看见了，就说：你唱得真好。",
    "big5": "烏鴉站在樹上，嘴裡有一塊乳酪。狐狸看見了，就說：你唱得真好。",
    "shift_jis": "カラスが木の上にいました。口にチーズをくわえています。",
    "euc_jp": "カラスが木の上にいました。口にチーズをくわえています。",
    "euc_kr": "까마귀가 나무 위에 앉아 있었습니다. 입에 치즈를 물고 있었어요.",
    "latin2": "Wrona siedziała na drzewie i trzymała w dziobie kawałek sera. Zobaczył ją lis. ",
    "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy. Vrána seděla na stromě a měla sýr. ",
    "cp1253": "Το κοράκι καθόταν στο δέντρο και είχε ένα κομμάτι τυρί στο στόμα του. ",
    "cp1254": "Karga ağaçta oturuyordu ve ağzında bir parça peynir vardı. Tilki şöyle dedi. ",
}  # fmt: skip


@pytest.mark.parametrize("encoding", MOJIBAKE)
@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.html"])
def test_what_is_no_windows_1252_is_refused_with_a_likely_encoding(
    name: str, encoding: str, tmp_path: Path
) -> None:
    text = MOJIBAKE[encoding] * 10
    before = {"a.txt": "", "a.csv": "text\n", "a.html": "<html><p>"}[name]
    file = write(tmp_path / name, f"{before}{text}".encode(encoding))
    message = refusal(file)
    assert encoding in message.partition("--encoding ")[2].split(" or "), message
    assert documents(file, encoding=encoding)[0].strip() == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "Größe ist nicht alles, sagte der Fuchs übermütig, und schön ist die Krähe auch. ",
        "Le corbeau était perché sur un arbre, il tenait en son bec un fromage. À bientôt! ",
        "El zorro miró al cuervo: ¿qué tienes ahí? ¡Un queso! Mañana será otro día. ",
        "Krákan sat á tré og hélt á osti í goggnum. Þá kom refurinn og sagði við hana: ",
        "Räven såg på kråkan. Ræven så på kragen, og den sagde ikke et ord på dansk. ",
        "A raposa não viu o corvo. O coração é teu, avó; nós vamos à praça amanhã. ",
        "Größe, señor! ¿Qué? Une île, là-bas. It´s 5½ m² – n°3 “déjà vu” for 20 £. ",
        "The crow didn’t see the fox’s tail – “it’s a cat”, she said, and couldn’t fly. ",
        "Kettu näki variksen, jolla oli juustoa nokassaan. Se sanoi: hyvää päivää! ",
    ],
)
def test_languages_of_western_europe_are_read_as_windows_1252(text: str, tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", (text * 20).encode("cp1252"))
    assert documents(file) == [text * 20]


@pytest.mark.parametrize("suffix", ["txt.gz", "jsonl.gz"])
@pytest.mark.parametrize("kept", [2, 5, 12, 100, -1])
def test_truncated_gzip_is_refused(kept: int, suffix: str, tmp_path: Path) -> None:
    packed = gzip.compress(json_lines(str(i**5) for i in range(300)).encode())
    file = write(tmp_path / f"cut.{suffix}", packed[:kept])
    assert refusal(file).startswith(f"cannot read {file}: ")


def test_a_gzip_file_is_read_if_only_its_date_is_wrong_and_else_refused(tmp_path: Path) -> None:
    packed = gzip.compress(b"The fox asked the crow for bread.")
    says_when_and_where = range(4, 10)
    for place in range(4, len(packed)):
        damaged = bytearray(packed)
        damaged[place] ^= 1
        file = write(tmp_path / f"{place}.txt.gz", bytes(damaged))
        if place in says_when_and_where:
            assert documents(file) == ["The fox asked the crow for bread."]
        else:
            assert refusal(file).startswith(f"cannot read {file}: ")


@pytest.mark.parametrize(
    "line",
    [b"{'text': 'a'}", b'{"text": "a"} b', b"{", b"\0", b"[" * 100_000, b'{"text": "\xff"}'],
)
def test_a_line_that_is_not_json_is_named(line: bytes, tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", b'{"text": "fine"}\n\n' + line + b'\n{"text": "fine"}\n')
    assert refusal(file) == f"{file}, line 3: not JSON in UTF-8"
