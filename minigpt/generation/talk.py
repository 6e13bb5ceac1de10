"""A talk with a model that learned from conversations: what has been said, and who answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..config import SampleConfig
from ..data.dialogue import Dialogue
from ..data.readers.chats.turns import clean_name, clean_text
from ..data.readers.document import Turn
from ..tokenizer import NAMES_AS_TEXT, Tokenizer

_ROOM = 4  # at most a fourth of the context is kept free for an answer


@dataclass(frozen=True)
class Talk:
    """The turns so far, and the speaker whose turn is next."""

    dialogue: Dialogue
    answerer: str
    turns: tuple[Turn, ...] = ()

    @property
    def opening(self) -> str:
        """How the answer begins: with the name."""
        return self.dialogue.opening(self.answerer)

    @property
    def asker(self) -> str:
        """Who speaks where no name is given: the last other speaker, or the most frequent."""
        for turn in reversed(self.turns):
            if turn.speaker != self.answerer:
                return turn.speaker
        return self.dialogue.most_frequent(but=[self.answerer])

    @property
    def next_speaker(self) -> str:
        """Who speaks next: the answerer, or the asker once the answerer has spoken."""
        is_answered = bool(self.turns) and self.turns[-1].speaker == self.answerer
        return self.asker if is_answered else self.answerer

    def prompt(self, tokenizer: Tokenizer, *, context_length: int, max_new_tokens: int) -> str:
        """The text that the answer continues. If it does not fit into the context, with room for
        an answer, the oldest turns are left out; the last one always stays."""
        left = context_length - min(max_new_tokens, context_length // _ROOM)
        left -= len(tokenizer.encode(self.opening))
        kept: list[Turn] = []
        for turn in reversed(self.turns):
            left -= len(tokenizer.encode(self.dialogue.write([turn])))
            if left < 0 and kept:
                break
            kept.append(turn)
        return self.dialogue.write(reversed(kept)) + self.opening

    def settings(self, config: SampleConfig) -> SampleConfig:
        """The settings with which an answer is written: it ends where its turn does."""
        return replace(config, stop=(*config.stop, *self.dialogue.stops))

    def add(self, speaker: str, text: str) -> "Talk":
        """The talk with another turn, if anything is said in it."""
        said = clean_text(text)
        for name, as_text in NAMES_AS_TEXT.items():
            said = said.replace(name, as_text)
        if not said:
            return self
        return replace(self, turns=(*self.turns, Turn(speaker, said)))

    def hear(self, prompt: str) -> "Talk":
        """The talk with the turns of a prompt, which :func:`read_talk` reads."""
        new = read_talk(self.dialogue, prompt, self.answerer, self.asker)
        return replace(self, turns=(*self.turns, *new.turns))


def read_talk(
    dialogue: Dialogue, prompt: str, answerer: str | None = None, asker: str | None = None
) -> Talk:
    """The talk that a prompt begins, one turn or several that begin with a speaker's name.

    Without an `answerer`, a name at the end of the prompt with nothing after it says who answers.
    Without such a name, the most frequent speaker answers other than the first in the prompt. Text
    before any name is the `asker`'s or, without one, the most frequent other speaker's.

    Raises:
        UserError: if there is no such answerer.
    """
    said = _said(dialogue, prompt)
    named = [name for name, _ in said if name is not None]
    if answerer is not None:
        chosen = dialogue.find(answerer)
    elif said and said[-1][0] is not None and not clean_text(said[-1][1]):
        chosen = said[-1][0]
    else:
        chosen = dialogue.most_frequent(but=named[:1])

    talk = Talk(dialogue, chosen)
    for name, text in said:
        talk = talk.add(name or asker or talk.asker, text)
    return talk


def _said(dialogue: Dialogue, prompt: str) -> list[tuple[str | None, str]]:
    """The parts of a prompt, and the speaker whose name each begins with, if it does."""
    parts: list[tuple[str | None, str]] = []
    for line in prompt.splitlines():
        speaker, rest = _named(dialogue, line)
        if speaker is not None:
            parts.append((speaker, rest))
        elif parts:
            name, text = parts[-1]
            parts[-1] = (name, f"{text}\n{line}")
        else:
            parts.append((None, line))
    return parts


def _named(dialogue: Dialogue, line: str) -> tuple[str | None, str]:
    """The speaker whose name a line begins with, before a colon or as the text writes it, and the
    rest of the line; None if there is none."""
    names = {speaker.casefold(): speaker for speaker in dialogue.speakers}
    before_name, _, after_name = dialogue.before_text.partition("{speaker}")
    for before, after in ((before_name.strip(), after_name.strip()), ("", ":")):
        name, mark, rest = line.strip().removeprefix(before).partition(after or "\n")
        speaker = names.get(clean_name(name).casefold()) if mark else None
        if speaker is not None:
            return speaker, rest
    return None, line


def talk_of_messages(
    dialogue: Dialogue, messages: Sequence[tuple[str, str, str | None]], answerer: str | None = None
) -> Talk:
    """The talk in the messages of a chat, each of which has a role, a text and perhaps a name.

    A message is said by the speaker with its name, if there is one, or else by the speaker of its
    role (:meth:`Dialogue.roles`). Messages without a speaker, such as the system's, are left out.
    """
    roles = dialogue.roles(answerer)
    talk = Talk(dialogue, roles["assistant"])
    for role, text, name in messages:
        speaker = name if name in dialogue.speakers else roles.get(role)
        if speaker is not None:
            talk = talk.add(speaker, text)
    return talk
