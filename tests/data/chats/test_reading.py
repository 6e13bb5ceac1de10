"""Files of conversations become documents with turns, and these the text that a model learns."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import minigpt
from minigpt import UserError
from minigpt.config import ReadingConfig, TextConfig
from minigpt.data import speakers
from minigpt.data.corpus import Corpus, whole_documents
from minigpt.data.dialogue import Dialogue
from minigpt.data.readers.document import Report, Turn
from minigpt.data.readers.kinds import read_file
from minigpt.data.source import find_source

from ..readers.made import parquet
from ..readers.reading import report_of
from ..texts import write
from .made import some_chat

CHAT = """\
31.12.23, 21:40 - Messages and calls are end-to-end encrypted.
31.12.23, 21:41 - Anna: Did you feed the cat? Call @4917012345678 or +49 170 1234567
31.12.23, 21:43 - +49 170 1234567: Twice.

She was hungry.
31.12.23, 21:44 - Anna: <Media omitted>
01.01.24, 10:02 - Anna: Happy new year, Otto!
01.01.24, 10:03 - +49 170 1234567: To you, too
"""
TEXT = [
    "Anna: Did you feed the cat? Call @somebody or (number)\n\n"
    "Speaker 1: Twice.\nShe was hungry.\n\n",
    "Anna: Happy new year, Otto!\n\nSpeaker 1: To you, too\n\n",
]


def texts(*files: Path, **settings: Any) -> list[str]:
    return whole_documents(Corpus(files, ReadingConfig(**settings)).pieces())


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    file = tmp_path / "chat.txt"
    file.write_text(CHAT, encoding="utf-8")
    return file


def test_each_conversation_of_a_chat_is_a_document_of_turns(chat: Path) -> None:
    report = Report(chat)
    first, second = read_file(chat, ReadingConfig(), report)
    assert first.turns[1] == Turn("+49 170 1234567", "Twice.\nShe was hungry.")
    assert len(second.turns) == 2
    assert report.kind == "WhatsApp chat"
    assert report.left_out == {"messages without text": 2}
    assert texts(chat) == TEXT


def test_neither_dates_nor_telephone_numbers_become_text(chat: Path) -> None:
    text = "".join(texts(chat))
    assert "170" not in text
    assert "2023" not in text and "21:4" not in text


def test_a_number_can_be_given_a_name_however_it_is_written(chat: Path) -> None:
    for number in ("+49 170 1234567", "+491701234567", "+49-170-1234567"):
        renamed = texts(chat, rename=(f"{number}=Otto", "Anna = Anna Karenina"))
        assert renamed[1] == "Anna Karenina: Happy new year, Otto!\n\nOtto: To you, too\n\n"


def test_anonymous_speakers_are_called_the_same_in_all_files(chat: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text(
        "[1/1/24, 9:00:00 AM] Zoë: hi\n[1/1/24, 9:01:00 AM] Anna: hello\n"
        "[1/1/24, 9:02:00 AM] Zoë: bye\n",
        encoding="utf-8",
    )
    read = texts(chat, other, anonymous=True)
    assert read[0].startswith("A: Did you")
    assert "\n\nB: Twice." in read[0]
    assert read[2] == "C: hi\n\nA: hello\n\nC: bye\n\n"


def test_anonymous_speakers_are_called_the_same_where_it_is_validated(
    chat: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.txt"
    other.write_text(
        "[1/1/24, 9:00:00 AM] Zoë: hi\n[1/1/24, 9:01:00 AM] Anna: hello\n"
        "[1/1/24, 9:02:00 AM] Zoë: bye\n",
        encoding="utf-8",
    )
    config = TextConfig(files=(str(chat),), validation=(str(other),), anonymous=True)
    validation = find_source(config).validation
    assert validation is not None
    assert whole_documents(validation.pieces()) == ["C: hi\n\nA: hello\n\nC: bye\n\n"]


def test_plain_reads_a_chat_as_the_text_that_it_is(chat: Path) -> None:
    assert texts(chat, plain=True) == [CHAT]


def test_what_is_packed_is_read_too(chat: Path, tmp_path: Path) -> None:
    packed = tmp_path / "chat.gz"
    packed.write_bytes(gzip.compress(CHAT.encode()))
    wide = tmp_path / "wide.txt"
    wide.write_text(CHAT.replace("\n", "\r\n"), encoding="utf-16")
    assert texts(packed) == texts(wide) == TEXT


def test_all_forms_of_data_are_read_from_files(tmp_path: Path) -> None:
    asked = "User: Why?\n\nAssistant: So.\n\n"
    row = {"prompt": "Why?", "completion": "So."}
    contents = {
        "rows.jsonl": f"{json.dumps(row)}\n{json.dumps(row)}\n",
        "rows.json": json.dumps([row, row], indent=2),
        "rows.csv": 'prompt,completion\n"Why?",So.\n"Why?",So.\n',
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
        assert texts(tmp_path / name) == [asked, asked], name

    telegram = {
        "name": "Otto",
        "messages": [
            {"type": "message", "date": "2024-01-01T10:00:00", "from": "Anna", "text": "hi"},
            {"type": "message", "date": "2024-01-01T10:01:00", "from": "Otto", "text": "hello"},
        ],
    }
    (tmp_path / "result.json").write_text(json.dumps(telegram))
    assert texts(tmp_path / "result.json") == ["Anna: hi\n\nOtto: hello\n\n"]

    letter = "From a@b Mon Jan  1 10:00:00 2024\nFrom: Anna <a@b>\nSubject: x\n\nHello\n\nOtto\n"
    (tmp_path / "mail.mbox").write_text(letter)
    assert texts(tmp_path / "mail.mbox") == ["Anna: Hello\nOtto\n\n"]


TURNS = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
SHARED = [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "So."}]
APART = {"role": ["user", "assistant"], "content": ["Why?", "So."]}


@pytest.mark.usefixtures("read_in_process")
@pytest.mark.parametrize(
    "row",
    [
        {"messages": TURNS},
        {"id": 7, "messages": APART},
        {"conversations": SHARED, "source": "a"},
        {"prompt": "Why?", "completion": "So."},
        {"instruction": "Why?", "input": "", "output": "So."},
    ],
)
def test_rows_of_parquet_are_conversations(row: dict[str, Any], tmp_path: Path) -> None:
    file = write(tmp_path / "rows.parquet", parquet({key: [row[key]] * 300 for key in row}))
    assert texts(file) == ["User: Why?\n\nAssistant: So.\n\n"] * 300
    assert report_of(file).kind == "conversations in rows"


@pytest.mark.usefixtures("read_in_process")
def test_a_column_of_parquet_that_is_the_text_is_no_conversation(tmp_path: Path) -> None:
    rows = {"prompt": ["Why?", "How?"], "completion": ["So.", "Thus."]}
    file = write(tmp_path / "rows.parquet", parquet({**rows, "text": ["a", "b"]}))
    assert texts(file) == ["a", "b"]
    assert texts(file, text_field="completion") == ["So.", "Thus."]


def test_rows_with_a_text_are_texts(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"text": "a text", "prompt": "Why?", "completion": "So."}) + "\n")
    assert texts(file) == ["a text"]


@pytest.mark.parametrize(
    "content",
    [
        '{"messages": [{"role": "user", "content": "a"}]}\n{"messages": \n',
        '{"messages": [{"role": "user", "content": "a"}]}\nnonsense\n',
    ],
)
def test_a_damaged_row_is_named(content: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(content)
    with pytest.raises(UserError, match=r"rows\.jsonl, line 2: not JSON"):
        texts(file)


def test_deeply_nested_json_is_no_chat_and_no_crash(tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    file.write_text('{"messages": ' + "[" * 100_000)
    assert texts(file) == [file.read_text()]


def test_tables_in_utf_16_are_conversations(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    for name, encoding in (("utf-16", None), ("utf-32", None), ("utf-16-le", "utf-16-le")):
        file.write_text("Prompt,Completion\nWhy?,So é.\n", encoding=name)
        assert texts(file, encoding=encoding) == ["User: Why?\n\nAssistant: So é.\n\n"]


def test_an_export_in_utf_16_is_a_chat(tmp_path: Path) -> None:
    """As some programs save a JSON again."""
    messages = [{"sender_name": name, "content": f"I am {name}", "timestamp_ms": number}
                for number, name in enumerate(("Anna", "Otto"))]  # fmt: skip
    chat = {"participants": [{"name": "Anna"}, {"name": "Otto"}], "messages": messages}
    file = write(tmp_path / "message_1.json", json.dumps(chat).encode("utf-16"))
    assert texts(file) == ["Anna: I am Anna\n\nOtto: I am Otto\n\n"]


@pytest.mark.parametrize("after", ["31.12.23, 22:00 - was there\n", "and so on and so on\n"])
def test_a_chat_is_read_whatever_comes_after_it(after: str, tmp_path: Path) -> None:
    """What a file is shows in its beginning; most of it may be something else."""
    chat = "".join(
        f"31.12.23, 21:{number % 60:02d} - {name}: {'All is well. ' * 8}\n"
        for number in range(400)
        for name in ("Anna", "Otto")
    )
    (text,) = texts(write(tmp_path / "chat.txt", chat + after * 2_000))
    assert text.count("All is well") == 6_400


# The text of a run


def test_a_source_says_who_speaks(chat: Path) -> None:
    source = find_source(TextConfig(files=(str(chat),)))
    assert source.dialogue == Dialogue({"Anna": 2, "Speaker 1": 2})
    assert source.has_turns


def test_rows_from_python_are_conversations_too(workplace: Path) -> None:
    rows = [{"messages": [{"role": "user", "content": f"Why {n}?"},
                          {"role": "assistant", "content": "So."}]} for n in range(30)]  # fmt: skip
    dataset = minigpt.prepare(rows, vocab_size=300)
    assert dataset.origin.dialogue == Dialogue({"User": 30, "Assistant": 30})
    assert dataset.tokenizer.end_of_turn is not None


def test_a_text_that_is_mostly_prose_is_not_talked_with(chat: Path, tmp_path: Path) -> None:
    (tmp_path / "prose.txt").write_text("The sea was calm that day. " * 100)
    source = find_source(TextConfig(files=(str(chat), str(tmp_path / "prose.txt"))))
    assert source.dialogue is None
    assert not source.has_turns
    assert source.training.scan.talk is not None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rename": ("Paul=Otto",)}, "there is no speaker 'Paul'; there are Anna .2 turns. and"),
        ({"only": "Paul"}, "there is no speaker 'Paul'"),
    ],
)
def test_somebody_who_does_not_speak_is_refused(
    settings: dict[str, Any], words: str, chat: Path
) -> None:
    with pytest.raises(UserError, match=words):
        find_source(TextConfig(files=(str(chat),), **settings))


def test_settings_of_conversations_are_refused_for_other_texts(tmp_path: Path) -> None:
    (tmp_path / "my.txt").write_text("The sea was calm that day. " * 100)
    for settings in ({"rename": ("a=b",)}, {"anonymous": True}, {"only": "Anna"}):
        with pytest.raises(UserError, match="is for chats, interviews and plays"):
            find_source(TextConfig(files=(str(tmp_path / "my.txt"),), **settings))
    with pytest.raises(UserError, match="--rename must be NAME=NAME"):
        ReadingConfig(rename=("Anna",))


def test_a_file_that_cannot_be_read_leaves_no_speaker_behind(chat: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    row = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    bad.write_text(f"{json.dumps(row)}\nnonsense\n")
    said: list[str] = []
    config = TextConfig(files=(str(bad), str(chat)), anonymous=True)
    source = find_source(config, said.append)
    assert "bad.jsonl" in said[0]
    assert source.dialogue == Dialogue({"A": 2, "B": 2})
    assert whole_documents(source.training.pieces())[1].startswith("A: Happy new year")


def test_the_synthetic_chat_has_as_many_messages_as_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "chat.txt"
    file.write_text(some_chat(900))
    talk = Corpus((file,)).scan.talk
    assert talk is not None
    assert talk.speakers.keys() == {"Anna", "Otto"}
    assert sum(1 for line in some_chat(900).splitlines() if ": " in line) == 900
    assert 800 < sum(talk.speakers.values()) <= 900


def test_anonymous_speakers_after_the_26th_have_letters_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: list[int] = []
    letter = speakers._letter

    def counted(number: int) -> str:
        numbers.append(number)
        assert len(numbers) < 1000, "letters come again, and nobody finds a free one"
        return letter(number)

    monkeypatch.setattr(speakers, "_letter", counted)
    names = [f"Person {first}{second}" for first in "abcdef" for second in "ghijklmnop"]
    lines = [f"31.12.23, 21:41 - {name}: hi\n" for name in names * 2]
    (text,) = texts(write(tmp_path / "chat.txt", "".join(lines)), anonymous=True)
    found = [line.partition(":")[0] for line in text.splitlines() if line]
    assert len(set(found)) == 60
    assert found[25:28] == ["Z", "AA", "AB"]


def test_who_is_given_a_letter_or_a_number_gets_no_name_that_somebody_has(chat: Path) -> None:
    first, _ = texts(chat, rename=("+49 170 1234567=A",), anonymous=True)
    assert first.startswith("B: Did you") and "\n\nA: Twice." in first
    chat.write_text(CHAT.replace("Anna:", "Speaker 1:"))
    first, _ = texts(chat)
    assert first.startswith("Speaker 1: Did you") and "\n\nSpeaker 2: Twice." in first
