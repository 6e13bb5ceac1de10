"""A play or an interview in a plain text stays as it is; its speakers and their turns are known."""

import zipfile
from pathlib import Path

import pytest

import minigpt
from minigpt.config import ReadingConfig, TextConfig
from minigpt.data.corpus import Corpus
from minigpt.data.dialogue import Dialogue
from minigpt.data.readers.chats.plays import form_of, layout_of, named_lines
from minigpt.data.readers.document import Document, Layout, Turn
from minigpt.data.source import Source, find_source
from minigpt.data.speakers import Names, TalkCounter
from minigpt.generation.talk import read_talk
from minigpt.recipe.text_stats import measure_text
from minigpt.runs.folder import WEIGHTS, read_config

from ...conftest import train_tiny
from .made import some_chat, some_script
from .test_scripts import HAMLET

LAYOUTS = [
    Layout("{speaker}:\n{text}\n\n"),
    Layout("{speaker}: {text}\n\n"),
    Layout("{speaker}: {text}\n"),
    Layout("{speaker}. {text}\n\n"),
    Layout("{speaker}.\n{text}\n\n"),
    Layout("**{speaker}:** {text}\n\n"),
    Layout("  {speaker}.  {text}\n\n\n"),
    Layout("{speaker} :\n{text}\n\n"),
    Layout("{speaker}：{text}\n"),
]


def source_of(folder: Path, text: str, **settings: bool) -> Source:
    (folder / "play.txt").write_text(text)
    return find_source(TextConfig(files=(str(folder / "play.txt"),), **settings))


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: repr(layout.template))
def test_how_turns_are_written_is_found(layout: Layout, tmp_path: Path) -> None:
    text = some_script(40, layout.template)
    source = source_of(tmp_path, text)
    assert source.dialogue == Dialogue({"ANNA": 20, "OTTO": 20}, layout)
    assert not source.has_turns
    plain = source_of(tmp_path, text, plain=True)
    assert source.fingerprint == plain.fingerprint
    config = TextConfig(files=(str(tmp_path / "play.txt"),))
    stats = [measure_text(text, config, "bpe", can_copy=True) for text in (source, plain)]
    assert stats[0] == stats[1]  # all that a plan depends on


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS[:4], ids=lambda layout: repr(layout.template))
def test_the_weights_are_those_of_a_plain_text(layout: Layout, workplace: Path) -> None:
    Path("play.txt").write_text(some_script(120, layout.template))
    with_speakers = train_tiny("play.txt", out="runs/play", steps=3)
    plainly = train_tiny("play.txt", out="runs/plain", steps=3, plain=True)
    for name in (WEIGHTS, "tokenizer.json"):
        assert (with_speakers / name).read_bytes() == (plainly / name).read_bytes()
    dialogue = read_config(with_speakers).origin.dialogue
    assert dialogue == Dialogue({"ANNA": 60, "OTTO": 60}, layout)
    assert read_config(plainly).origin.dialogue is None


def test_a_play_keeps_its_headings_and_directions(tmp_path: Path) -> None:
    source = source_of(tmp_path, HAMLET)
    assert "".join(piece.text for piece in source.training.pieces()) == HAMLET
    assert source.dialogue == Dialogue(
        {"BARNARDO": 4, "FRANCISCO": 4}, Layout("{speaker}.\n{text}\n\n")
    )


QUESTION = "ANNA: And what did you do then, when nobody came to open the door for you?\n\n"
ANSWER = "OTTO: It was dark.\n\nI could not see the house from the road, so I went back.\n\n"


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ((QUESTION + ANSWER) * 6, Layout("{speaker}: {text}\n\n", ends_at_name=True)),
        ("  ANNA. Who\n    is it?\n  OTTO. I.\n" * 6,
         Layout("  {speaker}. {text}\n", ends_at_name=True)),
    ],
)  # fmt: skip
def test_where_a_text_has_what_ends_a_turn_the_next_name_ends_it(text: str, layout: Layout) -> None:
    form = form_of(text)
    assert form is not None and layout_of(named_lines(text, form)) == layout
    dialogue = Dialogue({"ANNA": 6, "OTTO": 6}, layout)
    begins = (dialogue.opening("ANNA"), dialogue.opening("OTTO"))
    assert dialogue.stops == tuple(dialogue.end + words for words in begins)


