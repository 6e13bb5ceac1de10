"""One file to documents of text: how each kind is read, packed or not, and the one line a user gets
for a file that cannot be read.
"""

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from minigpt import UserError
from minigpt.data.readers import BLOCK

from .texts import corpus, documents, refusal, write

law = settings(max_examples=50, deadline=None)

any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For generated texts, which are written over one another."""
    return tmp_path_factory.mktemp("texts")


# Text


@given(texts=st.lists(any_text, max_size=4))
@law
def test_pieces_join_to_the_text(folder: Path, texts: list[str]) -> None:
    """An empty file is no document."""
    files = [write(folder / f"{i}.txt", text) for i, text in enumerate(texts)]
    assert documents(*files) == [text for text in texts if text]


@given(start=st.integers(BLOCK - 5, BLOCK + 1), text=any_text)
@example(start=BLOCK - 1, text="é")
@example(start=BLOCK - 2, text="中")
@example(start=BLOCK - 3, text="🙂")
@law
def test_a_character_may_lie_across_two_blocks(folder: Path, start: int, text: str) -> None:
    whole = "a" * start + text
    file = write(folder / "long.txt", whole)
    assert documents(file) == [whole]


def test_a_long_file_comes_in_pieces(tmp_path: Path) -> None:
    file = write(tmp_path / "long.txt", "é" * BLOCK)
    assert max(len(piece.text) for piece in corpus(file).pieces()) <= BLOCK


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    """At the start; anywhere else it is a character."""
    assert documents(write(tmp_path / "a.txt", "\ufeffa\ufeffb")) == ["a\ufeffb"]
    assert documents(write(tmp_path / "b.txt", "\ufeff")) == []
    later = "a" * BLOCK + "\ufeff"
    assert documents(write(tmp_path / "c.txt", later)) == [later]


def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    zipped = gzip.compress("\ufeffzipped é".encode())
    for name in ("a.txt.gz", "a.md.gz", "a.gz", "a.txt", "a"):
        assert documents(write(tmp_path / name, zipped)) == ["zipped é"]
    assert documents(write(tmp_path / "plain.txt.gz", "plain é")) == ["plain é"]


# JSON lines


@given(texts=st.lists(st.text(min_size=1), max_size=5), ascii_only=st.booleans())
@law
def test_each_json_line_is_a_document(folder: Path, texts: list[str], ascii_only: bool) -> None:
    lines = [json.dumps({"id": 1, "text": text}, ensure_ascii=ascii_only) for text in texts]
    file = write(folder / "a.jsonl", "\n".join(lines))
    assert documents(file) == texts


def test_the_field_that_holds_the_text_has_a_name(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"text": "no", "body": "yes"}\n')
    assert documents(file, text_field="body") == ["yes"]


def test_json_lines_may_have_a_mark_windows_line_ends_and_blank_lines(tmp_path: Path) -> None:
    content = '\ufeff{"text": "a"}\r\n\r\n  \n{"text": "b\\n"}'
    assert documents(write(tmp_path / "a.jsonl", content)) == ["a", "b\n"]
    assert documents(write(tmp_path / "b.jsonl.gz", gzip.compress(content.encode()))) == [
        "a",
        "b\n",
    ]


def test_a_json_line_may_lie_across_blocks(tmp_path: Path) -> None:
    texts = ["é" * BLOCK, "second", "中" * BLOCK]
    lines = [json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts]
    assert documents(write(tmp_path / "a.jsonl", "".join(lines))) == texts


# What cannot be read


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "model.bin", b"abc\0\x01\x02")
    assert refusal(file) == f"{file} is a binary file, not text (a NUL byte at offset 3)"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("suffix", ["txt", "jsonl"])
def test_a_wide_encoding_is_refused(encoding: str, suffix: str, tmp_path: Path) -> None:
    refusal(write(tmp_path / f"wide.{suffix}", '{"text": "é"}'.encode(encoding)))


@pytest.mark.parametrize("mark", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_told_how_to_convert(mark: str, tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "a.txt", "\ufeffhäl".encode(mark)))
    assert "is UTF-16, not UTF-8" in message
    assert "iconv -f utf-16 -t utf-8" in message


@given(
    filling=st.sampled_from([0, *range(BLOCK - 5, BLOCK + 2)]),
    before=any_text,
    bad=st.sampled_from([0x80, 0xC0, 0xFF]),
    after=any_text,
)
@example(filling=BLOCK - 2, before="🙂", bad=0x80, after="")
@example(filling=BLOCK - 1, before="é", bad=0xFF, after="é")
@law
def test_a_byte_that_is_no_utf_8_is_named_with_its_offset(
    folder: Path, filling: int, before: str, bad: int, after: str
) -> None:
    good = b"a" * filling + before.encode()
    message = refusal(write(folder / "bad.txt", good + bytes([bad]) + after.encode()))
    assert f"byte 0x{bad:02x} at offset {len(good)};" in message
    assert "iconv -f latin1 -t utf-8" in message


@pytest.mark.parametrize("filling", [0, 1, BLOCK - 2, BLOCK - 1, BLOCK])
def test_a_text_that_ends_within_a_character_is_refused(filling: int, tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "cut.txt", b"a" * filling + "🙂".encode()[:3]))
    assert f"byte 0xf0 at offset {filling};" in message


def test_offsets_in_gzip_are_those_of_its_content(tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "bad.txt.gz", gzip.compress(b"a" * BLOCK + b"\xff")))
    assert f"byte 0xff at offset {BLOCK};" in message


@pytest.mark.parametrize("suffix", ["txt.gz", "jsonl.gz"])
@pytest.mark.parametrize("kept", [2, 5, 12, 100, -1])
def test_truncated_gzip_is_refused(kept: int, suffix: str, tmp_path: Path) -> None:
    lines = "".join(json.dumps({"text": str(i**5)}) + "\n" for i in range(300))
    file = write(tmp_path / f"cut.{suffix}", gzip.compress(lines.encode())[:kept])
    assert refusal(file).startswith(f"cannot read {file}: ")


@given(text=any_text, data=st.data())
@law
def test_damaged_gzip_is_refused_or_harmless(folder: Path, text: str, data: st.DataObject) -> None:
    zipped = bytearray(gzip.compress(text.encode()))
    zipped[data.draw(st.integers(0, len(zipped) - 1))] ^= data.draw(st.integers(1, 255))
    file = write(folder / "damaged.txt.gz", bytes(zipped))
    try:
        assert documents(file) == ([text] if text else [])
    except UserError as error:
        assert str(file) in str(error)


def test_gzip_of_a_damaged_middle_is_refused(tmp_path: Path) -> None:
    zipped = bytearray(gzip.compress(bytes(range(32, 127)) * 20))
    zipped[60:70] = bytes(10)
    file = write(tmp_path / "damaged.txt.gz", bytes(zipped))
    assert refusal(file).startswith(f"cannot read {file}: ")


@pytest.mark.parametrize(
    "line", ["{'text': 'a'}", '{"text": "a"} b', "{", "\0", '{"text": "\\ud800"}', "[" * 100_000]
)
def test_a_line_that_is_no_json_is_named(line: str, tmp_path: Path) -> None:
    """Half a surrogate pair is JSON but no Unicode."""
    file = write(tmp_path / "a.jsonl", f'{{"text": "fine"}}\n\n{line}\n{{"text": "fine"}}\n')
    assert refusal(file) == f"{file}, line 3: not JSON in UTF-8"


def test_a_json_line_that_is_no_utf_8_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n')
    assert refusal(file) == f"{file}, line 2: not JSON in UTF-8"


@pytest.mark.parametrize(
    "line", ['{"txt": "a"}', '{"text": 5}', '{"text": null}', '{"text": ["a"]}', "[1]", "5", '"a"']
)
def test_a_line_without_the_field_says_how_to_name_it(line: str, tmp_path: Path) -> None:
    message = refusal(write(tmp_path / "a.jsonl", f'{{"text": "fine"}}\n{line}\n'))
    assert "a.jsonl, line 2: no text in field 'text'" in message
    assert "--text-field" in message


# zstd


@pytest.mark.parametrize("name", ["a.txt.zst", "a.md.zst", "a.zst", "a.txt"])
def test_zstd_is_known_by_its_content(name: str, tmp_path: Path) -> None:
    """Also in several frames, as a file that was appended to has."""
    zstandard = pytest.importorskip("zstandard")
    pack = zstandard.ZstdCompressor().compress
    assert documents(write(tmp_path / name, pack("\ufeffzipped é".encode()))) == ["zipped é"]
    two = pack(b"zip") + pack("ped é".encode())
    assert documents(write(tmp_path / name, two)) == ["zipped é"]
    assert documents(write(tmp_path / "plain.txt.zst", "plain é")) == ["plain é"]


def test_long_zstd_is_read_in_order(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    texts = [f"{i} {i**7} é" for i in range(50_000)]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    packed = zstandard.ZstdCompressor().compress(lines)
    assert documents(write(tmp_path / "a.jsonl.zst", packed)) == texts


@pytest.mark.parametrize("kept", [4, 5, 12, 100, -1])
def test_truncated_zstd_is_refused(kept: int, tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    lines = "".join(json.dumps({"text": str(i**5)}) + "\n" for i in range(300))
    packed = zstandard.ZstdCompressor().compress(lines.encode())
    file = write(tmp_path / "cut.jsonl.zst", packed[:kept])
    assert refusal(file) == f"cannot read {file}: it ends in the middle"


@given(text=any_text, data=st.data())
@law
def test_damaged_zstd_is_refused_or_harmless(folder: Path, text: str, data: st.DataObject) -> None:
    zstandard = pytest.importorskip("zstandard")
    packed = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(text.encode()))
    packed[data.draw(st.integers(4, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    file = write(folder / "damaged.txt.zst", bytes(packed))
    try:
        assert documents(file) == ([text] if text else [])
    except UserError as error:
        assert str(file) in str(error)


def test_zstd_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    file = write(tmp_path / "a.txt.zst", b"\x28\xb5\x2f\xfd")
    assert refusal(file) == f"{file} is zstd, which needs: pip install zstandard"


# Parquet


def write_parquet(file: Path, **settings: Any) -> Path:
    """A table of three columns in row groups of two rows."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"id": [1, 2, 3, 4, 5], "text": ["a", "é\n", "", "d" * 999, "e"], "body": ["x"] * 5}
    parquet.write_table(pa.table(columns | settings), file, row_group_size=2)
    return file


