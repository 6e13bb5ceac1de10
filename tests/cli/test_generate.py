"""`generate`: what stands on standard output and what on standard error, and what is refused."""

import json
import re
from pathlib import Path

import pytest

import minigpt
from minigpt.cli.terminal import Wrapper
from minigpt.config import PLAIN
from minigpt.generation.results import Step
from minigpt.runs import read_model

from ..conftest import train_tiny
from .conftest import Type, assert_refused

CONTROLS = "a\x1b[2Jb\x07c\x9bd\x7fe\rf"


class Terminal:
    """Standard output as a terminal."""

    def __init__(self) -> None:
        self.shown = ""

    def write(self, text: str) -> None:
        self.shown += text

    def flush(self) -> None:
        pass

    def reconfigure(self, **settings: str) -> None:
        pass

    def isatty(self) -> bool:
        return True


@pytest.fixture
def at_home(tiny_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `tiny_run` is the newest run."""
    monkeypatch.chdir(tiny_run.parent.parent)


# Text


def test_the_text_stands_alone_on_standard_output(at_home: None, type_: Type) -> None:
    given = ["generate", "the fox", "--seed", "3", "--max-new-tokens", "8"]
    status, out, err = type_(*given)
    assert status == 0 and out.startswith("the fox") and len(out) > len("the fox\n")
    assert "runs/my" in err and "--seed 3" in err
    assert type_(*given, "--run", "runs/my")[1] == out


def test_a_backslash_and_n_in_a_prompt_are_a_new_line(at_home: None, type_: Type) -> None:
    given = ["generate", r"the fox\nthe \\n", "--max-new-tokens", "0", "--plain"]
    assert type_(*given)[1].startswith("the fox\nthe \\n")


def test_the_seed_minus_one_means_any(at_home: None, type_: Type) -> None:
    given = "generate the --max-new-tokens 20 --temperature 2 --seed -1 --json"
    records = [json.loads(type_(given)[1]) for _ in range(2)]
    assert records[0]["seed"] != records[1]["seed"] and -1 not in {r["seed"] for r in records}
    assert type_("generate the --seed -2")[0] == 2


def test_the_seed_that_was_drawn_is_told_and_writes_the_same_text(
    at_home: None, type_: Type
) -> None:
    _, out, err = type_("generate the --max-new-tokens 20")
    seed = err.split("--seed ")[1].split()[0]
    assert type_(f"generate the --max-new-tokens 20 --seed {seed}")[1] == out


def test_samples_are_printed_one_after_another(at_home: None, type_: Type) -> None:
    given = ["generate", "the", "--seed", "3", "--stop", r"\n", "--top-k", "20"]
    one = type_(*given)[1]
    assert one.startswith("the") and one.count("\n") == 1
    three = type_(*given, "--samples", "3")[1].removesuffix("\n").split("\n")
    assert three[1] == one.removesuffix("\n")
    assert three[::2] == ["--- sample 1 ---", "--- sample 2 ---", "--- sample 3 ---"]
    assert all(line.startswith("the") for line in three[1::2])


def test_show_prints_the_same_text_below_its_tokens(at_home: None, type_: Type) -> None:
    given = ["generate", "the fox", "--seed", "1", "--max-new-tokens", "8"]
    table, text = type_(*given, "--show")[1].split("\n\n", 1)
    assert text.rstrip("\n") == type_(*given)[1].rstrip("\n")
    assert len(table.splitlines()) == 1 + 8 and "\x1b" not in table + text
    for line in table.splitlines()[1:]:
        percents = [float(word.strip("<%")) for word in line.split() if word.endswith("%")]
        assert percents[1:] == sorted(percents[1:], reverse=True) and sum(percents) <= 101


@pytest.mark.parametrize("how", [[], ["--show"], ["--samples", "2"]])
def test_control_characters_of_a_text_do_not_reach_a_terminal(
    how: list[str], at_home: None, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model may have learned to write what empties a screen, or retitles a window."""

    def steps(self: object, prompt: str, config: minigpt.SampleConfig, **_: object) -> list[Step]:
        return [Step(i, 0, -0.1, CONTROLS, "length") for i in range(config.samples)]

    monkeypatch.setattr(minigpt.Writer, "steps", steps)
    assert CONTROLS in type_("generate", "p\x1b", *how)[1]  # a file gets them as they are
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    assert type_("generate", "p\x1b\ta\nb", *how)[0] == 0
    assert r"a\x1b[2Jb\x07c\x9bd\x7fe\rf" in terminal.shown and "p\\x1b\ta" in terminal.shown
    assert not set(terminal.shown) & set("\x1b\x07\x9b\x7f\r")


def test_ctrl_c_ends_it_with_its_own_status(
    at_home: None, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    def steps(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(minigpt.Writer, "steps", steps)
    status, _, err = type_("generate the")
    assert status == 130 and err.endswith("interrupted\n")


def words(text: str) -> int:
    return len(re.findall(r"\w+", text))


def test_more_texts_are_begun_until_there_are_enough_words(at_home: None, type_: Type) -> None:
    given = ["generate", "the fox", "--seed", "3", "--max-new-tokens", "20"]
    one = type_(*given)[1]
    assert type_(*given, "--min-words", "2")[1] == one
    out = type_(*given, "--min-words", "100")[1]
    assert out.startswith(one) and words(out) >= 100
    texts = out.split("\n* * *\n\n")
    assert len(texts) > 2 and all(text.startswith("the fox") for text in texts)
    assert words("".join(texts[:-1])) < 100
    assert len(set(texts)) == len(texts)
    assert type_(*given, "--min-words", "100")[1] == out


def test_a_model_that_always_ends_at_once_is_not_asked_for_ever(
    at_home: None, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = [Step(0, 0, None, "", "end_of_text")]
    monkeypatch.setattr(minigpt.Writer, "steps", lambda *_, **__: iter(end))
    status, out, err = type_("generate", "", "--min-words", "9")
    assert status == 0 and out.count("* * *") == 99
    assert "after 100 texts, the most there are, there are 0 words" in err.splitlines()


def test_lines_are_broken_at_a_terminal_or_where_that_is_asked_for_and_nowhere_else(
    at_home: None, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["generate", "the fox", "--seed", "3", "--max-new-tokens", "90"]
    plain = type_(*given)[1]
    assert max(map(len, plain.split("\n"))) > 30
    wrapped = type_(*given, "--wrap", "30")[1]
    assert max(map(len, wrapped.split("\n"))) <= 30
    assert wrapped.split() == plain.split()

    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "30")
    type_(*given)
    assert terminal.shown == wrapped
    terminal.shown = ""
    type_(*given, "--wrap", "0")
    assert terminal.shown == plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the old fox ran", "the old\nfox ran"),
        ("the old\nfox ran on", "the old\nfox ran\non"),
        ("    if x:\n  y", "    if x:\n  y"),
        ("FOX.\nI ran,\nand ran.\n\nCROW.\nWho ran?", "FOX.\nI ran,\nand ran.\n\nCROW.\nWho ran?"),
        ("incomprehensible fox", "incomprehensible\nfox"),
        ("the end \n", "the end\n"),
        ("狐狸跑了乌鸦飞", "狐狸跑了\n乌鸦飞"),
        ("a", "a"),
    ],
)
def test_a_line_is_broken_between_words_however_the_text_comes(text: str, shown: str) -> None:
    for size in (1, 3, len(text)):
        wrapper = Wrapper(9)
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        assert "".join([*map(wrapper.add, pieces), wrapper.end()]) == shown


def test_what_is_to_be_left_out_is_not_written(at_home: None, type_: Type) -> None:
    """A letter in any form of output, and a text of two tokens."""
    given = ["generate", "A fox", "--seed", "3", "--max-new-tokens", "60"]
    assert {"e", "\n"} <= set(type_(*given)[1].removesuffix("\n"))
    for how in ([], ["--samples", "2"], ["--min-words", "40"], ["--show"], ["--json"]):
        status, out, _ = type_(*given, *how, "--without", "e", "--without", r"\n")
        text = json.loads(out)["text"] if how == ["--json"] else out.split("A fox", 1)[1]
        headings = ("--- sample 1 ---", "--- sample 2 ---", "A fox", "* * *")
        for heading in headings:
            text = text.replace(heading, "")
        assert status == 0 and len(text) > 40 and "e" not in text, how
        assert how or text.count("\n") == 1  # the last
    some_word = type_(*given)[1].split()[5]
    assert some_word not in type_(*given, "--without", some_word)[1].split("A fox", 1)[1]


def test_where_nothing_is_left_to_write_one_line_says_so(at_home: None, type_: Type) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    banned = [word for letter in (*letters, " ", r"\n") for word in ("--without", letter)]
    status, _, err = type_("generate", "the", *banned)
    assert status == 2 and "no token is left to choose" in err.splitlines()[-1]


# Records


def test_json_is_a_record_for_each_sample_and_nothing_else(at_home: None, type_: Type) -> None:
    given = ["generate", "the\nfox", "--seed", "3", "--max-new-tokens", "9"]
    status, out, err = type_(*given, "--json", "--samples", "3")
    assert status == 0 and "runs/my" in err
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["sample"] for record in records] == [0, 1, 2]
    for record in records:
        assert record["prompt"] == "the\nfox" and record["seed"] == 3
        assert 1 <= record["tokens"] <= 9 and record["stop_reason"] in ("length", "end_of_text")
        assert record["seconds"] > 0 and record["tokens_per_second"] > 0
    assert type_(*given)[1] == records[0]["prompt"] + records[0]["text"] + "\n"


# What is refused


@pytest.mark.parametrize("option", ["--dry-base", "--dry-allowed-length"])
def test_how_passages_are_penalised_is_refused_where_they_are_not(
    option: str, at_home: None, type_: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = f"{option} does nothing beside --dry-multiplier 0;"
    given = f"generate the --max-new-tokens 2 {option} 3"
    assert type_(given)[0] == 0  # the run has a penalty of its own
    assert type_(f"{given} --temperature 0")[0] == 0
    assert_refused(type_(f"{given} --dry-multiplier 0"), problem)
    monkeypatch.setattr(read_model, "read_usual", lambda _: PLAIN)
    assert_refused(type_(given), problem)
    assert type_(f"{given} --dry-multiplier 1")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--temperature -1", "temperature must be at least 0"),
        ("--temperature hot", "--temperature"),
        ("--json --show", "--show does nothing beside --json; leave one of them out"),
        ("--json --wrap 60", "--wrap does nothing beside --json;"),
        ("--show --min-words 60", "--min-words does nothing beside --show;"),
        ("--samples 2 --min-words 60", "--samples does nothing beside --min-words 60;"),
        ("--interactive --json", "--json does nothing beside --interactive;"),
        ("--interactive --show", "--show does nothing beside --interactive;"),
        ("--interactive --samples 2", "--samples does nothing beside --interactive;"),
        ("--interactive --min-words 60", "--min-words does nothing beside --interactive;"),
        ("--interactive -", "--interactive reads prompts from standard input; leave out the -"),
        ("--min-words 60 --max-new-tokens 0", "--max-new-tokens of at least 1"),
        ("--wrap -1", "--wrap must be at least 0"),
        ("Once upon a time", "put quotes around the prompt: 'Once upon a time'"),
        ("Once", "no run in runs/ yet"),
        ("Once --run nowhere", "no such run: nowhere or runs/nowhere (newest runs: none yet"),
        ("Once --run .", "not a run"),
        ("Once --device abacus --run .", "no device 'abacus'"),
    ],
)
def test_what_cannot_be_done_is_refused(
    workplace: Path, type_: Type, arguments: str, words: str
) -> None:
    assert_refused(type_(f"generate {arguments}"), words)


def test_a_prompt_that_cannot_be_encoded_is_refused_before_anything_is_written(
    workplace: Path, type_: Type
) -> None:
    run = train_tiny(tokenizer="char", steps=1, num_evals=1)
    for how in ([], ["--show"], ["--json"]):
        outcome = type_("generate", "the €", "--run", run, *how)
        assert_refused(outcome, "'€' at position 4")
