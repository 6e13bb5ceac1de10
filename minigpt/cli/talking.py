"""`generate --interactive` with a model that learned from conversations: a talk.

What is typed is one speaker's turn, and the model answers with another's. All that was said stays
in the context; the oldest turns leave it first.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from .. import UserError
from ..config.checked import is_utf8
from .interactive import COMMANDS, Session, hold
from .terminal import print_message
from .writing import Task, new_seed

if TYPE_CHECKING:
    from ..data.dialogue.dialogue import Dialogue
    from ..generation.talk import Talk


def talk_with(task: Task, talk: "Talk", *, width: int | None) -> None:
    """Answer what is typed, turn by turn, until the end of standard input.

    Args:
        task: the model and the settings at first.
        talk: what was said before the first line is read, and who answers. If the last turn is not
            the answerer's, it is answered first.
        width: of lines, 0 for any; None for the terminal's.
    """
    from ..data.dialogue.dialogue import MANNER

    session = TalkSession(task, talk, width)
    who = f"you are {talk.asker}, and {talk.answerer} answers: {MANNER}"
    print_message(f"{who}; there are {talk.dialogue.listed()}")
    hold(session, "say something, or /help", first="" if talk.turns else None)


class TalkSession(Session):
    """What has been said, who answers, and the settings; what is typed changes them."""

    commands: ClassVar = {
        "as NAME": "let another speaker answer",
        "undo": "take back your last turn, and the answers to it",
        "new": "forget all that was said",
        "again": "the last answer again, with another seed",
        "save FILE": "write what was said to a new file",
        **{name: purpose for name, purpose in COMMANDS.items() if name in ("help", "quit")},
    }
    prompts: ClassVar = {
        "TEXT": "your turn (\\n: new line); NAME: TEXT is the turn of a speaker",
        "an empty line": "let the model speak the next turn, whoever's it is",
        "//TEXT": "the same as TEXT, for one that begins with a slash",
    }

    def __init__(self, task: Task, talk: "Talk", width: int | None):
        super().__init__(task, width)
        self._talk = talk
        self._typed: list[Talk] = []  # the talk before each turn that was typed
        self._speaker = talk.answerer  # of the last turn that the model spoke

    @property
    def dialogue(self) -> "Dialogue":
        """Who can speak."""
        return self._talk.dialogue

    def begin(self, prompt: str) -> None:
        """Answer a turn."""
        from ..generation.talk import read_talk

        if not is_utf8(prompt):
            raise UserError("the turn is not UTF-8")
        said = self._talk
        asker = said.asker
        for turn in read_talk(self.dialogue, prompt, said.answerer, asker).turns:
            said = said.add(turn.speaker, turn.text)
        if prompt:
            self._typed.append(self._talk)
        self._talk = said
        self._answer(self._next_seed())

    def _obey(self, name: str, value: str) -> None:
        if name == "as":
            self._set_answerer(value)
        elif name in ("undo", "new") and not value:
            self._take_back(everything=name == "new")
        else:
            super()._obey(name, value)

    def _set_answerer(self, name: str) -> None:
        """Let another speaker answer, or say who does."""
        if name:
            self._talk = replace(self._talk, answerer=self.dialogue.find(name))
        print_message(f"{self._talk.answerer} answers; you are {self._talk.asker}")

    def _take_back(self, *, everything: bool) -> None:
        """Forget the last turn that was typed and what followed, or all turns."""
        if everything:
            self._talk = replace(self._talk, turns=())
            self._typed = []
        elif self._typed:
            self._talk = replace(self._talk, turns=self._typed.pop().turns)
        else:
            raise UserError("there is no turn of yours to take back")

        last = self._talk.turns[-1:]
        self._text = None
        print_message(f"the last turn is {last[0].speaker}'s" if last else "nothing was said yet")

    def _go_on(self) -> None:
        """Let the model speak the next turn: the answer, or what follows the answer."""
        last = self._talk.turns[-1:]
        if last and last[0].speaker == self._talk.answerer:
            self._speak(self._talk.asker, self._next_seed())
        else:
            self._answer(self._next_seed())

    def _again(self) -> None:
        """Speak the last turn that the model spoke once more."""
        if self._text is None:
            raise UserError("there is no answer yet; say something")
        turns = self._talk.turns
        speaker = self._speaker
        if turns and turns[-1].speaker == speaker:
            self._talk = replace(self._talk, turns=turns[:-1])
        is_set = self._task.config.seed is not None
        seed = (self._seed + 1) % (1 << 63) if is_set else new_seed()
        self._speak(speaker, seed)

    def _next_seed(self) -> int:
        """The seed that was set and the number of turns, so that not all answers are alike."""
        seed = super()._next_seed()
        return (seed + len(self._talk.turns)) % (1 << 63)

    def _answer(self, seed: int) -> None:
        self._speak(self._talk.answerer, seed)

    def _speak(self, speaker: str, seed: int) -> None:
        """Write the next turn, as a speaker, and add it to the talk."""
        talk = replace(self._talk, answerer=speaker)
        task = self._task
        prompt = talk.prompt(
            task.writer.tokenizer,
            context_length=task.writer.engine.context_length,
            max_new_tokens=task.config.max_new_tokens,
        )
        config = talk.settings(task.config)
        turn = replace(task, prompt=prompt, config=config, opening=talk.opening)

        self._speaker = speaker
        self._text = ""
        try:
            self._show(turn, shown=talk.opening, seed=seed, more="longer: /max-new-tokens N")
        finally:  # also what was written before Ctrl-C
            self._talk = self._talk.add(speaker, self._text)

    def _saved_text(self) -> str:
        return self.dialogue.write(self._talk.turns).rstrip("\n")
