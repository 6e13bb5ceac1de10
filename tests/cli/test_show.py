"""--show: a line for each token with its probability and rivals, as it is drawn; then the text."""

import math
from collections.abc import Iterator

import pytest

from minigpt.cli.generate import percent, show_tokens, token_line
from minigpt.generation.results import Step, Token
from minigpt.system.shown import visible
from minigpt.tokenizer import CharacterTokenizer


def token(text: str | bytes, probability: float, id: int = 0) -> Token:
    written = text.encode() if isinstance(text, str) else text
    return Token(id, written, math.log(probability))


def test_a_token_shows_its_white_space_and_its_broken_characters() -> None:
    tokens = [b" a\tb\n", "é".encode()[:1], b"\x00", b"\x1b[2J"]
    assert [visible(token) for token in tokens] == ["␣a⇥b↵", r"\xc3", r"\x00", r"\x1b[2J"]


def test_probabilities_have_two_digits() -> None:
    shown = {1.0: "100%", 0.834: "83%", 0.0996: "10%", 0.0994: "9.9%", 0.001: "0.1%"}
    assert {probability: percent(probability) for probability in shown} == shown
    assert percent(0.0009) == "<0.1%"


def test_a_line_shows_a_token_and_the_likeliest_others() -> None:
    rivals = [token(" crow", 0.5, 1), token(" fox", 0.25, 2), token("\n", 0.1, 3), token("x", 0.05)]
    line = token_line(token(" fox", 0.25, 2), rivals, 4)
    assert line.split() == ["25%", "␣fox", "␣crow", "50%", "↵", "10%", "x", "5.0%"]
    assert "(end)" in token_line(token(b"", 0.1, 4), [], 4)
    assert "(5)" in token_line(token(b"", 0.1, 5), [], 4)


def test_each_token_has_its_line_as_it_is_drawn_and_the_text_comes_last_also_after_ctrl_c(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown: list[str] = []

    def steps() -> Iterator[Step]:
        for i, text, probability in ((0, "a", 0.9), (1, "b", 0.3), (2, "\n", 0.004)):
            shown.append(capsys.readouterr().out)
            yield Step(0, i, math.log(probability), text, None)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        show_tokens("ba", steps(), CharacterTokenizer("ab\n"))
    last, *text = capsys.readouterr().out.splitlines()
    lines = [line.split()[:2] for line in [*shown, last]]
    assert lines == [["probability", "token"], ["90%", "a"], ["30%", "b"], ["0.4%", "↵"]]
    assert text == ["", "baab", "", ""]
