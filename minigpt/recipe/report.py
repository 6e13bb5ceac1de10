"""What `train` tells of a run before and after it trains: the text, the plan, the result."""

import math
import textwrap
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from .. import UserError
from ..config import GPT_NAME, GPTConfig, TextConfig, counted
from ..config.system import quote
from ..data.dialogue.dialogue import MANNER, Dialogue
from ..data.documents.summary import all_left_out, documents_read, kinds_read
from ..data.readers import title
from ..data.source import Source
from ..data.voices import list_names
from ..generation.talk import read_talk
from ..runs.base import BASE, bytes_read
from ..runs.commands import command, started_as
from ..runs.folder import (
    COUNTING,
    INTERPOLATION,
    KEPT,
    METRICS,
    WEIGHTS,
    best_by_voice,
    read_metrics,
)
from ..runs.kept import kept_steps, listed
from ..runs.listing import unfinished_run
from ..runs.weights import read_best, read_network
from ..tokenizer import ForeignTokenizer
from ..training.messages import clock, duration, print_result, say, say_command, say_row

if TYPE_CHECKING:
    from ..data.batches import Dataset
    from ..training.trainer import Trainer
    from .plan import Plan

_LEARNED_BY_HEART = 0.8  # of the steps: if the loss was lowest before, it has risen since
BITS = (  # what is meant by bits/byte
    "the bits that would store one byte, a letter or a part of one, with the model's help; fewer "
    "is better, without help it takes 8"
)


def say_text(source: Source) -> None:
    """What was read, and what a person should know of it."""
    files, size = source.training.files, source.training.scan.text_bytes
    reports = source.training.scan.reports
    names = title(files[0]) if len(files) == 1 else counted(len(files), "file")
    kinds = kinds_read(reports)
    if kinds:
        names += f" ({kinds}), {documents_read(reports)}"
    say_row("text", f"{names}, {tqdm.format_sizeof(size, 'B')}")
    left_out = all_left_out(reports)
    if left_out:
        say_row("", f"left out: {left_out}")
    _say_conversations(source)
    if source.voices:
        counts = Counter(source.training.document_voices)
        named = [f"{voice} ({counted(counts[voice], 'document')})" for voice in source.voices]
        say_row("voices", f"{list_names(named)}; --as NAME writes in one")
    if size < 1000:  # nobody learns a language from so little
        say_row("", "less than 1,000 bytes can only be learned by heart; give it more text")


def _say_conversations(source: Source) -> None:
    """What conversations there are, and who speaks in them; nothing of a text without."""
    talk = source.training.scan.talk
    if talk is None:
        return
    speakers = Dialogue(talk.speakers).listed()
    where = "in a text that stays as it is"
    if talk.conversations:
        where = f"in {counted(talk.conversations, 'conversation')}"
    say_row("talk", f"{speakers} {where}; --plain reads it as any text")

    if source.training.reading.anonymous:
        say_row("", "the speakers are called A, B, C; names inside what they say stay")
    if source.voices:
        say_row("", "beside --voices the model continues a prompt and does not answer it")
    elif source.dialogue is None:
        say_row("", "most of the text is none: the model continues a prompt and does not answer it")
    else:
        say_row("", f"the model can be talked with: {MANNER}")


def say_unfinished(text: TextConfig, source: Source) -> None:
    """If a run on the same text was not finished: where it is, and how to continue it."""
    if folder := unfinished_run(text, source.fingerprint):
        resume = f"{command('train')} --resume --out {quote(str(folder))}"
        say_command(f"{folder} is an unfinished run on this text; to continue it instead", resume)


def say_plan(plan: "Plan") -> list[str]:
    """Print what was measured and why the plan is as it is; the lines."""
    lines = reasons(plan)
    for i, line in enumerate(lines):
        say_row("plan" if i == 0 else "", line)
    return lines


