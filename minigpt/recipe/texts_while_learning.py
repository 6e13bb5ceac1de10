"""What a model writes while it learns: a callback that adds texts to samples.jsonl in the run's
journal. Whoever reads them sees the model learn.
"""

import re
import time
from typing import Any

import numpy as np

from .. import UserError
from ..config import GPT_NAME, PLAIN, SampleConfig
from ..data.batches import Dataset
from ..generation.beginnings import first_words
from ..generation.numpy_gpt import NumpyGPT
from ..generation.torch_gpt import network_name
from ..generation.writer import Writer
from ..measure.copied import writer_of
from ..system.networks import evaluating
from ..system.shown import plural, visible
from ..training.callbacks import Figures, Training
from ..training.messages import say_text_of_a_model

_TOKENS_OF_EVALUATION = 80
_TOKENS = 60  # of each other text
_TOKENS_LOOKED_AT = 10_000  # of the training text, for the first sentence
# The time from one of these texts to the next is the longest of three:
_SECONDS_BETWEEN = 3.0
_SHARE_BETWEEN = 1 / 50  # of the time so far, so that a long training writes few texts
_TIMES_THE_COST = 50  # what writing a text takes, so that a fiftieth of the time goes into it

# To find the words of the training text
_LOOKING_UP = 0.005  # share of the time that this may take
_TOKENS_A_SECOND = 2e6  # that are looked through
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


class Samples:
    """Writes a text after each evaluation, which is shown too, and others every few seconds, the
    first before the first step. Each is a row with

    - `step`, `seconds`: when it was written
    - `is_evaluation`: whether by the weights that were evaluated then
    - `beginning`, `text`: what the text begins with, and all of it. All have the same seed and the
      same beginning, which is never empty
    - `words`, `known`: how many words were written, and how many of them are in the training text
    - `unknown`: the other words, each once; null, like `known`, if the training text is too long to
      look through
    - `tokens`, `looks`: the tokens of the beginning, and how much each head of each layer attends
      to each of them from the last one; null for a network that is no `GPT`
    """

    only_reports = True
    hears_late = True
    _known_words: set[str] | None = None
    _next = 0.0  # when the next text is due, in seconds since the start

    def __init__(self, usual: SampleConfig = PLAIN):
        """`usual` is how the texts are sampled."""
        self._usual = usual

    def on_start(self, trainer: Training, figures: Figures) -> None:
        self._prompt = trainer.config.sample_prompt or usual_prompt(trainer.dataset)
        journal = trainer.folder.journal
        if journal is None:
            return
        self._known_words = _words_to_know(trainer)

        # A run at its beginning keeps none: those of step 0 are of an attempt that failed.
        step = trainer.state.step
        journal.drop_texts_after(step if step > 0 else -1)
        self._write(trainer)

    def on_step(self, trainer: Training, figures: Figures) -> None:
        if figures["seconds"] >= self._next:
            self._write(trainer)

    def on_evaluation(self, trainer: Training, figures: Figures) -> None:
        writer = writer_of(trainer, self._usual)
        seed = trainer.config.seed
        text = writer.generate(self._prompt, max_new_tokens=_TOKENS_OF_EVALUATION, seed=seed)
        say_text_of_a_model(text)
        journal = trainer.folder.journal
        if journal is not None:
            row = self._row(trainer, writer, text, is_evaluation=True)
            journal.add_text(row)

    def on_end(self, trainer: Training, figures: Figures) -> None:
        """The last text is that of the weights which are kept."""
        if trainer.state.finished:
            self._write(trainer)

    def _write(self, trainer: Training) -> None:
        """Add a text by the present weights, and decide when the next one is due."""
        journal = trainer.folder.journal
        if journal is None:
            return
        start = time.monotonic()
        with evaluating(trainer.model):
            writer = writer_of(trainer, self._usual)
            seed = trainer.config.seed
            text = writer.generate(self._prompt, max_new_tokens=_TOKENS, seed=seed)
            row = self._row(trainer, writer, text, is_evaluation=False)
            journal.add_text(row)

        cost = time.monotonic() - start
        elapsed = time.monotonic() - trainer.started
        pause = max(_SECONDS_BETWEEN, elapsed * _SHARE_BETWEEN, cost * _TIMES_THE_COST)
        self._next = elapsed + pause

    def _row(
        self, trainer: Training, writer: Writer, text: str, *, is_evaluation: bool
    ) -> dict[str, Any]:
        prompt = self._prompt
        written = _WORD.findall(text[len(prompt) :])
        known = None
        unknown = None
        if self._known_words is not None:
            missed = [word for word in written if word.casefold() not in self._known_words]
            known = len(written) - len(missed)
            unknown = list(dict.fromkeys(missed))

        return {
            "step": trainer.state.step,
            "seconds": round(time.monotonic() - trainer.started, 3),
            "is_evaluation": is_evaluation,
            "beginning": prompt,
            "text": text,
            "words": len(written),
            "known": known,
            "unknown": unknown,
            **_looks(trainer, writer, prompt),
        }


