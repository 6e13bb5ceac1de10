"""The plays keep the rules that make them one text; data/check_plays.py says which."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from minigpt.data.readers.chats.plays import form_of, named_lines
from minigpt.data.readers.content import HEAD

DATA = Path(__file__).parents[2] / "data"
PLAYS = DATA / "plays.txt"
PROGRAM: dict[str, Any] = runpy.run_path(str(DATA / "check_plays.py"))


def plays() -> list[str]:
    text = PLAYS.read_text(encoding="utf-8")
    return text.strip().split(PROGRAM["BETWEEN"])


@pytest.mark.long
def test_nothing_is_wrong_with_the_plays(capsys: pytest.CaptureFixture[str]) -> None:
    assert PROGRAM["main"](PLAYS) == 0
    assert capsys.readouterr().out.endswith("nothing is wrong\n")


def test_all_speakers_of_all_plays_are_found() -> None:
    assert form_of(PLAYS.read_text(encoding="utf-8")[:HEAD]) is not None
    for play in plays():
        form = form_of(play)
        assert form is not None
        found = {line.name for line in named_lines(play, form)} - {None}
        assert found == set(PROGRAM["speeches_of"](play))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("A Comedy", "A Farce", "no comedy and no tragedy"),
        (" the ", " th\u00e9 ", "more than plain ASCII"),
        (" the ", ' "the" ', "more than plain ASCII"),
        (" the ", f" {'the ' * 20}", "a line is too long"),
        ("\nThe ", "\n    The ", "a line is too long, or begins or ends with a space"),
        ("ACT II. SCENE I.", "ACT TWO.", "no heading, direction or speech: 'ACT TWO."),
        ("]\n", "\n", "no heading, direction or speech: '["),
        (".\n\n", ".\n\nNOBODY.\nA word.\n\n", "NOBODY speaks 1 times"),
        ("SCENE", "\n\nSCENE", "no heading, direction or speech"),
    ],
)
def test_what_is_wrong_with_a_play_is_named(old: str, new: str, problem: str) -> None:
    play = plays()[0]
    wrong, speeches_of = PROGRAM["wrong"], PROGRAM["speeches_of"]
    assert list(wrong(play, speeches_of(play))) == []
    changed = play.replace(old, new, 1)
    assert any(problem in found for found in wrong(changed, speeches_of(changed)))


def test_what_stands_twice_or_in_another_text_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = plays()[:2]
    same = "\n\nNOBODY.\nNine brown buttons rolled under my uncle's green door."
    few = tmp_path / "few.txt"
    few.write_text(PROGRAM["BETWEEN"].join(play + same for play in some))
    (tmp_path / "others").mkdir()
    (tmp_path / "others/a.txt").write_text(f"He said: {some[0].splitlines()[7]}\n" * 2)
    borrowed = " ".join(PROGRAM["words_of"](some[0])[30:45])
    (tmp_path / "others/b.txt").write_text(borrowed)

    assert PROGRAM["main"](few, [tmp_path / "others"]) == 1
    said = capsys.readouterr().out
    assert "2 plays, not 12" in said and "NOBODY speaks in 2 plays" in said
    assert "twice: nine brown buttons rolled under my uncle's green" in said
    assert "b.txt too: " in said and "a.txt too: " not in said