def test_each_parquet_row_is_a_document(tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "a.parquet")
    assert documents(file) == ["a", "é\n", "", "d" * 999, "e"]
    assert documents(file, text_field="body") == ["x"] * 5


def test_a_parquet_file_without_the_column_names_those_there_are(tmp_path: Path) -> None:
    message = refusal(write_parquet(tmp_path / "a.parquet"), text_field="content")
    assert "no column 'content', only id, text, body" in message
    assert "--text-field" in message


@pytest.mark.parametrize("rows", [["a", None, "c", "d", "e"], [1, 2, 3, 4, 5], [["a"]] * 5])
def test_a_parquet_row_without_text_is_named(rows: list[Any], tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "a.parquet", text=rows)
    assert refusal(file).startswith(f"{file}, row {2 if None in rows else 1}: no text in field")


@pytest.mark.parametrize("damage", [lambda d: d[:-9], lambda d: d[:4], lambda d: b"PAR1" * 9])
def test_a_damaged_parquet_file_is_named(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "a.parquet")
    file.write_bytes(damage(file.read_bytes()))
    assert refusal(file).startswith(f"cannot read {file}: ")


def test_parquet_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    file = write(tmp_path / "a.parquet", b"PAR1")
    assert refusal(file) == f"{file} is Parquet, which needs: pip install pyarrow"
