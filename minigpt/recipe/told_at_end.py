"""What `train` tells of a run when it ends: the loss, how good that is, what to do next."""

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .. import UserError
from ..config import GPT_NAME, SampleConfig
from ..data.dialogue import MANNER
from ..generation.talk import read_talk
from ..runs.folder import (
    COUNTING_BITS,
    GENERATION,
    INTERPOLATION,
    WEIGHTS,
    kept_steps,
    listed,
)
from ..runs.listing import why_not_continued
from ..runs.weights import read_best, read_network
from ..system.commands import command, started_as
from ..system.platforms import quote, quote_path
from ..system.shown import plural
from ..tokenizer import ForeignTokenizer
from ..training.messages import clock, duration, print_result, say, say_command
from .texts_while_learning import usual_prompt
from .told_at_start import called

if TYPE_CHECKING:
    from ..training.trainer import Trainer

_LEARNED_BY_HEART = 0.8  # of the steps: a loss that was lowest before this has risen since


def say_result(trainer: "Trainer", usual: SampleConfig) -> None:
    """The loss that was reached, why the training ended, how good that is, and what to do next."""
    state = trainer.state
    training = trainer.config
    folder = trainer.folder.path
    assert folder is not None
    best = state.best_bits_per_byte
    if best is None or not math.isfinite(best):
        raise UserError(f"nothing could be saved in {folder}")

    text_length = len(trainer.dataset.train)
    epochs = state.step * trainer.tokens_per_step / text_length
    has_read_enough = training.steps is None and epochs >= (training.max_epochs or math.inf)
    seconds = time.monotonic() - trainer.started
    say(f"done in {clock(seconds)}, {plural(state.step, 'step')}: {_why(trainer, seconds, epochs)}")
    loss = f"{best:.4f} bits/byte ({state.best_loss:.4f} nats/token)"
    print_result(f"{folder}: validation {loss} at step {state.best_step:,}")
    _say_interpolation(trainer)
    if training.keep is not None:
        _say_kept(folder)

    is_better = True
    counting = trainer.figures.get(COUNTING_BITS)
    if counting is not None:
        is_better = best < counting
        say(beside_counting(best, counting, trainer.figures["counted_tokens"], text_length))

    rose_early = epochs > 1 and state.best_step < _LEARNED_BY_HEART * state.step
    if has_read_enough or (rose_early and not is_better):
        say("to do better: more text; more minutes would not help")
    elif training.steps is None or training.lesson:
        more = next((m for m in (1, 5, 20, 60, 240) if m >= 3 * training.minutes), 1000)
        say(f"to do better: --minutes {more}")
    elif not is_better:
        say(f"to do better: --steps {3 * state.step}")
    say(sampled_as(usual))
    _say_next(trainer, folder)


def sampled_as(usual: SampleConfig) -> str:
    """How a run is sampled if nothing else is given, in a line."""
    temperature = f"it writes at temperature {usual.temperature:g}"
    if usual.dry_multiplier == 0.0:
        return temperature
    repeats = f"avoids repeating more than {plural(usual.dry_allowed_length, 'token')} in a row"
    return f"{temperature} and {repeats} ({GENERATION})"


def _say_kept(folder: Path) -> None:
    """Of which steps weights are kept, and how to name one."""
    kept = kept_steps(folder)
    if kept:
        last = f"{folder}@{kept[-1]}"
        say(f"kept: the weights of step {listed(kept)}; {last} names the last of them")


def _say_interpolation(trainer: "Trainer") -> None:
    """Where the weights that were kept lie, if that is between the first and the trained ones."""
    share = trainer.figures.get(INTERPOLATION, 1.0)
    if share < 1.0 and trainer.figures["is_kept"]:
        text = trainer.dataset.origin.text
        start = "the first weights" if text is None or text.init is None else called(text.init)
        way = f"{100 * share:g}% of the way from {start} to the trained ones"
        say(f"the weights that are kept lie {way}: beyond, the loss is higher")


def _why(trainer: "Trainer", seconds: float, epochs: float) -> str:
    """Why a training has ended that took so many seconds and read the text so often."""
    training = trainer.config
    if training.steps is not None:
        if training.lesson:
            return f"as many as a lesson of {duration(60 * training.minutes)} has"
        return "as many as asked for"

    if epochs >= (training.max_epochs or math.inf):
        return f"the text was read {epochs:.0f} times, more would only teach it by heart"

    why = f"the {duration(60 * training.minutes)} are over"
    if seconds > 66 * training.minutes + 1:
        aside = clock(seconds - trainer.state.seconds)
        why += f", of which starting and ending took {aside}"
    return why


def _say_next(trainer: "Trainer", folder: Path) -> None:
    """What to do with the run now."""
    dialogue = trainer.dataset.origin.dialogue
    asked_for = trainer.config.sample_prompt
    prompt = asked_for or usual_prompt(trainer.dataset)

    own_parts = []  # which no command can make
    if read_network(folder / WEIGHTS) != GPT_NAME:
        own_parts.append("model=...")
    if isinstance(trainer.dataset.tokenizer, ForeignTokenizer):
        own_parts.append("tokenizer=...")

    if own_parts:
        load = f"minigpt.load({', '.join([repr(str(folder)), *own_parts])})"
        say_command("to generate", f"{load}.generate({prompt!r})")
        return

    run = quote_path(folder)
    is_like_an_option = prompt.startswith("-")
    argument = quote(prompt.replace("\\", "\\\\"))  # `generate` reads \n as a new line
    if is_like_an_option:
        argument = f"-- {argument}"
    say_command("to see it think", f"{command('page')} {run} --open")
    if dialogue is not None and started_as() is not None:
        text = trainer.dataset.origin.text
        only = None if text is None else text.only
        answerer = read_talk(dialogue, asked_for, only).answerer
        talk = f"--interactive --as {quote(answerer)} --run {run}"
        say_command(f"to talk with it ({MANNER})", f"{command('generate')} {talk}")
        return

    if started_as() is not None:
        say_command("to generate", f"{command('generate')} --run {run} {argument}")
    else:
        say_command("to generate", f"minigpt.load({str(folder)!r}).generate({prompt!r})")


def beside_counting(best: float, counting: float, counted_tokens: int, text_length: int) -> str:
    """A model's bits per byte beside those of counting so many tokens of the training text."""
    counts = "counting which token follows which four"
    if counted_tokens < text_length:
        counts += f", in {counted_tokens:,} tokens of the text,"
    gives = f"{counts} gives {counting:.3f} bits/byte on the same text"

    saved = 1.0 - best / max(counting, 1e-9)
    if saved >= 0.005:
        return f"{gives}: the model needs {saved:.0%} fewer bits"
    if saved > -0.005:
        return f"{gives}: the model is about as good"
    return f"{gives}: the model is not as good yet"


def say_interrupted(folder: Path, is_saved: bool) -> None:
    """What is left of a training that was interrupted, and how to continue it, or why the command
    cannot."""
    last = "could not be saved"
    if is_saved:
        last = f"is in {folder}/checkpoint"
    best = "could not be saved"
    if read_best(folder / WEIGHTS) is not None:
        best = f"are in {folder / WEIGHTS}"
    say(f"interrupted: the best weights {best}, the last state {last}")
    why_not = why_not_continued(folder)
    if why_not is not None:
        say(f"--resume cannot continue it: {why_not}")
        return
    say_command("to continue it", f"{command('train')} --resume --out {quote_path(folder)}")
