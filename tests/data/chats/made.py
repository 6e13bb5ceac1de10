"""A chat as two people might have it, to train on: Anna asks and tells, Otto is short and dry."""

import random
from datetime import datetime, timedelta

_PETS = ("the cat", "the dog", "the hens", "the rabbit")
_MEALS = ("soup", "bread", "pancakes", "a cake", "rice", "potatoes")
_PLACES = ("the lake", "the market", "town", "the station", "the garden", "the library")
_TIMES = ("at six", "at noon", "tomorrow", "tonight", "on Sunday", "in an hour")
_PEOPLE = ("Mum", "Paul", "the neighbours", "Aunt Edith", "the plumber")
_TALK = (  # what Anna says, and what Otto answers
    ("Did you feed {pet}?", ("Twice.", "Of course.", "Not yet. On my way.", "{pet} ate my lunch.")),
    ("What are we having for dinner?", ("{meal}.", "{meal} again.", "Whatever is left.")),
    ("I am at {place}, do we need anything?", ("{meal}.", "No.", "Patience.", "Milk, I think.")),
    ("When does {person} come?", ("{time}.", "Too soon.", "{time}, they said.")),
    ("It is raining here :(", ("Here too.", "Good for the garden.", "Take my umbrella.")),
    ("Shall we go to {place} {time}?", ("Fine.", "If we must.", "Only if we are back {time}.")),
    ("{person} called, they sound happy", ("Good.", "That is new.", "I will call back {time}.")),
    ("I made {meal} and it is terrible", ("I will eat it.", "It is always good.", "Brave.")),
    ("Have you seen my keys?", ("On the table.", "In the fridge.", "Ask {pet}.")),
    ("good night!", ("Good night.", "Sleep well.", "Already asleep.")),
)


def some_chat(messages: int = 900, seed: int = 0) -> str:
    """A chat as WhatsApp exports it in Germany, with so many messages."""
    draw = random.Random(seed)
    time = datetime(2024, 1, 1, 8, 0)
    lines = ["01.01.24, 08:00 - Messages and calls are end-to-end encrypted."]

    def add(name: str, text: str) -> None:
        lines.append(f"{time:%d.%m.%y, %H:%M} - {name}: {text}")

    while len(lines) <= messages:
        asks, answers = draw.choice(_TALK)
        words = {
            "pet": draw.choice(_PETS),
            "meal": draw.choice(_MEALS),
            "place": draw.choice(_PLACES),
            "time": draw.choice(_TIMES),
            "person": draw.choice(_PEOPLE),
        }
        add("Anna", asks.format(**words))
        if draw.random() < 0.15:
            add("Anna", draw.choice(("??", "hello?", "please :)", "<Media omitted>")))
        time += timedelta(minutes=draw.randrange(1, 20))
        answer = draw.choice(answers).format(**words)
        add("Otto", answer[0].upper() + answer[1:])
        is_end = draw.random() < 0.2
        time += timedelta(hours=10) if is_end else timedelta(minutes=draw.randrange(1, 60))
    return "\n".join(lines[: messages + 1]) + "\n"


def some_script(turns: int = 120, template: str = "{speaker}:\n{text}\n\n", seed: int = 0) -> str:
    """A play of Anna and Otto whose turns are written like this."""
    draw = random.Random(seed)
    parts = []
    for number in range(turns):
        question, answers = _TALK[draw.randrange(len(_TALK))]
        said = answers[draw.randrange(len(answers))] if number % 2 else question
        words = {"pet": draw.choice(_PETS), "meal": draw.choice(_MEALS),
                 "place": draw.choice(_PLACES), "time": draw.choice(_TIMES),
                 "person": draw.choice(_PEOPLE)}  # fmt: skip
        parts.append(
            template.format(speaker=("ANNA", "OTTO")[number % 2], text=said.format(**words))
        )
    return "".join(parts)