def reasons(plan: "Plan") -> list[str]:
    """What was measured, and why the plan is as it is: a few lines."""
    from .speed import LESSON  # it loads torch; a report of what was read does not

    lines = []
    if plan.speed is not None:
        operations = f"{plan.speed.flops / 1e9:,.0f} billion operations a second"
        extent = f"{counted(plan.steps, 'step')} in {duration(plan.seconds)}"
        who = "a lesson counts with" if plan.speed == LESSON else "this machine computes"
        lines.append(f"{who} {operations}: about {extent}")
    if plan.max_characters is not None:
        most = f"{plan.max_characters / 1e6:,.0f} million characters"
        lines.append(f"of this long text {most} are used, from all over it")
    lines.extend(lines_of_beginning(plan))
    lines.extend(plan.reasons)

    often = f"{plan.epochs:.1%} of the text is read"
    if plan.epochs >= 1:
        often = f"the text is read {plan.epochs:,.1f} times"
    if plan.model.dropout and plan.epochs >= 1:
        often += f", so dropout {plan.model.dropout:g} keeps it from being learned by heart"
    lines.append(often)

    harder = []
    if plan.token_split_prob > 0:
        harder.append(f"{plan.token_split_prob:.0%} of the tokens are split in two")
    if plan.warmup_context < plan.model.context_length:
        seen = counted(plan.warmup_context, "token")
        harder.append(f"the model sees only {seen} at a time")
    if harder:
        lines.append(f"until the last fifth {' and '.join(harder)}, which makes training harder")

    if plan.bits_per_byte is not None:
        lines.append(f"expected: about {plan.bits_per_byte:.2g} bits/byte ({BITS})")
    if plan.ends_early:
        lines.append(
            f"ends early: after {plan.max_epochs:g} readings more would only be learned by heart"
        )
    return lines


def lines_of_beginning(plan: "Plan") -> list[str]:
    """What a training begins with, and why: a line where that was chosen or measured."""
    if plan.init is None:
        if plan.with_base is None or plan.from_nothing is None:
            return []
        expected = f"about {plan.from_nothing:.3g} bits/byte"
        other = f"the base would not end clearly lower (about {plan.with_base:.3g})"
        return [f"begins from nothing: {expected}; {other}"]
    if plan.text.before is None:
        return []

    name = _called(plan.init)
    if plan.init == BASE:
        size = bytes_read()
        if size is not None:
            name += f", which has read {size / 1e6:,.0f} MB of English"
    line = f"begins with {name}: {plan.text.before:.3g} bits/byte on this text"
    if plan.from_nothing is not None:
        line += f" before the first step; from nothing about {plan.from_nothing:.3g} at the end"
    return [line]


def _called(init: str) -> str:
    """What a model that a training begins with is called in a sentence."""
    return "the base" if init == BASE else init


def say_run(trainer: "Trainer") -> None:
    """What is about to be done, in a few plain lines."""
    say_row("tokens", _tokens(trainer.dataset))
    say_row("model", _network(trainer))
    say_row("training", _training(trainer))
    if trainer.config.keep is not None:
        say_row("keeping", _keeping(trainer))
    say_row("run", f"{trainer.out} (Ctrl-C saves and stops, twice stops at once)")


def _keeping(trainer: "Trainer") -> str:
    """Of how many steps weights are kept, where, and how much of the disk they take."""
    from ..model import tensors_of

    keep, steps = trainer.config.keep, trainer.config.steps
    assert keep is not None
    assert trainer.out is not None
    if steps is not None:  # there may be fewer
        keep = min(keep, steps + 1)
    one = sum(t.numel() * t.element_size() for t in tensors_of(trainer.model).values())
    sizes = f"{tqdm.format_sizeof(one, 'B')} each, {tqdm.format_sizeof(keep * one, 'B')} together"
    return f"the weights of {keep} steps, from step 0 to the last, in {trainer.out / KEPT}: {sizes}"