def _looks(trainer: Training, writer: Writer, prompt: str) -> dict[str, Any]:
    """How much each head attends to each token of a prompt, from the last one."""
    # The glass engine, if it writes, is that of a GPT.
    is_gpt = isinstance(writer.engine, NumpyGPT) or network_name(trainer.model) == GPT_NAME
    if not is_gpt or not prompt:
        return {"tokens": None, "looks": None}

    tokenizer = writer.tokenizer
    ids = tokenizer.encode(prompt)[-trainer.context_length :]
    attention = writer.glass.record(np.array(ids)).attention
    return {
        "tokens": [visible(tokenizer.token_bytes(i)) for i in ids],
        # (num_layers, num_heads, T), in the type in which three digits are written as three
        "looks": attention[:, :, -1].astype(float).round(3).tolist(),
    }


# What texts begin with


def usual_prompt(dataset: Dataset) -> str:
    """What shown texts of a model begin with: the first words of a sentence of its training text
    or, if that is conversations, the name of a speaker, as a turn begins; the one whose turns are
    learned, if only one's are."""
    origin = dataset.origin
    dialogue = origin.dialogue
    if dialogue is None:
        return first_words(dataset.tokenizer.decode(dataset.train[:_TOKENS_LOOKED_AT].tolist()))
    only = None if origin.text is None else origin.text.only
    speaker = dialogue.most_frequent() if only is None else dialogue.find(only)
    return dialogue.opening(speaker)


def check_sample_prompt(trainer: Training) -> None:
    """Refuse a --sample-prompt that the tokenizer cannot encode, or that the model cannot read at
    once."""
    prompt = trainer.config.sample_prompt
    if not prompt:
        return

    try:
        length = len(trainer.dataset.tokenizer.encode(prompt))
    except UserError as problem:
        raise UserError(f"--sample-prompt cannot be used: {problem}") from None
    if length > trainer.context_length:
        context = plural(trainer.context_length, "token")
        raise UserError(
            f"--sample-prompt is {plural(length, 'token')} long, more than the context of "
            f"{context}; choose a shorter one"
        )


# The words of the training text


def _words_to_know(trainer: Training) -> set[str] | None:
    """The words of the training text, in small letters; None if there is no time to look through
    all of it."""
    dataset = trainer.dataset
    seconds = 60 * trainer.config.minutes if trainer.config.steps is None else 0.0
    if len(dataset.train) > int(max(_LOOKING_UP * seconds, 0.25) * _TOKENS_A_SECOND):
        return None
    text = dataset.tokenizer.decode(dataset.train[:].tolist())
    whole = _WORD.findall(text)[:-1]  # the last one may have been cut
    return set(map(str.casefold, whole))
