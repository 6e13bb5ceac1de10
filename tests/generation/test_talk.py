"""What a talk is made of: who asks, who answers, and what of it the model still sees."""

import pytest

from minigpt import SampleConfig, UserError
from minigpt.data.dialogue import Dialogue
from minigpt.data.readers.document import Turn
from minigpt.generation.talk import Talk, read_talk, talk_of_messages
from minigpt.tokenizer import CharacterTokenizer

DIALOGUE = Dialogue({"Otto Müller": 9, "Anna": 7, "Paul": 2})


def test_a_prompt_is_the_turn_of_another_speaker() -> None:
    talk = read_talk(DIALOGUE, "Did you feed the cat?", "Anna")
    assert talk.turns == (Turn("Otto Müller", "Did you feed the cat?"),)
    assert talk.opening == "Anna:"
    assert read_talk(DIALOGUE, "hi").answerer == "Otto Müller"
    assert read_talk(DIALOGUE, "hi").turns == (Turn("Anna", "hi"),)


@pytest.mark.parametrize(
    ("prompt", "answerer", "turns"),
    [
        ("Otto Müller: hi", "Anna", [("Otto Müller", "hi")]),
        ("paul: hi\nthere\nAnna: no: never", "Otto Müller", [("Paul", "hi\nthere"),
                                                             ("Anna", "no: never")]),
        ("Note: hi", "Otto Müller", [("Anna", "Note: hi")]),
        ("Anna: hi\n\nPaul:", "Paul", [("Anna", "hi")]),
        ("PAUL:", "Paul", []),
        ("hi\n\n\nthere", "Otto Müller", [("Anna", "hi\nthere")]),
    ],
)  # fmt: skip
def test_names_in_a_prompt_say_who_speaks(
    prompt: str, answerer: str, turns: list[tuple[str, str]]
) -> None:
    talk = read_talk(DIALOGUE, prompt)
    assert talk.answerer == answerer
    assert talk.turns == tuple(Turn(*turn) for turn in turns)


def test_a_speaker_is_found_by_the_beginning_of_the_name() -> None:
    assert DIALOGUE.find("otto") == "Otto Müller"
    for name in ("", "Karl"):
        with pytest.raises(UserError, match=r"there are Otto Müller .9 turns., Anna"):
            DIALOGUE.find(name)


def test_where_one_alone_speaks_somebody_asks() -> None:
    assert read_talk(Dialogue({"Anna": 3}), "hi").turns == (Turn("Somebody", "hi"),)


def test_an_answer_ends_where_its_turn_does() -> None:
    settings = read_talk(DIALOGUE, "hi").settings(SampleConfig(stop=("!",)))
    assert settings.stop == ("!", "\n\n")


def test_the_oldest_turns_leave_the_context_first() -> None:
    characters = CharacterTokenizer(sorted(set("Otto Müller: Anna\n0123456789")))
    talk = Talk(DIALOGUE, "Anna")
    for number in range(10):
        talk = talk.add("Otto Müller", str(number))
    whole = talk.prompt(characters, context_length=1000, max_new_tokens=10)
    assert whole.startswith("Otto Müller: 0\n\n") and whole.endswith("9\n\nAnna:")

    # A turn has 16 characters, the opening of the answer 5; a quarter of the context stays free.
    shorter = talk.prompt(characters, context_length=100, max_new_tokens=300)
    assert shorter == whole[whole.index("Otto Müller: 6") :]
    assert len(shorter) <= 75
    last = talk.prompt(characters, context_length=8, max_new_tokens=300)
    assert last == "Otto Müller: 9\n\nAnna:"


def test_the_roles_of_a_chat_are_speakers() -> None:
    messages = [
        ("system", "be kind", None),
        ("user", "hi", None),
        ("assistant", "hello", None),
        ("user", "and I?", "Paul"),
        ("user", " ", None),
    ]
    talk = talk_of_messages(DIALOGUE, messages)
    assert talk.answerer == "Otto Müller"
    assert talk.turns == (Turn("Anna", "hi"), Turn("Otto Müller", "hello"), Turn("Paul", "and I?"))
    assert talk_of_messages(DIALOGUE, messages, "anna").turns[0].speaker == "Otto Müller"


def test_the_roles_of_a_data_set_stay_what_they_are() -> None:
    dialogue = Dialogue({"User": 5, "Assistant": 5, "System": 1})
    messages = [("system", "be kind", None), ("user", "hi", None)]
    talk = talk_of_messages(dialogue, messages)
    assert talk.answerer == "Assistant"
    assert talk.turns == (Turn("System", "be kind"), Turn("User", "hi"))
