"""A callback that lets the model write a short text every few seconds, the first one before its
first step, and adds it to the run's journal. Whoever reads these texts sees the model learn.
"""

import re
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ..config import GPT_NAME
from ..generation.results import visible
from ..generation.torch_gpt import glass_of
from ..model import network_name
from ..training.evaluation import evaluating
from .samples import opening, writer_of

if TYPE_CHECKING:
    from ..data.batches import Dataset
    from ..training.trainer import Trainer

_TOKENS = 60  # of each text
# From one text to the next passes the longest of these times:
_SECONDS_BETWEEN = 3.0
_SHARE_BETWEEN = 1 / 50  # of the time so far, so that a long training writes few texts
_TIMES_THE_COST = 50  # what writing a text takes, so that a fiftieth of the time goes into it

# To find the words of the training text
_LOOKING_UP = 0.005  # share of the time that this may take
_TOKENS_A_SECOND = 2e6  # that are looked through
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


class JournalTexts:
    """Adds rows to samples.jsonl in the run's journal. Each has

    - `step`, `seconds`: when it was written
    - `beginning`, `text`: what all texts begin with, and the whole text; all have the same seed
    - `words`, `known`: how many words were written, and how many of them are in the training text
    - `unknown`: the other words, each once; null, like `known`, if the training text is too long to
      look through
    - `tokens`, `looks`: the tokens of the beginning, and how much each head of each layer attends
      to each of them from the last one; null for a network that is no `GPT`
    """

    def __init__(self) -> None:
        self._beginning = ""
        self._known_words: set[str] | None = None
        self._next = 0.0  # when the next text is due, in seconds of training

    def on_start(self, trainer: "Trainer", figures: dict[str, Any]) -> None:
        if trainer.journal is None:
            return
        self._beginning = opening(trainer)
        self._known_words = _words_of(trainer.dataset, _tokens_to_look_up(trainer))
        trainer.journal.drop_texts_after(trainer.state.step)
        self._write(trainer)

    def on_step(self, trainer: "Trainer", figures: dict[str, Any]) -> None:
        if figures["seconds"] >= self._next:
            self._write(trainer)

    def on_end(self, trainer: "Trainer", figures: dict[str, Any]) -> None:
        """The last text is that of the weights which are kept."""
        if trainer.state.finished:
            self._write(trainer)

    def _write(self, trainer: "Trainer") -> None:
        if trainer.journal is None:
            return
        start = time.monotonic()
        with evaluating(trainer.model):
            trainer.journal.add_text(self._text(trainer))

        cost = time.monotonic() - start
        elapsed = time.monotonic() - trainer.started
        pause = max(_SECONDS_BETWEEN, elapsed * _SHARE_BETWEEN, cost * _TIMES_THE_COST)
        self._next = elapsed + pause

    def _text(self, trainer: "Trainer") -> dict[str, Any]:
        writer = writer_of(trainer)
        text = writer.generate(self._beginning, max_new_tokens=_TOKENS, seed=trainer.config.seed)
        written = _WORD.findall(text[len(self._beginning) :])

        known = None
        unknown = None
        if self._known_words is not None:
            missed = [word for word in written if word.casefold() not in self._known_words]
            known = len(written) - len(missed)
            unknown = list(dict.fromkeys(missed))

        return {
            "step": trainer.state.step,
            "seconds": round(time.monotonic() - trainer.started, 3),
            "beginning": self._beginning,
            "text": text,
            "words": len(written),
            "known": known,
            "unknown": unknown,
            **self._looks(trainer),
        }

    def _looks(self, trainer: "Trainer") -> dict[str, Any]:
        """How much each head attends to each token of the beginning, from the last one."""
        if network_name(trainer.model) != GPT_NAME or not self._beginning:
            return {"tokens": None, "looks": None}

        tokenizer = trainer.dataset.tokenizer
        ids = tokenizer.encode(self._beginning)[-trainer.context_length :]
        attention = glass_of(trainer.model).record(np.array(ids)).attention
        return {
            "tokens": [visible(tokenizer.token_bytes(i)) for i in ids],
            "looks": attention[:, :, -1].round(3).tolist(),  # (num_layers, num_heads, T)
        }


def _tokens_to_look_up(trainer: "Trainer") -> int:
    """How many tokens of the training text there is time to look through."""
    seconds = 60 * trainer.config.minutes if trainer.config.steps is None else 0.0
    return int(max(_LOOKING_UP * seconds, 0.25) * _TOKENS_A_SECOND)


def _words_of(dataset: "Dataset", most: int) -> set[str] | None:
    """The words of the training text, in small letters; None if it is longer than `most` tokens."""
    if len(dataset.train) > most:
        return None
    text = dataset.tokenizer.decode(dataset.train[:].tolist())
    whole = _WORD.findall(text)[:-1]  # the last one may have been cut
    return set(map(str.casefold, whole))
