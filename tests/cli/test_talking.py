"""A model that learned from a chat: training, answering, talking with it, exporting it."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

import minigpt
from minigpt.data.dialogue import MANNER
from minigpt.runs.folder import read_config

from ..conftest import tiny_settings
from ..data.chats.made import some_chat, some_script
from .conftest import Outcome, Type, assert_refused

pytestmark = pytest.mark.long


@pytest.fixture
def chat(workplace: Path) -> Path:
    (workplace / "chat.txt").write_text(some_chat(120))
    return workplace / "chat.txt"


def options(**changes: Any) -> list[str]:
    given = []
    for name, value in tiny_settings(**changes).items():
        option = f"--{name.replace('_', '-')}"
        given += [option] if value is True else [option, str(value)]
    return given


# Training


def test_training_says_who_speaks_and_the_run_keeps_it(
    chat: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/bin/minigpt"])
    status, _, err = type_("train", "chat.txt", *options(steps=4))
    assert status == 0, err
    assert "chat.txt (WhatsApp chat)" in err
    (line,) = [line for line in err.splitlines() if "turns)" in line]
    assert "Anna (" in line and "Otto (" in line and "--plain" in line
    assert f"to talk with it ({MANNER})" in err and "--interactive --as" in err

    dialogue = read_config(Path("runs/chat")).origin.dialogue
    assert dialogue is not None
    assert set(dialogue.speakers) == {"Anna", "Otto"}
    assert minigpt.load("runs/chat").tokenizer.end_of_turn is not None


def test_a_chat_is_trained_on_as_text_if_asked(chat: Path, type_: Type) -> None:
    status, _, err = type_("train", "chat.txt", "--plain", *options(steps=4))
    assert status == 0, err
    assert "WhatsApp" not in err
    assert read_config(Path("runs/chat")).origin.dialogue is None


def test_only_one_speaker_is_learned_and_the_run_is_resumed(chat: Path, type_: Type) -> None:
    status, _, err = type_("train", "chat.txt", "--only", "otto", "--anonymous", *options(steps=4))
    assert_refused((status, "", err), "no speaker 'otto'")
    status, _, err = type_("train", "chat.txt", "--only", "otto", *options(steps=4))
    assert status == 0, err
    assert "    | Otto:" in err
    status, _, err = type_("train", "--resume", "--steps", "6")
    assert status == 0, err


@pytest.mark.parametrize("option", ["--rename=a=b", "--anonymous", "--only=Anna"])
def test_an_option_of_conversations_is_refused_for_a_text(
    option: str, workplace: Path, type_: Type
) -> None:
    assert_refused(type_("train", "my.txt", option), "none was recognised")
    assert_refused(type_("train", "my.txt", "--plain", option), "does nothing beside --plain")


def test_a_play_is_learned_as_it_is_and_has_speakers(workplace: Path, type_: Type) -> None:
    (workplace / "play.txt").write_text(some_script(120))
    status, _, err = type_("train", "play.txt", "--only", "otto", *options(steps=4))
    assert status == 0, err
    assert "play.txt (play or interview)" in err
    (line,) = [line for line in err.splitlines() if "turns)" in line]
    assert "ANNA (60 turns) and OTTO (60 turns) in a text that stays as it is; --plain" in line
    assert "    | OTTO:" in err
    assert minigpt.load("runs/play").tokenizer.end_of_turn is None

    (workplace / "other.txt").write_text(some_script(120, seed=1))
    status, _, err = type_("train", "other.txt", "--anonymous", *options(steps=4))
    assert status == 0, err
    assert "other.txt: rewritten as turns" in err
    assert "A (60 turns) and B (60 turns) in 1 conversation" in err


# Answering


def answer(type_: Type, run: Path, *arguments: str) -> Outcome:
    return type_("generate", "--run", str(run), "--seed", "1", *arguments)


def test_a_prompt_is_answered_in_one_turn(talking_run: Path, type_: Type) -> None:
    status, out, err = answer(type_, talking_run, "Did you feed the cat?", "--as", "otto")
    assert status == 0, err
    assert out.startswith("Otto: ")
    assert "\n\n" not in out.rstrip("\n")
    assert "answering as Otto" in err and MANNER in err
    assert answer(type_, talking_run, "Anna: Did you feed the cat?")[1] == out


def test_an_answer_ends_with_its_turn_without_a_seed_too(talking_run: Path, type_: Type) -> None:
    given = ("--run", str(talking_run), "--as", "Otto", "--max-new-tokens", "200")
    status, out, err = type_("generate", "Did you feed the cat?", *given)
    assert status == 0, err
    assert "\n\n" not in out.rstrip("\n") and "the turn is over" in err


def test_a_record_has_the_answer_and_what_was_answered(talking_run: Path, type_: Type) -> None:
    status, out, _ = answer(type_, talking_run, "hello?", "--as", "Anna", "--json")
    record = json.loads(out)
    assert status == 0
    assert record["prompt"] == "Otto: hello?\n\nAnna:"
    assert record["text"] == record["text"].strip()


def test_an_answer_has_the_form_of_the_play(play_run: Path, type_: Type) -> None:
    status, out, err = answer(type_, play_run, "Did you feed the cat?", "--as", "otto")
    assert status == 0, err
    assert "answering as OTTO" in err
    name, said = out.rstrip("\n").split("\n", 1)
    assert name == "OTTO:" and said.strip()
    assert "\n\n" not in said and "ANNA" not in said
    prompt = "ANNA:\nDid you feed the cat?\n\nOTTO:\n"
    assert answer(type_, play_run, prompt)[1] == out
    record = json.loads(answer(type_, play_run, prompt, "--json")[1])
    assert record["prompt"] == prompt


def test_plain_continues_the_prompt(talking_run: Path, type_: Type) -> None:
    written = answer(type_, talking_run, "Anna: Did", "--plain", "--max-new-tokens", "5")[1]
    assert written.startswith("Anna: Did")


def test_nobody_answers_where_the_prompt_is_continued(talking_run: Path, type_: Type) -> None:
    refused = answer(type_, talking_run, "hi", "--as", "Otto", "--plain")
    assert_refused(refused, "--as does nothing beside --plain")


def test_who_answers_must_speak_in_the_text(talking_run: Path, tiny_run: Path, type_: Type) -> None:
    assert_refused(answer(type_, talking_run, "hi", "--as", "Paul"), "no speaker 'Paul'", "Otto")
    nobody = "--as is for a model that learned from conversations"
    assert_refused(answer(type_, tiny_run, "hi", "--as", "Paul"), nobody)


# Talking


def talk(
    type_: Type, run: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch, *more: str
) -> Outcome:
    content = "\n".join([*lines, ""]).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    return answer(type_, run, "--interactive", "--max-new-tokens", "12", *more)


@pytest.fixture
def prompts_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the model reads before each text."""
    read: list[str] = []
    steps = minigpt.Writer.steps

    def watched(writer: minigpt.Writer, prompt: str, *given: Any, **settings: Any) -> Any:
        read.append(prompt)
        return steps(writer, prompt, *given, **settings)

    monkeypatch.setattr(minigpt.Writer, "steps", watched)
    return read