def _tokens(dataset: "Dataset") -> str:
    """How many tokens there are, and what made them."""
    tokenizer = dataset.tokenizer
    made_by = ""
    text = dataset.origin.text
    if isinstance(tokenizer, ForeignTokenizer):
        made_by = f" ({tokenizer.name})"
    elif text is not None:
        made_by = f" from {text.init}" if text.init else f" ({text.tokenizer})"
    training = len(dataset.train)
    validation = len(dataset.validation)
    aside = validation / (training + validation)
    return (
        f"{training:,} pieces of text to train on, {validation:,} ({aside:.0%}) to validate on, "
        f"{tokenizer.vocab_size:,} different ones{made_by}"
    )


def _network(trainer: "Trainer") -> str:
    """What is trained, and how large it is."""
    size = sum(parameter.numel() for parameter in trainer.model.parameters())
    millions = f"{size / 1e6:.2f} M parameters"
    config = getattr(trainer.model, "config", None)
    if not isinstance(config, GPTConfig):
        name = type(trainer.model).__name__
        return f"{name}, {millions}, context {trainer.context_length}"
    return (
        f"{config.kind}, {millions}: {counted(config.num_layers, 'layer')} of width "
        f"{config.emb_dim}, {counted(config.num_heads, 'head')}, context {config.context_length}"
    )


def _training(trainer: "Trainer") -> str:
    """How long it is trained, by what, and on how much at a time."""
    import torch

    from ..training.distributed import world_size

    training = trainer.config
    goal = duration(60 * training.minutes)
    if training.steps:
        goal = counted(training.steps, "step")
        if training.lesson:
            goal += f", a lesson of {duration(60 * training.minutes)},"
    device = trainer.device.type
    if world_size() > 1:
        device = f"{world_size()} processes, each {device}"
    if trainer.device.type == "cpu":
        threads = 1 if training.lesson else torch.get_num_threads()
        device += f" with {counted(threads, 'thread')}"

    batch = f"{training.batch_size} x {trainer.context_length} tokens a step"
    row = f"{goal} on {device} in {training.precision}, {batch}"
    config = getattr(trainer.model, "config", None)
    if isinstance(config, GPTConfig):
        row += f", dropout {config.dropout:g}"
    return f"{row}, seed {training.seed}"


def say_result(trainer: "Trainer") -> None:
    """The loss that was reached, why the training ended, how good that is, and what to do next."""
    state, training, folder = trainer.state, trainer.config, trainer.out
    assert folder is not None
    best = state.best_bits_per_byte or math.inf
    if not math.isfinite(best):
        raise UserError(f"nothing could be saved in {folder}")

    text_length = len(trainer.dataset.train)
    epochs = state.step * trainer.text_tokens_per_step / text_length
    has_read_enough = training.steps is None and epochs >= (training.max_epochs or math.inf)
    seconds = time.monotonic() - trainer.started
    say(
        f"done in {clock(seconds)}, {counted(state.step, 'step')}: {_why(trainer, seconds, epochs)}"
    )
    loss = f"{best:.4f} bits/byte ({state.best_loss:.4f} nats/token)"
    print_result(f"{folder}: validation {loss} at step {state.best_step:,}")
    for line in voice_lines(best_by_voice(read_metrics(folder / METRICS))):
        print_result(line)
    _say_interpolation(trainer)
    _say_kept(folder)

    is_better = True
    counting = trainer.figures.get(COUNTING)
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
    _say_next(trainer, folder)


def _say_kept(folder: Path) -> None:
    """Of which steps weights are kept, and how to name one."""
    steps = kept_steps(folder)
    if steps:
        last = f"{folder}@{steps[-1]}"
        say(f"kept: the weights of step {listed(steps)}; {last} names the last of them")


def voice_lines(bits: Mapping[str, float]) -> list[str]:
    """The bits per byte of each voice, a line each, the lowest first."""
    if not bits:
        return []
    width = max(map(len, bits))
    ordered = sorted(bits.items(), key=lambda item: item[1])
    return [f"  {name:<{width}}  {value:.4f} bits/byte" for name, value in ordered]