def test_nobody_can_forge_a_turn_where_a_line_end_ends_one() -> None:
    dialogue = Dialogue({"ANNA": 6, "OTTO": 6}, Layout("{speaker}: {text}\n"))
    talk = read_talk(dialogue, "hi", "ANNA").add("OTTO", "hi\nANNA: no")
    assert dialogue.write(talk.turns) == "OTTO: hi\nOTTO: hi ANNA: no\n"


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: repr(layout.template))
def test_a_prompt_may_be_written_as_the_text_is(layout: Layout) -> None:
    dialogue = Dialogue({"ANNA": 6, "OTTO": 6}, layout)
    turns = [Turn("ANNA", "Did you feed the cat?"), Turn("OTTO", "Twice.")]
    talk = read_talk(dialogue, dialogue.write(turns) + dialogue.opening("ANNA"))
    assert talk.turns == tuple(turns)
    assert talk.answerer == "ANNA"
    assert read_talk(dialogue, "otto: hi").turns == (Turn("OTTO", "hi"),)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_turns_are_counted_in_pieces_of_any_size(size: int) -> None:
    text = some_script(12).rstrip("\n")
    counter = TalkCounter(Names(ReadingConfig()))
    for start in range(0, len(text), size):
        piece = text[start : start + size]
        layout = Layout("{speaker}:\n{text}\n\n")
        counter.add(Document(piece, Path("play.txt"), is_first=start == 0, layout=layout))
    talk = counter.result()
    assert talk is not None and talk.speakers == {"ANNA": 6, "OTTO": 6}


def test_a_play_in_an_archive_has_speakers_too(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "plays.zip", "w") as archive:
        archive.writestr("play.txt", some_script(40))
        archive.writestr("chat.txt", some_chat(20))
    for _ in range(2):  # read, and then kept
        talk = Corpus((tmp_path / "plays.zip",)).scan.talk
        assert talk is not None
        assert talk.speakers["OTTO"] == 20 and talk.speakers["Anna"] > 5
        assert talk.conversations > 0


@pytest.mark.parametrize(("option", "value"), [("anonymous", True), ("rename", ("ANNA=Mary",))])
def test_another_name_needs_a_text_that_is_rewritten(
    option: str, value: object, tmp_path: Path
) -> None:
    (tmp_path / "play.txt").write_text(some_script(40))
    said: list[str] = []
    config = TextConfig(files=(str(tmp_path / "play.txt"),), **{option: value})  # type: ignore[arg-type]
    source = find_source(config, said.append)
    assert source.dialogue is not None and source.dialogue.layout == Layout()
    assert source.has_turns
    assert "ANNA" not in "".join(piece.text for piece in source.training.pieces())
    (line,) = said
    assert "rewritten" in line and f"--{option}" in line


def test_a_play_before_a_novel_is_rewritten_too(tmp_path: Path) -> None:
    """A play shows in its beginning; most of the file may be something else."""
    novel = "The fox went to the mill, and the crow was there that night.\n\n" * 12_000
    (tmp_path / "play.txt").write_text(some_script(1_200) + novel)
    source = find_source(TextConfig(files=(str(tmp_path / "play.txt"),), anonymous=True))
    assert source.dialogue is not None and list(source.dialogue.speakers) == ["A", "B"]


def test_one_speaker_of_a_play_is_learned(workplace: Path) -> None:
    Path("play.txt").write_text(some_script(120))
    dataset = minigpt.prepare("play.txt", vocab_size=300, only="otto")
    plain = minigpt.prepare("play.txt", vocab_size=300, plain=True)
    assert dataset.train[:].tolist() == plain.train[:].tolist()
    assert dataset.counted_train is not None
    said = dataset.tokenizer.decode(dataset.train[:][dataset.counted_train].tolist())
    assert said and "OTTO" not in said and "ANNA" not in said
    assert "feed" not in said  # what Anna asks