def said(out: str) -> list[str]:
    """The turns of Anna and Otto in what was written."""
    return [turn.rstrip() for turn in re.split(r"^(?=Anna:|Otto:)", out, flags=re.M) if turn]


def test_a_talk_keeps_what_was_said(
    talking_run: Path, type_: Type, prompts_read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["Did you feed the cat?", "And the dog?"]
    status, out, err = talk(type_, talking_run, lines, monkeypatch, "--as", "Otto")
    assert status == 0, err
    assert "you are Anna, and Otto answers" in err and MANNER in err

    first, second = prompts_read
    answer, _ = said(out)
    assert first == "Anna: Did you feed the cat?\n\nOtto:"
    assert second == f"Anna: Did you feed the cat?\n\n{answer}\n\nAnna: And the dog?\n\nOtto:"


def test_a_talk_in_a_play_has_its_form(
    play_run: Path, type_: Type, prompts_read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["Did you feed the cat?"]
    status, _, err = talk(type_, play_run, lines, monkeypatch, "--as", "OTTO")
    assert status == 0, err
    assert prompts_read == ["ANNA:\nDid you feed the cat?\n\nOTTO:\n"]


def test_the_commands_of_a_talk(
    talking_run: Path, type_: Type, prompts_read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["one", "two", "/undo", "/as anna", "Otto: three", "/again", "", "/new", "/again",
             "/undo", "four", "/as Paul", "/nonsense"]  # fmt: skip
    status, out, err = talk(type_, talking_run, lines, monkeypatch, "--as", "Otto")
    assert status == 0, err
    _, second, third, again, more, last = prompts_read
    before = second.removesuffix("Anna: two\n\nOtto:")
    assert before.startswith("Anna: one\n\n") and before != second
    assert third == again == f"{before}Otto: three\n\nAnna:"
    assert more.startswith(third) and more.endswith("\n\nOtto:")
    assert last == "Otto: four\n\nAnna:"
    assert "Anna answers; you are Otto" in err
    assert "nothing was said yet" in err
    problems = ("nothing yet to write again", "no turn of yours", "no speaker 'Paul'")
    for problem in (
        *problems,
        "/nonsense; there are /again, /temperature N, /help, /as NAME, /undo",
    ):
        assert problem in err
    assert out.startswith("Otto:") and "\nAnna:" in out


def test_an_empty_line_lets_the_next_speaker_talk(
    talking_run: Path, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["Did you feed the cat?", "", ""]
    status, out, err = talk(type_, talking_run, lines, monkeypatch, "--as", "Otto")
    assert status == 0, err
    assert [turn.split(":")[0] for turn in said(out)] == ["Otto", "Anna", "Otto"]


# Exporting


def test_an_export_says_who_answers(talking_run: Path, workplace: Path, type_: Type) -> None:
    pytest.importorskip("gguf")
    status, out, err = type_("export", str(talking_run), "--to", "gguf", "--as", "Otto")
    assert status == 0, err
    modelfile = (Path(out.strip()) / "Modelfile").read_text()
    assert "FROM ./chat.gguf" in modelfile
    assert 'PARAMETER stop """<|turn|>"""' in modelfile
    assert '"user" }}<|speaker|>Anna: {{ .Content }}<|turn|>' in modelfile
    assert modelfile.count('<|speaker|>Otto:"""') == 1
    assert MANNER in modelfile and MANNER in err


def test_the_export_of_a_play_has_its_form(play_run: Path, workplace: Path, type_: Type) -> None:
    pytest.importorskip("gguf")
    status, out, err = type_("export", str(play_run), "--to", "gguf", "--as", "OTTO")
    assert status == 0, err
    modelfile = (Path(out.strip()) / "Modelfile").read_text()
    assert 'PARAMETER stop """\n\n"""\n' in modelfile
    assert '"user" }}ANNA:\n{{ .Content }}\n\n{{' in modelfile
    assert modelfile.count('OTTO:\n"""') == 1


def test_the_export_of_a_text_takes_no_speaker(
    tiny_run: Path, workplace: Path, type_: Type
) -> None:
    nobody = "--as is for a model that learned from conversations"
    assert_refused(type_("export", str(tiny_run), "--as", "Otto"), nobody)