def _say_interpolation(trainer: "Trainer") -> None:
    """Where the weights that were kept lie, if that is between the first and the trained ones."""
    share = trainer.figures.get(INTERPOLATION, 1.0)
    if share < 1.0 and trainer.figures["is_best"]:
        text = trainer.dataset.origin.text
        start = "the first weights" if text is None or text.init is None else _called(text.init)
        way = f"{100 * share:g}% of the way from {start} to the trained ones"
        say(f"the weights that are kept lie {way}: the loss is lowest there")


def _why(trainer: "Trainer", seconds: float, epochs: float) -> str:
    """Why a training has ended that took so many seconds and read the text so often."""
    training = trainer.config
    if training.steps is not None:
        is_short = trainer.state.step < training.steps
        if is_short:
            return "a callback has ended it"
        asked = f"a lesson of {duration(60 * training.minutes)} has" if training.lesson else ""
        return f"as many as {asked or 'asked for'}"
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
    voices = trainer.dataset.origin.voices
    prompt = trainer.config.sample_prompt or first_words(trainer.dataset)
    own_parts = []  # which no command can make
    if read_network(folder / WEIGHTS) != GPT_NAME:
        own_parts.append("model=...")
    if isinstance(trainer.dataset.tokenizer, ForeignTokenizer):
        own_parts.append("tokenizer=...")
    if own_parts:
        load = f"minigpt.load({', '.join([repr(str(folder)), *own_parts])})"
        say_command("to generate", f"{load}.generate({prompt!r})")
        return

    run = quote(str(folder))
    say_command("to see it think", f"{command('page')} {run} --open")
    if dialogue is not None and started_as() is not None:
        text = trainer.dataset.origin.text
        only = None if text is None else text.only
        answerer = read_talk(dialogue, prompt, only).answerer
        talk = f"--interactive --as {quote(answerer)} --run {run}"
        say_command(f"to talk with it ({MANNER})", f"{command('generate')} {talk}")
        return
    if started_as() is not None:
        voice = f" --as {quote(voices[0])}" if voices else ""
        typed = f"{quote(prompt)}{voice} --run {run}"
        say_command("to generate", f"{command('generate')} {typed}")
    else:
        voice = f".in_voice({voices[0]!r})" if voices else ""
        say_command("to generate", f"minigpt.load({str(folder)!r}){voice}.generate({prompt!r})")


def beside_counting(best: float, counting: float, counted_tokens: int, text_length: int) -> str:
    """A model's bits per byte beside those of counting so many tokens of the training text."""
    counts = "counting which token follows which four"
    if counted_tokens < text_length:
        counts += f", in {counted_tokens:,} tokens of the text,"
    gives = f"{counts} gives {counting:.3f} bits/byte on the same text"

    saved = 1.0 - best / max(counting, 1e-9)
    if saved >= 0.005:
        return f"{gives}: attention saves {saved:.0%}"
    if saved > -0.005:
        return f"{gives}: the model is about as good"
    return f"{gives}: the model is not as good yet"


def first_words(dataset: "Dataset") -> str:
    """The beginning of the first line that has letters or digits, to try as a prompt."""
    lines = dataset.tokenizer.decode(dataset.train[:400].tolist()).splitlines()
    line = next((line.strip() for line in lines if any(map(str.isalnum, line))), "")
    return textwrap.shorten(line, 24, placeholder="", break_long_words=False) or line[:24]


def say_interrupted(folder: Path, is_saved: bool) -> None:
    """What is left of a training that was interrupted, and how to continue it."""
    last = "could not be saved"
    if is_saved:
        last = f"is in {folder}/checkpoint"
    best = "could not be saved"
    if read_best(folder / WEIGHTS) is not None:
        best = f"are in {folder / WEIGHTS}"
    say(f"interrupted: the best weights {best}, the last state {last}")
    say_command("to continue it", f"{command('train')} --resume --out {quote(str(folder))}")
