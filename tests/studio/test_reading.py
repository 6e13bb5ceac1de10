"""What reading.json tells of a text, as the window shows it."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from minigpt.studio.texts import reading
from minigpt.studio.texts.about import row, whole_text
from minigpt.studio.texts.folder import SETTINGS_FILE, write_json
from tests.conftest import some_text, unix_only
from tests.data.chats.made import some_chat
from tests.data.readers.made import epub, p, word, zipped

from .dropped import dropped

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 100


def _read(folder: Path) -> dict[str, Any]:
    reading.read(folder)
    found = whole_text(folder)["reading"]
    assert isinstance(found, dict)
    return found


def _kinds(found: dict[str, Any]) -> dict[str, str]:
    return {left_out["name"]: left_out["kind"] for left_out in found["left_out"]}


def test_nine_files_are_read_and_the_bad_one_is_named(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"{n}.txt": some_text(100, seed=n) for n in range(7)}
    files["novel.docx"] = word("".join(p(line) for line in some_text(100).splitlines()))
    files["tale.epub"] = epub({"a": f"<body><p>{some_text(100)}</p></body>"}, ["a"])
    folder = dropped(tmp_path, files | {"photo.jpg": b"\xff\xd8\xff\xe0" + b"\0" * 100})

    found = _read(folder)
    assert (found["documents"], found["share"], found["problem"]) == (9, 1.0, None)
    assert found["left_out"] == [
        {
            "name": "photo.jpg",
            "kind": "picture",
            "message": "photo.jpg is a picture (JPEG).",
        }
    ]
    told = whole_text(folder)
    assert told["state"] == "ready"
    assert [f["name"] for f in told["files"] if f["problem"]] == ["photo.jpg"]


@pytest.mark.long
def test_each_thing_that_is_left_out_has_a_kind_and_a_sentence_without_advice_for_a_terminal(
    tmp_path: Path,
) -> None:
    bomb = zipped({"word/document.xml": b" " * (30 << 20), "[Content_Types].xml": b""})
    files: dict[str, str | bytes] = {
        "good.txt": some_text(300),
        "a.png": PNG,
        "bomb.docx": bomb,
        "bomb.epub": zipped({"mimetype": "application/epub+zip", "a": b"\0" * (30 << 20)}),
        "bomb.txt.gz": gzip.compress(b"a" * (30 << 20)),
        "nested.zip": zipped({"bomb.docx": bomb, "inner.zip": zipped({"a.zip": bomb})}),
        "half.docx": word(p("text"))[:-40],
        "old.doc": b"\xd0\xcf\x11\xe0" + b"\0" * 100,
        "noise.bin": bytes(range(256)) * 10,
        "table.csv": "a,b\n1,2\n",
        "channel.csv": "AuthorID,Author,Date,Content,Attachments,Reactions\n1,anna,,hi,,\n",
        "nothing.txt": "",
    }
    found = _read(dropped(tmp_path, files))
    assert _kinds(found) == {
        "a.png": "picture",
        "bomb.docx": "too_large",
        "bomb.epub": "too_large",
        "bomb.txt.gz": "too_large",
        "nested.zip": "too_large",
        "half.docx": "damaged",
        "old.doc": "office",
        "noise.bin": "no_text",
        "table.csv": "column",
        "channel.csv": "discord",
        "nothing.txt": "empty",
    }
    for left_out in found["left_out"]:
        assert left_out["message"].startswith(left_out["name"])
        assert "--" not in left_out["message"] and str(tmp_path) not in left_out["message"]
    assert found["characters"] == len(some_text(300))


def test_parts_that_are_left_out_are_told_and_do_not_refuse_the_file(tmp_path: Path) -> None:
    note = '<w:p><w:r><w:t>End.</w:t><w:footnoteReference w:id="1"/></w:r></w:p>'
    novel = word("".join(p(line) for line in some_text(300).splitlines()) + note)
    folder = dropped(
        tmp_path, {"novel.docx": novel, "all.zip": zipped({"a.txt": "text", "b.png": PNG})}
    )
    assert sorted((o["kind"], o["message"]) for o in _read(folder)["left_out"]) == [
        ("inside", "all.zip/b.png is a picture (PNG)"),
        ("parts", "footnotes (1)"),
    ]
    assert not any(file["problem"] for file in whole_text(folder)["files"])


@pytest.mark.long
def test_all_files_that_are_left_out_are_named_and_those_in_archives_at_least_counted(
    tmp_path: Path,
) -> None:
    members: dict[str, bytes | str] = {f"{n}.png": PNG for n in range(150)}
    files: dict[str, str | bytes] = {"a.txt": some_text(300)}
    files |= {f"{n}.png": PNG for n in range(250)}
    files |= {f"{name}.zip": zipped({"text.txt": "text", **members}) for name in ("x", "y")}
    folder = dropped(tmp_path, files)
    found = _read(folder)
    kinds = [left_out["kind"] for left_out in found["left_out"]]
    assert (kinds.count("picture"), kinds.count("inside")) == (250, 200)
    assert found["more_left_out"] == 100
    told = whole_text(folder)
    assert sum(file["problem"] is not None for file in told["files"]) == 250
    assert row(folder)["files"] == 3


@pytest.mark.parametrize(
    ("files", "kind", "message"),
    [
        ({"a.png": PNG}, "picture", "a.png is a picture (PNG)."),
        ({"a.png": PNG, "b.png": PNG}, "nothing", "There is no text in these files. Add others."),
        ({"a.txt": "\n"}, "empty", "a.txt holds no text."),
        ({"a.txt": "", "b.txt": ""}, "nothing", "There is no text in these files. Add others."),
        ({"a.txt": "x" * 200}, "too_short", "Too short: 200 letters. Add a few pages."),
    ],
    ids=str,
)
def test_a_text_that_nobody_can_learn_from_is_refused_with_what_to_do(
    files: dict[str, str | bytes], kind: str, message: str, tmp_path: Path
) -> None:
    folder = dropped(tmp_path, files)
    problem = _read(folder)["problem"]
    assert (problem["kind"], problem["message"]) == (kind, message)
    assert row(folder)["state"] == "refused"


def test_twelve_lines_show_a_chat_as_the_model_sees_it(tmp_path: Path) -> None:
    found = _read(dropped(tmp_path, {"chat.txt": some_chat(300)}))
    assert found["is_dialogue"] and sorted(found["speakers"]) == ["Anna", "Otto"]
    assert len(found["lines"]) == 12
    assert all(line.startswith(("Anna: ", "Otto: ")) for line in found["lines"])


def test_a_line_that_is_too_long_to_show_is_shortened(tmp_path: Path) -> None:
    found = _read(dropped(tmp_path, {"a.txt": "word " * 1000}))
    assert [len(line) for line in found["lines"]] == [200]


def test_a_text_is_read_again_only_if_it_or_a_setting_of_reading_changes(tmp_path: Path) -> None:
    folder = dropped(tmp_path, {"chat.txt": some_chat(300)})
    assert _read(folder)["is_dialogue"]
    written = (folder / "reading.json").stat().st_mtime_ns
    write_json({"learning_rate": 0.01}, folder / SETTINGS_FILE)
    _read(folder)
    assert (folder / "reading.json").stat().st_mtime_ns == written

    write_json({"plain": True}, folder / SETTINGS_FILE)
    assert whole_text(folder)["reading"] is None
    assert not _read(folder)["is_dialogue"]


def test_a_wrong_setting_is_one_clear_problem(tmp_path: Path) -> None:
    folder = dropped(tmp_path, {"a.txt": some_text(300)})
    write_json({"text_field": "body"}, folder / SETTINGS_FILE)
    problem = _read(folder)["problem"]
    assert problem["kind"] == "setting" and problem["message"].startswith("text_field body is for")


def test_a_file_for_which_memory_does_not_suffice_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = dropped(tmp_path, {"a.txt": some_text(300), "b.txt": some_text(300)})
    usual = reading.Corpus.readable

    def greedy(corpus: Any, watch: Any) -> Any:
        def filled(file: Path, characters: int) -> None:
            watch(file, characters)
            if file.name == "b.txt":
                raise MemoryError

        return usual(corpus, filled)

    monkeypatch.setattr(reading.Corpus, "readable", greedy)
    problem = {"kind": "too_large", "message": "b.txt needs too much memory. Remove it."}
    assert _read(folder)["problem"] == {"name": "b.txt", **problem}
    told = whole_text(folder)
    assert told["state"] == "refused"
    assert [file["problem"] for file in told["files"]] == [None, problem]


@unix_only
def test_a_program_that_reads_for_too_long_ends_and_names_the_file(tmp_path: Path) -> None:
    folder = dropped(tmp_path, {"endless.txt": some_text(300)})
    program = (
        "import sys, time; from minigpt.studio.texts import reading; reading.MOST_SECONDS = 0.2; "
        "usual = reading._Progress.watch; "
        "reading._Progress.watch = lambda *seen: (usual(*seen), time.sleep(60)); "
        "reading.main(sys.argv[1:])"
    )
    assert subprocess.run([sys.executable, "-c", program, str(folder)], check=False).returncode == 1
    problem = whole_text(folder)["reading"]["problem"]
    assert problem["kind"] == "too_slow" and problem["message"].startswith("endless.txt was still")


def test_reading_loads_no_torch(tmp_path: Path) -> None:
    folder = dropped(tmp_path, {"a.txt": some_text(300)})
    program = (
        "import sys; from minigpt.studio.texts import reading; reading.main(sys.argv[1:]); "
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, str(folder)], check=True)
    assert json.loads((folder / "reading.json").read_text())["is_done"]
