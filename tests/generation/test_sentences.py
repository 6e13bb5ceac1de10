"""Where a text ends that is to end with a whole sentence, or with a whole turn."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minigpt import SampleConfig, Writer
from minigpt.data.dialogue import Dialogue
from minigpt.data.readers.document import Layout
from minigpt.generation.continuation import Continuation
from minigpt.generation.results import Step
from minigpt.generation.sentences import SentenceEnd, sentence_end
from minigpt.tokenizer.characters import CharacterTokenizer


def ended(text: str, long_enough: int, pieces: int = 1) -> tuple[str, bool]:
    """What is shown of a text that comes in pieces and is long enough after so many characters, and
    whether it has ended with a sentence."""
    end = SentenceEnd()
    shown = ""
    for start in range(0, len(text), pieces):
        piece = text[start : start + pieces]
        is_long_enough = start + len(piece) >= long_enough
        shown += end.add(piece, is_long_enough=is_long_enough)
        if end.reached:
            return shown, True
    return shown, False


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("The fox ran. The crow", "The fox ran."),
        ('"Stop!" said the fox. Then', '"Stop!" said the fox.'),
        ('He said, "Stop." Then he', 'He said, "Stop."'),
        ("He said, “Stop!” Then he", "He said, “Stop!”"),
        ("(So it was.) And", "(So it was.)"),
        ("It costs 3.50 pence. No", "It costs 3.50 pence."),
        ("Mr. Fox and J. Crow ran. They", "Mr. Fox and J. Crow ran."),
        ("He had bread, etc. and ran. He", "He had bread, etc. and ran."),
        ("Why?! No", "Why?!"),
        ("She ran…\nhe did not", "She ran…"),
        ("the end of it.\nand so", "the end of it."),
        ("To be, or not to be\n\nHAMLET", "To be, or not to be"),
        ("THE FOX.\nI ran.\nFar.", "THE FOX.\nI ran."),
        ("OTTO.\n\nOh. No", "OTTO.\n\nOh."),
        ("he sang. SING.\nNow", "he sang."),
        ("OK. Then he", "OK."),
        ("He ran.\nNO WAY. So", "He ran."),
        ("OTTO. \nOh. No", "OTTO. \nOh."),
        ("Лиса бежала. Ворона", "Лиса бежала."),
        ("狐狸跑了。乌鸦", "狐狸跑了。"),
        ("「止まれ。」彼は", "「止まれ。」"),
        ("वह गया। वह", "वह गया।"),
        ("هل ذهب؟ نعم", "هل ذهب؟"),
    ],
)
def test_a_text_ends_with_its_next_whole_sentence(text: str, sentence: str) -> None:
    for pieces in (1, 2, 3, len(text)):
        assert ended(text, 2, pieces) == (sentence, True)


@pytest.mark.parametrize("text", ["The fox ran.", "The fox", 'He said, "No.', "Mr. Fox", "a. b c"])
def test_a_sentence_has_not_ended_before_what_follows_tells(text: str) -> None:
    assert ended(text, 2) == (text, False)


def test_a_sentence_that_ended_just_where_the_text_is_long_enough_is_the_last() -> None:
    text = "The fox ran. The crow flew. The end"
    ends = {ended(text, long_enough)[0] for long_enough in range(13)}
    assert ends == {"The fox ran."}
    assert sentence_end("The fox ran. The", start=len("The fox ran. The")) is None
    assert ended(text, len("The fox ran. "), pieces=13)[0].rstrip() == "The fox ran."


@given(st.text("ab. \n\"?M'。」"), st.integers(0, 20), st.integers(1, 5))
def test_what_is_shown_begins_the_text_and_only_white_space_is_held_back(
    text: str, long_enough: int, pieces: int
) -> None:
    shown, has_ended = ended(text, long_enough, pieces)
    assert text.startswith(shown)
    assert has_ended or not text[len(shown) :].strip()


def test_the_last_piece_holds_nothing_back() -> None:
    end = SentenceEnd()
    assert end.add("He ran. ", is_long_enough=True) == "He ran."
    assert end.add("", is_long_enough=True, last=True) == " "


# A writer


def written(
    text: str, samples: int = 1, dialogue: Dialogue | None = None, **settings: Any
) -> list[list[Step]]:
    """The steps of samples, each of which would write this text, a token for each character."""
    tokenizer = CharacterTokenizer(sorted(set(text)))
    ids = iter(tokenizer.encode(text))
    shape = (samples, tokenizer.vocab_size)
    window: Any = SimpleNamespace(
        next_logits=lambda: np.zeros(shape, np.float32), append=lambda ids: None
    )
    sampler: Any = lambda logits: np.full(samples, next(ids))  # noqa: E731
    config = SampleConfig(samples=samples, **settings)
    engine: Any = None
    steps: list[list[Step]] = [[] for _ in range(samples)]
    writer = Writer(engine, tokenizer, dialogue=dialogue)
    for step in writer.write(window, sampler, config):
        steps[step.sample].append(step)
    return steps


def test_a_writer_goes_on_to_the_end_of_the_sentence_in_every_sample() -> None:
    text = 'The fox said, "Mr. Crow! Sing." So he sang. Then he flew away. And'
    for most in range(1, 60):
        plain = written(text, max_new_tokens=most)[0]
        assert len(plain) == most
        begun = "".join(step.text for step in plain)
        for steps in written(text, samples=2, max_new_tokens=most, whole_sentences=True):
            shown = "".join(step.text for step in steps)
            assert shown.rstrip().endswith(("Crow!", '"', "sang.", "away."))
            assert text.startswith(shown)
            assert shown.startswith(begun[:-1].rstrip())
            assert [step.stop_reason for step in steps] == [None] * (len(steps) - 1) + ["length"]


PLAY = """ANNA.
Mr. Crow! Sing.
He sings. And how!

