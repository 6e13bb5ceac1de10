"""--show: a line for each token with its probability and rivals, and colours that can be read."""

import io
import math
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigpt.cli.terminal import has_colours
from minigpt.cli.token_display import TokenDisplay, painted, percent
from minigpt.generation.results import Step, Token, visible
from minigpt.tokenizer import CharacterTokenizer, train_bpe

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def token(text: str | bytes, probability: float, id: int = 0) -> Token:
    written = text.encode() if isinstance(text, str) else text
    return Token(id, written, math.log(probability))


def steps(ids: list[int], texts: list[str], probabilities: list[float]) -> Iterator[Step]:
    others = (token("b", 0.4, 1), token("c", 0.2, 2))
    for i, text, p in zip(ids, texts, probabilities, strict=True):
        yield Step(0, i, math.log(p), text, None, others)


def test_a_token_shows_its_white_space_and_its_broken_characters() -> None:
    tokens = [b" a\tb\n", "é".encode()[:1], b"\x00", b"\x1b[2J"]
    assert [visible(token) for token in tokens] == ["␣a⇥b↵", r"\xc3", r"\x00", r"\x1b[2J"]


def test_probabilities_have_two_digits() -> None:
    shown = {1.0: "100%", 0.834: "83%", 0.0996: "10%", 0.0994: "9.9%", 0.001: "0.1%"}
    assert {probability: percent(probability) for probability in shown} == shown
    assert percent(0.0009) == "<0.1%"


def test_a_line_shows_a_token_and_the_likeliest_others() -> None:
    display = TokenDisplay(CharacterTokenizer("abcd"), colours=False)
    rivals = [token(" crow", 0.5, 1), token(" fox", 0.25, 2), token("\n", 0.1, 3), token("x", 0.05)]
    line = display.line(token(" fox", 0.25, 2), rivals)
    assert line.split() == ["25%", "␣fox", "␣crow", "50%", "↵", "10%", "x", "5.0%"]
    assert "(end)" in display.line(token(b"", 0.1, 4), [])
    assert r"\xc3" in display.line(token(b"\xc3", 0.1, 1), [])
    coloured = TokenDisplay(display.tokenizer, colours=True).line(token(" fox", 0.25, 2), rivals)
    assert coloured != line and ESCAPE.sub("", coloured) == line


@pytest.mark.parametrize("colours", [False, True])
def test_every_token_has_its_line_as_it_is_drawn_and_the_text_comes_last(
    colours: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    def watched() -> Iterator[Step]:
        for step in steps([0, 1, 2], ["a", "b", "\n"], [0.9, 0.3, 0.004]):
            shown.append(ESCAPE.sub("", capsys.readouterr().out))
            yield step

    TokenDisplay(CharacterTokenizer("ab\n"), colours).show("ba", watched())
    last = capsys.readouterr().out
    assert bool(ESCAPE.search(last)) == colours
    lines = ESCAPE.sub("", last).splitlines()
    assert [line.split()[:2] for line in [*shown, lines[0]]] == [
        ["probability", "token"],
        ["90%", "a"],
        ["30%", "b"],
        ["0.4%", "↵"],
    ]
    assert lines[2] == ("baab↵" if colours else "baab")


def test_what_ctrl_c_cuts_off_is_shown_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    def cut() -> Iterator[Step]:
        yield from steps([0, 1], ["a", "b"], [0.5, 0.5])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TokenDisplay(CharacterTokenizer("ab"), colours=False).show("b", cut())
    assert "\nbab\n" in capsys.readouterr().out


def test_a_character_of_several_tokens_has_the_colour_of_the_least_likely(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tokenizer = train_bpe(["plain text"], 270)
    first, second = tokenizer.encode("é")
    TokenDisplay(tokenizer, colours=True).show("", steps([first, second], ["", "é"], [0.02, 0.9]))
    assert painted("é", 0.02) in capsys.readouterr().out


@given(st.text("ab \n"), st.floats(0, 1))
def test_colours_add_marks_to_a_text_and_lose_none_of_it(text: str, probability: float) -> None:
    assert ESCAPE.sub("", painted(text, probability)) == text.replace("\n", "↵\n")


def test_colours_are_for_terminals_and_can_be_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "")
    assert has_colours(Screen()) and not has_colours(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not has_colours(Screen())
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "dumb")
    assert not has_colours(Screen())