[Exit Otto.]

OTTO.
So I do. Then

ANNA.
Enough."""


def test_a_writer_of_plays_goes_on_to_the_end_of_the_speech() -> None:
    dialogue = Dialogue({"ANNA": 2, "OTTO": 2}, Layout("{speaker}.\n{text}\n\n"))
    asked: dict[str, Any] = {"dialogue": dialogue, "whole_sentences": True}
    for most in range(1, len(PLAY) - len("\n\nANNA.\nEnough.")):
        (steps,) = written(PLAY, max_new_tokens=most, **asked)
        shown = "".join(step.text for step in steps)
        assert PLAY.startswith(shown) and len(shown) >= most - 1
        assert shown.rstrip().endswith(("how!", "Otto.]", "Then"))
        assert steps[-1].stop_reason == "length"


def test_where_only_the_next_name_ends_a_speech_a_writer_goes_on_to_it() -> None:
    layout = Layout("{speaker}.\n{text}\n\n", ends_at_name=True)
    dialogue = Dialogue({"ANNA": 2, "OTTO": 2}, layout)
    (steps,) = written(PLAY, max_new_tokens=10, dialogue=dialogue, whole_sentences=True)
    assert "".join(step.text for step in steps).endswith("how!\n\n[Exit Otto.]")


def test_a_stop_string_and_an_end_of_the_text_still_end_it() -> None:
    (steps,) = written("He ran. END. Then", max_new_tokens=10, whole_sentences=True, stop=("D.",))
    assert "".join(step.text for step in steps) == "He ran. EN"
    assert steps[-1].stop_reason == "stop"


def test_none_are_written_where_none_are_asked_for_and_a_text_without_sentences_ends_too() -> None:
    assert written("abc", max_new_tokens=0, whole_sentences=True) == [[]]
    (steps,) = written("abc " * 100, max_new_tokens=10, whole_sentences=True)
    assert len(steps) == 210 and steps[-1].stop_reason == "length"
    assert "".join(step.text for step in steps) == ("abc " * 100)[:210]


def test_what_was_held_back_is_shown_where_a_text_ends_by_itself() -> None:
    characters = CharacterTokenizer("ab. ")
    config = SampleConfig(whole_sentences=True, max_new_tokens=2)
    for ending, shown in (([characters.end_of_text], "a. "), (characters.encode("b"), "a. b")):
        text = Continuation(config, characters)
        pieces = [text.add(token) for token in [*characters.encode("a. "), *ending]]
        assert "".join(pieces) == shown
    config = SampleConfig(whole_sentences=True, max_new_tokens=2, stop=("bb",))
    text = Continuation(config, characters)
    assert "".join(map(text.add, characters.encode("a. bb"))) == "a. "
    assert text.stop_reason == "stop"
